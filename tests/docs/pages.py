"""Run the Python and the commands of the pages, with no more than ``pip install .`` brings.

``python -m tests.docs.pages [start.md ...]`` runs all pages, or some, each in an empty folder, and
ends with an error if one of them shows something else than what happens.
"""

import doctest
import io
import re
import shlex
import sys
import warnings
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from click.testing import CliRunner

from dhsk.commands.cli import commands

DOCS: Final = Path(__file__).parents[2] / "docs"
FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE: Final = re.compile(r"^```(python|console)\n(.*?)^```$", re.M | re.S)


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Language and text of what a page shows to be run: ``>>>`` or ``$``."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(kind, text) for kind, text in found if ">>>" in text or text.startswith("$ ")]


PAGES: Final = [page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))]
RUN: Final = [name for name in PAGES if blocks_of(DOCS / name)]


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
        # Progress and costs are on standard error: whether they are said depends on the machine.
        missing, more = heads(shown) - heads(result.output), heads(result.stdout) - heads(shown)
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


def differences(name: str) -> list[str]:
    """What of a page differs first, if anything does, in one Python and in this folder."""
    names: dict[str, object] = {}
    for kind, text in blocks_of(DOCS / name):
        wrong = run_commands(text) if kind == "console" else run_python(text, names)
        if wrong:
            return wrong
    return []


def main() -> None:
    """Run pages, and say which do not show what happens."""
    wrong = {}
    for name in sys.argv[1:] or RUN:
        with TemporaryDirectory() as folder, chdir(folder):
            print(f"{name} ...", flush=True)
            wrong[name] = differences(name)
    for name, found in wrong.items():
        print(*(f"{name}: {what}" for what in found), sep="\n", end="")
    sys.exit(any(wrong.values()))


if __name__ == "__main__":
    main()
