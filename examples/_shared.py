"""What the scripts of the paper's tables share: command line, saved runs, tables and plots."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure

import dhsk

NAMES = {
    "linear": "linear",
    "gaussian": "Gaussian",
    "cosine": "cosine",
    "parametrix": "parametrix",
    "heat": "exact heat",
}
"""Families of kernels in the order of the paper's tables, as they are called here."""

COLOURS = {
    "linear": "#8c8c8c",
    "gaussian": "#c77b1f",
    "cosine": "#4d9a57",
    "parametrix": "#7d6bb0",
    "heat": "#c0392b",
}

Best: TypeAlias = Mapping[str, tuple[float, float]]
"""Mean and standard deviation over runs of the best accuracy in percent, by family of kernels."""

Paper: TypeAlias = Mapping[int, Sequence[float]]
"""A table of the paper: accuracies in percent in the order of `NAMES`, by number of samples or
features."""


class DataError(OSError):
    """The data cannot be found or used."""


def common_options(what: str, out: str, runs: int) -> argparse.ArgumentParser:
    """Command line of every script: folders of the data and of the results, number of runs."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("DHSK_DATA"),
        help="folder with the data, see README.md (default: the environment variable DHSK_DATA)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path(out), help=f"folder to write to (default: {out})"
    )
    parser.add_argument("--runs", type=int, default=runs, help=f"runs (default: {runs})")
    parser.add_argument(
        "--quick", action="store_true", help="a small part of everything, to see that it works"
    )
    return parser


def run_script(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    reproduce: Callable[[argparse.Namespace], None],
) -> int:
    """Run a script with its options; return its exit code: 0 done, 2 bad usage or input."""
    options = parser.parse_args(argv)
    if options.quick:
        options.out /= "quick"
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        reproduce(options)
    except (OSError, dhsk.InputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def find(data: Path | None, name: str) -> Path:
    """Return a file or folder of the data."""
    if data is None:
        raise DataError(f"give --data DIR, or set DHSK_DATA, to the folder that holds {name}")
    if not (data / name).exists():
        raise DataError(f"{data} has no {name}: README.md says where it is from")
    return data / name


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to, renamed in the end: a killed run leaves no half of a file."""
    part = path.with_name(f"part-{path.name}")
    yield part
    part.replace(path)


def saved(path: Path, run: Callable[[], dhsk.CvResult]) -> dhsk.CvResult:
    """Return the result of an earlier run from its file, or run and write it."""
    if path.exists():
        return dhsk.CvResult.from_json(path)
    print(f"{path.stem} ...", file=sys.stderr, flush=True)
    result = run()
    result.to_json(path)
    return result


def best_of(results: Sequence[dhsk.CvResult]) -> Best:
    """Best accuracy of each family: mean and standard deviation over the runs of all results."""
    found: dict[str, list[float]] = {}
    for result in results:
        for row in result.best_by_kernel_:
            found.setdefault(row["kernel"], []).extend(100 * s for s in row["scores"])
    return {
        name: (float(np.mean(own)), float(np.std(own, ddof=1)) if len(own) > 1 else 0.0)
        for name, own in found.items()
    }


def table(title: str, paper: Paper, measured: Mapping[int, Best]) -> str:
    """Markdown: one row for each number, in each cell the paper's figure and the measured one."""
    lines = [
        f"| {title} | " + " | ".join(NAMES.values()) + " |",
        "|---:" * (len(NAMES) + 1) + "|",
    ]
    for number, best in measured.items():
        cells = [
            f"{theirs:.2f} / **{best[name][0]:.2f}** ± {best[name][1]:.2f}"
            for name, theirs in zip(NAMES, paper[number], strict=True)
        ]
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def plot(path: Path, panels: Sequence[tuple[str, Paper, Mapping[int, Best]]], title: str) -> None:
    """Draw accuracy against a number, one panel a table: measured, and dashed the paper's."""
    figure = Figure(figsize=(1.5 + 4.6 * len(panels), 4.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (label, paper, measured) in zip(axes, panels, strict=True):
        x = np.array(list(measured))
        aside = 0.006 * (x.max() - x.min())  # or the error bars hide each other
        for number, name in enumerate(NAMES):
            mean, std = np.array([measured[n][name] for n in x]).T
            style: dict[str, Any] = {"color": COLOURS[name], "lw": 1.6}
            moved = x + (number - 2) * aside
            ax.errorbar(moved, mean, yerr=std, marker=".", capsize=2, label=NAMES[name], **style)
            ax.plot(x, [paper[n][number] for n in x], ls=":", marker="x", ms=5, **style)
        ax.set_xlabel(label)
        ax.set_ylabel("accuracy in 5 folds (%), mean ± std over runs")
        ax.grid(alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    handles += axes[0].plot([], [], ls=":", marker="x", color="black")
    axes[0].legend(handles, [*labels, "the paper"], fontsize=8)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=110)
