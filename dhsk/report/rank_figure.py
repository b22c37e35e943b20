"""Figure of score and trace error against the rank."""

from collections.abc import Callable
from math import log
from typing import TYPE_CHECKING

from dhsk.report.axes import LABEL_WIDTH, legend, log_ticks, look, ring, widened
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.words import brief, capitalised, metric, score, shortened, whole
from dhsk.results.columns import Cell
from dhsk.results.parts import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_DISTANCE = 0.15
"""Between two ticks of ranks, as a part of the axis: 20,000 is that wide."""


def by_rank(results: Results) -> Html:
    """Return the best mean score over C, and the trace error, of every kernel against its rank."""
    best = _best_of_ranks(results)
    with drawing("ranks", 2.9, 2.5) as picture:
        scores, errors = picture.axes, picture.figure.add_axes((1.3, 0, 1, 1))
        _draw(scores, best, results.best, lambda cell: cell.mean)
        _draw(errors, best, results.best, lambda cell: cell.trace_error or 0.0)
        scores.set_ylim(*widened(*scores.get_ylim()))
        scores.set_ylabel(f"mean {metric(results)}, best C")
        errors.set_ylabel("trace error")
        _error_axis(errors, [cell.trace_error or 0.0 for own in best.values() for cell in own])
        for ax in (scores, errors):
            _rank_axis(ax, results.ranks)
        legend(errors)
        said = (
            f"rank {whole(c.rank or 0)}: {score(c.mean)}, trace error {brief(c.trace_error)}"
            for c in best[results.best.label]
        )
        title = f"{capitalised(metric(results))} and trace error against rank"
        return picture.svg(title, f"{results.best.label}, {'; '.join(said)}.")


def _best_of_ranks(results: Results) -> dict[str, list[Cell]]:
    """Best cell of every kernel at every rank: kernels by their parameters, ranks ascending."""
    found: dict[tuple[str, int | None], Cell] = {}
    for cell in results.cells:  # best first
        found.setdefault((cell.label, cell.rank), cell)
    kernels: dict[str, list[Cell]] = {}
    for cell in sorted(found.values(), key=_order):
        kernels.setdefault(cell.label, []).append(cell)
    return kernels


def _order(cell: Cell) -> tuple[str, float, str, int]:
    parameter = cell.time_scale or cell.time or cell.sigma or 0.0
    return cell.kernel, parameter, cell.label, cell.rank or 0


def _draw(
    ax: "Axes", kernels: dict[str, list[Cell]], best: Cell, value: Callable[[Cell], float]
) -> None:
    for number, (label, cells) in enumerate(kernels.items()):
        ax.plot(
            [cell.rank or 0 for cell in cells], [value(cell) for cell in cells], linewidth=1.2,
            label=shortened(label, LABEL_WIDTH), **look(number),
        )  # fmt: skip
    ring(ax, best.rank or 0, value(best))
    ax.grid()
    ax.set_axisbelow(True)


def _rank_axis(ax: "Axes", ranks: tuple[int, ...]) -> None:
    """Number the ranks that were tried, as far as there is room."""
    span = log(ranks[-1] / ranks[0])
    shown = [ranks[0]]
    for rank in ranks[1:]:
        if log(rank / shown[-1]) >= LEAST_DISTANCE * span:
            shown.append(rank)
    ax.set_xscale("log")
    ax.set_xticks(shown, [whole(rank) for rank in shown])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("rank")


def _error_axis(ax: "Axes", errors: list[float]) -> None:
    low, high = min(errors), max(errors)
    if low > 0 and high > 10 * low:
        ax.set_yscale("log")
        log_ticks(ax.yaxis, low, high)
    else:
        ax.set_ylim(bottom=min(0.0, low))
