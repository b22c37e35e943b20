"""What the shell completes."""

import os
import subprocess
import sys
from typing import Any

import pytest
from click.shell_completion import BashComplete

from dhsk.commands.cli import commands

CASES: dict[str, tuple[list[str], str, list[tuple[str, str]]]] = {
    "commands": ([], "pr", [("plain", "predict")]),
    "options": (["train"], "--lab", [("plain", "--labels")]),
    "kernel": (["gram", "--kernel"], "he", [("plain", "heat")]),
    "kernels": (["cv", "--kernel"], "heat,co", [("plain", "heat,cosine")]),
    "samples": (["gram"], "x.n", [("file", "x.n")]),
    "labels": (["cv", "x.npy", "--labels"], "y", [("file", "y")]),
    "model": (["predict"], "m", [("file", "m")]),
    "results": (["cv", "--out"], "o", [("file", "o")]),
}


@pytest.mark.parametrize("case", CASES)
def test_words_are_completed(case: str) -> None:
    """Commands, options, kernels by name; files are left to the shell."""
    words, incomplete, expected = CASES[case]
    found = BashComplete(commands, {}, "dhsk", "_DHSK_COMPLETE").get_completions(words, incomplete)
    assert [(item.type, item.value) for item in found] == expected


def run(**environment: str) -> Any:
    """Run the command with variables of the shell."""
    return subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['dhsk']; from dhsk.__main__ import main; "
         "main()"],
        env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_shell_gets_its_script() -> None:
    """What `eval` takes, and nothing on standard error."""
    done = run(_DHSK_COMPLETE="bash_source")
    assert (done.returncode, done.stderr) == (0, "")
    assert "complete -o nosort -F _dhsk_completion dhsk" in done.stdout
    done = run(_DHSK_COMPLETE="bash_complete", COMP_WORDS="dhsk gram --kernel ga", COMP_CWORD="3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "plain,gaussian\n", "")
