"""Options of a command from a file of TOML, and the file that repeats a run."""

import json
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from dhsk.commands.parameters import PathParameter, PlaceParameter, SourceParameter
from dhsk.commands.table import key_of, option
from dhsk.errors import InputError
from dhsk.objects.places import Place, is_url, written

FILE: Final = "run.toml"
"""File in the folder of results that repeats the run."""

NOT_KEPT: Final = ("config", "overwrite")
"""Options that are about one call."""


def _read(context: click.Context, _: click.Parameter, place: Place | None) -> None:
    """Make what a file says the defaults of a command."""
    if place is None or context.resilient_parsing:
        return
    known = {key_of(parameter): parameter for parameter in _kept(context)}
    context.meta[__name__] = place
    context.default_map = {}
    for key, value in _content(place).items():
        if key not in known:
            near = get_close_matches(key.replace("_", "-"), known, 1)
            meant = f": did you mean {near[0]}?" if near else ""
            raise InputError(
                f"{place}: {key} is no option of {context.command_path}{meant} "
                f"({context.command_path} --help-all lists them; keys are without dashes before)"
            )
        parameter = known[key]
        context.default_map[parameter.name or key] = _checked(context, parameter, value, place)


config_option = option(
    "--config",
    common=True,
    type=PlaceParameter(),
    is_eager=True,
    expose_value=False,
    callback=_read,
    help="More options, from a file such as an earlier run.toml.",
)


def _kept(context: click.Context) -> Iterator[click.Parameter]:
    """Parameters that a file may have: all but those that are about how to run one call."""
    for parameter in context.command.params:
        if parameter.expose_value and key_of(parameter) not in NOT_KEPT:
            yield parameter


def _content(place: Place) -> dict[str, Any]:
    try:
        return tomllib.loads(place.read_bytes().decode())
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(
            f"there is no file {place} for --config: name a file of options, such as the {FILE} "
            "that dhsk cv writes to --out"
        ) from error
    except ValueError as error:  # no UTF-8, or no TOML
        raise InputError(
            f"{place} is no TOML: {error}. Each line is KEY = VALUE, such as C = [0.1, 1, 10] or "
            'labels = "y.csv"'
        ) from error


def _checked(context: click.Context, parameter: click.Parameter, value: Any, place: Place) -> Any:
    """What stands in a file, as words of the command line would say it; InputError if wrong."""
    key = key_of(parameter)
    words = _words(parameter, value)
    if words is None:
        flag = isinstance(parameter, click.Option) and parameter.is_flag
        kind = "true or false" if flag else "text or a number"
        if not flag and (parameter.multiple or getattr(parameter.type, "several", False)):
            kind += ", or a list of them"
        raise InputError(f"{place}: {key} must be {kind}, but it is {value!r:.80}")
    try:
        parameter.type_cast_value(context, words)
    except click.BadParameter as error:
        raise InputError(f"{place}: {key}: {error.message}") from error
    return words


def _words(parameter: click.Parameter, value: Any) -> Any:
    """Words for a value; None if it is of no kind that the parameter takes."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return value if isinstance(value, bool) else None
    several = value if isinstance(value, list) else [value]
    plain = [isinstance(one, str | int | float) and not isinstance(one, bool) for one in several]
    if not all(plain):
        return None
    words = [one if isinstance(one, str) else repr(one) for one in several]
    if parameter.multiple:
        return words
    if isinstance(value, list) and not getattr(parameter.type, "several", False):
        return None
    return ",".join(words)


def write_config(folder: Place) -> None:
    """Write the options of the command that runs to a file that repeats it from any folder.

    A file that this command read stays as it is if nothing on the command line differs from it.
    """
    context, place = click.get_current_context(), folder / FILE
    kept = {p: context.get_parameter_source(p.name or "") for p in _kept(context)}
    read = context.meta.get(__name__)
    typed = ParameterSource.COMMANDLINE in kept.values()
    if read is not None and not typed and place.exists() and read.samefile(place):
        return
    lines = [
        f"# dhsk {version('dhsk')}: dhsk {context.command.name} --config {FILE} repeats this run."
    ]
    for parameter, source in kept.items():
        value = context.params.get(parameter.name or "")
        flag = isinstance(parameter, click.Option) and not parameter.secondary_opts
        if (
            source is not ParameterSource.DEFAULT
            and value not in (None, ())
            and not (flag and value is False)
        ):
            lines.append(_line(key_of(parameter), _toml(_absolute(parameter, value), parameter)))
            if key_of(parameter) == "cluster" and str(value).endswith(".json"):
                lines[-1] = "# cluster is not here: the file of its scheduler goes with the job."
    with written(place, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines, ""]))


def _line(key: str, text: str) -> str:
    """A line of the file; one that says what to do for a path of bytes that are no characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"# {key} is not here, as its name is no UTF-8: add it on the command line."
    return f"{key} = {text}"


def _absolute(parameter: click.Parameter, value: Any) -> Any:
    """A path from any folder; what is none, or a URL, as it is."""
    is_path = isinstance(parameter.type, SourceParameter | PathParameter)
    if not is_path and not (isinstance(value, str) and Path(value).is_file()):
        return value
    return value if is_url(value) else str(Path.cwd() / value)


def _toml(value: Any, parameter: click.Parameter) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple) and not parameter.multiple:  # least and largest, such as 1-6
        return _toml("-".join(map(str, value)), parameter)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one, parameter) for one in value)}]"
    # JSON's escapes are TOML's, but for pairs of surrogates and for DEL, which JSON leaves bare.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
