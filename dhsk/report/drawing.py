"""matplotlib figure -> SVG that stands in a page: the same bytes every time, nothing loaded."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from io import StringIO
from typing import TYPE_CHECKING, Any

from dhsk.report.axes import GRID, INK, MISSING
from dhsk.report.markup import Html, tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
