"""Drift: new images, a few of which show a digit that was not there before.

Run `python drift.py [--data DIR] [--out DIR] [--runs N] [--quick]`. DIR holds mnist/mnist70k.npz.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dhsk

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder of _shared
from _shared import common_options, find, run_script

PLANTED = 0
"""The digit that is not among the reference images."""

SHARES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
SCALES = (0.77, 0.92, 1.1, 1.3)
"""Where images are 0.1, 0.4, 0.7 and 0.9 alike on average: those that `dhsk compare` takes."""
PERMUTATIONS, LEVEL, SHOWN = 199, 0.05, 100


def drawn(X: Any, y: Any, share: float, size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Reference images and new ones, `size` of each, and which of the new ones are planted."""
    count = round(share * size)
    usual = rng.permutation(np.flatnonzero(y != PLANTED))[: 2 * size - count]
    planted = rng.choice(np.flatnonzero(y == PLANTED), count, replace=False)
    chosen = np.concatenate([usual, planted])
    return X[chosen], np.arange(2 * size) >= 2 * size - count


def tested(X: Any, size: int, seed: int) -> dhsk.MeanDiscrepancy:
    """Test the first `size` images against the others, by heat kernels of four times at once."""
    kernels = [dhsk.HeatKernel.at_scale(X.shape[1], scale) for scale in SCALES]
    is_new = np.arange(len(X)) >= size
    grams = dhsk.compute_gram(X, kernels)
    return dhsk.maximum_mean_discrepancy(grams, is_new, PERMUTATIONS, seed)


def measure(options: argparse.Namespace) -> None:
    """Print a line for each share, and draw them."""
    with np.load(find(options.data, "mnist/mnist70k.npz")) as file:
        X, y = file["X_train"], file["y_train"]
    X = X.reshape(len(X), -1)
    size, runs = (500, 1) if options.quick else (5000, options.runs)
    p_values = np.empty((len(SHARES), runs))
    among = np.empty((len(SHARES), runs))
    print(f"{size} reference images, {size} new ones; found where p <= {LEVEL}")
    print(" share   found    median p   planted among the 100 most different   s a test")
    for row, share in enumerate(SHARES):
        begin = perf_counter()
        for run in range(runs):
            images, planted = drawn(X, y, share, size, np.random.default_rng(run))
            found = tested(images, size, run)
            first = size + np.argsort(found.witness[size:])[:SHOWN]
            p_values[row, run], among[row, run] = found.p_value, planted[first].sum()
        seconds = (perf_counter() - begin) / runs
        times, median = (p_values[row] <= LEVEL).sum(), np.median(p_values[row])
        shown = f"{np.mean(among[row]):10.0f} of {round(share * size):3}"
        print(
            f"{share:6.1%}  {times} of {runs}  {median:10.3f}  {shown}  {seconds:22.0f}", flush=True
        )
    draw(options.out / "drift.png", p_values, among, size)


def draw(path: Path, p_values: Any, among: Any, size: int) -> None:
    """Draw p-values, and how many of the most different images are planted, by share."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = 100 * np.repeat(SHARES, p_values.shape[1])
    left.plot(x, p_values.ravel(), "o", color="#31688e", alpha=0.6, mew=0)
    left.axhline(LEVEL, color="#888888", lw=0.8, ls="--")
    left.set(xlabel="planted, % of the new images", ylabel="p-value, a dot a run", yscale="log")
    right.plot(100 * np.array(SHARES), among.mean(axis=1), "o-", color="#c77b1f")
    by_chance = [SHOWN * share for share in SHARES]
    right.plot(
        100 * np.array(SHARES), by_chance, color="#888888", lw=0.8, ls="--", label="by chance"
    )
    right.set(
        xlabel="planted, % of the new images", ylabel=f"planted among the {SHOWN} most different"
    )
    right.legend(frameon=False)
    figure.suptitle(f"{size:,} images without {PLANTED}, and {size:,} of which some show it")
    figure.savefig(path, dpi=100)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script; return its exit code."""
    return run_script(common_options("Drift of a digit", "drift", 4), argv, measure)


if __name__ == "__main__":
    sys.exit(main())
