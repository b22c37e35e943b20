"""Figure of score against effective sample size."""

from typing import TYPE_CHECKING

from dhsk.report.axes import LABEL_WIDTH, legend, log_ticks, look, ring, widened
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.words import metric, shortened
from dhsk.results.columns import Cell
from dhsk.results.parts import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def capacity(results: Results, effective: dict[Cell, float]) -> Html:
    """Return mean score against effective sample size, a mark for each cell."""
    with drawing("capacity", 5.2, 3.2) as picture:
        ax = picture.axes
        for k, family in enumerate(sorted({c.kernel for c in effective})):
            own = {c: size for c, size in effective.items() if c.kernel == family}
            ax.plot(
                list(own.values()), [c.mean for c in own], linestyle="none",
                label=shortened(family, LABEL_WIDTH), **look(k),
            )  # fmt: skip
        if results.best in effective:
            ring(ax, effective[results.best], results.best.mean)
        _effective_axis(ax, min(effective.values()), max(effective.values()))
        ax.set_ylim(*widened(*ax.get_ylim()))
        ax.set_ylabel(f"mean {metric(results)}")
        ax.grid()
        ax.set_axisbelow(True)
        legend(ax)
        title = f"Mean {metric(results)} against effective sample size"
        return picture.svg(title, f"{len(effective)} candidates, coloured by kernel.")


def _effective_axis(ax: "Axes", low: float, high: float) -> None:
    ax.set_xlabel("effective sample size")
    if high > 10 * low:
        ax.set_xscale("log")
        ax.set_xlim(low / 1.2, high * 1.2)
        log_ticks(ax.xaxis, low, high)
