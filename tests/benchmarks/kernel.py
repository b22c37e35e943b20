"""What the heat kernel costs: ns an entry in cache, its derivative, a tile, and the series.

Run `python tests/benchmarks/kernel.py`; it uses one BLAS thread, and prints ratios measured within
one run, as absolute times depend on the machine and on its other users.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from threadpoolctl import threadpool_limits

from dhsk.kernels import HeatKernel, HeatTimeDerivative
from dhsk.kernels.certified.derivative import heat_derivative_profile
from dhsk.kernels.certified.profile import heat_profile

IN_CACHE = 16_384  # entries: 128 kB in float64
TILE, DIM = 4096, 400
KERNELS = [  # dim, and time scale
    (2, 0.05), (2, 0.5), (3, 0.05), (3, 1.0), (5, 0.05), (10, 0.05), (10, 0.2), (10, 1.0),
    (50, 0.05), (50, 0.5), (393, 1.0), (784, 0.7), (1000, 0.2), (10_000, 0.05),
    (1_000_000, 0.2), (1_000_000, 1.0),
]  # fmt: skip
RECORDED = 11
"""Of `KERNELS`: images of digits, whose derivative is kept."""
HARD = [  # dim, and time
    (2, 0.004), (3, 0.004), (5, 0.004), (10, 0.01), (50, 0.01),
]  # fmt: skip


def seconds(action: Callable[[], object], repeats: int) -> float:
    """Shortest time of an action, in seconds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def cost_in_cache(kernel: HeatKernel, number: type[np.float64] | type[np.float32]) -> float:
    """Nanoseconds an entry on an array that stays in the cache (copying it in is subtracted)."""
    cosines = np.random.default_rng(0).uniform(-1, 1, IN_CACHE).astype(number)
    values: Any = cosines.copy()
    norms = np.ones(1)

    def evaluate() -> None:
        values[:] = cosines
        kernel.of_product(values.reshape(1, -1), norms, norms)

    def copy() -> None:
        values[:] = cosines

    evaluate()
    return (seconds(evaluate, 300) - seconds(copy, 300)) / IN_CACHE * 1e9


def print_costs() -> None:
    """Cost of an entry for kernels of few and many levels, and of building them."""
    print(
        "     dim  scale     time  levels    form   build s  f64 ns  f32 ns  bound f64  bound f32"
    )
    kernels = [HeatKernel.at_scale(dim, scale) for dim, scale in KERNELS]
    for kernel in [*kernels, *(HeatKernel(dim, t) for dim, t in HARD)]:
        heat_profile.cache_clear()
        start = time.perf_counter()
        profile = heat_profile(kernel.dim, kernel.time)
        build = time.perf_counter() - start
        double, scale = profile.double, kernel.time * kernel.dim / math.log(kernel.dim)
        form = f"{double.numerator.size}/{double.denominator.size}+{double.slopes.size}"
        f64, f32 = cost_in_cache(kernel, np.float64), cost_in_cache(kernel, np.float32)
        print(
            f"{kernel.dim:8} {scale:6.3g} {kernel.time:8.2g} {profile.levels:7} {form:>7}"
            f" {build:9.3f} {f64:7.2f} {f32:7.2f}"
            f" {double.error.relative:10.1e} {profile.single.error.absolute:10.1e}"
        )


def print_derivatives() -> None:
    """Cost of an entry of dK/dt against one of K, evaluated in turn, and of building it."""
    print("     dim     time       R  build s  f64 ns  to K  f32 ns  to K  bound f64  bound f32")
    pairs = [(k.dim, k.time) for k in (HeatKernel.at_scale(*given) for given in KERNELS)]
    for dim, t in [*pairs, *HARD]:
        kernel = HeatKernel(dim, t)
        kernel.prepare()
        derivative = kernel.time_derivative()
        start = time.perf_counter()
        derivative.prepare()
        build = time.perf_counter() - start
        profile = heat_derivative_profile(dim, t)
        costs = [in_turn(kernel, derivative, number) for number in (np.float64, np.float32)]
        form = f"{profile.double.numerator.size}/{profile.double.denominator.size}"
        figures = "".join(f"{own:8.2f} {own / of_kernel:5.2f}" for of_kernel, own in costs)
        print(
            f"{dim:8} {t:8.2g} {form:>7} {build:8.3f}{figures}"
            f" {derivative.error_bound.relative:10.1e}"
            f" {profile.single.error.absolute / profile.largest:10.1e}"
        )
        if (dim, t) == pairs[RECORDED]:
            (of_kernel, own), what = costs[0], f"derivative in time, {dim} features, s = 0.7"
            record("kernels", what, own, "ns an entry", {"the kernel itself": of_kernel}, runs=100)


def in_turn(
    kernel: HeatKernel, derivative: HeatTimeDerivative, number: type[np.float64] | type[np.float32]
) -> tuple[float, float]:
    """Nanoseconds an entry of a kernel and of its derivative, each the best of 100 turns."""
    cosines: Any = np.random.default_rng(0).uniform(-1, 1, (1, IN_CACHE)).astype(number)
    values: Any = np.empty_like(cosines)
    both: tuple[HeatKernel | HeatTimeDerivative, ...] = kernel, derivative
    best = [float("inf")] * 2
    for _ in range(100):
        for which, one in enumerate(both):
            action = partial(one.evaluate, cosines, values)
            best[which] = min(best[which], seconds(action, 3))
    return best[0] / IN_CACHE * 1e9, best[1] / IN_CACHE * 1e9


def print_tiles() -> None:
    """A whole tile, product and kernel, against its product alone."""
    rng = np.random.default_rng(1)
    kernel, norms = HeatKernel.at_scale(DIM, 0.7), np.ones(TILE)
    for number in (np.float64, np.float32):
        X = np.abs(rng.normal(size=(2 * TILE, DIM)))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        rows, cols = np.split(X.astype(number), 2)
        product: Any = np.empty((TILE, TILE), dtype=number)

        def multiply(rows: Any = rows, cols: Any = cols, product: Any = product) -> None:
            np.matmul(rows, cols.T, out=product)

        def tile(multiply: Callable[[], None] = multiply, product: Any = product) -> None:
            multiply()
            kernel.of_product(product, norms, norms)

        tile()
        alone, whole = seconds(multiply, 5), seconds(tile, 5)
        what = f"tile of {TILE:,} x {TILE:,}, {DIM} features, {number.__name__}"
        record("kernels", what, whole, "s", {"its matrix product alone": alone}, runs=5)


def by_recurrence(dim: int, weights: NDArray[np.float64], c: NDArray[np.float64]) -> None:
    """Sum the series term by term, as a numpy program would."""
    before, polynomial = np.ones_like(c), c.copy()
    value = weights[0] + weights[1] * c
    for level in range(1, weights.size - 1):
        step = (2 * level + dim - 2) * c * polynomial - level * before
        before, polynomial = polynomial, step / (level + dim - 2)
        value += weights[level + 1] * polynomial


def print_speed_up() -> None:
    """The recurrence in numpy, with the levels that float64 sees, against the kernel."""
    dim, scale = 784, 0.7
    kernel = HeatKernel.at_scale(dim, scale)
    level = np.arange(400)
    logs = np.cumsum(
        np.log((2 * level + dim) / (2 * level + dim - 2) * (level + dim - 2) / (level + 1))
        - (2 * level + dim - 1) * kernel.time
    )
    weights = np.exp(np.concatenate([[0.0], logs]))
    weights = weights[: 1 + int(np.flatnonzero(weights > 1e-17 * weights.max())[-1])]
    weights /= weights.sum()
    norms = np.ones(1)
    for size in (IN_CACHE, 1024 * 1024):
        c = np.random.default_rng(2).uniform(-1, 1, size)
        slow = seconds(lambda c=c: by_recurrence(dim, weights, c), 10)  # type: ignore[misc]
        values = c.reshape(1, -1).copy()
        fast = seconds(lambda v=values: kernel.of_product(v, norms, norms), 30)  # type: ignore[misc]
        own, theirs = (taken / size * 1e9 for taken in (fast, slow))
        what = f"{size:,} values at once, {dim} features, s = {scale}"
        record("kernels", what, own, "ns an entry", {"numpy, term by term": theirs}, runs=10)


if __name__ == "__main__":
    parsed(parser_of(__doc__))
    with threadpool_limits(1):
        print_costs()
        print_derivatives()
        print_tiles()
        print_speed_up()
