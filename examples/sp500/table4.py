"""Table 4 of Zhao & Song (2017): companies of the S&P 500 by sector, from their daily returns.

The samples are companies, the features log returns of 2015-01-05 to 2016-11-18; fewer features are
every second day, every third, ... Run with `--help` for the options.
"""

import argparse
import csv
import gzip
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dhsk

sys.path.insert(0, str(Path(__file__).parents[1]))
from _shared import Best, best_of, common_options, find, plot, run_script, saved, table

PRICES = "sp500/yahoo_adjclose_20150102_20161118.csv.gz"
SECTORS = "sp500/securities_kaggle_nyse.csv"
CLASSES = {
    "Financials": "Financials",
    "Real Estate": "Financials",  # a sector of its own only since September 2016
    "Information Technology": "Information Technology",
}
LEFT_OUT = ("MAA",)  # joined the index after these two years: the paper has 91 Financials

# In the order of the columns: linear, Gaussian, cosine, parametrix, exact heat.
PAPER = {
    475: (98.06, 98.69, 98.69, 98.69, 99.35),
    238: (95.50, 96.77, 94.82, 96.13, 98.06),
    159: (94.86, 95.48, 95.48, 96.13, 96.79),
    119: (92.86, 93.53, 91.57, 94.15, 94.15),
    95: (91.55, 95.50, 94.19, 94.15, 94.79),
}
STEPS = {475: 1, 238: 2, 159: 3, 119: 4, 95: 5}
"""Days between the returns that are kept, by number of features."""

TIME_SCALES = np.geomspace(0.5, 5, 14).round(3).tolist()
C = np.geomspace(0.1, 1e4, 11).round(3).tolist()


def read_returns(data: Path | None, without: Sequence[str] = ()) -> tuple[Any, Any, Any]:
    """Return log returns, (companies, days), the sector of each company, and its ticker."""
    with gzip.open(find(data, PRICES), "rt") as file:
        (_, *names), *lines = csv.reader(file)
    prices = np.array([[float(cell or "nan") for cell in line[1:]] for line in lines])
    with find(data, SECTORS).open() as file:
        sectors = {
            row["Ticker Symbol"].replace(".", "-"): row["GICS Sector"]
            for row in csv.DictReader(file)
        }
    labels = np.array([CLASSES.get(sectors.get(name, ""), "") for name in names])
    kept = np.isfinite(prices).all(axis=0) & (labels != "")
    kept &= ~np.isin(names, [*LEFT_OUT, *without])
    return np.diff(np.log(prices[:, kept]), axis=0).T, labels[kept], np.array(names)[kept]


def kernels(dim: int) -> list[Any]:
    """Five families; heat kernels are made at the time scales below."""
    unit = np.log(dim) / dim
    return [
        "linear",
        *(dhsk.GaussianKernel(sigma) for sigma in np.geomspace(0.03, 10, 16)),
        "cosine",
        *(dhsk.ParametrixKernel(s * unit) for s in np.geomspace(0.7, 100, 14)),
    ]


def say_mistakes(result: dhsk.CvResult, X: Any, y: Any, names: Any) -> None:
    """Print how often the exact heat kernel's best cell takes a company for the other sector."""
    best = next(row for row in result.best_by_kernel_ if row["kernel"] == "heat")
    time = next(row["time_scale"] for row in result.summary_ if row["label"] == best["label"])
    again = dhsk.cross_validate(
        X, y, time_scale=time, C=best["C"], sphere_map="projective",
        cv=dhsk.StratifiedFolds(n_repeats=result.repeats),
    )  # fmt: skip
    found = again.out_of_fold()
    wrong, times = np.unique(names[found.samples[found.wrong]], return_counts=True)
    said = sorted(zip(-times, wrong, strict=True))
    print(
        f"mistakes of {best['label']}, C = {best['C']:g}, with {X.shape[1]} features in "
        f"{result.repeats} runs: " + ", ".join(f"{name} {-n}" for n, name in said)
    )


def reproduce(options: argparse.Namespace) -> None:
    """Cross-validate at each number of features; print and draw the table."""
    runs, quick = options.runs, options.quick
    without = options.without.split(",") if options.without else []
    out = options.out / "-".join(["without", *without]) if without else options.out
    out.mkdir(exist_ok=True)
    X, y, names = read_returns(options.data, without)
    counts = dict(zip(*np.unique(y, return_counts=True), strict=True))
    print("companies: " + ", ".join(f"{name} {n}" for name, n in counts.items()))
    measured: dict[int, Best] = {}
    sizes = list(STEPS)[-1:] if quick else list(STEPS)[:1] if without else list(STEPS)
    for n in sizes:
        some = X[:, :: STEPS[n]]
        run = partial(
            dhsk.cross_validate, some, y, kernels=kernels(n), time_scale=TIME_SCALES,
            C=C[::5] if quick else C, sphere_map="projective", progress=True,
            cv=dhsk.StratifiedFolds(n_repeats=runs),
        )  # fmt: skip
        result = saved(out / f"features-{n}-{runs}-runs.json", run)
        measured[n] = best_of([result])
        if n == sizes[0]:
            say_mistakes(result, some, y, names)
    text = table("features", PAPER, measured)
    (out / "table4.md").write_text(text)
    print(f"\nAccuracy in %: paper / measured ± standard deviation over {runs} runs\n\n{text}")
    plot(out / "table4.png", [("features (days)", PAPER, measured)], "S&P 500 sectors")
    print(f"Written to {out}: table4.md, table4.png, features-*.json")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    parser = common_options("Table 4 of Zhao & Song (2017).", "sp500-results", runs=20)
    parser.add_argument("--without", help="tickers to leave out, A,B: 475 features only")
    return run_script(parser, argv, reproduce)


if __name__ == "__main__":
    sys.exit(main())
