"""After Figure 1 of Lafferty & Lebanon (2002): decision boundaries of kernels on simulated data.

Above, a sample is a count of three words, drawn from a trinomial, and the diffusion kernel that of
its sphere. Below, it is the mean and standard deviation of a few numbers, and the diffusion kernel
that of hyperbolic space. Linear and Gaussian kernels see the same numbers in the plane. Needs no
data. Run with `--help` for the options.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import gammaln

import dhsk

sys.path.insert(0, str(Path(__file__).parents[1]))
from _shared import COLOURS, common_options, run_script

WORDS = 20
"""Words of a text."""

MIDDLE, EDGE = (8.0, 8.0, 8.0), (0.7, 0.7, 0.7)
"""Dirichlet distributions of the two classes of trinomials: about the middle, and at the edges."""

NUMBERS = 8
"""Numbers that a mean and a standard deviation are of."""

SHIFT = 1.5
"""Distance of the mean of the second class from 0, in standard deviations."""

PER_CLASS = 60
WIDTHS = (0.1, 0.25, 0.5, 1, 2)
"""Widths of the Gaussian kernel, and square roots of the times of diffusion kernels."""

PENALTIES = (0.1, 1, 10, 100, 1000)
FAMILIES = {"linear": "linear", "gaussian": "Gaussian", "diffusion": "diffusion"}


class Trinomials:
    """Counts of three words, whose errors are sums over all possible counts."""

    title = "trinomial"

    def __init__(self) -> None:
        count = range(WORDS + 1)
        self.all = np.array(
            [(a, b, WORDS - a - b) for a in count for b in count if a + b <= WORDS], dtype=float
        )
        self.chances = np.array([chances(self.all, alpha) for alpha in (MIDDLE, EDGE)])

    def draw(self, rng: Any) -> tuple[Any, Any]:
        """As many samples of both classes."""
        y = np.repeat([0, 1], PER_CLASS)
        p = [rng.dirichlet(EDGE if label else MIDDLE) for label in y]
        return np.array([rng.multinomial(WORDS, own) for own in p], dtype=float), y

    def kernels(self) -> dict[str, list[Any]]:
        """Kernels of each family; exp(-angle²/T) on a sphere of radius 2 is the parametrix."""
        return {
            "linear": [dhsk.LinearKernel()],
            "gaussian": [dhsk.GaussianKernel(width) for width in WIDTHS],
            "diffusion": [dhsk.ParametrixKernel.multinomial(width**2) for width in WIDTHS],
        }

    def seen(self, X: Any, family: str) -> Any:
        """Proportions, as the flat kernels see them; the sphere's map takes counts."""
        return X if family == "diffusion" else X / X.sum(axis=1, keepdims=True)

    def error(self, decide: Any) -> float:
        """Expected share of wrong decisions, without chance."""
        wrong = decide(self.all) != np.array([[0], [1]])
        return float((self.chances * wrong).sum() / 2)

    def best(self) -> float:
        """The smallest error that any classifier has."""
        return float(self.chances.min(axis=0).sum() / 2)

    def plane(self, X: Any) -> tuple[Any, Any]:
        """Corners of an equilateral triangle, weighted by the proportions."""
        p = X / X.sum(axis=1, keepdims=True)
        return p[:, 1] + p[:, 2] / 2, p[:, 2] * 3**0.5 / 2

    def grid(self) -> tuple[Any, Any, Any]:
        """Points of the plane, with NaN outside the triangle, and what they stand for."""
        x, y = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 0.867, 201))
        third = y * 2 / 3**0.5
        p = np.stack([1 - (x - third / 2) - third, x - third / 2, third], axis=-1).reshape(-1, 3)
        return x, y, np.where((p >= 0).all(axis=1, keepdims=True), p, np.nan)

    def dress(self, ax: Any) -> None:
        """The simplex, with the words at its corners."""
        ax.plot([0, 1, 0.5, 0], [0, 0, 0.866, 0], color="black", lw=0.8)
        for place, word in (((-0.03, -0.06), "word 1"), ((0.9, -0.06), "word 2"),
                            ((0.55, 0.83), "word 3")):  # fmt: skip
            ax.text(*place, word, fontsize=8)
        ax.set_aspect("equal")
        ax.set_axis_off()


class Normals:
    """Means and standard deviations of numbers of any scale; errors are of many new samples."""

    title = "normal"

    def __init__(self) -> None:
        self.new = self.draw(np.random.default_rng(12_345), 10_000)

    def draw(self, rng: Any, each: int = PER_CLASS) -> tuple[Any, Any]:
        """As many samples of both classes: of mean 0, or off it to either side."""
        y = np.repeat([0, 1], each)
        scale = np.exp(rng.uniform(np.log(0.2), np.log(5), len(y)))
        centre = y * SHIFT * rng.choice([-1, 1], len(y))
        drawn = scale[:, None] * (centre[:, None] + rng.normal(size=(len(y), NUMBERS)))
        return np.stack([drawn.mean(axis=1), drawn.std(axis=1, ddof=1)], axis=1), y

    def kernels(self) -> dict[str, list[Any]]:
        """Kernels of each family."""
        return {
            "linear": [dhsk.LinearKernel()],
            "gaussian": [dhsk.GaussianKernel(width) for width in WIDTHS],
            "diffusion": [dhsk.HyperbolicHeatKernel(dim=2, time=width**2) for width in WIDTHS],
        }

    def seen(self, X: Any, _family: str) -> Any:
        """The same numbers for all kernels."""
        return X

    def error(self, decide: Any) -> float:
        """Share of wrong decisions about new samples."""
        X, y = self.new
        return float((decide(X) != y).mean())

    def best(self) -> float:
        """The smallest error of a bound of |mean| / standard deviation, on the new samples."""
        X, y = self.new
        y = y[np.argsort(np.abs(X[:, 0]) / X[:, 1])]
        return float((len(y) / 2 + np.cumsum(np.where(y == 0, -1, 1))).min() / len(y))

    def plane(self, X: Any) -> tuple[Any, Any]:
        """Mean and standard deviation."""
        return X[:, 0], X[:, 1]

    def grid(self) -> tuple[Any, Any, Any]:
        """Points of the half plane, and what they stand for."""
        x, y = np.meshgrid(np.linspace(-8, 8, 201), np.linspace(0.02, 7, 201))
        return x, y, np.stack([x.ravel(), y.ravel()], axis=1)

    def dress(self, ax: Any) -> None:
        """The half plane."""
        ax.set_xlim(-8, 8)
        ax.set_ylim(0, 7)
        ax.set_xlabel("mean")
        ax.set_ylabel("standard deviation")


def chances(counts: Any, alpha: Sequence[float]) -> Any:
    """Probabilities of counts whose trinomial is drawn from a Dirichlet distribution."""
    a, n = np.array(alpha), counts.sum(axis=1)
    logs = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1) + gammaln(a.sum()) - gammaln(a).sum()
    return np.exp(logs + gammaln(counts + a).sum(axis=1) - gammaln(n + a.sum()))


def fitted(world: Any, X: Any, y: Any, family: str, kernels: list[Any]) -> Any:
    """The kernel and C of the best mean accuracy in five folds, fitted to all samples."""
    found = dhsk.cross_validate(
        world.seen(X, family), y, kernels=kernels, C=PENALTIES,
        refit=dhsk.Refit("best"), out=dhsk.Output(baselines=False),
    )  # fmt: skip
    return found.best_estimator_


def measure(world: Any, runs: int) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Errors of each family over runs in percent, and the classifiers of the first run."""
    errors: dict[str, list[float]] = {family: [] for family in FAMILIES}
    first: dict[str, Any] = {}
    for run in range(runs):
        X, y = world.draw(np.random.default_rng(run))
        for family, kernels in world.kernels().items():
            model = fitted(world, X, y, family, kernels)
            first.setdefault(family, model)
            errors[family].append(
                100 * world.error(lambda Z, m=model, f=family: m.predict(world.seen(Z, f)))
            )
    return errors, first


def draw(ax: Any, world: Any, family: str, model: Any) -> None:
    """Samples of the first run, the decision and where it changes."""
    x, y, points = world.grid()
    inside = np.isfinite(points).all(axis=1)
    values = np.full(len(points), np.nan)
    values[inside] = model.decision_function(world.seen(points[inside], family))
    values = values.reshape(x.shape)
    ax.contourf(x, y, values, levels=[-np.inf, 0, np.inf], colors=["#dbe7f1", "#f6ddd8"])
    ax.contour(x, y, values, levels=[0], colors=COLOURS.get(family, COLOURS["heat"]))
    X, labels = world.draw(np.random.default_rng(0))
    for label, colour in ((0, "#2f6f9f"), (1, "#b2182b")):
        ax.plot(*world.plane(X[labels == label]), ls="", marker=".", ms=4, color=colour)
    world.dress(ax)


def reproduce(options: argparse.Namespace) -> None:
    """Measure, print and draw both kinds of samples."""
    out, runs = options.out, options.runs
    worlds: list[Any] = [Trinomials(), Normals()]
    figure = Figure(figsize=(11, 7), layout="constrained")
    axes = figure.subplots(len(worlds), len(FAMILIES))
    lines = ["| samples | " + " | ".join(FAMILIES.values()) + " | least |", "|---" + "|---:" * 4]
    lines[1] += "|"
    for world, row in zip(worlds, axes, strict=True):
        print(f"{world.title}: {runs} training sets", file=sys.stderr, flush=True)
        errors, first = measure(world, runs)
        cells = []
        for ax, (family, own) in zip(row, errors.items(), strict=True):
            draw(ax, world, family, first[family])
            ax.set_title(f"{world.title}, {FAMILIES[family]}: error {own[0]:.1f} %", fontsize=9)
            spread = np.std(own, ddof=1) / runs**0.5 if runs > 1 else 0.0
            cells.append(f"{np.mean(own):.1f} ± {spread:.1f}")
        cells.append(f"{100 * world.best():.1f}")
        lines.append(f"| {world.title} | " + " | ".join(cells) + " |")
    text = "\n".join(lines) + "\n"
    (out / "boundaries.md").write_text(text)
    print(f"Error in %, mean ± standard error over {runs} training sets\n\n{text}")
    figure.savefig(out / "boundaries.png", dpi=110)
    print(f"Written to {out}: boundaries.md, boundaries.png")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    what = "Decision boundaries, after Figure 1 of Lafferty & Lebanon (2002)."
    return run_script(common_options(what, "lafferty-lebanon-results", runs=10), argv, reproduce)


if __name__ == "__main__":
    sys.exit(main())
