"""Section on the spectrum of the taken kernel, and what it says of the size of its space."""

from math import lgamma, log, pi
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dhsk.report.drawing import POINT, drawing, frame, logarithmic
from dhsk.report.markup import Html, figure_row, section
from dhsk.report.words import brief, count_of, unbroken, whole
from dhsk.results.parts import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def spectrum(results: Results) -> Html:
    """Return the eigenvalues of the taken kernel and their share of the trace.

    It is empty where no eigenvalues were computed.
    """
    if not results.eigenvalues:
        return Html()
    title = "Eigenvalues of the taken kernel"
    values, exact = np.array(results.eigenvalues), results.eigenvalues_exact
    # What a symmetric eigensolver cannot tell from zero (LAPACK Users' Guide, 4.7).
    noise = results.samples.n_samples * np.finfo(np.float64).eps * max(values, default=0.0)
    drawn = values[values > noise]
    if not drawn.size:
        return section(title, "No eigenvalue is above zero.", anchor="spectrum")
    hidden = len(values) - len(drawn)
    words = f"The Gram matrix: {count_of(len(drawn), 'eigenvalue')}, largest first"
    panels = [_decay(drawn, exact=exact)]
    if results.trace > 0:
        shares = 100 * np.cumsum(drawn) / results.trace
        panels.append(_cumulative(shares, exact=exact))
        words += _reach(shares, exact=exact)
    words += f". {whole(hidden)} more are zero within rounding and not drawn." if hidden else "."
    if not exact:
        words += " They are Ritz values: lower bounds of the eigenvalues, and so are their shares."
    if results.trace > 0:
        words += dimension_words(results, drawn) + covering_words(results)
    return section(title, words, figure_row(panels), anchor="spectrum")


def _reach(shares: NDArray[np.float64], *, exact: bool) -> str:
    """Say how many eigenvalues hold which share of the trace: the rank that suffices."""
    least, most = ("", "") if exact else ("at least ", "at most ")
    together = f", together {least}{unbroken(f'{shares[-1]:.1f} %')} of the trace"
    reached = [
        unbroken(f"{goal} % with {most}{whole(int(np.argmax(shares >= goal)) + 1)}")
        for goal in (50, 90, 99)
        if shares[-1] >= goal
    ]
    return f"{together} ({', '.join(reached)})" if reached else together


def effective_dimension(leading: NDArray[np.float64], trace: float, n: int) -> tuple[float, float]:
    """Bounds of the sum of l/(l + 1) over all n eigenvalues l, from the leading ones and the trace.

    The function is concave. So the sum over the others is largest if they are equal, and smallest
    if as few as possible are not zero, each as large as the last that is known.
    """
    known = float((leading / (leading + 1)).sum())
    rest, others = max(trace - float(leading.sum()), 0.0), n - len(leading)
    if not others:
        return known, known
    mean = rest / others
    return known + rest / (float(leading[-1]) + 1), known + others * mean / (mean + 1)


def dimension_words(results: Results, leading: NDArray[np.float64]) -> str:
    """Say the effective dimension; of Ritz values only its upper bound is one."""
    least, most = effective_dimension(leading, results.trace, results.samples.n_samples)
    low, high = brief(least), brief(most)
    if not results.eigenvalues_exact:
        figure = f"at most {high}"
    else:
        figure = low if low == high else f"between {low} and {high}"
    return f" The effective dimension, {unbroken('Σ λ/(λ + 1)')}, is {unbroken(figure)}."


def covering_words(results: Results) -> str:
    """Say the bound of covering numbers for a heat kernel on a sphere; empty for others."""
    time, dim = results.best.time, results.samples.dim
    parts = {"hyperspherical": dim, "projective": 0}
    if results.best.kernel != "heat" or time is None or results.samples.sphere_map not in parts:
        return ""
    area = log(2) + dim / 2 * log(pi) - lgamma(dim / 2)
    volume = area - parts[results.samples.sphere_map] * log(2)  # one of 2^dim orthants
    power = (volume - (dim - 1) / 2 * log(time)) / log(10)
    return (
        " For readers of learning theory: whatever the samples, the logarithm of the covering "
        "numbers of the kernel's unit ball, which bound the error on new samples, is "
        "O(V t^(-d/2) log^((d+2)/2)(1/ε)) (Lafferty & Lebanon 2002, theorem 4), here with d = "
        f"{dim - 1} and V t^(-d/2) = {unbroken(f'10^{power:.0f}')}, V the volume of the part of "
        "the sphere that samples can lie in."
    )


# Figures


def _decay(eigenvalues: NDArray[np.float64], *, exact: bool) -> Html:
    """Return positive eigenvalues, largest first, on a logarithmic scale."""
    high, low = eigenvalues[0], eigenvalues[-1]
    with drawing("decay", 3.65, 2.4) as picture:
        ax = picture.axes
        _curve(ax, eigenvalues)
        logarithmic(ax, "y", low, high)
        # One of 1, 2, 5 lies in any interval whose ends differ by a factor of 2.5 or more.
        ax.set_ylim(low / 1.6, high * 1.6)
        ax.set_title(f"Eigenvalues{_bound(exact)}", loc="left")
        said = f"From {high:.3g} down to {low:.3g} at number {len(eigenvalues)}{_bound(exact)}."
        return picture.svg("Eigenvalues of the Gram matrix", said)


def _bound(exact: bool) -> str:
    return "" if exact else " (lower bounds)"


def _cumulative(shares: NDArray[np.float64], *, exact: bool) -> Html:
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
    frame(ax, "number of the eigenvalue")
