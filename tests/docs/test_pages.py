"""What the pages show is what happens: their Python and their commands run, from top to bottom."""

import doctest
import io
import re
import shlex
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner

from dhsk.commands.cli import commands

DOCS = Path(__file__).parents[2] / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(r"^```(python|console)\n(.*?)^```$", re.M | re.S)


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Language and text of what a page shows to be run: ``>>>`` or ``$``."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(kind, text) for kind, text in found if ">>>" in text or text.startswith("$ ")]


PAGES = [page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))]
RUN = [name for name in PAGES if blocks_of(DOCS / name)]


def heads(output: str) -> set[str]:
    """First words of lines; numbers, and lines that go on from others, are left out."""
    return set(re.findall(r"^(?: {2})?([A-Za-z(][^\W\d]*:?)", output, re.M))


def run_commands(text: str) -> list[str]:
    """Run each line after ``$``; return what differs from the lines below it.

    Numbers depend on the machine and on versions, so the first words of lines are compared. A line
    "..." stands for some that are left out.
    """
    wrong = []
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.M)[1:]:
        line, _, shown = part.partition("\n")
        name, *words = shlex.split(line, comments=True)
        assert name == "dhsk", f"only dhsk is run in pages, not {line}"
        result = CliRunner().invoke(commands, words, prog_name="dhsk")
        missing, more = heads(shown) - heads(result.output), heads(result.output) - heads(shown)
        if result.exit_code or missing or (more and "\n..." not in shown):
            wrong.append(f"$ {line}\nshown:\n{shown}\nsaid:\n{result.output}")
    return wrong


def run_python(text: str, names: dict[str, object]) -> list[str]:
    """Run lines after ``>>>`` with the names of the blocks before; return what differs."""
    said = io.StringIO()
    test = doctest.DocTestParser().get_doctest(text, {}, "page", None, 0)
    test.globs = names
    with warnings.catch_warnings():
        result = doctest.DocTestRunner(optionflags=FLAGS).run(
            test, out=said.write, clear_globs=False
        )
    return [said.getvalue()] if result.failed else []


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_pages_show_what_happens(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty folder of the page's own, and in one Python."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, text in blocks_of(DOCS / name):
        wrong = run_commands(text) if kind == "console" else run_python(text, names)
        assert not wrong, wrong[0]


def test_wrong_pages_are_seen() -> None:
    """Python and commands that give something else than is shown."""
    assert run_python(">>> 1 + 1\n3\n", {})
    assert not run_python(">>> n\n3\n", {"n": 3})
    assert run_commands("$ dhsk --version\nversion\n")
    assert run_commands("$ dhsk info absent\n...\n")
    assert run_commands("$ dhsk kernel --dim 9\n")
    assert not run_commands("$ dhsk --version\ndhsk, version 7\n")
