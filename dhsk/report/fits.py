"""Sections on the fits: the learning curve, capacity, and the refit of the taken cell."""

from collections.abc import Mapping, Sequence
from typing import Any

from dhsk.report import low_rank
from dhsk.report.drawing import drawing, frame, legend, logarithmic, look, ring, widened
from dhsk.report.markup import Html, figure_row, listing, section, table
from dhsk.report.words import (
    brief,
    capitalised,
    duration,
    metric,
    penalty_cell,
    score,
    two_digits,
    whole,
)
from dhsk.results.columns import Cell, Certificate, grouped
from dhsk.results.parts import Results

Points = Sequence[Mapping[str, Any]]
"""Rows with "train_size", "kernel", "label", "C", "mean" and "sem", one for each size and family of
kernels."""

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
    words = (
        f"Mean {metric(results)} on held-out samples, each family of kernels at its best, with "
        "standard errors over the folds. A curve that still rises at its end would gain from more "
        "samples. The sections below count all sizes together."
    )
    columns = {
        "training samples": lambda one: whole(one["train_size"]),
        "kernel": lambda one: one["label"],
        "C": lambda one: penalty_cell(one["C"]),
        f"mean {metric(results)}": lambda one: score(one["mean"]),
        "standard error": lambda one: score(one["sem"]),
    }
    shown = figure_row([_curve(curve, metric(results))]), listing(curve, columns, class_="sortable")
    return section("Learning curve", words, *shown, anchor="learning")


def _curve(points: Points, metric: str) -> Html:
    """Return the best mean of each family of kernels with its standard error at every size."""
    families = grouped(points, lambda point: str(point["kernel"]))
    sizes = sorted({point["train_size"] for point in points})
    with drawing("learning", 4.6, 3.0) as picture:
        ax = picture.axes
        for number, (name, own) in enumerate(families.items()):
            ax.errorbar(
                [one["train_size"] for one in own], [one["mean"] for one in own],
                yerr=[one["sem"] for one in own], linewidth=1.3, capsize=3, **look(number, name),
            )  # fmt: skip
        if sizes[-1] > 4 * sizes[0]:
            logarithmic(ax, "x", sizes[0], sizes[-1])
        frame(ax, "training samples", f"mean {metric}")
        legend(ax)
        said = "; ".join(
            f"{name}: {score(own[-1]['mean'])} of {whole(own[-1]['train_size'])}"
            for name, own in families.items()
        )
        return picture.svg(f"{capitalised(metric)} against training samples", f"{said}.")


def capacity(results: Results) -> Html:
    """Return score against effective sample size; empty if all cells have the same size."""
    sizes = {c: c.effective for c in results.cells if c.effective is not None}
    if len(set(sizes.values())) < 2:
        return Html()
    best = results.best
    words = (
        f"{CAPACITY} A mark is a candidate, with the smallest size of all pairs of classes and "
        f"folds. The taken candidate: margin {brief(best.margin)}, VC bound {brief(best.vc)}, "
        f"effective sample size {brief(best.effective)}."
    )
    return section("Capacity", words, figure_row([_sizes(results, sizes)]), anchor="capacity")


def _sizes(results: Results, effective: dict[Cell, float]) -> Html:
    """Return mean score against effective sample size, a mark for each cell."""
    low, high = min(effective.values()), max(effective.values())
    with drawing("capacity", 5.2, 3.2) as picture:
        ax = picture.axes
        for k, family in enumerate(sorted({c.kernel for c in effective})):
            own = {c: size for c, size in effective.items() if c.kernel == family}
            means = [c.mean for c in own]
            ax.plot(list(own.values()), means, linestyle="none", **look(k, family))
        if results.best in effective:
            ring(ax, effective[results.best], results.best.mean)
        if high > 10 * low:
            logarithmic(ax, "x", low, high)
            ax.set_xlim(low / 1.2, high * 1.2)
        ax.set_ylim(*widened(*ax.get_ylim()))
        frame(ax, "effective sample size", f"mean {metric(results)}")
        legend(ax)
        title = f"Mean {metric(results)} against effective sample size"
        return picture.svg(title, f"{len(effective)} candidates, coloured by kernel.")


def refit(results: Results) -> Html:
    """Return the certificate of the taken cell on all samples; empty if there is none."""
    proof = results.refit
    if proof is None:
        return Html()
    facts = [
        ("converged", "yes" if proof.converged else "no"),
        *(_exact(results, proof) if results.low_rank is None else low_rank.refit(results, proof)),
        ("time", duration(proof.seconds)),
    ]
    words = "The taken candidate, fitted once more on the samples of all folds together."
    shown = table((), facts, class_="facts")
    return section("Refit of the taken candidate", words, shown, anchor="refit")


def weights(results: Results) -> Html:
    """Return the features of most weight for each class; empty of kernels without weights."""
    if not results.weights:
        return Html()
    words = (
        "Features of most weight in the decision for each class, on all samples, as the kernel "
        "sees them; large values of one below 0 speak against the class. Features that go together "
        "share their weight."
    )
    columns = {"class": lambda one: one.label, "features": lambda one: one.words}
    shown = listing(results.weights, columns)
    return section("What speaks for each class", words, shown, anchor="weights")


def _exact(results: Results, proof: Certificate) -> list[tuple[str, str]]:
    return [
        ("tol reached", f"{two_digits(proof.kkt)}; tolerance {results.tol:g}"),
        ("duality gap", f"{two_digits(proof.gap)} of the primal objective"),
        ("support vectors", whole(proof.n_support or 0)),
        ("margin", brief(proof.margin)),
        ("VC bound", brief(proof.vc)),
        ("effective sample size", brief(proof.effective)),
    ]
