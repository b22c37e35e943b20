"""Picture of heat kernels and parametrix kernels against the angle."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from dhsk.errors import InputError
from dhsk.files import written_beside
from dhsk.kernels import HeatKernel, SphericalKernel
from dhsk.report.drawing import drawing, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS: Final = (".png", ".svg", ".pdf")
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's, which people with any colour vision tell apart."""

_POINTS = 721  # a quarter of a degree
_SIZE = 6.4, 4.0  # inches
_WIDTH = 1.6  # of the last pair's lines, in points
_DPI = 200  # of a PNG


def plot_kernels(path: Path, pairs: Sequence[tuple[HeatKernel, SphericalKernel]]) -> None:
    """Draw kernels (full lines) and their parametrix (dashed), as in Figure 1B of the paper.

    The format is PNG, SVG or PDF by the ending of `path`; another ending raises an InputError. The
    paper is Zhao & Song (2017).
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise InputError(f"{path} must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    theta = np.linspace(0.0, math.pi, _POINTS)
    with drawing("kernels", *_SIZE) as picture:
        for number, (exact, parametrix) in enumerate(pairs):
            colour = COLOURS[number % len(COLOURS)]
            name = f"n = {exact.dim:,}, t = {exact.time:.3g}"
            # At one time scale the exact kernels all but coincide: earlier lines are wider.
            width = _WIDTH * min(len(pairs) - number, 3)
            for kernel, dash, what in ((exact, "-", "exact"), (parametrix, "--", "parametrix")):
                picture.axes.plot(
                    theta,
                    kernel.of_cosine(np.cos(theta)),
                    dash,
                    color=colour,
                    linewidth=width if kernel is exact else _WIDTH,
                    label=f"{what}, {name}",
                )
        _label(picture.axes)
        # Without its date, a file is the same every time.
        dated: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        with written_beside(path) as file:
            picture.figure.savefig(
                file,
                format=ending[1:],
                dpi=_DPI,
                bbox_inches="tight",
                pad_inches=0.1,
                metadata=dated.get(ending),
            )


def _label(axes: "Axes") -> None:
    axes.set_xlim(0.0, math.pi)
    axes.set_ylim(0.0, 1.02)
    axes.set_xticks([k * math.pi / 4 for k in range(5)], ["0", "π/4", "π/2", "3π/4", "π"])
    frame(axes, "angle θ = arccos⟨x, y⟩", "kernel value K(θ), K(0) = 1")
    axes.set_title("Heat kernel on the hypersphere: exact and parametrix", loc="left")
    axes.legend(frameon=False)
