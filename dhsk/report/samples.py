"""Sections on single samples: ROC curves, a map, and the mistakes one by one."""

from collections.abc import Sequence

import numpy as np

from dhsk.report.drawing import INK, MARKS, drawing, frame, legend
from dhsk.report.markup import Columns, Html, figure_row, listing, section
from dhsk.report.words import brief, count_of, score, shortened, unbroken, whole
from dhsk.results.examined import RocCurve, SampleMap, WrongSample
from dhsk.results.parts import Results

CURVES = 10
"""Curves with a colour and a name; of more, those with the smallest areas have them."""

COLOURED = 20
"""Classes with a colour of their own; samples of the others are grey."""

OPEN_ROWS = 20
"""Mistakes from which on the table scrolls in a box of its own."""


def roc(results: Results) -> Html:
    """Return the curves of decisions for held-out samples; empty if there are none."""
    curves = results.examined.curves if results.examined else ()
    if not curves:
        return Html()
    two = len(results.classes) == 2
    what = f"{curves[0].positive} against the other" if two else "each class against the rest"
    words = (
        f"The taken candidate, {what}: how many samples of the class are found (up) at what rate "
        "of false alarms (right), as the threshold of the decision moves. Each sample is decided "
        "by the fold that did not train on it. 1 is the best area under a curve, 0.5 that of "
        f"guessing.{'' if two else _without_curve(results, curves)}"
    )
    parts = [figure_row([_curves(curves)])]
    if len(curves) > CURVES:
        columns = {
            "class": lambda curve: str(curve.positive),
            "area under the curve": lambda curve: score(curve.area),
        }
        parts.append(listing(curves, columns, class_="numbers sortable"))
    return section("ROC", words, *parts, anchor="roc")


def _without_curve(results: Results, curves: Sequence[RocCurve]) -> str:
    """Say which classes have no curve, and why; empty where each has one."""
    shown = {curve.positive for curve in curves}
    others = [name for name in results.classes if name not in shown]
    untrained = {few.name for few in results.untrained_classes}
    tested = dict(zip(results.classes, map(sum, results.confusion), strict=True))
    unknown = [str(name) for name in others if name in untrained or not tested[name]]
    words = ""
    if unknown:
        why = "no fold that was trained with the class has tested it"
        words = f" Without a curve: {', '.join(unknown)} ({why})."
    more = len(others) - len(unknown)
    return words + (f" {whole(more)} more, of larger areas, have none." if more else "")


def picture(results: Results) -> Html:
    """Return the samples in the plane; empty if there is no map."""
    found = results.examined.map if results.examined else None
    if found is None:
        return Html()
    among = len(found.samples)
    few = among < sum(results.class_counts)
    which = f"{whole(among)} of the samples" if few else "all samples"
    together = unbroken(f"{100 * sum(found.shares):.3g} %")
    words = (
        f"Kernel PCA of {which} under the taken kernel: the plane in which they differ most, with "
        f"{together} of their variance. The classifier uses all other directions too, so classes "
        "that overlap here may be apart. Rings are samples that the taken candidate mistook "
        "for another class while they were held out."
    )
    shown = figure_row([_map(results, found)])
    return section("The samples in a plane", words, shown, anchor="map")


def mistakes(results: Results) -> Html:
    """Return the samples that were mistaken for another class; empty if this is not known."""
    found = results.examined
    if found is None:
        return Html()
    if not found.n_wrong:
        return section("Mistakes", "Every held-out sample was predicted right.", anchor="mistakes")
    some = len(found.wrong) < found.n_wrong
    listed = f", of which {len(found.wrong)} are listed" if some else ""
    words = (
        f"{count_of(found.n_wrong, 'sample')} that the taken candidate mistook for "
        f"another class{listed}; rows count from 0."
    )
    columns = _columns(found.wrong)
    if "how sure" in columns:
        words += (
            " How sure: the decision for the predicted class less that for the true one. Sure "
            "mistakes are worth a look: their labels may be wrong."
        )
    long = " long" if len(found.wrong) > OPEN_ROWS else ""
    shown = listing(found.wrong, columns, class_=f"mistakes sortable{long}")
    return section("Mistakes", words, shown, anchor="mistakes")


def _columns(wrong: Sequence[WrongSample]) -> Columns[WrongSample]:
    """Cells of the table of mistakes by their heads; without those that none has."""
    row: Columns[WrongSample] = {"row": lambda one: one.sample}
    sure: Columns[WrongSample] = {"how sure": lambda one: brief(one.margin)}
    return {
        "sample": lambda one: one.name or one.sample,
        **(row if any(one.name for one in wrong) else {}),
        "class": lambda one: str(one.true),
        "taken for": lambda one: str(one.predicted),
        **(sure if any(one.margin is not None for one in wrong) else {}),
    }


# Figures


def _curves(curves: Sequence[RocCurve]) -> Html:
    """Return the curves of all classes."""
    from matplotlib import colormaps

    ordered = sorted(curves, key=lambda curve: curve.area)
    with drawing("roc", 3.2, 3.2) as picture:
        ax = picture.axes
        ax.plot([0, 1], [0, 1], color="#888888", linewidth=0.8, linestyle="--")
        for curve in ordered[CURVES:]:
            ax.plot(curve.false_positives, curve.true_positives, color="#88888880", linewidth=0.8)
        for number, curve in enumerate(ordered[:CURVES]):
            name = shortened(str(curve.positive))
            ax.plot(
                curve.false_positives, curve.true_positives, linewidth=1.6,
                color=colormaps["tab10"](number), label=f"{name}: {score(curve.area)}",
            )  # fmt: skip
        ax.set_xlim(-0.01, 1.01)
        ax.set_ylim(-0.01, 1.01)
        frame(ax, "false positive rate", "true positive rate")
        legend(ax)
        areas = "; ".join(f"{curve.positive}: {score(curve.area)}" for curve in ordered[:CURVES])
        return picture.svg("ROC curves", f"Areas under the curves: {areas}.")


def _map(results: Results, found: SampleMap) -> Html:
    """Return the samples, coloured by their class, with a ring about each mistake."""
    from matplotlib import colormaps

    x, y = np.array(found.x), np.array(found.y)
    true, guess = np.array(found.true), np.array(found.predicted)
    wrong = (guess >= 0) & (guess != true)
    colours = colormaps["tab10" if len(results.classes) <= 10 else "tab20"]
    with drawing("map", 4.6, 4.2) as picture:
        ax = picture.axes
        for k, name in enumerate(results.class_names):
            own = true == k
            colour = colours(k) if k < COLOURED else "#888888"
            ax.plot(
                x[own], y[own], linestyle="none", marker=MARKS[k % len(MARKS)], color=colour,
                markersize=4, alpha=0.75, mew=0,
                label=shortened(name) if k < COLOURED else None,
            )  # fmt: skip
        if wrong.any():
            ax.plot(
                x[wrong], y[wrong], "o", markersize=8, mfc="none", mec=INK, mew=1.0,
                label="mistaken for another class",
            )  # fmt: skip
        for axis, share, number in ((ax.xaxis, found.shares[0], 1), (ax.yaxis, found.shares[1], 2)):
            axis.set_ticklabels([])
            axis.set_ticks_position("none")
            axis.set_label_text(f"component {number} ({100 * share:.3g} % of the variance)")
        ax.set_aspect("equal", adjustable="datalim")
        legend(ax)
        mistaken = f"{int(wrong.sum())} of them mistaken for another class"
        said = f"{count_of(len(x), 'sample')}, {mistaken}."
        return picture.svg("Samples in the plane of two kernel principal components", said)
