"""The page: one sentence, key numbers, then the evidence from the grid down to the plan."""

import os
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError
from dhsk.report import figures
from dhsk.report.markup import Html, table, tag
from dhsk.report.results import Cell, Results, parse
from dhsk.report.words import count_of, duration, kernel_words, score, spread, whole

POLICY = "default-src 'none'; style-src 'unsafe-inline'"

OPEN_ROWS = 20
"""Cells shown before the table folds the others away."""


def write_report(data: Mapping[str, Any], path: str | Path) -> None:
    """Write a cross-validation as one HTML page that loads nothing.

    The same data give the same bytes, with the same versions of dhsk and matplotlib. The page
    replaces an older one only once it is whole.

    Parameters
    ----------
    data
        The parsed content of a results.json.
    path
        The file to write; its folder must exist.

    Raises
    ------
    InputError
        `data` lacks a key or holds a value of the wrong kind, or there is no such folder.
    """
    page = _page(parse(data))
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"the folder '{target.parent}' for the report does not exist; create it")
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(page, encoding="utf-8", newline="\n")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


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
        tag("header", tag("h1", title), tag("p", _lede(results), class_="lede"), _tiles(results)),
        _grid(results),
        _folds(results),
        _classes(results),
        _confusion(results),
        _spectrum(results),
        _cells(results),
        _plan(results),
        _origin(results),
    )
    content = tag("html", tag("head", *head), tag("body", tag("main", *body)), lang="en")
    return f"<!DOCTYPE html>\n{content}\n"


def _section(title: str, note: object, *content: object) -> Html:
    words = [tag("p", note, class_="note")] if note else []
    return tag("section", tag("h2", title), *words, *content)


def _figures(svgs: Iterable[Html]) -> Html:
    return tag("div", *(tag("figure", svg) for svg in svgs), class_="figures")


def _lede(results: Results) -> str:
    best = results.best
    return (
        f"Best: {kernel_words(best)}, C = {best.C:g}: "
        f"mean accuracy {spread(best)} over {count_of(results.n_folds, 'fold')}"
    )


def _tiles(results: Results) -> Html:
    samples, best = results.samples, results.best
    largest = max(results.class_counts) / max(sum(results.class_counts), 1)
    fits = sum(len(cell.folds) for cell in results.cells)
    return tag(
        "dl",
        _tile("mean accuracy", score(best.mean), f"always the largest class: {score(largest)}"),
        _tile("samples", whole(samples.n_samples), _features(results)),
        _tile("classes", whole(len(results.classes)), _class_sizes(results)),
        _tile("grid cells", whole(len(results.cells)), f"{count_of(fits, 'fit')} on the folds"),
        _tile("support vectors", whole(best.n_support), "best cell, mean over folds"),
        _tile("KKT violation", f"{best.kkt:.2g}", "best cell, worst fold"),
        _tile("mean recall", score(_mean_recall(results)), "every class counts the same"),
        _tile(
            "total time",
            duration(results.seconds["total"]),
            f"{duration(results.seconds['gram'])} for the Gram matrix",
        ),
        class_="tiles",
    )


def _tile(name: str, value: str, detail: str) -> Html:
    return tag(
        "div",
        tag("dt", name),
        tag("dd", value, class_="value"),
        tag("dd", detail, class_="detail"),
    )


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
    counts = results.confusion
    truth = counts.sum(axis=1)
    return float((np.diagonal(counts)[truth > 0] / truth[truth > 0]).mean()) if truth.any() else 0.0


def _grid(results: Results) -> Html:
    title = "Every kernel at every C"
    maps = _figures(figures.grids(results))
    if len(results.cells) == 1:
        return _section(
            title, "One kernel at one C was tried, so there is no choice to show.", maps
        )
    low, high = figures.score_range(results)
    folds = count_of(results.n_folds, "fold")
    note = f"Mean accuracy over {folds}; the outlined cell is the best. {_edges(results)}"
    scale = _scale(figures.colours_of(figures.SCORES), score(low), score(high))
    return _section(title, note, scale, maps)


def _scale(colours: list[str], low: str, high: str) -> Html:
    bar = tag("i", style=f"background: linear-gradient(to right, {', '.join(colours)})")
    return tag("p", low, bar, high, class_="scale note")


def _edges(results: Results) -> str:
    """Say where the winner lies at the end of what was tried, so that better may lie outside."""
    best = results.best
    rivals = [c for c in results.cells if c.kernel == best.kernel]
    names = [
        f"{side} {name}"
        for name in ("time scale", "sigma", "C")
        for side, end in (("smallest", min), ("largest", max))
        if _at_end(best, rivals, name.replace(" ", "_"), end)
    ]
    if not names:
        return ""
    return f"It has the {' and the '.join(names)} that was tried: better may lie outside the grid. "


def _at_end(best: Cell, rivals: list[Cell], field: str, end: Any) -> bool:
    values = {getattr(c, field) for c in rivals} - {None}
    return len(values) > 1 and getattr(best, field) == end(values)


def _folds(results: Results) -> Html:
    note = (
        "The best cell of each family of kernels: a dot for each fold (first fold on top), a line "
        "at the mean, a band of one standard deviation."
    )
    if len(results.cells) > 1:
        note += (
            " Every cell saw the same folds. The best was chosen by these very folds, so its "
            "accuracy on new samples tends to be a little lower."
        )
    return _section("Accuracy by fold", note, _figures([figures.folds(results)]))


def _classes(results: Results) -> Html:
    counts = results.confusion
    right = np.diagonal(counts)
    truth, found = counts.sum(axis=1), counts.sum(axis=0)
    rows = [
        (
            f"{k + 1}. {name}" if figures.is_numbered(results) else name,
            whole(results.class_counts[k]),
            _ratio(right[k], found[k]),
            _ratio(right[k], truth[k]),
            _ratio(2 * right[k], found[k] + truth[k]),
            _most_mistaken(results, k),
        )
        for k, name in enumerate(results.classes)
    ]
    head = ("class", "samples", "precision", "recall", "F1", "most often taken for")
    note = "Best cell, each sample predicted by the fold that did not train on it."
    return _section("Class by class", note, table(head, rows, class_="numbers classes"))


def _ratio(part: int, of: int) -> str:
    return score(part / of) if of else "–"


def _most_mistaken(results: Results, k: int) -> str:
    row = results.confusion[k].copy()
    row[k] = 0
    most = int(row.argmax())
    return f"{results.classes[most]} ({whole(row[most])})" if row[most] else "–"


def _confusion(results: Results) -> Html:
    note = (
        "Best cell again. Rows are true classes, columns predicted ones. Each cell holds the count "
        "and its share of the true class; empty cells are zero."
    )
    colours = figures.colours_of(figures.SHARES, figures.SHARES_POWER)
    scale = _scale(colours, "0 %", "100 % of the true class")
    return _section("What was taken for what", note, scale, _figures([figures.confusion(results)]))


def _spectrum(results: Results) -> Html:
    title = "Eigenvalues of the best kernel"
    values = results.eigenvalues
    # What a symmetric eigensolver cannot tell from zero (LAPACK Users' Guide, 4.7).
    noise = results.samples.n_samples * np.finfo(np.float64).eps * max(values, default=0.0)
    drawn = values[values > noise]
    if not drawn.size:
        return _section(title, "No eigenvalues were computed, or none is above zero.")
    hidden = len(values) - len(drawn)
    note = f"The Gram matrix: {count_of(len(drawn), 'eigenvalue')}, largest first"
    panels = [figures.decay(drawn)]
    if results.trace > 0:
        shares = 100 * np.cumsum(drawn) / results.trace
        panels.append(figures.cumulative(shares))
        note += _reach(shares)
    note += f". {whole(hidden)} more are zero within rounding and not drawn." if hidden else "."
    return _section(title, note, _figures(panels))


def _reach(shares: NDArray[np.float64]) -> str:
    """Say how many eigenvalues hold how much: how far a low rank can carry."""
    together = f", together {shares[-1]:.1f} % of the trace"
    reached = [
        f"{goal} % with {whole(int(np.argmax(shares >= goal)) + 1)}"
        for goal in (50, 90, 99)
        if shares[-1] >= goal
    ]
    return f"{together} ({', '.join(reached)})" if reached else together


def _cells(results: Results) -> Html:
    rows = [
        (
            c.label,
            f"{c.C:g}",
            score(c.mean),
            score(c.std),
            whole(c.n_support),
            f"{c.kkt:.2g}",
            duration(c.seconds),
        )
        for c in results.cells
    ]
    head = ("kernel", "C", "mean", "std", "support", "KKT", "fits")
    shown = [table(head, rows[:OPEN_ROWS], class_="numbers cells")]
    if len(rows) > OPEN_ROWS:
        more = table(head, rows[OPEN_ROWS:], class_="numbers cells")
        words = f"The other {count_of(len(rows) - OPEN_ROWS, 'cell')}"
        shown.append(tag("details", tag("summary", words), more))
    note = "Best first. KKT is the worst violation over the folds; fits are summed over the folds."
    return _section("All cells", note, *shown)


def _plan(results: Results) -> Html:
    names = {"gram": "Gram matrix", "fits": "fits", "total": "total"}
    spent = [(f"measured: {names[key]}", duration(s)) for key, s in results.seconds.items()]
    facts = table((), [*results.plan, *spent], class_="facts")
    return _section("Planned and measured", "", facts)


def _origin(results: Results) -> Html:
    samples = results.samples
    facts = [
        ("made by", f"dhsk {results.version}"),
        ("date", results.created),
        ("samples", samples.source),
        ("fingerprint", samples.fingerprint),
        ("map to the sphere", samples.sphere_map),
        ("folds", results.splitter),
    ]
    return _section("How it was made", "", table((), facts, class_="facts"))
