"""Figure of the score against the number of training samples."""

from collections.abc import Mapping, Sequence
from typing import Any

from dhsk.report.axes import LABEL_WIDTH, legend, log_ticks, look
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.words import capitalised, score, shortened, whole

Points = Sequence[Mapping[str, Any]]
"""Rows with "train_size", "kernel", "mean" and "sem", one for each size and family of kernels."""


def learning(points: Points, metric: str) -> Html:
    """Return the best mean of each family of kernels with its standard error at every size."""
    families: dict[str, list[Mapping[str, Any]]] = {}
    for point in points:
        families.setdefault(point["kernel"], []).append(point)
    sizes = sorted({point["train_size"] for point in points})
    with drawing("learning", 4.6, 3.0) as picture:
        ax = picture.axes
        for number, (name, own) in enumerate(families.items()):
            ax.errorbar(
                [one["train_size"] for one in own], [one["mean"] for one in own],
                yerr=[one["sem"] for one in own], linewidth=1.3, capsize=3,
                label=shortened(name, LABEL_WIDTH), **look(number),
            )  # fmt: skip
        if sizes[-1] > 4 * sizes[0]:
            ax.set_xscale("log")
            log_ticks(ax.xaxis, sizes[0], sizes[-1])
        ax.grid()
        ax.set_axisbelow(True)
        ax.set_xlabel("training samples")
        ax.set_ylabel(f"mean {metric}")
        legend(ax)
        said = "; ".join(
            f"{name}: {score(own[-1]['mean'])} of {whole(own[-1]['train_size'])}"
            for name, own in families.items()
        )
        return picture.svg(f"{capitalised(metric)} against training samples", f"{said}.")
