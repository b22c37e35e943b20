"""Error and speed of dhsk's heat kernel beside GeometricKernels and a sum of scipy's polynomials.

Run as ``python tests/benchmarks/peers.py``, which prints a table in Markdown. GeometricKernels is
installed with pip into a virtual environment that is deleted at the end. True values are summed in
ball arithmetic by the textbook recurrence, which shares no code with dhsk.
"""

import json
import math
import os
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from flint import arb, ctx
from records import parsed, parser_of, record
from scipy.special import eval_gegenbauer

from dhsk import HeatKernel
from dhsk.arrays import Floats

PEER = "GeometricKernels==1.0.1"
PACKAGE = PEER.replace("cK", "c_k").lower()
DIMS = (3, 10, 100, 150, 393, 1000)
SCALES = (1.0, 0.5)
LEVELS = (None, 60)
"""Of the peer: its default of 25, and 60, more than any time here needs.

Tried from n = 100 to 160, it overflows from about 175 - n levels on.
"""
N_COSINES = 20

PEER_PROGRAM = """
import json, sys, time
import numpy as np
from geometric_kernels.kernels import MaternGeometricKernel
from geometric_kernels.spaces import Hypersphere

def seconds(work, budget=2.0):
    best, end = np.inf, time.perf_counter() + budget
    while (start := time.perf_counter()) < end:
        work()
        best = min(best, time.perf_counter() - start)
    return best

def points(cosines, n):
    rows = np.zeros((len(cosines), n))
    rows[:, 0], rows[:, 1] = cosines, np.sqrt(1 - np.square(cosines))
    return rows

def run(n, t, levels, cosines):
    kernel = MaternGeometricKernel(Hypersphere(dim=n - 1), num=levels)
    # nu = inf is exp(-eigenvalue lengthscale^2 / 2)
    params = {"nu": np.array([np.inf]), "lengthscale": np.array([np.sqrt(2 * t)])}
    values = kernel.K(params, points([1.0], n), points([1.0, *cosines], n))[0]
    if not np.isfinite(values).all():
        return values.tolist(), np.nan
    rows = np.random.default_rng(0).normal(size=(100, n))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return values.tolist(), seconds(lambda: kernel.K(params, rows, rows)) / 100**2 * 1e9

print(json.dumps([run(*case) for case in json.load(sys.stdin)]))
"""
"""Reads (n, t, levels, cosines) of each case; writes K(1), K(cosines), and ns an entry.

Blocks of 100 x 100 pairs: as fast an entry as larger ones, and short enough to run undisturbed.
"""


@dataclass(frozen=True)
class Result:
    """Values at the cosines and nanoseconds an entry of one method."""

    values: Floats
    nanoseconds: float


def exact_kernel(n: int, t: float, cosine: float) -> arb:
    """K in ball arithmetic, to 80 bits at least."""
    bits = 400
    while True:
        with ctx.workprec(bits):
            value = _forward_sum(n, arb(t), arb(cosine))
        if value.rel_accuracy_bits() > 80:
            return value
        bits *= 2


def _forward_sum(n: int, t: arb, x: arb) -> arb:
    """Σ w_l P_l(x) / Σ w_l until w_l is below 2^-1100 of the sum."""
    weight, total, at_one, level = arb(1), arb(1), arb(1), 0
    previous, legendre = arb(0), arb(1)
    while weight > at_one * arb(2) ** -1100:
        ratio = (
            arb(2 * level + n) * (level + n - 2) / (arb(2 * level + n - 2) * (level + 1))
            if level
            else arb(n)
        )
        weight *= ratio * (-(2 * level + n - 1) * t).exp()
        following = ((2 * level + n - 2) * x * legendre - level * previous) / (level + n - 2)
        previous, legendre, level = legendre, following, level + 1
        total, at_one = total + weight * legendre, at_one + weight
    return total / at_one


def scipy_sum(n: int, t: float, cosines: Floats) -> Floats:
    """K as a float64 sum of scipy's Gegenbauer polynomials, to 1e-20 of K(1)."""
    alpha = n / 2 - 1
    total, at_one, level = np.zeros_like(cosines), 0.0, 0
    while True:
        weight = math.exp(-level * (level + n - 2) * t) * (level + alpha) / alpha
        term = weight * float(eval_gegenbauer(level, alpha, 1.0))
        if term < 1e-20 * at_one:
            return total / at_one
        total += weight * eval_gegenbauer(level, alpha, cosines)
        at_one += term
        level += 1


def nanoseconds(evaluate: Callable[[Floats], Floats], side: int, repeats: int) -> float:
    """Best time an entry of a square matrix of cosines."""
    cosines = np.random.default_rng(1).uniform(-1, 1, (side, side))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        evaluate(cosines)
        times.append(time.perf_counter() - start)
    return min(times) / side**2 * 1e9


def run_dhsk(n: int, t: float, cosines: Floats) -> Result:
    """Values of dhsk, and its time on 1000 x 1000 cosines."""
    kernel = HeatKernel(n, t)
    return Result(kernel.of_cosine(cosines), nanoseconds(kernel.of_cosine, 1000, 20))


def run_scipy(n: int, t: float, cosines: Floats) -> Result:
    """Values of the float64 sum, and its time on 100 x 100 cosines."""
    return Result(
        scipy_sum(n, t, cosines), nanoseconds(lambda matrix: scipy_sum(n, t, matrix), 100, 10)
    )


def run_peer(cases: list[tuple[int, float]], cosines: Floats) -> list[Result]:
    """Values and times of GeometricKernels, for all cases at each of `LEVELS`."""
    work = json.dumps([(n, t, levels, cosines.tolist()) for n, t in cases for levels in LEVELS])
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGE], check=True)
        command = [python, "-W", "ignore", "-c", PEER_PROGRAM]
        # Threads of BLAS gain nothing in these small products, and wait long on a busy machine.
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        answer = subprocess.run(
            command, input=work, env=env, stdout=subprocess.PIPE, text=True, check=True
        )
    results = [Result(np.array(values), ns) for values, ns in json.loads(answer.stdout)]
    return [_relative_to_first(result) for result in results]


def _relative_to_first(result: Result) -> Result:
    at_one, values = result.values[0], result.values[1:]
    return Result(values / at_one if np.isfinite(at_one) else values, result.nanoseconds)


def worst(values: Floats, truth: list[arb]) -> tuple[float, float] | None:
    """Worst relative and worst absolute error; None where the method failed."""
    if not np.isfinite(values).all():
        return None
    with ctx.workprec(400):
        apart = [abs(arb(float(value)) - k) for value, k in zip(values, truth, strict=True)]
        relative = max(float((gap / k).mid()) for gap, k in zip(apart, truth, strict=True))
        return relative, max(float(gap.mid()) for gap in apart)


def speed(nanoseconds: float) -> str:
    """Two digits of a time, or a dash where there is none."""
    return f"{float(f'{nanoseconds:.2g}'):,g}" if math.isfinite(nanoseconds) else "–"


def main() -> None:
    """Print the table, a row a case: each error cell is worst relative, worst absolute."""
    parsed(parser_of(__doc__))
    cosines = np.random.default_rng(0).uniform(-1, 1, N_COSINES)
    scales = [(n, scale) for n in DIMS for scale in SCALES]
    cases = [(n, HeatKernel.at_scale(n, scale).time) for n, scale in scales]
    peer = iter(run_peer(cases, cosines))
    methods = [
        "dhsk",
        *(f"GeometricKernels, {levels or 25} levels" for levels in LEVELS),
        "scipy sum",
    ]
    heads = ["n", "time scale", "smallest K", *methods, *(f"ns: {name}" for name in methods)]
    print("| " + " | ".join(heads) + " |")
    print("|" + " ---: |" * len(heads))
    for (n, scale), (_, t) in zip(scales, cases, strict=True):
        truth = [exact_kernel(n, t, float(cosine)) for cosine in cosines]
        results = [run_dhsk(n, t, cosines), *(next(peer) for _ in LEVELS), run_scipy(n, t, cosines)]
        smallest = min(float(k.mid()) for k in truth)
        cells = [f"{n}", f"{scale:g}", f"{smallest:.0e}"]
        errors = [worst(result.values, truth) for result in results]
        cells += ["{:.0e}, {:.0e}".format(*one) if one else "fails" for one in errors]
        cells += [speed(result.nanoseconds) for result in results]
        print("| " + " | ".join(cells) + " |", flush=True)
        told(f"{n} features, s = {scale:g}", results, errors)


def told(what: str, results: list[Result], errors: list[tuple[float, float] | None]) -> None:
    """Say speed and relative error beside the peer at its default, and scipy."""
    times = [one.nanoseconds if math.isfinite(one.nanoseconds) else None for one in results]
    relative = [one[0] if one else None for one in errors]
    for topic, words, unit, found in (
        ("kernels", what, "ns an entry", times),
        ("agreement", f"values in {what}", "relative error", relative),
    ):
        peers = {PEER: found[1], "scipy, Gegenbauer": found[3]}
        record(topic, words, found[0] or 0.0, unit, peers)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
