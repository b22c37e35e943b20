"""Sections and words on classifiers of low rank: landmarks, features and certificates."""

from typing import Final

from dhsk.report import rank_figure
from dhsk.report.markup import Html, figure_row, section
from dhsk.report.words import brief, two_digits, whole
from dhsk.results.asked import LowRank
from dhsk.results.columns import Certificate
from dhsk.results.parts import Results

SELECTIONS: Final = {
    "rpcholesky": "randomly pivoted Cholesky",
    "uniform": "uniform sampling",
    "kmeans": "k-means",
}
"""How landmarks are chosen, in words."""


def features(results: Results) -> Html:
    """Return what the classifiers are, and what their features miss; empty for exact ones."""
    if results.low_rank is None:
        return Html()
    note = (
        f"{_classifiers(results, results.low_rank)} The trace error says how much of the kernel "
        "the features miss, as a part of its trace (the sum of its diagonal): "
        f"{brief(results.best.trace_error)} for the chosen candidate."
    )
    if len(results.ranks) == 1:
        return section("What the features miss", note, anchor="features")
    note += " Below, each kernel at every rank with its best C; the ring is the chosen candidate."
    shown = figure_row([rank_figure.by_rank(results)])
    return section("What a larger rank brings", note, shown, anchor="features")


def _classifiers(results: Results, low_rank: LowRank) -> str:
    other = "the rest" if len(results.classes) > 2 else "the other"
    return (
        f"These classifiers are not exact: they are linear ones on Nyström features, one class "
        f"against {other}, with the {low_rank.loss.replace('_', ' ')} loss. Their landmarks "
        f"{_found(low_rank.selection)} all samples by {chosen(results)}, which knows no labels"
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
    selection = results.low_rank.selection if results.low_rank else ""
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
