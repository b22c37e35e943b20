"""Pictures of the page: matplotlib figures in one style, as SVG that is the same every time."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dhsk.report.markup import Html, tag
from dhsk.report.words import shortened
from dhsk.results.columns import short_power

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#222222"

FAMILIES = "tab10"
MARKS = "os^DvPX"
"""Ten colours and seven shapes: seventy families of kernels before two look alike."""

POINT = "#31688e"
MISSING = "#efefef"
GRID = "#e4e4e4"

LEAST_RANGE = 0.02
"""Axes of scores never zoom in further: a smaller difference shall not look large."""

SCORES = "viridis"
SHARES = "Blues"
SHARES_POWER = 0.5
"""The colour follows the root of a share, so that rare mistakes can be told from none."""

# Any: matplotlib 3.11 types the keys as literals, older ones as strings.
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.edgecolor": "#888888",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    # Text stays text: it can be searched and read aloud, and the browser draws every script.
    "svg.fonttype": "none",
    # A class may be called "$x$".
    "text.parse_math": False,
}


COLOURS = {
    INK: "var(--ink, currentColor)",
    GRID: "var(--line, #88888840)",
    MISSING: "var(--stripe, #88888830)",
    "#ffffff": "var(--card, #ffffff)",
}
"""Colours that follow those of the page, light or dark; in a notebook, those of its text."""


class Drawing:
    """Axes of a fixed size; whatever stands around them widens the picture, nothing is cut off."""

    def __init__(self, width: float, height: float) -> None:
        """Open axes of `width` by `height`, in inches."""
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(width, height))
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))

    def svg(self, title: str, description: str) -> Html:
        """Return the picture as an SVG element with a title and a description."""
        text = StringIO()
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        with warnings.catch_warnings():
            # The metrics of DejaVu Sans place a glyph that it lacks; the reader's font draws it.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            self.figure.savefig(
                text, format="svg", bbox_inches="tight", pad_inches=0.06, metadata=metadata,
                transparent=True,
            )  # fmt: skip
        return _inline(text.getvalue(), title, description)


@contextmanager
def drawing(name: str, width: float, height: float) -> Iterator[Drawing]:
    """Draw in the house style, whatever the user's matplotlibrc says; `name` is one per page."""
    from matplotlib import rc_context, rcdefaults, rcParams

    with rc_context():
        rcdefaults()
        # The salt makes the ids in the SVG the same every time, and other than its neighbours'.
        rcParams.update({**STYLE, "svg.hashsalt": f"dhsk {name}"})
        yield Drawing(width, height)


def _inline(svg: str, title: str, description: str) -> Html:
    """Strip what a stand-alone file needs, and say what there is to see."""
    start = svg.index("<svg")
    head, body = svg[start:].split(">", 1)
    head = re.sub(r' xmlns(:xlink)?="[^"]*"| version="[^"]*"', "", head)
    # Groups are numbered from 1 in each figure and referred to by nothing.
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    for fixed, own in COLOURS.items():
        body = body.replace(fixed, own)
    spoken = tag("title", title) + tag("desc", description)
    opening = tag("svg", role="img", aria_label=f"{title}. {description}", style=_least_width(head))
    opening = Html(opening.removesuffix("></svg>"))
    return Html(f"{opening}{head.removeprefix('<svg')}>{spoken}{body.strip()}")


def _least_width(head: str) -> str:
    """Let a narrow window shrink the picture to 2/3; below that it scrolls, to stay readable."""
    points = re.search(r'width="([\d.]+)pt"', head)
    return f"min-width: {0.66 * float(points[1]):.0f}pt" if points else ""


def apart(svg: Html) -> Html:
    """Return a picture whose ids are its own, beside others of the same kind in a notebook."""
    own = blake2b(svg.encode(), digest_size=4).hexdigest()
    return Html(re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{own}-", svg))


# Axes


def frame(ax: "Axes", x: str = "", y: str = "", *, lines: Literal["both", "x"] = "both") -> None:
    """Draw grid lines behind the data, and name the axes."""
    ax.grid(axis=lines)
    ax.set_axisbelow(True)
    ax.set_xlabel(x)
    ax.set_ylabel(y)


def look(number: int, name: str) -> dict[str, Any]:
    """Return mark, colour and name of a kernel, or a family, by its number."""
    from matplotlib import colormaps

    colour = colormaps[FAMILIES](number % 10)
    mark = MARKS[number % len(MARKS)]
    own = {"marker": mark, "color": colour, "label": shortened(name)}
    return {**own, "markersize": 7, "mec": "white", "mew": 0.6}


def ring(ax: "Axes", x: float, y: float) -> None:
    """Mark the taken cell."""
    ax.plot([x], [y], "o", markersize=13, mfc="none", mec=INK, mew=1.4, label="taken")


def legend(ax: "Axes", left: float = 1.02) -> None:
    """Draw a legend to the right of the axes; `left` is its place, 1 where they end."""
    ax.legend(loc="upper left", bbox_to_anchor=(left, 1), frameon=False, borderaxespad=0)


def widened(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis of scores, zoomed in no further than `LEAST_RANGE`."""
    slack = max(0.0, LEAST_RANGE - (high - low)) / 2
    return low - slack, high + slack


def logarithmic(ax: "Axes", which: Literal["x", "y"], low: float, high: float) -> None:
    """Make an axis logarithmic, with ticks at round numbers between values."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set(**{f"{which}scale": "log"})
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_power(value)))
    axis.set_minor_locator(NullLocator())


# Coloured cells with a text in each


def mosaic(
    ax: "Axes",
    values: NDArray[np.float64],
    texts: list[list[str]],
    names: tuple[list[str], list[str]],
    colours: str,
    *,
    edges: str = "white",
    size: float = 9,
) -> dict[tuple[int, int], str]:
    """Colour cells by values from 0 to 1 and write into each; first row on top, NaN is grey.

    `names` are those of the rows and of the columns. Return the colour of the text of each cell, by
    row and column.
    """
    from matplotlib import colormaps

    colour = colormaps[colours].with_extremes(bad=MISSING)
    ax.pcolormesh(values, cmap=colour, vmin=0, vmax=1, edgecolors=edges, linewidth=1)
    ax.invert_yaxis()
    for axis, own in zip((ax.yaxis, ax.xaxis), names, strict=True):
        axis.set_ticks(np.arange(len(own)) + 0.5, own)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    shades = {}
    for (row, column), value in np.ndenumerate(values):
        ink = _ink(colour(value)) if value == value else INK
        shades[row, column] = ink
        ax.text(
            column + 0.5, row + 0.5, texts[row][column],
            ha="center", va="center", color=ink, fontsize=size, linespacing=1.15,
        )  # fmt: skip
    return shades


def _ink(background: tuple[float, float, float, float]) -> str:
    """Return black or white, whichever stands out more (relative luminance of WCAG 2)."""
    red, green, blue, _ = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
                           for v in background)  # fmt: skip
    # Contrast with black and with white are equal at 0.179.
    dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179
    # Not quite white, which is the colour of the page, and dark on dark pages (see `drawing`).
    return "#000000" if dark else "#fffffe"


def outline(ax: "Axes", row: int, column: int) -> None:
    """Draw a frame around one cell."""
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle((column, row), 1, 1, fill=False, edgecolor=INK, linewidth=2.2, clip_on=False)
    )


def colours_of(name: str, exponent: float = 1) -> list[str]:
    """Return nine colours of a map as #rrggbb, at even steps of the value they stand for."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps[name](np.linspace(0, 1, 9) ** exponent)]
