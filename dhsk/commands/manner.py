"""Options of all commands, `--quiet` and `--verbose`, and completion of their arguments."""

import platform
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

import click

from dhsk.caching import cached_value
from dhsk.execution.heap import loading_libraries
from dhsk.verbosity import Verbosity, set_verbosity

REPORTS = ("compare", "cv", "info", "kernel", "plan")
"""Commands that answer a question: quiet ones print the answer without anything else."""

SOURCES = ("groups", "labels", "others", "repair", "samples", "source", "test", "test_labels")
"""Parameters that are FILE or FILE:KEY."""

COMPLETION = """\b
Completion of commands, options, files and kernels, in bash (or zsh, fish):
  eval "$(_DHSK_COMPLETE=bash_source dhsk)"
"""
"""End of the help."""

MOST_LINES: Final = 50
"""Most lines of a help that shows all options unasked."""

_SHOW_ALL: Final = "dhsk help-all"
"""Whether the help of a context is the long one."""

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "dask", "distributed", "zarr")


class GroupedCommand(click.Command):
    """A command whose help has its options in groups, and of many only the common ones."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; if the help would be long, the common ones and how to see all."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        common = [one for one in options if getattr(one, "common", False)]
        whole = ctx.make_formatter()
        _write_groups(whole, ctx, options)
        lines = (formatter.getvalue() + whole.getvalue()).count("\n")
        if not common or lines <= MOST_LINES or ctx.meta.get(_SHOW_ALL):
            formatter.write(whole.getvalue())
            return
        _write_groups(formatter, ctx, common)
        formatter.write_paragraph()
        formatter.write_text(f"{ctx.command_path} --help-all shows all {len(options)} options.")


def help_of(context: click.Context) -> str:
    """Help of a command with all options."""
    context.meta[_SHOW_ALL] = True
    return context.get_help()


def _write_groups(
    formatter: click.HelpFormatter, context: click.Context, options: Iterable[click.Option]
) -> None:
    from dhsk.commands.table import GROUPS, OTHER

    records: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            records[getattr(option, "group", OTHER)].append(record)
    for group, own in records.items():
        if own:
            with formatter.section(group):
                formatter.write_dl(own)


class LazyCommand(click.Command):
    """A command of which name and short help are known; the module of its name is loaded to run."""

    @cached_value
    def loaded(self) -> click.Command:
        """The command itself, with the common options, whose files the shell completes."""
        with loading_libraries():
            from dhsk.commands.parameters import SourceParameter

            module = import_module(f"dhsk.commands.{self.name}")
        command: click.Command = getattr(module, str(self.name))
        for parameter in command.params:
            if parameter.name in SOURCES:
                parameter.type = SourceParameter()
        params = [*command.params, *_common_options()]
        return GroupedCommand(
            command.name, callback=command.callback, params=params, help=command.help
        )

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse as the command itself, which runs then, without what killed ones left."""
        from dhsk.execution.processes import remove_leftovers

        context = self.loaded.make_context(*args, **extra)
        remove_leftovers()
        return context


def _flag(names: list[str], callback: Callable[..., None], text: str) -> click.Option:
    """An option that acts before the command's own are read, and that the command does not see."""
    return click.Option(
        names, is_flag=True, expose_value=False, is_eager=True, callback=callback, help=text
    )


def _common_options() -> list[click.Parameter]:
    quiet = "Say nothing but warnings, errors and what was asked for."
    verbose = "Say versions, the time of each stage, and where in the code an error arose."
    return [
        _flag(["-q", "--quiet"], _be_quiet, quiet),
        _flag(["-v", "--verbose"], _be_verbose, verbose),
        _flag(["--help-all"], _show_all, "Show all options and exit."),
    ]


def _show_all(context: click.Context, _: Any, given: bool) -> None:
    if given and not context.resilient_parsing:
        click.echo(help_of(context), color=context.color)
        context.exit()


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
