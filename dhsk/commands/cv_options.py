"""Options of `dhsk cv`: what it tries, how it judges, and what comes of it."""

from typing import Any, Final

import click

from dhsk.commands.options import (
    KERNELS,
    LANDMARKS,
    class_weight_row,
    map_rows,
    multi_class_row,
    ranks_row,
)
from dhsk.commands.parameters import NUMBERS, NUMBERS_OR_AUTO, SEED, Names, PlaceParameter
from dhsk.commands.table import JUDGE, RUN, TRY, made, option, rows_of
from dhsk.results.asked import CHOICES, SEARCHES, StratifiedFolds
from dhsk.samples.weighted import LEARNT

KERNELS_OF_GRID: Final = rows_of(
    TRY,
    option(
        "--kernel",
        "names",
        common=True,
        type=Names(),
        help=f"One or more of {', '.join(KERNELS)}. [default: a search, see above; of a store "
        "without cosines its own]",
    ),
    option(
        "--time-scale",
        common=True,
        type=NUMBERS_OR_AUTO,
        help="Times of heat and parametrix kernels, in units of log(dim)/dim, or auto for a "
        "search. [default: auto if no kernel is named, else 0.7,1,1.4]",
    ),
    option(
        "--parametrix-scale",
        type=NUMBERS,
        help="Times of parametrix kernels alone: in high dimension they need 10 to 30 times more.",
    ),
    option(
        "--sigma",
        type=NUMBERS,
        help="Gaussian widths. [default: one by the variance of the samples, scikit-learn's "
        'gamma="scale"]',
    ),
)

SETTINGS: Final = (
    *rows_of(
        TRY,
        option(
            "--C",
            "C",
            common=True,
            type=NUMBERS_OR_AUTO,
            help="Prices of samples on the wrong side, as C of scikit-learn's SVC, or auto: scaled "
            "to each kernel, extended until the best is inside. [default: 0.1,1,10; search: auto]",
        ),
        option(
            "--search",
            type=click.Choice(SEARCHES),
            default="halving",
            help="Of a search: try everything on a sample, and on all samples the best of each "
            "kind of kernel; or everything on all.",
        ),
        *map_rows(*LEARNT, "auto"),
        option(
            "--indefinite",
            type=click.Choice(["error", "allow"]),
            default="error",
            help="Kernels that are known not to be positive semi-definite: refuse them, or fit.",
        ),
        ranks_row,
        *LANDMARKS,
        multi_class_row("; auto: in a search both, else ovr above ten classes.", "auto"),
        class_weight_row,
        option(
            "--tol",
            type=float,
            default=1e-3,
            help="Largest violation of the optimality conditions, as in scikit-learn's SVC; with "
            "--rank, norm of the gradient relative to that at 0.",
        ),
    ),
    *rows_of(
        JUDGE,
        option("--folds", "n_splits", type=click.IntRange(2), default=5, common=True),
        option(
            "--repeats",
            "n_repeats",
            type=click.IntRange(1),
            default=1,
            help="Divisions into folds.",
        ),
        option("--seed", "random_state", type=SEED, default=0, help="Of folds and landmarks."),
        option(
            "--min-class",
            type=click.IntRange(1),
            default=1,
            help="Fewest samples of a class: smaller classes are left out.",
        ),
        option("--groups", help="FILE or FILE:COLUMN: samples of a group stay in one fold."),
        option(
            "--in-order",
            is_flag=True,
            help="Folds in the order of the rows, each trained on those before it alone, as "
            "TimeSeriesSplit of scikit-learn: for rows in time order.",
        ),
        option("--scoring", default="accuracy", help="A scikit-learn scorer."),
        option(
            "--choose",
            type=click.Choice(CHOICES),
            default="simplest",
            help="Take the simplest kernel within one standard error of the best, or the best.",
        ),
    ),
)
"""Options that decide the results, beside kernels: their names are those of the parameters of
`cross_validate`, or of the fields of the small classes that it takes."""

PASSED_ON: Final = ("C", "multi_class", "scoring", "search", "sphere_map")
"""Options that are parameters of `cross_validate` itself."""

FINAL: Final = (
    *rows_of(
        JUDGE,
        option(
            "--model",
            is_flag=True,
            common=True,
            help="Fit the candidate to take on all samples: model.dhsk.",
        ),
        option("--test", metavar="SAMPLES", help="Held-out samples, to score that model."),
        option("--test-labels", help="Their labels, FILE or FILE:COLUMN."),
        option(
            "--eigenvalues/--no-eigenvalues",
            default=None,
            help="Eigenvalues of the taken kernel in the report. [default: up to 1,000 samples]",
        ),
        option(
            "--baselines/--no-baselines",
            default=None,
            help="Score common methods of scikit-learn on the same folds: LinearSVC on tf-idf, of "
            "tables linear ones, SVC and trees. "
            "[default: in a search, where they add 10 s or a fifth]",
        ),
    ),
    *rows_of(
        RUN,
        option("--overwrite", is_flag=True, help="Replace the results of another run in --out."),
        option(
            "--store",
            type=PlaceParameter(),
            help="Folder to keep the inner products in, for other runs. [default: in --out while "
            "it runs]",
        ),
        option(
            "--disk",
            help="Most disk for the inner products, such as 10GB; if they take more, they are "
            "computed whenever they are needed. [default: 1GB, or half of what is free]",
        ),
    ),
)


def splitter_of(grid: dict[str, Any]) -> Any:
    """What divides the samples, by the options; UsageError for options that exclude each other."""
    if not grid["in_order"]:
        return made(StratifiedFolds, grid)
    from sklearn.model_selection import TimeSeriesSplit

    given = {"--groups": grid["groups"], "--repeats": grid["n_repeats"] > 1}
    given["--min-class"] = grid["min_class"] > 1
    idle = " and ".join(name for name, value in given.items() if value)
    if idle:
        raise click.UsageError(f"--in-order takes all rows as they are: leave out {idle}")
    return TimeSeriesSplit(grid["n_splits"])
