"""Figures of pages are those that benchmarks kept: docs/benchmarks.md is made of them."""

import json
import re
import shlex
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
import sklearn

import tests.benchmarks.records as kept_records
from docs.benchmarks import DOCS, PAGE, SCRIPTS, SECTIONS, bars_of, drawn, page
from tests.benchmarks.records import (
    FOLDER,
    TOPICS,
    Record,
    number_of,
    parsed,
    parser_of,
    read,
    record,
)

ROOT = DOCS.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

ALL = [one for topic in TOPICS for one in read(topic)]

MOST_WORDS = 25
"""In a cell of the page."""

PARSE = """
import argparse, json, os, runpy, shlex, sys
class Parsed(BaseException): pass
def parse(self, *given):
    plain(self, *given)
    raise Parsed
plain, argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_args, parse
wrong = []
for command in json.load(sys.stdin):
    sys.argv = shlex.split(command)[1:]
    sys.path[0] = os.path.dirname(sys.argv[0])
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except Parsed:
        continue
    except (OSError, SystemExit):
        pass
    wrong.append(command)
print(json.dumps(wrong))
"""
"""Runs scripts until they have read their command lines; prints those that were refused."""


def refused(commands: list[str]) -> list[str]:
    """Commands whose script is not there, or does not know an option or a section."""
    done = subprocess.run(
        [sys.executable, "-c", PARSE], input=json.dumps(commands), cwd=ROOT, check=True,
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(after: str) -> list[list[str]]:
    """Cells of the rows of README's first table after some words, without bold and code."""
    rows = README.partition(after)[2].partition("\n|---")[2].partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip(" *`") for cell in row.split("|")[1:-1]] for row in rows]


@pytest.mark.parametrize("asked", [True, False])
def test_the_newest_figure_of_a_machine_is_kept(
    asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the place of the one before, if that is asked for, with the command without own paths."""
    monkeypatch.setattr(kept_records, "FOLDER", tmp_path)
    monkeypatch.setattr(kept_records, "commit", lambda: "abc1234")
    words = ["tests/benchmarks/kernel.py", "--data", "/own/folder", *["--record"] * asked]
    monkeypatch.setattr(sys, "argv", words)
    parsed(parser_of("", data=True))
    for seconds in (2.0, 4.0):
        peers = {"LIBSVM": 8.0, "other==1.2": None}
        record("svm", "a fit", seconds, "s", peers, scores=(0.9, 0.8))
        record("svm", "another", 3.0, "MB/s", {"LIBSVM": 6.0})
    if not asked:
        assert list(tmp_path.iterdir()) == []
        return
    first, second = read("svm")
    assert (first.what, first.figure, first.score, second.what) == ("a fit", 4.0, 0.9, "another")
    assert first.command == "python tests/benchmarks/kernel.py --data DIR"
    libsvm, other = first.peers
    assert (libsvm.ratio, libsvm.version, libsvm.score) == (2.0, sklearn.__version__, 0.8)
    assert (other.name, other.version, other.figure, other.ratio) == ("other", "1.2", None, None)
    assert second.peers[0].ratio is None  # more is better there
    assert first.commit == "abc1234"


def test_the_page_is_made_of_the_records() -> None:
    """Run `python -m docs.benchmarks` where it is not."""
    assert PAGE.read_text(encoding="utf-8") == page()
    assert {file.stem for file in FOLDER.iterdir()} == set(TOPICS) == set(SECTIONS)


def test_cells_of_the_page_are_short() -> None:
    """One idea each."""
    rows = [line for line in page().splitlines() if line.startswith("| ")]
    assert len(rows) == len(ALL) + len(TOPICS)
    assert max(len(cell.split()) for row in rows for cell in row.split("|")) <= MOST_WORDS


@pytest.mark.parametrize("topic", TOPICS)
def test_pictures_show_the_records(topic: str) -> None:
    """Every bar has its name and figure; matplotlib's versions draw the rest each in its way."""
    svg = (DOCS / "benchmarks" / f"{topic}.svg").read_text(encoding="utf-8")
    texts = [unescape(text).strip() for text in re.findall(r"<text[^>]*>([^<]*)<", svg)]
    bars = [bar for one in drawn(topic) for bar in bars_of(one)]
    expected = [f"{name} {number_of(figure)}" for name, figure in bars]
    assert sorted(set(expected) - set(texts)) == []
    assert len(bars) > 1
    assert "prefers-color-scheme:dark" in svg


@pytest.mark.slow(seconds=20)
def test_commands_can_be_run_again() -> None:
    """Scripts are there and know their options; so does `dhsk`, and the tests are there."""
    commands = sorted({one.command for one in ALL})
    scripts = [one for one in commands if one.startswith(SCRIPTS)]
    assert len(scripts) > 20
    absent = [f"{SCRIPTS}absent.py", f"{SCRIPTS}kernel.py --absent", f"{SCRIPTS}gram.py absent"]
    assert refused([*scripts, *absent]) == absent
    for command in set(commands) - set(scripts):
        program, *words = shlex.split(command)
        assert program == "pytest", command
        assert all((ROOT / word).is_file() for word in words), command


def test_figures_of_readme_are_those_of_the_records() -> None:
    """Seconds beside those of a peer, by their command."""
    rows = table("## How fast")
    assert len(rows) >= 3
    for what, own, peer, command in rows:
        known = [
            (one.own.partition(" (")[0], f"{number_of(theirs.figure or 0)} {one.unit}")
            for one in ALL
            if one.command == command
            for theirs in one.peers
        ]
        assert (own, " ".join(peer.split()[-2:])) in known, what


def test_comparison_of_readme_is_that_of_the_records() -> None:
    """Scores and seconds of the heat kernel, also on tf-idf where that is better, and of others."""
    rows = [cells[1:] for cells in table("## Is it for me?")]
    assert len(rows) >= 4
    kept = {one.what: one for one in ALL if "/habits.py" in one.command}
    known = [compared(kept, what) for what in kept if what.endswith(", heat")]
    assert [row for row in rows if row not in known] == []


def compared(kept: dict[str, Record], what: str) -> list[str]:
    """Cells of a row of README's comparison."""
    heat, on_tfidf = kept[what], kept.get(f"{what} on tf-idf")
    own, taken = f"{heat.score:.3f}", heat.figure
    if on_tfidf and (on_tfidf.score or 0) > (heat.score or 0):
        own, taken = f"{own}; on tf-idf {on_tfidf.score:.3f}", taken + on_tfidf.figure
    scores = [f"{peer.score:.3f}" for peer in heat.peers]
    return [
        own,
        *scores,
        *(number_of(one or 0) for one in (taken, *(p.figure for p in heat.peers))),
    ]


def test_speed_of_svc_in_readme_is_that_of_the_records() -> None:
    """The least and the most, of twelve fits."""
    ratios = [p.ratio for one in read("svc") for p in one.peers if p.name == "LIBSVM" and p.ratio]
    said = re.search(r"([\d.]+) to (\d+) times faster", README)
    assert said
    assert said.groups() == (f"{min(ratios):.1f}", f"{max(ratios):.0f}")


def test_table_of_svc_is_that_of_the_records() -> None:
    """Seconds of LIBSVM, scikit-learn-intelex and dhsk."""
    text = (DOCS / "svc.md").read_text(encoding="utf-8")
    table = re.findall(r"\| \d+ % \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", text)
    kept = [[*(peer.figure for peer in one.peers), one.figure] for one in read("svc")]
    assert len(table) == 12
    assert [row for row in table if [float(cell) for cell in row] not in kept] == []
