"""Sections and words on classifiers of low rank: landmarks, features and certificates."""

from collections.abc import Callable
from math import log
from typing import TYPE_CHECKING, Final

from dhsk.report.drawing import drawing, frame, legend, logarithmic, look, ring, widened
from dhsk.report.markup import Html, figure_row, section
from dhsk.report.words import brief, capitalised, metric, score, two_digits, whole
from dhsk.results.columns import Cell, Certificate, grouped
from dhsk.results.low_rank import LowRank
from dhsk.results.parts import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SELECTIONS: Final = {
    "rpcholesky": "randomly pivoted Cholesky",
    "uniform": "uniform sampling",
    "kmeans": "k-means",
}
"""How landmarks are chosen, in words."""

LEAST_DISTANCE = 0.15
"""Between two ticks of ranks, as a part of the axis: 20,000 is that wide."""


def features(results: Results) -> Html:
    """Return what the classifiers are, and what their features miss; empty for exact ones."""
    if results.low_rank is None:
        return Html()
    words = (
        f"{_classifiers(results, results.low_rank)} The trace error says how much of the kernel "
        "the features miss, as a part of its trace (the sum of its diagonal): "
        f"{brief(results.best.trace_error)} for the taken candidate."
    )
    if len(results.ranks) == 1:
        return section("What the features miss", words, anchor="features")
    words += " Below, each kernel at every rank with its best C; the ring is the taken candidate."
    shown = figure_row([_by_rank(results)])
    return section("What a larger rank brings", words, shown, anchor="features")


def _classifiers(results: Results, low_rank: LowRank) -> str:
    other = "the rest" if len(results.classes) > 2 else "the other"
    return (
        f"These classifiers are not exact: they are linear ones on Nyström features, one class "
        f"against {other}, with the {low_rank.loss.replace('_', ' ')} loss. Their landmarks "
        f"{_found(low_rank.method)} all samples by {chosen(results)}, which knows no labels"
        f"{_how_many(low_rank.oversampling)}."
    )


def _found(selection: str) -> str:
    return "are centres of groups of" if selection == "kmeans" else "were chosen among"


def _how_many(oversampling: float) -> str:
    if oversampling == 1:
        return ""
    return f": {oversampling:g} for each feature, of which the leading components are kept"


def chosen(results: Results) -> str:
    """Return how the landmarks were chosen."""
    selection = results.low_rank.method if results.low_rank else ""
    return SELECTIONS.get(selection, selection)


def tolerance(results: Results) -> str:
    """Return the part of the gradient at zero that may be left, see LIBLINEAR's `-e`."""
    return f"{results.tol:g} times the smaller side's share of the samples"


def proof(results: Results) -> str:
    """Return what the columns of the table of cells prove."""
    return (
        "Trace error is the part of the kernel matrix's trace (the sum of its diagonal) that the "
        "features miss. Gradient norm is the length of the objective's gradient as a part of that "
        "at 0, where LIBLINEAR and scikit-learn's LinearSVC stop by tol: it had "
        f"to come below {tolerance(results)}. Gap is a bound of the duality gap as a part of the "
        "objective. Both are the largest over classes and folds"
    )


def refit(results: Results, proof: Certificate) -> list[tuple[str, str]]:
    """Return the certificate of a fit on all samples."""
    return [
        (
            "gradient norm",
            f"{two_digits(proof.gradient)} of that at 0; the tolerance is {tolerance(results)}",
        ),
        ("duality gap", f"at most {proof.gap:.2g} of the objective"),
        ("rank", whole(results.best.rank or 0)),
        ("features", whole(proof.n_features or 0)),
        ("trace error", brief(results.best.trace_error)),
    ]


# Figure


def _by_rank(results: Results) -> Html:
    """Return the best mean score over C, and the trace error, of every kernel against its rank."""
    best = _best_of_ranks(results)
    with drawing("ranks", 2.9, 2.5) as picture:
        scores, errors = picture.axes, picture.figure.add_axes((1.3, 0, 1, 1))
        for ax, name, value in (
            (scores, f"mean {metric(results)}, best C", lambda cell: cell.mean),
            (errors, "trace error", lambda cell: cell.trace_error or 0.0),
        ):
            _draw(ax, best, results.best, value)
            frame(ax, "rank", name)
            _rank_axis(ax, results.ranks)
        scores.set_ylim(*widened(*scores.get_ylim()))
        _error_axis(errors, [cell.trace_error or 0.0 for own in best.values() for cell in own])
        legend(errors)
        said = (
            f"rank {whole(c.rank or 0)}: {score(c.mean)}, trace error {brief(c.trace_error)}"
            for c in best[results.best.label]
        )
        title = f"{capitalised(metric(results))} and trace error against rank"
        return picture.svg(title, f"{results.best.label}, {'; '.join(said)}.")


def _best_of_ranks(results: Results) -> dict[str, list[Cell]]:
    """Best cell of every kernel at every rank: kernels by their parameters, ranks ascending."""
    at_rank = grouped(results.cells, lambda cell: (cell.label, cell.rank)).values()
    best = sorted((own[0] for own in at_rank), key=_order)  # the best stand first
    return grouped(best, lambda cell: cell.label)


def _order(cell: Cell) -> tuple[str, float, str, int]:
    parameter = cell.time_scale or cell.time or cell.sigma or 0.0
    return cell.kernel, parameter, cell.label, cell.rank or 0


def _draw(
    ax: "Axes", kernels: dict[str, list[Cell]], best: Cell, value: Callable[[Cell], float]
) -> None:
    for number, (label, cells) in enumerate(kernels.items()):
        ax.plot(
            [cell.rank or 0 for cell in cells], [value(cell) for cell in cells], linewidth=1.2,
            **look(number, label),
        )  # fmt: skip
    ring(ax, best.rank or 0, value(best))


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


def _error_axis(ax: "Axes", errors: list[float]) -> None:
    low, high = min(errors), max(errors)
    if low > 0 and high > 10 * low:
        logarithmic(ax, "y", low, high)
    else:
        ax.set_ylim(bottom=min(0.0, low))
