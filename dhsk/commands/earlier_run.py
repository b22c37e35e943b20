"""Results of an earlier run in the same folder, and whether this run may replace them."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from numpy.typing import NDArray

from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.array_job import begun_in
from dhsk.files import parse_object
from dhsk.kernels import Kernel
from dhsk.objects.places import (
    Place,
    entries_of,
    is_within,
    made_folder,
    parse_place,
    remove_below,
    write_whole,
)

if TYPE_CHECKING:
    from dhsk.validation.result import CvResult

TABLES: Final = ("results.json", "results.csv", "predictions.csv")
"""Files of results that the page links to."""

PAGE: Final = "report.html"

WITNESS: Final = "witness.csv"
"""File of `dhsk compare`, beside results.json and its page."""

MODEL: Final = "model.dhsk"
"""File of the model in a folder of results, or of features."""

RESULTS: Final = (*TABLES, PAGE, MODEL, WITNESS)
"""Files of results, which another run would replace."""

_NOTE: Final = ("fits", "run.json")
"""Settings of the run whose checkpoints are there, finished or not."""

READING: Final = "reading"
"""Setting with the words that named samples and labels, by which no result differs."""

_ABSENT: Final = object()


def opening(page: Place) -> str:
    """How a page is looked at, in words: no browser signs requests to an object store."""
    how = f"open {page}" if isinstance(page, Path) else f"download {page} and open it"
    return f"{how} in a browser"


def refuse_unfinished(out: Place) -> None:
    """Raise InputError for a folder that has no results yet, but of a run that has begun."""
    _refuse_parts(out)
    begun = (out / PAGE, out / TABLES[1], out.joinpath(*_NOTE))
    if not (out / TABLES[0]).exists() and any(file.exists() for file in begun):
        raise InputError(
            f"{out} holds a run of dhsk cv or compare that has not ended: the same command goes on"
        )


def _refuse_parts(folder: Place) -> None:
    """Raise InputError for what the parts of a command share."""
    if not folder.name.endswith(".parts"):
        return
    begun = begun_in(folder)
    if begun:
        ended = [str(number) for number, has_ended in begun.items() if has_ended]
        raise InputError(
            f"{folder} holds what parts of a command share. Begun: {', '.join(map(str, begun))}; "
            f"ended: {', '.join(ended) or 'none'}. The same command with the same --part goes on"
        )


def settings_of(**given: Any) -> dict[str, Any]:
    """Settings that decide the results of a run, as plain JSON, with a hash of each array."""
    settings: dict[str, Any] = json.loads(json.dumps(given, default=_plain))
    return settings


def _plain(value: Kernel | NDArray[Any]) -> Any:
    """A kernel as JSON; a hash of labels, whatever the type of the array."""
    if isinstance(value, Kernel):
        return value.to_spec()
    return blake2b("\n".join(map(str, value.tolist())).encode(), digest_size=12).hexdigest()


def check_earlier(
    out: Place,
    settings: Mapping[str, Any],
    fingerprint: Callable[[], str],
    options: str,
    *,
    overwrite: bool,
) -> bool:
    """Whether the folder has the results of this very run.

    Raises InputError if it has those of other samples, other or unknown settings.

    Settings that the earlier run did not know do not count. `fingerprint` reads the samples; it is
    called only if the settings agree; `options` are those on reading them. `overwrite` allows the
    replacement; the files stay until this run has results.
    """
    if overwrite or not any((out / name).exists() for name in RESULTS):
        return False
    results = parse_object((out / RESULTS[0]).read_bytes)
    earlier = results.get("settings") or parse_object(out.joinpath(*_NOTE).read_bytes)
    way_out = "give another --out, or --overwrite to replace them"
    if not earlier:
        raise InputError(f"{out} holds results of an unknown run: {way_out}")
    differ = [
        name
        for name, value in earlier.items()
        if name != READING and settings.get(name, _ABSENT) != value
    ]
    samples = results.get("samples", {}).get("fingerprint")
    if not differ and samples is not None and samples != fingerprint():
        differ = ["samples"]
    if differ:
        # By such options the number of features differs too, and by it the times of the kernels.
        if reading := _other_options(earlier.get(READING), options):
            differ = [name for name in differ if name not in ("kernels", "samples")]
        words = [name.replace("_", " ") for name in differ]
        listed = ", ".join([reading, *words] if reading else words)
        raise InputError(f"{out} holds the results of a run with other {listed}: {way_out}")
    return samples is not None and settings.keys() <= earlier.keys()


def answer_in(
    out: Place, model: bool, eigenvalues: bool | None, baselines: bool | None
) -> "CvResult | None":
    """Results of this very run, finished by this version; None if they lack what is asked for."""
    from dhsk.models.files import load_model
    from dhsk.validation.result import CvResult

    if not entries_of(out).issuperset((*TABLES, PAGE, *([MODEL] if model else []))):
        return None
    found = CvResult.from_json(out / TABLES[0])
    if found.version != version("dhsk") or (eigenvalues and not found.eigenvalues):
        return None
    beside = found.baselines
    if baselines and (beside.left_out or not beside.tried):
        return None
    return replace(found, model_=load_model(out / MODEL) if model else None)


def _other_options(reading: Any, options: str) -> str:
    """What to say of options on reading, such as --min-df, if they differ; else nothing."""
    earlier = reading.get("options") if isinstance(reading, dict) else None
    if not isinstance(earlier, str) or earlier == options:
        return ""
    then, now = (words.strip() or "none" for words in (earlier, options))
    return f"options on reading the samples ({then}, now {now})"


@contextmanager
def noted(out: Place, settings: Mapping[str, Any]) -> Iterator[None]:
    """Keep the settings of a run beside its checkpoints; restore the earlier ones if it fails."""
    note = out.joinpath(*_NOTE)
    with made_folder(note.parent):
        earlier = note.read_bytes() if note.exists() else None
        try:
            write_whole(note, json.dumps(settings).encode())
            yield
        except Exception:
            if earlier is None and entries_of(note.parent) == {note.name}:
                note.unlink()
            elif earlier is not None and note.read_bytes() != earlier:
                write_whole(note, earlier)
            raise


def run_over(
    run: Callable[[], "CvResult"], source: str, out: Place, *, overwrite: bool
) -> "CvResult":
    """Run; with `overwrite`, remove stores of other samples, kernels or maps and run again."""
    stores = out / "fits" / "gram"
    try:
        return run()
    except StoreMismatchError as error:
        if is_within(parse_place("source", source), stores) or not stores.exists():
            raise
        if not overwrite:
            way_out = "give another --out, or --overwrite to begin anew"
            raise StoreMismatchError(
                f"{out} holds an unfinished run: {way_out} ({error})"
            ) from error
        remove_below(stores)
    return run()


@contextmanager
def telling_of(table: Place) -> Iterator[None]:
    """On an interrupt, say where the rows of the finished kernels are."""
    try:
        yield
    except KeyboardInterrupt:
        if table.exists():
            click.echo(f"finished kernels: {table}", err=True)
        raise
