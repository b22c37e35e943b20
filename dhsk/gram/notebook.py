"""A Gram matrix in a notebook: its table, and a small picture of its values."""

import math
from base64 import b64encode
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Indices, Rows
from dhsk.errors import DhskError
from dhsk.gram.tiled import TiledMatrix
from dhsk.kernels import Kernel
from dhsk.objects.places import Place
from dhsk.report.markup import Html, joined, table, tag
from dhsk.report.words import brief, count_of
from dhsk.units import format_bytes

SPANS: Final = 8
"""Runs of consecutive samples that are shown: few parts are read, however many there are."""

SPAN: Final = 8
"""Samples of a run."""

MOST_ENTRIES: Final = 1 << 24
"""Features of the samples that are shown; with more there is no picture."""

SIDE: Final = 192
"""Pixels of the picture."""


def notebook_html(
    G: TiledMatrix, kernel: Kernel, path: Place, origin: str, samples: Callable[[Indices], Rows]
) -> Html:
    """Return a table of shape, kernel and store, with a picture beside it where that is cheap.

    `origin` is where the tiles come from, in words; `samples` gives samples after the map.
    """
    n, m = G.shape
    tile = tuple(part[0] for part in G.chunks)
    itemsize = G.dtype.itemsize
    rows = [
        ("Bytes", format_bytes(n * m * itemsize), format_bytes(math.prod(tile) * itemsize)),
        ("Shape", G.shape, tile),
        ("Data type", G.dtype, ""),
        ("Kernel", kernel.label, ""),
        ("Tiles", f"{G.tiling.n_tiles:,}, {origin}", ""),
        ("Store", path, ""),
    ]
    facts = table(["", "Matrix", "Tile"], rows)
    cheap = isinstance(path, Path) and kernel.of_samples and G.dim * SPANS * SPAN <= MOST_ENTRIES
    picture = _picture(kernel, samples, n) if G.symmetric and n > 1 and cheap else Html()
    return tag("div", facts, picture, style="display: flex; flex-wrap: wrap; gap: 24px")


def _picture(kernel: Kernel, samples: Callable[[Indices], Rows], n: int) -> Html:
    """Return the values among some of n samples."""
    members = shown_samples(n)
    try:
        values = kernel(samples(members))
    except (DhskError, OSError) as error:
        return tag("p", f"no picture: {error}")
    return _heat_map(values, members, n)


def shown_samples(n: int) -> Indices:
    """Return some of n samples, ascending: all if there are few, else runs evenly spread."""
    if n <= SPANS * SPAN:
        return np.arange(n)
    starts = np.linspace(0, n - SPAN, SPANS).round().astype(np.intp)
    return (starts[:, None] + np.arange(SPAN)).ravel()


def _heat_map(values: NDArray[Any], members: Indices, n: int) -> Html:
    from matplotlib import colormaps
    from matplotlib.image import imsave

    apart = ~np.eye(len(values), dtype=bool)
    low, high = float(values[apart].min()), float(values[apart].max())
    scaled = np.clip((values - low) / ((high - low) or 1.0), 0, 1)
    file = BytesIO()
    imsave(file, colormaps["viridis"](scaled), format="png")
    source = f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
    few = len(members) < n
    which = f"{len(members)} of {count_of(n, 'sample')}" if few else f"all {count_of(n, 'sample')}"
    said = f"Kernel values of {which}, from {brief(low)} (dark) to {brief(high)} (bright)"
    style = f"width: {SIDE}px; height: {SIDE}px; image-rendering: pixelated"
    image = Html(f'<img alt="{said}" src="{source}" style="{style}">')
    caption = tag("figcaption", said, style=f"max-width: {SIDE}px; font-size: 12px")
    return tag("figure", joined([image]), caption, style="margin: 0")
