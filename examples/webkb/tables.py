"""Tables 1 and 2 of Zhao & Song (2017): WebKB pages by class, five kernels.

Each run chooses representatives of each class, then cross-validates every kernel on them. Table 1
varies the pages a class, Table 2 the number of words. Run with `--help` for the options.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import prepare
from scipy.sparse import load_npz, save_npz

import dhsk

sys.path.insert(0, str(Path(__file__).parents[1]))
from _shared import Best, best_of, common_options, plot, run_script, saved, table, whole

# In the order of the columns: linear, Gaussian, cosine, parametrix, exact heat.
TABLE_1 = {
    100: (74.2, 75.1, 84.4, 85.4, 85.6),
    200: (80.9, 82.0, 89.2, 89.6, 89.9),
    300: (83.2, 84.1, 89.9, 90.5, 91.1),
    400: (86.7, 86.1, 91.3, 91.7, 92.3),
}
TABLE_2 = {
    393: (86.73, 86.27, 91.57, 91.99, 92.44),
    726: (86.78, 86.95, 92.62, 92.91, 93.00),
    1023: (85.56, 86.11, 92.62, 92.74, 92.91),
    1312: (85.78, 86.75, 92.56, 92.81, 93.03),
}
DIVISORS = {393: 10, 726: 20, 1023: 30, 1312: 40}
"""Words are kept that occur more than N/divisor times, by the paper's number of words."""


@dataclass(frozen=True)
class Setting:
    """Words and pages of one row of a table."""

    divisor: int
    pages: int
    clusterings: int = 50
    clusters: str = "counts"

    @property
    def name(self) -> str:
        """Name in files."""
        return f"words-over-N{self.divisor}-pages-{self.pages}"


def grids(dim: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Kernels and values of C; counts need another C than points of the unit sphere."""
    unit, step = np.log(dim) / dim, 3 if quick else 1
    yield {"kernels": "linear", "C": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1][::step]}
    widths = [20, 40, 80, 160, 320][::step]
    yield {
        "kernels": [dhsk.GaussianKernel(sigma) for sigma in widths],
        "C": [3, 10, 30, 100, 300, 1000][::step],
    }
    times = [8, 16, 32, 64, 128][::step]
    yield {
        "kernels": ["cosine", *(dhsk.ParametrixKernel(s * unit) for s in times)],
        "time_scale": [0.8, 0.9, 1, 1.2, 1.4, 2][::step],
        "C": [0.3, 1, 3, 10, 30, 100][::step],
    }


def read_counts(data: Path | None, out: Path) -> dict[int, Any]:
    """Return counts of words, (pages, words), by divisor, and write them; labels under 0."""
    labels = out / "labels.txt"
    if not labels.exists():
        counts, words, classes = prepare.read_words(data)
        for divisor in DIVISORS.values():
            frequent, _ = prepare.keep_frequent(counts, words, divisor)
            save_npz(out / f"words-over-N{divisor}.npz", prepare.fill_empty(frequent)[0])
        with whole(labels) as part:  # the last one, which says that all are there
            prepare.write_lines(part, classes)
    found = {d: load_npz(out / f"words-over-N{d}.npz") for d in DIVISORS.values()}
    return found | {0: np.array(labels.read_text().split())}


CLUSTERS: dict[str, Callable[[Any], Any]] = {
    "counts": lambda X: X,
    "roots": dhsk.hyperspherical_map,
    "unit": dhsk.projective_map,
}
"""What K-means works on: raw counts, square roots of proportions, or vectors of length 1."""


def chosen_pages(X: Any, y: Any, setting: Setting, run: int, out: Path) -> Any:
    """Pages that represent their classes; those of an earlier run from its file."""
    path = out / f"{setting.name}-run-{run}.npy"
    if not path.exists():
        options: dict[str, Any] = {"repeats": setting.clusterings, "random_state": run}
        points = CLUSTERS[setting.clusters](X)
        found = dhsk.representatives(points, y, setting.pages, **options, progress=True)
        with whole(path) as part:
            np.save(part, found)
    return np.load(path)


def measure(counts: Mapping[int, Any], setting: Setting, runs: int, out: Path) -> Best:
    """Accuracies of one row of a table: representatives and cross-validation in each run."""
    X, y = counts[setting.divisor], counts[0]
    results = []
    for run in range(runs):
        pages = chosen_pages(X, y, setting, run, out)
        for number, grid in enumerate(grids(X.shape[1], setting.clusterings < 50)):
            folds = dhsk.StratifiedFolds(random_state=run)
            work = partial(dhsk.cross_validate, X[pages], y[pages], **grid, cv=folds, progress=True)
            results.append(saved(out / f"{setting.name}-run-{run}-grid-{number}.json", work))
    return best_of(results)


def reproduce(options: argparse.Namespace) -> None:
    """Measure all rows of both tables, print and draw them."""
    runs, quick, on = options.runs, options.quick, options.clusters
    out = options.out if on == "counts" else options.out / on
    out.mkdir(exist_ok=True)
    counts = read_counts(options.data, out)
    words = {n: counts[d].shape[1] for n, d in DIVISORS.items()}
    print("words: " + ", ".join(f"{words[n]} (paper {n})" for n in words))
    sizes, features = (list(TABLE_1)[:1], []) if quick else (list(TABLE_1), list(DIVISORS))
    times = 3 if quick else 50
    first = {m: measure(counts, Setting(10, m, times, on), runs, out) for m in sizes}
    second = {n: measure(counts, Setting(DIVISORS[n], 400, times, on), runs, out) for n in features}
    own = {words[n]: best for n, best in second.items()}
    theirs = {words[n]: row for n, row in TABLE_2.items()}
    text = table("pages a class", TABLE_1, first)
    text += f"\nTable 2, 400 pages a class:\n\n{table('words', theirs, own)}" if second else ""
    (out / "tables.md").write_text(text)
    print(f"\nAccuracy in %: paper / measured ± standard deviation over {runs} runs\n\n{text}")
    panels: list[Any] = [(f"pages a class ({words[393]} words)", TABLE_1, first)]
    panels += [("words (400 pages a class)", theirs, own)] if second else []
    plot(out / "tables.png", panels, "WebKB, four classes")
    print(f"Written to {out}: tables.md, tables.png, and each run's pages and results")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    parser = common_options("Tables 1 and 2 of Zhao & Song (2017).", "webkb-results", runs=5)
    parser.add_argument(
        "--clusters", choices=CLUSTERS, default="counts", help="what K-means works on"
    )
    return run_script(parser, argv, reproduce)


if __name__ == "__main__":
    sys.exit(main())
