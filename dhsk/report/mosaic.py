"""Coloured cells with a text in each: what heat maps are made of."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dhsk.report.axes import INK, MISSING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORES = "viridis"
SHARES = "Blues"
SHARES_POWER = 0.5
"""The colour follows the root of a share, so that rare mistakes can be told from none."""


def mosaic(
    ax: "Axes",
    values: NDArray[np.float64],
    texts: list[list[str]],
    colours: str,
    edges: str = "white",
    size: float = 9,
) -> dict[tuple[int, int], str]:
    """Colour cells by values from 0 to 1 and write into each; first row on top, NaN is grey.

    Return the colour of the text of each cell, by row and column.
    """
    from matplotlib import colormaps

    colour = colormaps[colours].with_extremes(bad=MISSING)
    ax.pcolormesh(values, cmap=colour, vmin=0, vmax=1, edgecolors=edges, linewidth=1)
    ax.invert_yaxis()
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


def name_ticks(ax: "Axes", rows: list[str], columns: list[str]) -> None:
    """Name rows and columns of a mosaic."""
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows)
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns)


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
