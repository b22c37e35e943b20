"""The page: one sentence, key numbers, then the evidence from the grid down to the plan."""

from collections.abc import Sequence

from dhsk.objects.places import Place
from dhsk.report import cells, classes, fits, low_rank, samples, searched
from dhsk.report.document import write_page
from dhsk.report.fits import Points
from dhsk.report.folds import folds
from dhsk.report.grid import grid
from dhsk.report.header import header, prepared
from dhsk.report.markup import Html, joined, section, table, tag
from dhsk.report.reproduce import reproduce
from dhsk.report.spectrum import spectrum
from dhsk.report.unfinished import unfinished
from dhsk.report.words import duration, whole
from dhsk.results.parts import Results


def write_report(
    results: Results, path: str | Place, beside: Sequence[str] = (), curve: Points = ()
) -> None:
    """Write a cross-validation as one HTML page that loads nothing.

    The same results give the same bytes, with the same versions of dhsk and matplotlib. The page
    replaces an older one only once it is whole.

    Parameters
    ----------
    results
        What was found.
    path
        The file to write; its folder must exist.
    beside
        Names of files in the same folder, which the page links to.
    curve
        Points of a learning curve, whose fits the results are; see `LearningCurve.best_by_kernel_`.

    Raises
    ------
    InputError
        There is no such folder.
    """
    name = results.samples.source.rstrip("/").rpartition("/")[2]
    title = f"Cross-validation of {name}"
    sections = [
        fits.learning(results, curve),
        grid(results),
        low_rank.features(results),
        searched.search(results),
        folds(results),
        cells.common(results),
        reproduce(results),
        classes.held_out(results),
        classes.classes(results),
        classes.confusion(results),
        fits.weights(results),
        samples.roc(results),
        samples.picture(results),
        samples.mistakes(results),
        unfinished(results),
        fits.capacity(results),
        spectrum(results),
        cells.cells(results),
        fits.refit(results),
        _plan(results),
        _origin(results, beside),
    ]
    write_page(path, title, header(title, results), sections)


def _plan(results: Results) -> Html:
    names = {"gram": prepared(results), "fits": "fits", "total": "total"}
    spent = [(f"measured: {names[key]}", duration(s)) for key, s in vars(results.seconds).items()]
    facts = table((), [*results.plan, *spent], class_="facts")
    return section("Planned and measured", "", facts, anchor="plan")


def _origin(results: Results, beside: Sequence[str]) -> Html:
    own = results.samples
    zeros = f"{whole(own.zero_rows)}, at the centre of the orthant"
    facts: list[tuple[str, object]] = [
        ("made by", f"dhsk {results.version}"),
        ("date", results.created),
        ("samples", own.source),
        ("hash of the samples", own.fingerprint),
        ("map to the sphere", own.sphere_map),
        *([("samples of zeros", zeros)] if own.zero_rows else []),
        ("folds", results.folds.splitter),
        ("scorer", results.scoring),
    ]
    if beside:
        links = [joined([" " if k else "", _link(name)]) for k, name in enumerate(beside)]
        facts.append(("all numbers", joined(links)))
    return section("How it was made", "", table((), facts, class_="facts"), anchor="origin")


def _link(name: str) -> Html:
    return tag("a", name, href=name)
