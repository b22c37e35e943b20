"""Sections on the fits: capacity, the spectrum of the best kernel, the refit of the best cell."""

import numpy as np
from numpy.typing import NDArray

from dhsk.report import capacity_figure, curve_figure, low_rank, spectrum_figure
from dhsk.report.curve_figure import Points
from dhsk.report.markup import Html, Keyed, figure_row, section, table
from dhsk.report.spectrum_words import covering_words, dimension_words
from dhsk.report.words import (
    brief,
    count_of,
    duration,
    metric,
    penalty_text,
    score,
    two_digits,
    unbroken,
    whole,
)
from dhsk.results.columns import Certificate
from dhsk.results.parts import Results

CAPACITY = (
    "The margin is the distance in feature space from the separating surface to where the decision "
    "is 1; with the radius of a ball that holds the samples it gives the VC bound, an upper bound "
    "of how many samples such a classifier could learn whatever their labels. The effective sample "
    "size is the number of training samples for each unit of the VC bound, hence itself a lower "
    "bound (Zhao & Song 2017, section 2.3): it says how far the samples determine the classifier, "
    "and promises no score."
)


def learning(results: Results, curve: Points) -> Html:
    """Return score against number of training samples; empty if there is no learning curve."""
    if not curve:
        return Html()
    note = (
        f"Mean {metric(results)} on held-out samples, each family of kernels at its best, with "
        "standard errors over the folds. A curve that still rises at its end would gain from more "
        "samples. The sections below count all sizes together."
    )
    head = ("training samples", "kernel", "C", f"mean {metric(results)}", "standard error")
    rows = [
        (
            whole(one["train_size"]), one["label"],
            Keyed(penalty_text(one["C"]), one["C"]), score(one["mean"]), score(one["sem"]),
        )
        for one in curve
    ]  # fmt: skip
    shown = figure_row([curve_figure.learning(curve, metric(results))])
    return section(
        "Learning curve", note, shown, table(head, rows, class_="sortable"), anchor="learning"
    )


def capacity(results: Results) -> Html:
    """Return score against effective sample size; empty if all cells have the same size."""
    sizes = {c: c.effective for c in results.cells if c.effective is not None}
    if len(set(sizes.values())) < 2:
        return Html()
    note = (
        f"{CAPACITY} A mark is a candidate, with the smallest size of all pairs of classes and "
        f"folds. The chosen candidate: {_bounds(results.best)}."
    )
    shown = figure_row([capacity_figure.capacity(results, sizes)])
    return section("Capacity", note, shown, anchor="capacity")


def _bounds(proof: Certificate) -> str:
    return (
        f"margin {brief(proof.margin)}, VC bound {brief(proof.vc)}, "
        f"effective sample size {brief(proof.effective)}"
    )


def spectrum(results: Results) -> Html:
    """Return the eigenvalues of the best kernel and their share of the trace.

    It is empty where no eigenvalues were computed.
    """
    if not results.eigenvalues:
        return Html()
    title = "Eigenvalues of the best kernel"
    values, exact = np.array(results.eigenvalues), results.eigenvalues_exact
    # What a symmetric eigensolver cannot tell from zero (LAPACK Users' Guide, 4.7).
    noise = results.samples.n_samples * np.finfo(np.float64).eps * max(values, default=0.0)
    drawn = values[values > noise]
    if not drawn.size:
        return section(title, "No eigenvalue is above zero.")
    hidden = len(values) - len(drawn)
    note = f"The Gram matrix: {count_of(len(drawn), 'eigenvalue')}, largest first"
    panels = [spectrum_figure.decay(drawn, exact=exact)]
    if results.trace > 0:
        shares = 100 * np.cumsum(drawn) / results.trace
        panels.append(spectrum_figure.cumulative(shares, exact=exact))
        note += _reach(shares, exact=exact)
    note += f". {whole(hidden)} more are zero within rounding and not drawn." if hidden else "."
    if not exact:
        note += " They are Ritz values: lower bounds of the eigenvalues, and so are their shares."
    if results.trace > 0:
        note += dimension_words(results, drawn) + covering_words(results)
    return section(title, note, figure_row(panels), anchor="spectrum")


def _reach(shares: NDArray[np.float64], *, exact: bool) -> str:
    """Say how many eigenvalues hold which share of the trace: the rank that suffices."""
    least, most = ("", "") if exact else ("at least ", "at most ")
    together = f", together {least}{unbroken(f'{shares[-1]:.1f} %')} of the trace"
    reached = [
        unbroken(f"{goal} % with {most}{whole(int(np.argmax(shares >= goal)) + 1)}")
        for goal in (50, 90, 99)
        if shares[-1] >= goal
    ]
    return f"{together} ({', '.join(reached)})" if reached else together


def refit(results: Results) -> Html:
    """Return the certificate of the best cell on all samples; empty if there is none."""
    proof = results.refit
    if proof is None:
        return Html()
    facts = [
        ("converged", "yes" if proof.converged else "no"),
        *(_exact(results, proof) if results.low_rank is None else low_rank.refit(results, proof)),
        ("time", duration(proof.seconds)),
    ]
    note = "The chosen candidate, fitted once more on the samples of all folds together."
    shown = table((), facts, class_="facts")
    return section("Refit of the chosen candidate", note, shown, anchor="refit")


def _exact(results: Results, proof: Certificate) -> list[tuple[str, str]]:
    return [
        ("tol reached", f"{two_digits(proof.kkt)}; tolerance {results.tol:g}"),
        ("duality gap", f"{two_digits(proof.gap)} of the primal objective"),
        ("support vectors", whole(proof.n_support or 0)),
        ("margin", brief(proof.margin)),
        ("VC bound", brief(proof.vc)),
        ("effective sample size", brief(proof.effective)),
    ]
