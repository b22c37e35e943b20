"""What the pages show is what happens: their Python and their commands run, from top to bottom.

CI runs them by `tests.docs.pages` in place of the first test, where no extras are installed.
"""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, RUN, blocks_of, differences, run_commands, run_python

LONGEST_LIMIT = 200
"""Letters of an item of limits.md."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_pages_show_what_happens(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty folder of the page's own, and in one Python."""
    monkeypatch.chdir(tmp_path)
    assert differences(name) == []


def test_lines_of_users_of_scikit_learn_are_run() -> None:
    """Both columns of the table, theirs and ours, are in the code below it."""
    page = DOCS / "from_scikit_learn.md"
    code = "".join(text for _, text in blocks_of(page))
    table = re.findall(r"^\| `(.+)` \| `(.+)` \|$", page.read_text(encoding="utf-8"), re.M)
    missing = [line for pair in table for line in pair if f" = {line}" not in code]
    assert len(table) >= 10
    assert missing == []


def test_each_limit_is_one_line() -> None:
    """To be read at a glance, and found by a search of lines."""
    text = (DOCS / "limits.md").read_text(encoding="utf-8").partition("\n## ")[2]
    lines = [line for line in text.splitlines()[1:] if line and not line.startswith("## ")]
    assert len(lines) > 50
    assert [line for line in lines if not line.startswith("- ") or len(line) > LONGEST_LIMIT] == []


def test_wrong_pages_are_seen() -> None:
    """Python and commands that give something else than is shown."""
    assert run_python(">>> 1 + 1\n3\n", {})
    assert not run_python(">>> n\n3\n", {"n": 3})
    assert run_commands("$ dhsk --version\nversion\n")
    assert run_commands("$ dhsk info absent\n...\n")
    assert run_commands("$ dhsk kernel --dim 9\n")
    assert not run_commands("$ dhsk --version\ndhsk, version 7\n")
