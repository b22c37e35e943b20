"""Figure of the samples in a plane, by kernel PCA."""

import numpy as np

from dhsk.report.axes import INK, LABEL_WIDTH, MARKS, legend
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.words import count_of, shortened
from dhsk.results.examined import SampleMap
from dhsk.results.parts import Results

NAMED = 20
"""Classes with a colour of their own; samples of the others are grey."""


def sample_map(results: Results, found: SampleMap) -> Html:
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
            colour = colours(k) if k < NAMED else "#888888"
            ax.plot(
                x[own], y[own], linestyle="none", marker=MARKS[k % len(MARKS)], color=colour,
                markersize=4, alpha=0.75, mew=0,
                label=shortened(name, LABEL_WIDTH) if k < NAMED else None,
            )  # fmt: skip
        if wrong.any():
            ax.plot(
                x[wrong], y[wrong], "o", markersize=8, mfc="none", mec=INK, mew=1.0,
                label="taken for another class",
            )  # fmt: skip
        for axis, share, number in ((ax.xaxis, found.shares[0], 1), (ax.yaxis, found.shares[1], 2)):
            axis.set_ticklabels([])
            axis.set_ticks_position("none")
            axis.set_label_text(f"component {number} ({100 * share:.3g} % of the variance)")
        ax.set_aspect("equal", adjustable="datalim")
        legend(ax)
        said = f"{count_of(len(x), 'sample')}, {int(wrong.sum())} of them taken for another class."
        return picture.svg("Samples in the plane of two kernel principal components", said)
