"""The page: one sentence, key numbers, then the evidence from the grid down to the plan."""

from importlib.resources import files
from pathlib import Path

import numpy as np

from dhsk.errors import InputError
from dhsk.objects.places import Place, parse_place, written
from dhsk.report import choice, classes, fits, low_rank
from dhsk.report.markup import Html, section, table, tag
from dhsk.report.words import (
    brief,
    capitalised,
    cell_words,
    count_of,
    duration,
    metric,
    score,
    spread,
    two_digits,
    whole,
)
from dhsk.results.parts import Results

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write_report(results: Results, path: str | Place) -> None:
    """Write a cross-validation as one HTML page that loads nothing.

    The same results give the same bytes, with the same versions of dhsk and matplotlib. The page
    replaces an older one only once it is whole.

    Parameters
    ----------
    results
        What was found.
    path
        The file to write; its folder must exist.

    Raises
    ------
    InputError
        There is no such folder.
    """
    page = _page(results)
    target = parse_place("path", path)
    if isinstance(target, Path) and not target.parent.is_dir():
        raise InputError(f"the folder '{target.parent}' for the report does not exist; create it")
    with written(target, "w", encoding="utf-8", newline="\n") as file:
        file.write(page)


def _page(results: Results) -> str:
    title = f"Cross-validation of {results.samples.source}"
    head = (
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        # The browser itself refuses to load or run anything.
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("title", title),
        tag("style", Html(files(__package__).joinpath("style.css").read_text("utf-8"))),
    )
    body = (
        _header(title, results),
        choice.grid(results),
        low_rank.features(results),
        choice.search(results),
        choice.folds(results),
        classes.held_out(results),
        classes.classes(results),
        classes.confusion(results),
        fits.capacity(results),
        fits.spectrum(results),
        choice.cells(results),
        fits.refit(results),
        _plan(results),
        _origin(results),
    )
    content = tag("html", tag("head", *head), tag("body", tag("main", *body)), lang="en")
    return f"<!DOCTYPE html>\n{content}\n"


def _header(title: str, results: Results) -> Html:
    lede = tag("p", _lede(results), class_="lede")
    return tag("header", tag("h1", title), lede, _unfinished(results), _tiles(results))


def _lede(results: Results) -> str:
    best = results.best
    said = (
        f"Best: {cell_words(best)}: "
        f"mean {metric(results)} {spread(best)} over {count_of(results.folds.n, 'fold')}"
    )
    if results.test is None:
        return said
    held_out = f"{score(results.test.score)} on {count_of(results.test.n, 'held-out sample')}"
    return f"{said}, {held_out}"


def _unfinished(results: Results) -> Html:
    """Say which fits did not converge, and what helps; nothing if all did."""
    n = results.unfinished(*results.cells)
    among = ", the best cell's among them," if results.unfinished(results.best) else ""
    stopped = (
        [f"{whole(n)} of {count_of(len(results.rows), 'fit')} on the folds{among}"] if n else []
    )
    if results.refit is not None and not results.refit.converged:
        stopped.append("the refit of the best cell")
    if not stopped:
        return Html()
    words = f"{' and '.join(stopped)} did not converge: {_why(results)}"
    return tag("p", capitalised(words), class_="warning")


def _why(results: Results) -> str:
    if results.low_rank is not None:
        return (
            f"the gradient is above the tolerance, {low_rank.tolerance(results)}, so scores may be "
            "off. A larger tolerance or a smaller C helps."
        )
    return (
        f"the KKT violation is above the tolerance of {results.tol:g}, so scores and bounds may be "
        "off. A larger tolerance, more memory or a smaller C helps."
    )


def _tiles(results: Results) -> Html:
    samples, best = results.samples, results.best
    fits = count_of(len(results.rows), "fit")
    prepared = f"{duration(results.seconds.gram)} for the {_prepared(results)}"
    return tag(
        "dl",
        _tile(f"mean {metric(results)}", score(best.mean), _comparison(results)),
        _tile("samples", whole(samples.n_samples), _features(results)),
        _tile("classes", whole(len(results.classes)), _class_sizes(results)),
        _tile("grid cells", whole(len(results.cells)), f"{fits} on the folds"),
        *(_exact_tiles(results) if results.low_rank is None else _low_rank_tiles(results)),
        _tile("total time", duration(results.seconds.total), prepared),
        class_="tiles",
    )


def _exact_tiles(results: Results) -> tuple[Html, ...]:
    best = results.best
    asked = f"best cell, worst fold; tolerance {results.tol:g}"
    return (
        _tile("support vectors", whole(best.n_support or 0), "best cell, mean over folds"),
        _tile("KKT violation", two_digits(best.kkt), asked),
        _tile("mean recall", score(_mean_recall(results)), "every class counts the same"),
    )


def _low_rank_tiles(results: Results) -> tuple[Html, ...]:
    """Return tiles in place of the exact ones; the recalls are in the table of classes."""
    best = results.best
    return (
        _tile(
            "features", whole(best.rank or 0), f"best cell, landmarks by {low_rank.chosen(results)}"
        ),
        _tile("trace error", brief(best.trace_error), "of the kernel, not in the features"),
        _tile("gradient", two_digits(best.gradient), "of that at zero; best cell, worst fold"),
    )


def _prepared(results: Results) -> str:
    """Name what the fits share."""
    return "Gram matrix" if results.low_rank is None else "features"


def _comparison(results: Results) -> str:
    """Give an accuracy its baseline, and any other score the accuracy of the same fits."""
    if results.scoring == "accuracy":
        largest = max(results.class_counts) / max(sum(results.class_counts), 1)
        return f"always the largest class: {score(largest)}"
    counts = np.array(results.confusion)
    return f"accuracy of the same fits: {score(np.trace(counts) / max(counts.sum(), 1))}"


def _tile(name: str, value: str, detail: str) -> Html:
    value, detail = tag("dd", value, class_="value"), tag("dd", detail, class_="detail")
    return tag("div", tag("dt", name), value, detail)


def _features(results: Results) -> str:
    samples = results.samples
    features = count_of(samples.dim, "feature")
    if samples.nnz is None:
        return f"{features}, dense"
    share = 100 * samples.nnz / max(samples.n_samples * samples.dim, 1)
    return f"{features}, {share:.2g} % not zero"


def _class_sizes(results: Results) -> str:
    low, high = min(results.class_counts), max(results.class_counts)
    return f"{whole(low)} samples each" if low == high else f"{whole(low)} to {whole(high)} samples"


def _mean_recall(results: Results) -> float:
    counts = np.array(results.confusion)
    truth = counts.sum(axis=1)
    return float((np.diagonal(counts)[truth > 0] / truth[truth > 0]).mean()) if truth.any() else 0.0


def _plan(results: Results) -> Html:
    names = {"gram": _prepared(results), "fits": "fits", "total": "total"}
    spent = [(f"measured: {names[key]}", duration(s)) for key, s in vars(results.seconds).items()]
    facts = table((), [*results.plan, *spent], class_="facts")
    return section("Planned and measured", "", facts)


def _origin(results: Results) -> Html:
    samples = results.samples
    zeros = f"{whole(samples.zero_rows)}, at the centre of the orthant"
    facts = [
        ("made by", f"dhsk {results.version}"),
        ("date", results.created),
        ("samples", samples.source),
        ("fingerprint", samples.fingerprint),
        ("map to the sphere", samples.sphere_map),
        *([("samples of zeros", zeros)] if samples.zero_rows else []),
        ("folds", results.folds.splitter),
        ("scorer", results.scoring),
    ]
    return section("How it was made", "", table((), facts, class_="facts"))
