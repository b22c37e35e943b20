"""The command `dhsk report`: pages from the results of `dhsk cv`, made anew or compared."""

import os
from pathlib import Path
from urllib.parse import quote

import click

from dhsk.commands.console import say
from dhsk.commands.earlier_run import PAGE, TABLES, opening
from dhsk.commands.parameters import PlaceParameter
from dhsk.errors import InputError
from dhsk.objects.places import Place, entries_of, parse_place, size_of
from dhsk.report import write_report


@click.command("report")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--out",
    type=PlaceParameter(),
    help="File of the page. [default: report.html in RUN; of several runs comparison.html here]",
)
def report(runs: tuple[str, ...], out: Place | None) -> None:
    """Make the page of a cross-validation, or compare several.

    RUN is a folder that `dhsk cv` wrote, or its results.json; nothing is computed again.
    """
    from dhsk.report.comparison import write_comparison
    from dhsk.validation.result import CvResult

    places = [_results_of(run) for run in runs]
    found = [CvResult.from_json(place) for place in places]
    if len(runs) == 1:
        page = places[0].parent / PAGE if out is None else out
        write_report(found[0], page, _beside(page, places[0]))
    else:
        page = Path("comparison.html") if out is None else out
        names = _names([place.parent for place in places])
        links = {name: _link(page, place.parent) for name, place in zip(names, places, strict=True)}
        known = {name: link for name, link in links.items() if link is not None}
        write_comparison(dict(zip(names, found, strict=True)), page, known)
    say(f"output: {page}")
    say(f"next:   {opening(page)}")


def _results_of(run: str) -> Place:
    """Place of the results of a run; InputError if there are none."""
    place = parse_place("RUN", run)
    file = place if place.name.endswith(".json") else place / TABLES[0]
    if size_of(file) is None:
        raise InputError(
            f"{run} has no {TABLES[0]}: give a folder that `dhsk cv --out` wrote and that has "
            "ended, or the file itself"
        )
    return file


def _beside(page: Place, results: Place) -> list[str]:
    """Names of the files of results that a page can link to, as they are in its own folder."""
    if str(page.parent) != str(results.parent):
        return []
    there = entries_of(results.parent)
    return [name for name in TABLES if name in there]


def _names(folders: list[Place]) -> list[str]:
    """Names of the runs: those of their folders, or their paths where these are not enough."""
    names = [folder.name or str(folder) for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    if len(set(names)) < len(names):
        raise InputError("the same run is given twice: give each one once")
    return names


def _link(page: Place, folder: Place) -> str | None:
    """Address of the page of a run, seen from another page; None if there is none."""
    if not (isinstance(page, Path) and isinstance(folder, Path)):
        return None
    own = folder / PAGE
    if not own.is_file():
        return None
    return quote(os.path.relpath(own.resolve(), page.parent.resolve()))
