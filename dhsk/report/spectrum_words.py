"""What eigenvalues say of the size of a kernel's space: effective dimension, covering numbers."""

from math import lgamma, log, pi

import numpy as np
from numpy.typing import NDArray

from dhsk.report.words import brief, unbroken
from dhsk.results.parts import Results


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
