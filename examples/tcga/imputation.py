"""Gene imputation on TCGA mutation counts: whether a gene is mutated, from all other counts.

The protocol of Table 3 and Figures 2 and 3 of Zhao & Song (2017), on public calls: for each gene
all samples with a mutation and as many representatives of the others, 5-fold cross-validation of
five kernels, and of two that keep how many mutations a sample has. Run with `--help` for options.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse import csr_array, hstack

import dhsk

sys.path.insert(0, str(Path(__file__).parents[1]))
from _shared import COLOURS, NAMES, DataError, common_options, find, run_script, saved, whole

TABLE_3 = ("COL1A2", "BAI3", "ZMYM4", "NFX1", "P2RX7")
"""Genes of Table 3; BAI3 is ADGRB3 now. In the public calls NFX1 has 39 mutants, P2RX7 29."""

SIZES = (40, 60, 90, 200, 320)
"""Class sizes for Figures 2 and 3: of each the first gene by name with so many mutants."""

FEWEST = 40
"""Mutants of a gene of `--all`, as in the paper."""

CLUSTERINGS = 50
"""As in the paper."""

PENALTIES = (0.1, 1, 10, 100)
PRODUCT_SCALES = (0.7, 1.4)
"""Times of the heat kernel in the product with one of totals; alone its time is searched."""

WIDTHS = (0.5, 1, 2)
"""Widths of the Gaussian kernel of log totals that is multiplied with the heat kernel."""

FAMILIES = NAMES | {"total": "heat, total kept", "product": "heat times total"}
"""What each column of the table is called."""


def read_counts(data: Path | None) -> tuple[Any, Any]:
    """Return mutation counts, (samples, genes), and the names of the genes."""
    with np.load(find(data, "tcga/tcga_mc3_counts.npz"), allow_pickle=False) as file:
        matrix = csr_array((file["data"], file["indices"], file["indptr"]), tuple(file["shape"]))
        return matrix, file["genes"]


def genes_of(counts: Any, names: Any, wanted: str | None, every: bool) -> list[str]:
    """Genes to impute: those wanted, all, or of Table 3, APOB, and one of each class size."""
    mutants = np.diff(csr_array(counts.T).indptr)
    enough = names[mutants >= FEWEST]
    print(f"{len(enough):,} of {len(names):,} genes have at least {FEWEST} mutants")
    if every:
        return sorted(map(str, enough))
    if wanted:
        genes = wanted.split(",")
        if wrong := [gene for gene in genes if gene not in names]:
            raise DataError(f"no genes of the data: {', '.join(wrong)}")
        return genes
    sized = [str(min(names[mutants == size])) for size in SIZES if (mutants == size).any()]
    return list(dict.fromkeys([*TABLE_3, "APOB", *sized]))


def split(counts: Any, names: Any, gene: str) -> tuple[Any, Any]:
    """Counts of the other genes, and whether the gene is mutated, of all samples."""
    column = int(np.flatnonzero(names == gene)[0])
    others = csr_array(hstack([counts[:, :column], counts[:, column + 1 :]]), dtype=float)
    return others, np.where(counts[:, [column]].toarray()[:, 0] > 0, "mutated", "not")


def drawn(labels: Any, some: Any, seed: int) -> Any:
    """All samples of `some` with a mutation and as many others at random."""
    mutated, others = some[labels[some] == "mutated"], some[labels[some] == "not"]
    chosen = np.random.default_rng(seed).choice(others, len(mutated), replace=False)
    return np.sort(np.concatenate([mutated, chosen]))


def balanced(others: Any, labels: Any, seed: int, random: bool) -> tuple[Any, Any]:
    """Samples with a mutation of the gene and as many without: their counts and labels."""
    some = np.flatnonzero(np.asarray(others.sum(axis=1)) > 0)
    if random:
        rows = drawn(labels, some, seed)
        return others[rows], labels[rows]
    chosen = dhsk.representatives(
        others[some], labels[some], int((labels[some] == "mutated").sum()), repeats=CLUSTERINGS,
        random_state=seed, progress=True,
    )  # fmt: skip
    return others[some[chosen]], labels[some[chosen]]


def runs_of(X: Any, y: Any, seed: int) -> Iterator[tuple[str, Any]]:
    """Cross-validations of one gene: the name of each, and a function that runs it."""
    common: dict[str, Any] = {"cv": dhsk.StratifiedFolds(random_state=seed), "progress": True}
    totals = np.asarray(X.sum(axis=1), float)
    unit = np.log(X.shape[1]) / X.shape[1]
    flat = partial(dhsk.cross_validate, X, y, **common)
    yield "linear", partial(flat, kernels="linear", C=[1e-4, 1e-3, 1e-2, 0.1, 1])
    widths = [dhsk.GaussianKernel(sigma) for sigma in (5, 10, 20, 40, 80)]
    yield "gaussian", partial(flat, kernels=widths, C=PENALTIES)
    short = [dhsk.ParametrixKernel(s * unit) for s in (8, 32, 128, 512, 2048)]
    yield "sphere", partial(flat, kernels=["cosine", *short], C=PENALTIES)
    # Where the kernel tells samples apart is a narrow range of times in so many dimensions.
    yield "heat", partial(flat, time_scale="auto")
    # A constant column is a larger share of a sample with fewer mutations.
    constant = csr_array(np.full((len(totals), 1), np.median(totals)))
    kept = csr_array(hstack([X, constant]))
    yield "total", partial(dhsk.cross_validate, kept, y, time_scale="auto", **common)
    logs = np.log(totals)[:, None]
    mapped = dhsk.hyperspherical_map(X)
    for scale in PRODUCT_SCALES:
        heat = dhsk.HeatKernel.at_scale(X.shape[1], scale)(mapped)
        for width in WIDTHS:
            K = heat * np.exp(-((logs - logs.T) ** 2) / (2 * width**2))
            work = partial(dhsk.cross_validate, K, y, kernels="precomputed", C=PENALTIES)
            yield f"product-{scale}-{width}", partial(work, **common)


def samples_of(counts: Any, names: Any, gene: str, random: bool, path: Path) -> tuple[Any, Any]:
    """Samples of one run; those of an earlier run from its file, "GENE-run-SEED-samples.npz"."""
    if not path.exists():
        seed = int(path.stem.split("-")[-2])
        X, y = balanced(*split(counts, names, gene), seed, random)
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        with whole(path) as part:
            np.savez(part, **arrays, shape=X.shape, y=y)
    with np.load(path) as file:
        X = csr_array((file["data"], file["indices"], file["indptr"]), tuple(file["shape"]))
        return X, file["y"]


def say_totals(counts: Any, names: Any, gene: str, chosen: Sequence[Any]) -> None:
    """Print how many mutations samples have: with the gene's, without, and those taken of them."""
    others, labels = split(counts, names, gene)
    totals = others.sum(axis=1)
    with_it, without = (np.median(totals[labels == label]) for label in ("mutated", "not"))
    taken = [np.median(X.sum(axis=1)[y == "not"]) for X, y in chosen]
    print(
        f"{gene}: {with_it:g} other mutations in the median with it, {without:g} without, "
        f"{min(taken):g} to {max(taken):g} in the samples taken of these"
    )


def measure(
    counts: Any, names: Any, gene: str, runs: int, random: bool, out: Path
) -> dict[str, Any]:
    """Best accuracy of each family in percent, (runs,); effective samples under "effective"."""
    found: dict[str, list[float]] = {}
    effective: dict[str, list[float]] = {}
    chosen = [
        samples_of(counts, names, gene, random, out / f"{gene}-run-{seed}-samples.npz")
        for seed in range(runs)
    ]
    say_totals(counts, names, gene, chosen)
    for seed, (X, y) in enumerate(chosen):
        best: dict[str, tuple[float, float]] = {}
        for name, run in runs_of(X, y, seed):
            result = saved(out / f"{gene}-run-{seed}-{name}.json", run)
            for row in result.best_by_kernel_:
                own = name.partition("-")[0]
                family = own if own in ("total", "product") else row["kernel"]
                cell = next(c for c in result.summary if (c.label, c.C) == (row["label"], row["C"]))
                best[family] = max(
                    best.get(family, (0.0, 0.0)), (100 * row["mean"], cell.effective or np.nan)
                )
        for family, (score, size) in best.items():
            found.setdefault(family, []).append(score)
            effective.setdefault(family, []).append(size)
    return found | {"mutants": len(chosen[0][1]) // 2, "effective": effective}


def table(measured: dict[str, Any]) -> str:
    """Markdown: one row for each gene."""
    lines = ["| gene | mutants | " + " | ".join(FAMILIES.values()) + " |"]
    lines.append("|---|" + "---:|" * (1 + len(FAMILIES)))
    for gene, own in measured.items():
        cells = [f"{np.mean(own[f]):.1f} ± {np.std(own[f]):.1f}" for f in FAMILIES]
        lines.append(f"| {gene} | {own['mutants']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def plot(path: Path, measured: dict[str, Any]) -> None:
    """Figure 2, ratios of accuracies against class size; Figure 3, against effective samples."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = COLOURS | {"total": "#2f6f9f", "product": "#222222"}
    genes = sorted(measured.values(), key=lambda own: own["mutants"])
    sizes = [own["mutants"] for own in genes]
    for family in FAMILIES:
        style: dict[str, Any] = {"color": colours[family], "marker": "."}
        if family != "linear":
            ratios = [np.mean(own[family]) / np.mean(own["linear"]) for own in genes]
            left.plot(sizes, ratios, label=FAMILIES[family], **style)
        if family != "product":  # its bounds are of another matrix each time
            x = [np.mean(own["effective"][family]) for own in genes]
            y = [np.mean(own[family]) for own in genes]
            right.plot(x, y, ls="", label=FAMILIES[family], **style)
    left.axhline(1, color="#8c8c8c", lw=0.8)
    left.set_xscale("log")
    apart = [size for size, last in zip(sizes, [1, *sizes], strict=False) if size > 1.1 * last]
    left.set_xticks(apart, [str(size) for size in apart])
    left.minorticks_off()
    left.set_xlabel("samples a class")
    left.set_ylabel("accuracy / accuracy of the linear kernel")
    right.set_xscale("log")
    marks = [1, 2, 5, 10, 20, 50, 100]
    right.set_xticks(marks, [str(mark) for mark in marks])
    right.minorticks_off()
    right.set_xlabel("effective sample size (training samples / VC bound, no unit)")
    right.set_ylabel("accuracy in 5-fold cross-validation (%)")
    for ax in (left, right):
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def reproduce(options: argparse.Namespace) -> None:
    """Measure all genes, print and draw."""
    out, runs = options.out / "random" if options.random else options.out, options.runs
    out.mkdir(exist_ok=True)
    counts, names = read_counts(options.data)
    genes = genes_of(counts, names, options.genes, options.all)
    if options.quick:
        genes = ["ZMYM4"]
        counts = counts[np.diff(counts.indptr) > 200]
    measured = {gene: measure(counts, names, gene, runs, options.random, out) for gene in genes}
    text = table(measured)
    (out / "imputation.md").write_text(text)
    print(f"Accuracy in %, mean ± standard deviation over {runs} runs\n\n{text}")
    plot(out / "imputation.png", measured)
    print(f"Written to {out}: imputation.md, imputation.png, and all samples and results")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    parser = common_options("Gene imputation on TCGA counts.", "tcga-results", runs=3)
    parser.add_argument("--genes", help="names of genes, A,B,C (default: those of the README)")
    parser.add_argument(
        "--random", action="store_true", help="samples without a mutation at random, not by K-means"
    )
    parser.add_argument("--all", action="store_true", help=f"all genes with {FEWEST} mutants")
    return run_script(parser, argv, reproduce)


if __name__ == "__main__":
    sys.exit(main())
