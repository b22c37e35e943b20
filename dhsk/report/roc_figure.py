"""Figure of ROC curves."""

from collections.abc import Sequence

from dhsk.report.axes import LABEL_WIDTH, legend
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.words import score, shortened
from dhsk.results.examined import RocCurve

NAMED = 10
"""Curves with a colour and a name; of more, those with the smallest areas have them."""


def roc(curves: Sequence[RocCurve]) -> Html:
    """Return the curves of all classes."""
    from matplotlib import colormaps

    ordered = sorted(curves, key=lambda curve: curve.area)
    with drawing("roc", 3.2, 3.2) as picture:
        ax = picture.axes
        ax.plot([0, 1], [0, 1], color="#888888", linewidth=0.8, linestyle="--")
        for curve in ordered[NAMED:]:
            ax.plot(curve.false_positives, curve.true_positives, color="#88888880", linewidth=0.8)
        for number, curve in enumerate(ordered[:NAMED]):
            name = shortened(str(curve.positive), LABEL_WIDTH)
            ax.plot(
                curve.false_positives, curve.true_positives, linewidth=1.6,
                color=colormaps["tab10"](number), label=f"{name}: {score(curve.area)}",
            )  # fmt: skip
        ax.set_xlim(-0.01, 1.01)
        ax.set_ylim(-0.01, 1.01)
        ax.grid()
        ax.set_axisbelow(True)
        ax.set_xlabel("false positive rate")
        ax.set_ylabel("true positive rate")
        legend(ax)
        areas = "; ".join(f"{curve.positive}: {score(curve.area)}" for curve in ordered[:NAMED])
        return picture.svg("ROC curves", f"Areas under the curves: {areas}.")
