"""The overview of the commands: what it says, and that it loads none of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import dhsk.commands
from dhsk.commands.cli import COMMANDS, OVERVIEW, commands

NO_COMMANDS = {
    f"dhsk.commands.{file.stem}" for file in Path(dhsk.commands.__path__[0]).glob("[a-z]*.py")
} - {"dhsk.commands.cli", "dhsk.commands.manner"}
"""Modules that only commands need."""

HEAVY = {"numpy", "scipy", "sklearn", "numba", "dask", "zarr", "rich"}


@pytest.mark.parametrize("name", OVERVIEW)
def test_the_overview_says_what_the_commands_say(name: str) -> None:
    """Each short help is the first sentence of the command's own help."""
    command = COMMANDS[name].loaded
    assert command.name == name
    assert command.get_short_help_str(limit=1000) == OVERVIEW[name]


def test_the_overview_names_every_command_on_one_line() -> None:
    """Also on a terminal of 80 columns; what is not a command is not listed."""
    shown = CliRunner().invoke(commands, ["--help"], terminal_width=80).output
    listed = shown.partition("Commands:\n")[2].partition("\n\n")[0]
    assert [line.split(maxsplit=1) for line in listed.splitlines()] == [
        [name, text] for name, text in sorted(OVERVIEW.items())
    ]


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["--help"], {}),
        (["--version"], {}),
        (["absent"], {}),
        ([], {"_DHSK_COMPLETE": "zsh_source"}),
        ([], {"_DHSK_COMPLETE": "zsh_complete", "COMP_WORDS": "dhsk pr", "COMP_CWORD": "1"}),
    ],
    ids=["help", "version", "no such command", "script of the shell", "completion"],
)
def test_no_command_is_loaded_before_it_is_needed(
    words: list[str], environment: dict[str, str]
) -> None:
    """Loading one takes a second of processor time, of which the user gets nothing."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: sys.stderr.write('loaded: ' + ' '.join(sys.modules)))\n"
        f"sys.argv = ['dhsk', *{words}]\n"
        "from dhsk.__main__ import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    loaded = set(done.stderr.rpartition("loaded: ")[2].split())
    assert "dhsk.commands.cli" in loaded
    assert not loaded & (NO_COMMANDS | HEAVY)


@pytest.mark.slow
def test_one_command_does_not_load_the_others() -> None:
    """Nor does its help."""
    code = (
        "import sys\nfrom dhsk.commands.cli import commands\n"
        "commands.main(['verify', '--help'], standalone_mode=False)\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "Usage:" in done.stdout
    assert "dhsk.commands.verify" in loaded
    assert not {"dhsk.commands.cv", "dhsk.commands.train", "dhsk.commands.plan"} & loaded
