"""The figures of the page; each takes the results and returns SVG."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dhsk.report.axes import INK, legend, log_ticks, look, ring, short_power, widened
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.words import (
    brief,
    capitalised,
    label,
    metric,
    named,
    score,
    short_count,
    shortened,
    spread,
    whole,
)
from dhsk.results.columns import Cell, Row
from dhsk.results.parts import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORES = "viridis"
SHARES = "Blues"
SHARES_POWER = 0.5
"""The colour follows the root of a share, so that rare mistakes can be told from none."""

POINT = "#31688e"
MISSING = "#efefef"

UNTIMED = "kernels without a time"

LABEL_WIDTH = 34
"""Longest name of a kernel in a figure, in characters; the tables have the full ones."""


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


def _grid(
    results: Results, name: str, cells: list[Cell], axis: str, labels: list[str], ticks: list[str]
) -> Html:
    penalties = sorted({c.penalty for c in cells})
    scaled = any(c.C_scaled is not None for c in cells)
    means = np.full((len(labels), len(penalties)), np.nan)
    texts = [[""] * len(penalties) for _ in labels]
    for c in cells:
        row, column = labels.index(label(c)), penalties.index(c.penalty)
        means[row, column] = c.mean
        texts[row][column] = f"{score(c.mean)}\nC = {_short(c.C)}" if scaled else score(c.mean)
    width, height = (0.86, 0.52) if scaled else (0.74, 0.46)
    with drawing(f"grid {name}", width * len(penalties), height * len(labels)) as picture:
        ax = picture.axes
        low, high = score_range(results)
        _mosaic(ax, (means - low) / (high - low), texts, SCORES, size=8 if scaled else 9)
        _name_ticks(ax, [shortened(t, LABEL_WIDTH) for t in ticks], [f"{C:g}" for C in penalties])
        ax.set_title(name, loc="left")
        ax.set_xlabel("C times the spread of the samples" if scaled else "C")
        ax.set_ylabel(axis)
        if results.best in cells:
            _outline(ax, labels.index(label(results.best)), penalties.index(results.best.penalty))
        described = "; ".join(f"{named(c)}: {score(c.mean)}" for c in cells[:3])
        return picture.svg(f"Mean {metric(results)}, {name}", f"The best cells: {described}.")


def _short(C: float) -> str:
    """Return C to three digits: 23.6, 1,153, 3.2e12."""
    return brief(C) if C < 999_999 else short_power(float(f"{C:.3g}"))


def _mosaic(
    ax: "Axes",
    values: NDArray[np.float64],
    texts: list[list[str]],
    colours: str,
    edges: str = "white",
    size: float = 9,
) -> None:
    """Colour cells by values from 0 to 1 and write into each; first row on top, NaN is grey."""
    from matplotlib import colormaps

    colour = colormaps[colours].with_extremes(bad=MISSING)
    ax.pcolormesh(values, cmap=colour, vmin=0, vmax=1, edgecolors=edges, linewidth=1)
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for (row, column), value in np.ndenumerate(values):
        ink = _ink(colour(value))
        ax.text(
            column + 0.5, row + 0.5, texts[row][column],
            ha="center", va="center", color=ink, fontsize=size, linespacing=1.15,
        )  # fmt: skip


def _ink(background: tuple[float, float, float, float]) -> str:
    """Return black or white, whichever stands out more (relative luminance of WCAG 2)."""
    red, green, blue, _ = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
                           for v in background)  # fmt: skip
    # Contrast with black and with white are equal at 0.179.
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "white"


def _name_ticks(ax: "Axes", rows: list[str], columns: list[str]) -> None:
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows)
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns)


def _outline(ax: "Axes", row: int, column: int) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle((column, row), 1, 1, fill=False, edgecolor=INK, linewidth=2.2, clip_on=False)
    )


def confusion(results: Results, counts: NDArray[np.int64], title: str) -> Html:
    """Return a confusion matrix: counts, and their shares of the true class in percent."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size, side, width = (7.0, 0.34, 24) if len(counts) > 12 else (9.0, 0.62, 48)
    texts = [
        [f"{short_count(n)}\n{_percent(s)}" if n else "" for n, s in zip(*row, strict=True)]
        for row in zip(counts.tolist(), shares.tolist(), strict=True)
    ]
    rows = columns = [shortened(name, width) for name in results.class_names]
    if is_numbered(results):
        columns = [str(k) for k in range(1, len(rows) + 1)]
        rows = [f"{row}   {k}" for row, k in zip(rows, columns, strict=True)]
    with drawing(title, side * len(counts), side * len(counts)) as picture:
        ax = picture.axes
        _mosaic(ax, shares**SHARES_POWER, texts, SHARES, "#e3e8ef", size)
        _name_ticks(ax, rows, columns)
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")
        right = f"{whole(np.trace(counts))} of {whole(counts.sum())}"
        return picture.svg(title, f"{right} samples lie on the diagonal.")


def is_numbered(results: Results) -> bool:
    """Whether the names are too long to stand under a column, so that numbers do."""
    return max(len(name) for name in results.class_names) > (5 if len(results.classes) > 12 else 7)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.005 else "<1%"


def folds(results: Results) -> Html:
    """Return the score of each fold, for the best cell of each family of kernels."""
    best: dict[str, Cell] = {}
    for cell in results.cells:
        best.setdefault(cell.kernel, cell)
    cells = list(best.values())
    with drawing("folds", 5.2, 0.5 * len(cells) + 0.1) as picture:
        ax = picture.axes
        for row, cell in enumerate(cells):
            _fold_row(ax, row, cell, results.rows_of[cell.point])
        names = [f"{shortened(label(c), LABEL_WIDTH)}, C = {_short(c.C)}" for c in cells]
        ax.set_yticks(range(len(cells)), names)
        ax.set_ylim(len(cells) - 0.45, -0.55)
        ax.set_xlim(*widened(*ax.get_xlim()))
        ax.locator_params(axis="x", nbins=6)
        ax.grid(axis="x")
        ax.set_axisbelow(True)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(metric(results))
        said = "; ".join(f"{label(c)}: {spread(c)}" for c in cells)
        return picture.svg(
            f"{capitalised(metric(results))} by fold", f"Mean and standard deviation: {said}."
        )


def _fold_row(ax: "Axes", row: int, cell: Cell, folds: Sequence[Row]) -> None:
    # Folds from top to bottom, so that equal scores do not hide each other.
    heights = row + np.linspace(-0.2, 0.2, len(folds)) if len(folds) > 1 else [row]
    ends = [cell.mean - cell.std, cell.mean + cell.std]
    ax.plot(ends, [row, row], color=POINT, linewidth=9, alpha=0.22, solid_capstyle="butt")
    ax.plot([cell.mean] * 2, [row - 0.28, row + 0.28], color=INK, linewidth=1.6)
    scores = [fold.score for fold in folds]
    ax.plot(scores, heights, "o", color=POINT, markersize=6, mec="white", mew=0.6)
    ax.text(1.02, row, spread(cell), transform=ax.get_yaxis_transform(), va="center")


def capacity(results: Results, effective: dict[Cell, float]) -> Html:
    """Return mean score against effective sample size, a mark for each cell."""
    with drawing("capacity", 5.2, 3.2) as picture:
        ax = picture.axes
        for k, family in enumerate(sorted({c.kernel for c in effective})):
            own = {c: size for c, size in effective.items() if c.kernel == family}
            ax.plot(
                list(own.values()), [c.mean for c in own], linestyle="none",
                label=shortened(family, LABEL_WIDTH), **look(k),
            )  # fmt: skip
        if results.best in effective:
            ring(ax, effective[results.best], results.best.mean)
        _effective_axis(ax, min(effective.values()), max(effective.values()))
        ax.set_ylim(*widened(*ax.get_ylim()))
        ax.set_ylabel(f"mean {metric(results)}")
        ax.grid()
        ax.set_axisbelow(True)
        legend(ax)
        title = f"Mean {metric(results)} against effective sample size"
        return picture.svg(title, f"{len(effective)} cells, coloured by kernel.")


def _effective_axis(ax: "Axes", low: float, high: float) -> None:
    ax.set_xlabel("effective sample size")
    if high > 10 * low:
        ax.set_xscale("log")
        ax.set_xlim(low / 1.2, high * 1.2)
        log_ticks(ax.xaxis, low, high)


def decay(eigenvalues: NDArray[np.float64], *, exact: bool) -> Html:
    """Return positive eigenvalues, largest first, on a logarithmic scale."""
    high, low = eigenvalues[0], eigenvalues[-1]
    with drawing("decay", 3.65, 2.4) as picture:
        ax = picture.axes
        _curve(ax, eigenvalues)
        ax.set_yscale("log")
        # One of 1, 2, 5 lies in any interval whose ends differ by a factor of 2.5 or more.
        ax.set_ylim(low / 1.6, high * 1.6)
        log_ticks(ax.yaxis, low, high)
        ax.set_title(f"Eigenvalues{_bound(exact)}", loc="left")
        said = f"From {high:.3g} down to {low:.3g} at number {len(eigenvalues)}{_bound(exact)}."
        return picture.svg("Eigenvalues of the Gram matrix", said)


def _bound(exact: bool) -> str:
    return "" if exact else " (lower bounds)"


def cumulative(shares: NDArray[np.float64], *, exact: bool) -> Html:
    """Return the shares of the trace, in percent, that the first 1, 2, ... eigenvalues hold."""
    with drawing("cumulative", 3.65, 2.4) as picture:
        ax = picture.axes
        _curve(ax, shares)
        ax.set_ylim(0, max(102, float(shares.max())))
        ax.yaxis.set_major_formatter("{x:.0f} %")
        ax.set_title(f"Cumulative share of the trace{_bound(exact)}", loc="left")
        at_least = "" if exact else "at least "
        said = f"The first {len(shares)} hold {at_least}{shares[-1]:.1f} percent."
        return picture.svg("Cumulative share of the trace", said)


def _curve(ax: "Axes", values: NDArray[np.float64]) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.plot(range(1, len(values) + 1), values, "o-", color=POINT, markersize=2.8, linewidth=1)
    ax.set_xlim(0, len(values) + 1)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    ax.grid()
    ax.set_axisbelow(True)
    ax.set_xlabel("number of the eigenvalue")


def colours_of(name: str, exponent: float = 1) -> list[str]:
    """Return nine colours of a map as #rrggbb, at even steps of the value they stand for."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps[name](np.linspace(0, 1, 9) ** exponent)]
