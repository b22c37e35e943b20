"""Figures 2 and 3 of Zhao & Song (2017) over the genes of the public TCGA calls, as many as wanted.

For each gene all samples with a mutation and as many others at random, 5-fold cross-validation of
five kernels: accuracies over the linear kernel's against class size, and effective sample sizes.
The genes come in an order that serves every class size alike; `--most` says how many, and a second
call goes on. Run with `--help` for the options.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

import dhsk

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from _shared import COLOURS, NAMES, common_options, run_script
from imputation import balanced, read_counts, split

BINS = (40, 50, 60, 80, 110, 160, 250, 501)
"""Class sizes from each number to below the next; 40 as in the paper, at most 500 for the time."""

PENALTIES = (0.01, 0.1, 1, 10, 100, 1000)
TIME_SCALES = (0.8, 0.85, 0.9, 1, 1.2)
SHORT_SCALES = (8, 32, 128, 512, 2048)
WIDTHS = (5, 10, 20, 40, 80)
"""The same number of candidates for each kernel that has a parameter."""


def ordered(counts: Any, names: Any) -> list[tuple[str, int]]:
    """Genes with their mutants: the first by chance of each bin, then the second, and so on."""
    mutants = np.asarray((counts > 0).sum(axis=0)).ravel()
    bins = np.digitize(mutants, BINS)
    rng = np.random.default_rng(0)
    ranks = np.full(len(names), np.inf)
    for number in range(1, len(BINS)):
        own = np.flatnonzero(bins == number)
        ranks[own] = rng.permutation(len(own))
    order = np.argsort(ranks, kind="stable")[: int(np.isfinite(ranks).sum())]
    return [(str(names[gene]), int(mutants[gene])) for gene in order]


def measure(X: Any, y: Any) -> dict[str, list[Any]]:
    """Mean accuracy in percent and effective sample size of each candidate."""
    unit = np.log(X.shape[1]) / X.shape[1]
    flat = [dhsk.GaussianKernel(width) for width in WIDTHS]
    short = [dhsk.ParametrixKernel(scale * unit) for scale in SHORT_SCALES]
    result = dhsk.cross_validate(
        X, y, kernels=["linear", "cosine", *flat, *short], time_scale=TIME_SCALES, C=PENALTIES,
        cv=dhsk.StratifiedFolds(random_state=0), out=dhsk.Output(baselines=False),
    )  # fmt: skip
    return {
        f"{cell.kernel}|{cell.label}|{cell.C:g}": [100 * cell.mean, cell.effective]
        for cell in result.summary
    }


def measured(counts: Any, names: Any, genes: Sequence[Any], path: Path) -> Iterator[dict[str, Any]]:
    """One entry for each gene; those of an earlier run from its file, a line each."""
    text = path.read_text() if path.exists() else ""
    text = text[: text.rfind("\n") + 1]  # a killed run may leave half of the last line
    path.write_text(text)
    done = {entry["gene"]: entry for entry in map(json.loads, text.splitlines())}
    if any(gene not in done for gene, _ in genes):
        print(f"{path.stem} ...", file=sys.stderr, flush=True)
    for number, (gene, mutants) in enumerate(genes):
        if gene not in done:
            cells = measure(*balanced(*split(counts, names, gene), 0, random=True))
            done[gene] = {"gene": gene, "mutants": mutants, "cells": cells}
            with path.open("a") as file:
                file.write(json.dumps(done[gene]) + "\n")
            if number % 50 == 0:
                print(f"gene {number + 1} of {len(genes)}", file=sys.stderr, flush=True)
        yield done[gene]


def family_of(cell: str) -> str:
    """Kernel of a candidate."""
    return cell.partition("|")[0]


def gathered(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """For each family accuracies and effective sizes of the best candidate, (genes,) each.

    "own" is the best of each gene, as in the paper. "same" is one for all genes, that of the best
    mean: no gene has chosen it, so it is not too high.
    """
    cells = list(entries[0]["cells"])
    scores = np.array([[entry["cells"][cell][0] for cell in cells] for entry in entries])
    sizes = np.array(
        [[entry["cells"][cell][1] or np.nan for cell in cells] for entry in entries], dtype=float
    )
    found: dict[str, Any] = {"mutants": np.array([entry["mutants"] for entry in entries])}
    rows = np.arange(len(entries))
    for family in NAMES:
        own = np.array([number for number, cell in enumerate(cells) if family_of(cell) == family])
        best = own[scores[:, own].argmax(axis=1)]
        same = own[scores[:, own].mean(axis=0).argmax()]
        found[family] = {
            "own": scores[rows, best], "size": sizes[rows, best], "same": scores[:, same],
            "name": cells[same],
        }  # fmt: skip
    return found


def in_bins(found: dict[str, Any], values: Any) -> list[tuple[float, float, int]]:
    """Mean of values over the genes of a bin, its standard error, and the number of genes."""
    bins = np.digitize(found["mutants"], BINS)
    groups = [values[bins == number] for number in range(1, len(BINS))]
    return [
        (
            float(own.mean()) if len(own) else np.nan,
            float(own.std(ddof=1) / len(own) ** 0.5) if len(own) > 1 else 0.0,
            len(own),
        )
        for own in groups
    ]


def table(found: dict[str, Any], which: str) -> str:
    """Markdown: ratios of accuracies to the linear kernel's, a row for each bin."""
    others = [family for family in NAMES if family != "linear"]
    linear = found["linear"][which]
    lines = ["| samples a class | genes | linear (%) | " + " | ".join(NAMES[f] for f in others)]
    lines = [lines[0] + " |", "|---|---:|---:|" + "---:|" * len(others)]
    plain = in_bins(found, linear)
    ratios = [in_bins(found, found[family][which] / linear) for family in others]
    for number, (mean, error, genes) in enumerate(plain):
        if not genes:
            continue
        cells = [f"{own[number][0]:.3f} ± {own[number][1]:.3f}" for own in ratios]
        span = f"{BINS[number]} to {BINS[number + 1] - 1}"
        lines.append(f"| {span} | {genes} | {mean:.1f} ± {error:.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def leads(found: dict[str, Any]) -> str:
    """Accuracy of exact heat less that of the others, in the mean of the genes."""
    text = ""
    for family, name in NAMES.items():
        apart = [found["heat"][which] - found[family][which] for which in ("own", "same")]
        said = [f"{d.mean():.2f} ± {d.std(ddof=1) / len(d) ** 0.5:.2f}" for d in apart]
        if family != "heat":
            text += f"Exact heat less {name}: {said[0]} points, {said[1]} with the same for all\n"
    return text + "\n"


def sizes(found: dict[str, Any]) -> str:
    """Effective sample sizes, and whether accuracy goes with them."""
    text = ""
    for family, name in NAMES.items():
        own = found[family]
        low, middle, high = np.nanpercentile(own["size"], [5, 50, 95])
        text += f"Effective sample size, {name}: {middle:.2f} in the median, 5 to 95 % of genes "
        text += f"{low:.2f} to {high:.2f}"
        known = np.isfinite(own["size"])
        if np.ptp(own["size"][known]) > 0:
            rank = spearmanr(own["size"][known], own["own"][known]).statistic
            text += f"; rank correlation with accuracy {rank:.2f}"
        text += "\n"
    return text


def plot(path: Path, found: dict[str, Any]) -> None:
    """Ratios by both choices, effective size against class size, accuracy against the former."""
    figure = Figure(figsize=(11, 8.4), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    middles = in_bins(found, found["mutants"].astype(float))
    x = np.array([mean for mean, _, _ in middles])
    for family, name in NAMES.items():
        style: dict[str, Any] = {"color": COLOURS[family], "marker": ".", "label": name}
        own = found[family]
        for ax, which in zip(axes, ("own", "same"), strict=False):
            if family != "linear":
                ratios = np.array(in_bins(found, own[which] / found["linear"][which]))
                ax.errorbar(x, ratios[:, 0], yerr=ratios[:, 1], capsize=2, **style)
        axes[2].plot(found["mutants"], own["size"], ls="", ms=3, alpha=0.5, **style)
        axes[3].plot(own["size"], own["own"], ls="", ms=3, alpha=0.5, **style)
    for ax in axes[:2]:
        ax.axhline(1, color="#8c8c8c", lw=0.8)
        ax.set_ylabel("accuracy / accuracy of the linear kernel")
    axes[0].set_title("Figure 2: the best candidate of each gene, as in the paper", fontsize=9)
    axes[1].set_title("the same candidate for all genes", fontsize=9)
    axes[2].set_ylabel("effective sample size (training samples / VC bound)")
    axes[2].set_title("Figure 3: effective sample size against class size", fontsize=9)
    axes[3].set_xlabel("effective sample size (training samples / VC bound)")
    axes[3].set_ylabel("accuracy in 5-fold cross-validation (%)")
    axes[3].set_title("Figure 3: accuracy against effective sample size", fontsize=9)
    for ax in axes[:3]:
        ax.set_xscale("log")
        ax.set_xticks(BINS[:-1], [str(size) for size in BINS[:-1]])
        ax.minorticks_off()
        ax.set_xlabel("samples a class")
    axes[2].set_yscale("log")
    axes[3].set_xscale("log")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8, markerscale=2)
    figure.savefig(path, dpi=110)


def reproduce(options: argparse.Namespace) -> None:
    """Measure the genes, print and draw."""
    out = options.out
    counts, names = read_counts(options.data)
    genes = ordered(counts, names)
    most = 4 if options.quick else min(options.most, len(genes))
    text = f"{most:,} of {len(genes):,} genes with {BINS[0]} to {BINS[-1] - 1} mutants\n\n"
    entries = list(measured(counts, names, genes[:most], out / "figure2.jsonl"))
    found = gathered(entries)
    for which, words in (("own", "best candidate of each gene"), ("same", "same for all genes")):
        text += f"Accuracy over the linear kernel's, {words}:\n\n{table(found, which)}\n"
    text += "Same for all genes: " + ", ".join(found[f]["name"] for f in NAMES) + "\n\n"
    text += leads(found) + sizes(found)
    (out / "figure2.md").write_text(text)
    print(text)
    plot(out / "figure2.png", found)
    print(f"Written to {out}: figure2.md, figure2.png, figure2.jsonl")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    parser = common_options("Figures 2 and 3 over the genes of TCGA.", "tcga-results", runs=1)
    parser.add_argument("--most", type=int, default=10**6, help="genes to take (default: all)")
    return run_script(parser, argv, reproduce)


if __name__ == "__main__":
    sys.exit(main())
