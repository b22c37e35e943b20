"""Figure 2 of Lafferty & Lebanon (2002): error against training-set size on WebKB pages.

Faculty against course, and faculty against student, each in 20-fold cross-validation: linear and
Gaussian kernels on frequencies of words, the diffusion kernel of the paper and the exact heat
kernel on their square roots. Run with `--help` for the options.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse import csr_array, diags_array, load_npz, save_npz

import dhsk

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "webkb"))
import prepare
from _shared import COLOURS, common_options, run_script, saved, whole

PAIRS = ("faculty and course", "faculty and student")
SIZES = (40, 80, 120, 200, 300, 400, 600)
FOLDS = 20
WIDTHS = (0.1, 0.25, 0.5, 1, 2, 3, 5)
"""Widths of the Gaussian kernel, and square roots of the times of the diffusion kernel."""

NAMES = {
    "linear": "linear",
    "gaussian": "Gaussian",
    "parametrix": "diffusion",
    "heat": "exact heat",
}


def read_counts(data: Path | None, out: Path) -> tuple[Any, Any]:
    """Return counts of words, (pages, words), and labels of all four classes."""
    path = out / "counts.npz"
    if not path.exists():
        counts, words, classes = prepare.read_words(data)
        frequent, _ = prepare.keep_frequent(counts, words, 40)
        prepare.write_lines(out / "labels.txt", classes)
        with whole(path) as part:
            save_npz(part, prepare.fill_empty(frequent)[0])
    return load_npz(path), np.array((out / "labels.txt").read_text().split())


def curves(counts: Any, y: Any, folds: int, stem: Path) -> list[dhsk.LearningCurve]:
    """Curves of the flat kernels on frequencies, and of those on the sphere on counts."""
    step = 1 if folds == FOLDS else 3
    frequencies = csr_array(diags_array(1 / counts.sum(axis=1)) @ counts)
    flat: dict[str, Any] = {
        "kernels": ["linear", *(dhsk.GaussianKernel(sigma) for sigma in WIDTHS[::step])],
        "C": [1, 10, 100, 1e3, 1e4][::step],
    }
    curved: dict[str, Any] = {
        # exp(-angle^2 / T) of the sphere of radius 2 is the parametrix at T/4.
        "kernels": [dhsk.ParametrixKernel(root**2 / 4) for root in WIDTHS[::step]],
        "time_scale": [0.7, 1, 1.4][::step],
        "C": [1, 10, 100][::step],
    }
    found = []
    for name, X, grid in (("flat", frequencies, flat), ("sphere", counts, curved)):
        path = Path(f"{stem}-{name}-{folds}-folds.json")
        run = partial(dhsk.learning_curve, X, y, train_sizes=SIZES, cv=folds, **grid, progress=True)
        result = saved(path, lambda run=run: run().result_)  # type: ignore[misc]  # bound now
        found.append(dhsk.LearningCurve(SIZES, result))
    return found


def errors_of(found: Sequence[dhsk.LearningCurve]) -> dict[str, Any]:
    """Smallest error of each family and its standard error, in percent, (2, sizes)."""
    rows = [row for curve in found for row in curve.best_by_kernel_]
    return {
        name: np.array(
            [(100 - 100 * r["mean"], 100 * r["sem"]) for r in rows if r["kernel"] == name]
        ).T
        for name in NAMES
    }


def table(errors: dict[str, Any]) -> str:
    """Markdown: one row for each training-set size."""
    lines = ["| training pages | " + " | ".join(NAMES.values()) + " |"]
    lines.append("|---:" * (1 + len(NAMES)) + "|")
    for number, size in enumerate(SIZES):
        cells = [f"{e[0, number]:.1f} ± {e[1, number]:.1f}" for e in errors.values()]
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def plot(path: Path, panels: dict[str, dict[str, Any]]) -> None:
    """One panel for each pair of classes."""
    figure = Figure(figsize=(5 * len(panels), 4.4), layout="constrained")
    for ax, (pair, errors) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for name, (mean, sem) in errors.items():
            ax.errorbar(
                SIZES, mean, yerr=sem, marker=".", capsize=2, color=COLOURS[name], label=NAMES[name]
            )
        ax.set_xlabel("training pages")
        ax.set_ylabel("error on held-out pages (%) ± standard error")
        ax.set_title(pair, fontsize=10)
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def reproduce(options: argparse.Namespace) -> None:
    """Measure, print and draw the curves of both pairs of classes."""
    out, quick = options.out, options.quick
    counts, labels = read_counts(options.data, out)
    panels, text = {}, ""
    for pair in PAIRS[:1] if quick else PAIRS:
        own = np.flatnonzero(np.isin(labels, pair.split(" and ")))
        stem = out / pair.replace(" ", "-")
        panels[pair] = errors_of(curves(counts[own], labels[own], 3 if quick else FOLDS, stem))
        text += f"{pair}, {len(own)} pages, {counts.shape[1]} words:\n\n{table(panels[pair])}\n"
    (out / "curves.md").write_text(text)
    print(f"Error in % ± standard error over the folds\n\n{text}")
    plot(out / "curves.png", panels)
    print(f"Written to {out}: curves.md, curves.png, and all results")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    what = "Figure 2 of Lafferty & Lebanon (2002)."
    return run_script(common_options(what, "lafferty-lebanon-results", runs=1), argv, reproduce)


if __name__ == "__main__":
    sys.exit(main())
