"""Figures of eigenvalues, and of the shares of the trace that they hold."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dhsk.report.axes import POINT, log_ticks
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def decay(eigenvalues: NDArray[np.float64], *, exact: bool) -> Html:
    """Return positive eigenvalues, largest first, on a logarithmic scale."""
    high, low = eigenvalues[0], eigenvalues[-1]
    with drawing("decay", 3.65, 2.4) as picture:
        ax = picture.axes
        _curve(ax, eigenvalues)
        ax.set_yscale("log")
        # One of 1, 2, 5 lies in any interval whose ends differ by a factor of 2.5 or more.
        ax.set_ylim(low / 1.6, high * 1.6)
        log_ticks(ax.yaxis, low, high)
        ax.set_title(f"Eigenvalues{_bound(exact)}", loc="left")
        said = f"From {high:.3g} down to {low:.3g} at number {len(eigenvalues)}{_bound(exact)}."
        return picture.svg("Eigenvalues of the Gram matrix", said)


def _bound(exact: bool) -> str:
    return "" if exact else " (lower bounds)"


def cumulative(shares: NDArray[np.float64], *, exact: bool) -> Html:
    """Return the shares of the trace, in percent, that the first 1, 2, ... eigenvalues hold."""
    with drawing("cumulative", 3.65, 2.4) as picture:
        ax = picture.axes
        _curve(ax, shares)
        ax.set_ylim(0, max(102, float(shares.max())))
        ax.yaxis.set_major_formatter("{x:.0f} %")
        ax.set_title(f"Cumulative share of the trace{_bound(exact)}", loc="left")
        at_least = "" if exact else "at least "
        said = f"The first {len(shares)} hold {at_least}{shares[-1]:.1f} percent."
        return picture.svg("Cumulative share of the trace", said)


def _curve(ax: "Axes", values: NDArray[np.float64]) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.plot(range(1, len(values) + 1), values, "o-", color=POINT, markersize=2.8, linewidth=1)
    ax.set_xlim(0, len(values) + 1)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    ax.grid()
    ax.set_axisbelow(True)
    ax.set_xlabel("number of the eigenvalue")
