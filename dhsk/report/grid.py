"""Section on the grid: heat maps of the mean score of every cell."""

from typing import NamedTuple

import numpy as np

from dhsk.report.drawing import SCORES, colours_of, drawing, mosaic, outline
from dhsk.report.markup import Html, colour_scale, figure_row, note, section
from dhsk.report.words import (
    count_of,
    folds_of,
    metric,
    named,
    penalty_text,
    score,
    shortened,
    whole,
)
from dhsk.results.columns import Cell, grouped
from dhsk.results.decision import comparisons
from dhsk.results.parts import Results

UNTIMED = "kernels without a time"

STEPS = 32
"""Shades of a colour scale that an eye can tell apart, about."""


def grid(results: Results) -> Html:
    """Return heat maps of all cells."""
    title = f"Every kernel at every {'rank and ' if len(results.ranks) > 1 else ''}C"
    maps = figure_row(heat_maps(results))
    if len(results.cells) == 1:
        words = "One kernel at one C was tried, so there is no choice to show."
        return section(title, words, maps, anchor="grid")
    low, high = _score_range(results)
    cell = f"a candidate is one kernel at one {'rank and ' if results.low_rank else ''}C"
    said = f"Mean {metric(results)} over {folds_of(results)}; {cell}, {_chosen(results)} "
    more = note(_units(results)), note(_alike_words(results, high - low))
    scale = colour_scale(colours_of(SCORES), score(low), score(high))
    return section(title, said + _edges(results), *more, scale, maps, anchor="grid")


def _units(results: Results) -> str:
    """Say which units C has."""
    if results.best.C_scaled is None:
        return ""
    return (
        "The columns have C times the variance of the samples under each kernel (their mean "
        "squared distance from their mean): the same multiple is the same problem for a steep and "
        "a flat kernel. C itself is in the table of all candidates."
    )


def _chosen(results: Results) -> str:
    """Say what the outlined candidate is."""
    best = results.decision.best
    if results.best == best:
        return "the outlined candidate is the best, and taken."
    return (
        "the outlined candidate is taken, of the simplest kernel within one standard error of "
        f"the best, {score(best.mean)} of {named(best)}."
    )


def _edges(results: Results) -> str:
    """Say which parameters of the taken cell end the grid."""
    ends = results.ends_of_grid
    return f"It has {ends}: better may lie outside the grid. " if ends else ""


def _alike(results: Results) -> list[Cell]:
    """Return the converged cells within one standard error of the best, as the decision has it."""
    compared = comparisons(results.summary, results.rows_of, results.fold_sizes)
    return [one.cell for one in compared if one.within and one.cell.converged]


def _alike_words(results: Results, shown: float) -> str:
    """Say how many cells are as good as the best, and what colours over a range show of them."""
    means = [cell.mean for cell in _alike(results)]
    if len(means) < 2:
        return ""
    words = (
        f"The {count_of(len(means), 'candidate')} with a dot are within one standard error of the "
        "highest mean, that of differences paired over the folds as in the decision: these folds "
        "cannot tell them apart"
    )
    apart = max(means) - min(means)
    if apart == 0:
        return f"{words}, and their means are equal."
    if apart < shown / STEPS:
        return f"{words}. Their means differ by {apart:.2g}, too little for a colour to show."
    return f"{words}. Their means differ by up to {apart:.2g}."


# Maps


class _Map(NamedTuple):
    """Cells of a heat map, and the names of its rows and columns."""

    rows: str
    """What the rows are."""
    row_names: list[str]
    columns: str
    column_names: list[str]
    place: dict[Cell, tuple[int, int]]
    """Row and column of each cell."""


def heat_maps(results: Results) -> list[Html]:
    """Return one heat map of the mean score for each family of kernels with a time.

    The kernels without a time share one further map. Of low rank there is a map for every rank, or
    one for all of them where there is one kernel. All maps share one colour scale.
    """
    families = grouped(results.cells, lambda c: c.kernel if _is_timed(c) else UNTIMED)
    ordered = sorted(families.items(), key=lambda item: (item[0] == UNTIMED, item[0]))
    parts = [part for name, cells in ordered for part in _by_rank(name, cells)]
    return [_heat_map(results, name, cells, _placed(cells)) for name, cells in parts]


def _is_timed(cell: Cell) -> bool:
    return cell.time is not None or cell.time_scale is not None


def _by_rank(name: str, cells: list[Cell]) -> list[tuple[str, list[Cell]]]:
    """Return titles and cells of the maps of a family."""
    ranks = sorted({c.rank for c in cells if c.rank is not None})
    kernels = {c.label for c in cells}
    if not ranks:
        return [(name, cells)]
    if len(ranks) > 1 and len(kernels) == 1:
        return [(shortened(kernels.pop()), cells)]
    return [(f"{name}, rank {whole(rank)}", [c for c in cells if c.rank == rank]) for rank in ranks]


def _score_range(results: Results) -> tuple[float, float]:
    """Return the mean scores at the ends of the colour scale, never closer than 0.01."""
    means = [cell.mean for cell in results.cells]
    return min(*means, max(means) - 0.01), max(means)


def _placed(cells: list[Cell]) -> _Map:
    """Place cells in rows of a kernel and columns of a C.

    Where each kernel has values of C of its own, most of a map over all of them would be empty:
    then the columns count the values of each row.
    """
    kernels = sorted({c.kernel_words: c for c in cells}.values(), key=_order)
    rows = [c.kernel_words for c in kernels]
    penalties = sorted({c.penalty for c in cells})
    own = {name: sorted({c.penalty for c in cells if c.kernel_words == name}) for name in rows}
    most = max(map(len, own.values()))
    if len(penalties) > 2 * most:
        axis, columns = "number of the row's C, smallest first", [str(k + 1) for k in range(most)]
    else:
        scaled = any(c.C_scaled is not None for c in cells)
        axis = "C × variance under the kernel" if scaled else "C"
        columns, own = [penalty_text(C) for C in penalties], dict.fromkeys(rows, penalties)
    names = {c: c.kernel_words for c in cells}
    place = {c: (rows.index(name), own[name].index(c.penalty)) for c, name in names.items()}
    return _Map(*_row_names(kernels), axis, columns, place)


def _row_names(kernels: list[Cell]) -> tuple[str, list[str]]:
    """Return the parameter of the rows of a map, and its values from the top."""
    if len({c.rank for c in kernels}) > 1:
        return "rank", [whole(c.rank or 0) for c in kernels]
    scales = [f"{c.time_scale:g}" for c in kernels if c.time_scale is not None]
    # Two kernels of one family at one time scale (orders of the parametrix) need their labels.
    if len(set(scales)) == len(kernels):
        return "time scale", scales
    return "", [shortened(c.label) for c in kernels]


def _order(cell: Cell) -> tuple[int, float, str, float, str]:
    rank = cell.rank or 0
    if _is_timed(cell):
        return rank, cell.time_scale or cell.time or 0.0, "", 0.0, ""
    return rank, 0.0, cell.kernel, cell.sigma or 0.0, cell.label


def _heat_map(results: Results, name: str, cells: list[Cell], placed: _Map) -> Html:
    n_rows, n_columns = len(placed.row_names), len(placed.column_names)
    means = np.full((n_rows, n_columns), np.nan)
    texts = [[""] * n_columns for _ in range(n_rows)]
    for c, (row, column) in placed.place.items():
        means[row, column], texts[row][column] = c.mean, score(c.mean)
    with drawing(f"grid {name}", 0.74 * n_columns, 0.46 * n_rows) as picture:
        ax = picture.axes
        low, high = _score_range(results)
        names = placed.row_names, placed.column_names
        shades = mosaic(ax, (means - low) / (high - low), texts, names, SCORES)
        ax.set_title(name, loc="left")
        ax.set_xlabel(placed.columns)
        ax.set_ylabel(placed.rows)
        for row, column in (placed.place[c] for c in _alike(results) if c in placed.place):
            ax.plot([column + 0.5], [row + 0.83], "o", color=shades[row, column], markersize=3)
        if results.best in cells:
            outline(ax, *placed.place[results.best])
        best = sorted(cells, key=lambda c: -c.mean)[:3]
        described = "; ".join(f"{named(c)}: {score(c.mean)}" for c in best)
        return picture.svg(f"Mean {metric(results)}, {name}", f"The best candidates: {described}.")
