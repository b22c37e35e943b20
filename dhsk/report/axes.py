"""Parts that figures share: marks and colours, a ring, a legend, logarithmic ticks."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

INK = "#222222"

FAMILIES = "tab10"
MARKS = "os^DvPX"
"""Ten colours and seven shapes: seventy families of kernels before two look alike."""

POINT = "#31688e"
MISSING = "#efefef"
GRID = "#e4e4e4"

LABEL_WIDTH = 34
"""Longest name of a kernel in a figure, in characters; the tables have the full ones."""

LEAST_RANGE = 0.02
"""Axes of scores never zoom in further: a smaller difference shall not look large."""


def look(number: int) -> dict[str, Any]:
    """Return mark and colour of a kernel, or a family, by its number."""
    from matplotlib import colormaps

    colour = colormaps[FAMILIES](number % 10)
    mark = MARKS[number % len(MARKS)]
    return {"marker": mark, "color": colour, "markersize": 7, "mec": "white", "mew": 0.6}


def ring(ax: "Axes", x: float, y: float) -> None:
    """Mark the best cell."""
    ax.plot([x], [y], "o", markersize=13, mfc="none", mec=INK, mew=1.4, label="best")


def legend(ax: "Axes", left: float = 1.02) -> None:
    """Draw a legend to the right of the axes; `left` is its place, 1 where they end."""
    ax.legend(loc="upper left", bbox_to_anchor=(left, 1), frameon=False, borderaxespad=0)


def widened(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis of scores, zoomed in no further than `LEAST_RANGE`."""
    slack = max(0.0, LEAST_RANGE - (high - low)) / 2
    return low - slack, high + slack


def log_ticks(axis: "Axis", low: float, high: float) -> None:
    """Put ticks on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_power(value)))
    axis.set_minor_locator(NullLocator())


def short_power(value: float) -> str:
    """Return a round number that may be very large or small: 0.01, 100, 1e-6, 1e12."""
    return f"{value:g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
