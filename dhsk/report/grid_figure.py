"""Heat maps of the mean score of every cell of the grid."""

from dataclasses import dataclass

import numpy as np

from dhsk.report.alike import cells_alike
from dhsk.report.axes import LABEL_WIDTH
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.mosaic import SCORES, mosaic, name_ticks, outline
from dhsk.report.words import (
    label,
    metric,
    named,
    penalty_text,
    score,
    shortened,
    whole,
)
from dhsk.results.columns import Cell
from dhsk.results.parts import Results

UNTIMED = "kernels without a time"


def grids(results: Results) -> list[Html]:
    """Return one heat map of the mean score for each family of kernels with a time.

    The kernels without a time share one further map. Of low rank there is a map for every rank, or
    one for all of them where there is one kernel. All maps share one colour scale.
    """
    families: dict[str, list[Cell]] = {}
    for cell in results.cells:
        families.setdefault(cell.kernel if _is_timed(cell) else UNTIMED, []).append(cell)
    ordered = sorted(families.items(), key=lambda item: (item[0] == UNTIMED, item[0]))
    parts = [part for name, cells in ordered for part in _by_rank(name, cells)]
    return [_grid(results, name, cells, *_rows(cells)) for name, cells in parts]


def _is_timed(cell: Cell) -> bool:
    return cell.time is not None or cell.time_scale is not None


def _by_rank(name: str, cells: list[Cell]) -> list[tuple[str, list[Cell]]]:
    """Return titles and cells of the maps of a family."""
    ranks = sorted({c.rank for c in cells if c.rank is not None})
    kernels = {c.label for c in cells}
    if not ranks:
        return [(name, cells)]
    if len(ranks) > 1 and len(kernels) == 1:
        return [(shortened(kernels.pop(), LABEL_WIDTH), cells)]
    return [(f"{name}, rank {whole(rank)}", [c for c in cells if c.rank == rank]) for rank in ranks]


def score_range(results: Results) -> tuple[float, float]:
    """Return the mean scores at the ends of the colour scale, never closer than 0.01."""
    means = [cell.mean for cell in results.cells]
    return min(*means, max(means) - 0.01), max(means)


def _rows(cells: list[Cell]) -> tuple[str, list[str], list[str]]:
    """Return the parameter of the rows of a map, their labels from the top, and their ticks."""
    rows = sorted({label(c): c for c in cells}.values(), key=_order)
    labels = [label(c) for c in rows]
    if len({c.rank for c in rows}) > 1:
        return "rank", labels, [whole(c.rank or 0) for c in rows]
    scales = [f"{c.time_scale:g}" for c in rows if c.time_scale is not None]
    # Two kernels of one family at one time scale (orders of the parametrix) need their labels.
    if len(set(scales)) == len(rows):
        return "time scale", labels, scales
    return "", labels, [c.label for c in rows]


def _order(cell: Cell) -> tuple[int, float, str, float, str]:
    rank = cell.rank or 0
    if _is_timed(cell):
        return rank, cell.time_scale or cell.time or 0.0, "", 0.0, ""
    return rank, 0.0, cell.kernel, cell.sigma or 0.0, cell.label


@dataclass(frozen=True)
class _Map:
    """Cells of a heat map, by row and column."""

    labels: list[str]
    columns: list[str]
    axis: str
    place: dict[Cell, tuple[int, int]]


def _placed(cells: list[Cell], labels: list[str]) -> _Map:
    """Place cells in rows of a kernel and columns of a C.

    Where each kernel has values of C of its own, most of a map over all of them would be empty:
    then the columns count the values of each row.
    """
    penalties = sorted({c.penalty for c in cells})
    own = {name: sorted({c.penalty for c in cells if label(c) == name}) for name in labels}
    most = max(map(len, own.values()))
    if len(penalties) > 2 * most:
        place = {c: (labels.index(label(c)), own[label(c)].index(c.penalty)) for c in cells}
        numbers = [str(k) for k in range(1, most + 1)]
        return _Map(labels, numbers, "number of the row's C, smallest first", place)
    scaled = any(c.C_scaled is not None for c in cells)
    place = {c: (labels.index(label(c)), penalties.index(c.penalty)) for c in cells}
    axis = "C × variance under the kernel" if scaled else "C"
    return _Map(labels, [penalty_text(C) for C in penalties], axis, place)


def _grid(
    results: Results, name: str, cells: list[Cell], axis: str, labels: list[str], ticks: list[str]
) -> Html:
    placed = _placed(cells, labels)
    means = np.full((len(labels), len(placed.columns)), np.nan)
    texts = [[""] * len(placed.columns) for _ in labels]
    for c, (row, column) in placed.place.items():
        means[row, column] = c.mean
        texts[row][column] = score(c.mean)
    with drawing(f"grid {name}", 0.74 * len(placed.columns), 0.46 * len(labels)) as picture:
        ax = picture.axes
        low, high = score_range(results)
        shades = mosaic(ax, (means - low) / (high - low), texts, SCORES)
        name_ticks(ax, [shortened(t, LABEL_WIDTH) for t in ticks], placed.columns)
        ax.set_title(name, loc="left")
        ax.set_xlabel(placed.axis)
        ax.set_ylabel(axis)
        for c in cells_alike(results):
            if c in placed.place:
                row, column = placed.place[c]
                ax.plot([column + 0.5], [row + 0.83], "o", color=shades[row, column], markersize=3)
        if results.best in cells:
            outline(ax, *placed.place[results.best])
        described = "; ".join(f"{named(c)}: {score(c.mean)}" for c in cells[:3])
        return picture.svg(f"Mean {metric(results)}, {name}", f"The best candidates: {described}.")
