"""DESIGN.md is short, and its additions work: they are made in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dhsk

PACKAGE = Path(dhsk.__file__).parent
PAGE = (PACKAGE / "DESIGN.md").read_text()

MOST_WORDS = 4000
"""Half an hour, with the code blocks."""

FILES = dict(re.findall(r"^```python\n# (dhsk/\S+\.py)\n(.*?)^```$", PAGE, re.M | re.S))
"""New files: path and text."""

LINES = re.findall(r"^```diff\n\+\+\+ (dhsk/\S+\.py)\n(.*?)^```$", PAGE, re.M | re.S)
"""Lines in tables, each after one that is there: path, and lines that begin with a blank or +."""

KINDS = ("kernel", "sphere_map", "file_format", "command")


def with_lines(text: str, change: str) -> str:
    """The same text with new lines, each after the last line of the page that is not new."""
    after, text = "", "\n" + text
    for line in change.splitlines(keepends=True):
        mark, words = line[0], "\n" + line[1:-1]
        assert mark in " +"
        if mark == "+":
            assert text.count(after + "\n") == 1, f"{after!r} is there once"
            text = text.replace(after + "\n", after + words + "\n")
        after = words
    return text[1:]


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a copy of the package, compiled functions too, with all additions of the page."""
    folder: Path = tmp_path_factory.mktemp("larger")
    begun = shutil.ignore_patterns("*.tmp.*", "*.pyc.*")  # which other processes may write now
    shutil.copytree(PACKAGE, folder / "dhsk", ignore=begun)
    for name, text in FILES.items():
        assert not (folder / name).exists()
        (folder / name).write_text(text)
    for name, change in LINES:
        table = folder / name
        table.write_text(with_lines(table.read_text(), change))
    return folder


def test_a_newcomer_reads_it_in_half_an_hour() -> None:
    """Its words are bounded; what was tried and rejected stands beside the code."""
    assert len(PAGE.split()) <= MOST_WORDS


def test_an_addition_is_a_file_and_lines_of_one_table(larger: Path) -> None:
    """No module but the table changes, and none of its lines goes."""
    assert len(FILES) == len(LINES) == len(KINDS)
    assert len({name for name, _ in LINES}) == len(LINES)
    for name, change in LINES:
        before, after = ((root / name).read_text() for root in (PACKAGE.parent, larger))
        added = [line[1:] for line in change.splitlines() if line[0] == "+"]
        assert 1 <= len(added) <= 2  # an import, and the line of the table
        assert sorted(after.splitlines()) == sorted([*before.splitlines(), *added])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_additions_work_at_every_door(kind: str, larger: Path, tmp_path: Path) -> None:
    """In Python and on the command line, with the numbers that they should have."""
    code = f"from tests import additions; additions.{kind}()"
    paths = os.pathsep.join(map(str, (larger, Path(__file__).parents[1])))
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
