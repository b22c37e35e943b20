"""Which genera carry the decision on a table of microbes.

For the heat kernel on log-ratios: how much balanced accuracy falls on held-out samples if the
counts of a genus are exchanged between them. For a linear classifier on log-ratios: coefficients,
which sum to zero. Run with `--help` for the options.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

import dhsk

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from _shared import COLOURS, common_options, find, run_script, whole
from nested import read

FOLDS = 10
SEED = 100
"""Folds are those of the first seed of `nested.py`."""

SHOWN = 20
BLOCK_ROWS = 2000
"""Rows that are predicted together, some 40 MB of a table of 2,500 taxa."""


def genus_of(lineage: str) -> str:
    """Lineage down to the genus: taxa of one genus, and those of no known genus one by one."""
    ranks = [rank.strip() for rank in lineage.split(";")]
    for place, rank in enumerate(ranks):
        if rank.startswith("g__") and rank != "g__":
            return "; ".join(ranks[: place + 1])
    return "; ".join(ranks)


def short(genus: str) -> str:
    """Last name of a lineage; with the letter of its rank if that is not the genus."""
    known = [rank for rank in genus.split("; ") if rank and not rank.endswith("__")]
    rank, _, name = (known or ["x__without a name"])[-1].partition("__")
    return name if rank in "gx" else f"{name} ({rank}.)"


def members(taxa: Any) -> dict[str, Any]:
    """Columns of each genus."""
    found: dict[str, list[int]] = {}
    for column, lineage in enumerate(taxa):
        found.setdefault(genus_of(str(lineage)), []).append(column)
    return {genus: np.array(columns) for genus, columns in found.items()}


def exchanged(X: Any, columns: Any, order: Any) -> Any:
    """Samples with these columns of the samples in another order."""
    changed = X.copy()
    changed[:, columns] = X[order][:, columns]
    return changed


def falls(model: Any, X: Any, y: Any, genera: list[Any], rng: Any, repeats: int) -> Any:
    """Balanced accuracy less that after exchanges of a genus, mean of repeats, (genera,)."""
    before = balanced_accuracy_score(y, model.predict(X))
    jobs = [(genus, rng.permutation(len(y))) for genus in genera for _ in range(repeats)]
    at_once = max(1, BLOCK_ROWS // len(y))
    after: list[float] = []
    for first in range(0, len(jobs), at_once):
        some = jobs[first : first + at_once]
        said = model.predict(np.concatenate([exchanged(X, *job) for job in some]))
        after += [balanced_accuracy_score(y, own) for own in said.reshape(len(some), len(y))]
    return before - np.mean(np.reshape(after, (len(genera), repeats)), axis=1)


def coefficients(model: Any) -> Any:
    """Normal vector of a linear classifier of two classes on unit log-ratios, (taxa,).

    It sums to zero, as log-ratios of a sample do: a classifier on them compares microbes with each
    other and does not see how many there are in all.
    """
    return (model.dual_coef_ @ model.support_vectors_)[0]


def measure(X: Any, y: Any, genera: list[Any], n_folds: int, repeats: int) -> dict[str, Any]:
    """Accuracies, falls and coefficients, a row each fold."""
    found: dict[str, list[Any]] = {"heat": [], "linear": [], "falls": [], "coefficients": []}
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=SEED)
    for number, (train, test) in enumerate(folds.split(X, y)):
        print(f"fold {number + 1} of {n_folds}", file=sys.stderr, flush=True)
        heat = dhsk.HeatSVC(sphere_map="clr").fit(X[train], y[train])
        linear = dhsk.HeatSVC(sphere_map="clr", kernel="linear").fit(X[train], y[train])
        for name, model in (("heat", heat), ("linear", linear)):
            found[name].append(balanced_accuracy_score(y[test], model.predict(X[test])))
        rng = np.random.default_rng(number)
        found["falls"].append(falls(heat, X[test], y[test], genera, rng, repeats))
        w = coefficients(linear)
        found["coefficients"].append([w[columns].sum() for columns in genera])
    return {name: np.array(rows) for name, rows in found.items()}


def measured(path: Path, *job: Any) -> dict[str, Any]:
    """What `measure` finds; of an earlier run from its file."""
    if not path.exists():
        print(f"{path.stem} ...", file=sys.stderr, flush=True)
        found = measure(*job)
        with whole(path) as part:
            np.savez(part, **found)
    with np.load(path) as file:
        return dict(file)


def with_error(rows: Any) -> tuple[Any, Any]:
    """Mean over folds and its standard error."""
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) / len(rows) ** 0.5


def table(names: list[str], found: dict[str, Any]) -> str:
    """Markdown: genera of the largest falls, with their coefficients."""
    fall, error = with_error(100 * found["falls"])
    w, w_error = with_error(found["coefficients"])
    lines = [
        "| genus | fall in balanced accuracy (points) | sum of coefficients |",
        "|---|---:|---:|",
    ]
    for genus in np.argsort(-fall, kind="stable")[:SHOWN]:
        cells = f"{fall[genus]:.2f} ± {error[genus]:.2f} | {w[genus]:.2f} ± {w_error[genus]:.2f}"
        lines.append(f"| {names[genus]} | {cells} |")
    return "\n".join(lines) + "\n"


def bars(ax: Any, names: list[str], chosen: Any, mean: Any, error: Any, colour: str) -> None:
    """Horizontal bars, the first on top."""
    places = np.arange(len(chosen))[::-1]
    ax.barh(places, mean[chosen], xerr=error[chosen], color=colour, alpha=0.7, capsize=2)
    ax.set_yticks(places, [names[genus] for genus in chosen], fontsize=8)
    ax.axvline(0, color="black", lw=0.8)
    ax.grid(alpha=0.3, axis="x")


def plot(path: Path, names: list[str], found: dict[str, Any], classes: Any) -> None:
    """Falls on the left, coefficients on the right, each with its own largest."""
    figure = Figure(figsize=(12, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    fall, error = with_error(100 * found["falls"])
    bars(left, names, np.argsort(-fall, kind="stable")[:SHOWN], fall, error, COLOURS["heat"])
    left.set_xlabel("fall in balanced accuracy if exchanged (points) ± standard error")
    left.set_title("heat kernel on log-ratios", fontsize=9)
    w, w_error = with_error(found["coefficients"])
    largest = np.argsort(-np.abs(w), kind="stable")[:SHOWN]
    bars(right, names, largest[np.argsort(-w[largest])], w, w_error, COLOURS["linear"])
    right.set_xlabel(f"sum of coefficients, above 0 for {classes[1]!s} ± standard error")
    right.set_title("linear classifier on log-ratios; all genera sum to 0", fontsize=9)
    figure.savefig(path, dpi=110)


def reproduce(options: argparse.Namespace) -> None:
    """Measure, print and draw."""
    path = find(options.data, "microbiome") / f"{options.table}.tsv.gz"
    X, y, taxa = read(find(path.parent, path.name))
    if options.quick:
        X, taxa = X[:, :100], taxa[:100]
    columns = members(taxa)
    names = [short(genus) for genus in columns]
    folds, repeats = (3, 1) if options.quick else (FOLDS, options.runs)
    kept = options.out / f"{options.table}.npz"
    found = measured(kept, X, y, list(columns.values()), folds, repeats)
    text = f"{options.table}: {X.shape[0]} samples, {X.shape[1]} taxa, "
    text += f"{len(names)} genera or taxa of none\n\n"
    for name, what in (("heat", "heat kernel"), ("linear", "linear classifier")):
        mean, error = with_error(100 * found[name])
        text += f"balanced accuracy of the {what}: {mean:.1f} ± {error:.1f}\n"
    fall, error = with_error(found["falls"])
    for words, far in (("falls", fall > 2 * error), ("rises", fall < -2 * error)):
        text += f"{words} beyond two standard errors: {int(far.sum())} of {len(names)} genera\n"
    total = np.abs(found["coefficients"].sum(axis=1)).max()
    text += f"sum of all coefficients, at most: {total:.1e}\n\n{table(names, found)}"
    (options.out / "taxa.md").write_text(text)
    print(text)
    plot(options.out / "taxa.png", names, found, np.unique(y))
    print(f"Written to {options.out}: taxa.md, taxa.png")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    parser = common_options("Which genera carry the decision.", "microbiome-results", runs=5)
    parser.add_argument("--table", default="qin2014", help="a table of two classes (qin2014)")
    return run_script(parser, argv, reproduce)


if __name__ == "__main__":
    sys.exit(main())
