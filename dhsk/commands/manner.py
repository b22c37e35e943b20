"""Options of all commands, `--quiet` and `--verbose`, and completion of their arguments."""

import platform
import sys
from importlib.metadata import version
from typing import Any

import click

from dhsk.commands.parameters import SourceParameter
from dhsk.verbosity import Verbosity, set_verbosity

REPORTS = ("info", "kernel", "plan")
"""Commands whose output is what was asked for: quiet ones print it without anything else."""

SOURCES = ("groups", "labels", "repair", "samples", "source", "test", "test_labels")
"""Parameters that are FILE or FILE:KEY."""

COMPLETION = """\b
Completion of commands, options, files and kernels, in bash (or zsh, fish):
  eval "$(_DHSK_COMPLETE=bash_source dhsk)"
"""
"""End of the help."""

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "dask", "distributed", "zarr")


class Commands(click.Group):
    """A group whose commands all have the options `--quiet` and `--verbose`."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command with the common options, whose files the shell completes."""
        for parameter in cmd.params:
            if parameter.name in SOURCES:
                parameter.type = SourceParameter()
        cmd.params += [_quiet(), _verbose()]
        super().add_command(cmd, name)


def _quiet() -> click.Option:
    return click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_be_quiet,
        help="Say nothing but warnings, errors and what was asked for.",
    )


def _verbose() -> click.Option:
    return click.Option(
        ["-v", "--verbose"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_be_verbose,
        help="Say versions, the time of each stage, and where in the code an error arose.",
    )


def _be_quiet(context: click.Context, _: Any, given: bool) -> None:
    if given:
        quiet = Verbosity.RESULTS if context.info_name in REPORTS else Verbosity.SILENT
        set_verbosity(quiet)


def _be_verbose(_context: click.Context, _: Any, given: bool) -> None:
    if given:
        set_verbosity(Verbosity.VERBOSE)
        click.echo(f"dhsk: {versions()}", err=True)


def versions() -> str:
    """Versions of this package, of Python and of what computes, and the platform."""
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    return (
        f"dhsk {version('dhsk')}, Python {platform.python_version()}, {libraries}, "
        f"{platform.system()} {platform.machine()}, {sys.executable}"
    )
