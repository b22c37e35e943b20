"""Figure of precision and recall of every class."""

import numpy as np
from numpy.typing import NDArray

from dhsk.report.axes import INK, LABEL_WIDTH, POINT, legend
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.words import score, shortened
from dhsk.results.parts import Results

OTHER = "#e08214"

MOST = 60
"""Classes of which each has its bars."""


def bars(results: Results, counts: NDArray[np.int64], name: str) -> list[Html]:
    """Return two bars for each class, or nothing for very many; `name` is one per page."""
    n = len(counts)
    if n > MOST:
        return []
    right, truth, found = np.diagonal(counts), counts.sum(axis=1), counts.sum(axis=0)
    precision, recall = right / np.maximum(found, 1), right / np.maximum(truth, 1)
    with drawing(name, 4.6, 0.36 * n + 0.1) as picture:
        ax = picture.axes
        places = np.arange(n)
        ax.barh(places - 0.17, precision, 0.3, color=POINT, label="precision")
        ax.barh(places + 0.17, recall, 0.3, color=OTHER, label="recall")
        for values, shift in ((precision, -0.17), (recall, 0.17)):
            for place, value in zip(places, values, strict=True):
                ax.text(
                    1.02, place + shift, score(value), va="center", fontsize=7, color=INK,
                    transform=ax.get_yaxis_transform(),
                )  # fmt: skip
        ax.set_yticks(places, [shortened(one, LABEL_WIDTH) for one in results.class_names])
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(n - 0.5, -0.5)
        ax.set_xlim(0, 1)
        ax.grid(axis="x")
        ax.set_axisbelow(True)
        ax.set_xlabel("share of the samples")
        legend(ax, 1.15)
        worst = int(recall.argmin())
        said = f"Lowest recall: {results.class_names[worst]}, {score(recall[worst])}."
        return [picture.svg("Precision and recall of every class", said)]
