"""Rough seconds of exact fits and of those on Nyström features, by arithmetic alone.

How many steps a fit takes depends on the data, so these are right to a factor of two or three.
Measured on nine runs of `dhsk cv` of 5 to 29 s (tests/benchmarks/costs.py): what is said was 0.47
to 1.4 times the seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from dhsk.solvers.problems import MultiClass, classes_of_problems
from dhsk.solvers.task_groups import BLOCK_SECONDS, STEP_SECONDS

FIT_SECONDS: Final = 4e-4
"""Seconds of a fit to few samples: calls, bookkeeping, its certificate and its score. Measured 0.3
ms on 1,000 tumours of 25 classes, 0.4 on 1,500 posts of 20."""

REST_STEPS: Final = 0.3
"""The same of a class against the rest, as a multiple of `STEP_SECONDS`: it has fewer support
vectors. Measured in searches of heat kernels on digits, 2,000 posts and 1,000 tumours: 0.25, 0.35
and 0.46."""

SUPPORT: Final = 0.3
"""Share of the samples that are support vectors."""

FEW_SUPPORT: Final = 2000
"""Support vectors of a problem whose classes few samples are between, however many there are: a
million samples had 2,195, ten million 1,619."""

MOST_COLUMNS: Final = 0.5
"""Share of the columns that working sets compute, at most about, of all pairs together."""

COLUMNS_OF_SUPPORT: Final = 1.25
"""Columns that are computed for each support vector where there are few: 1.19 to 1.32 measured with
1,653 of 10^6 samples, 1,655 of 3 x 10^6, and 6,970 of 300,000."""

COMBINED_SECONDS: Final = 7e-10
"""Seconds in which a core converts a kernel value to float64, and multiplies it: 0.6 to 0.7 ns for
one problem, in two threads at once."""

SET_SECONDS: Final = 8e-8
"""Seconds for each squared support vector in which working sets are solved, in one thread: 4 with
6,970."""

PASSES, PASSES_OF_ONE = 60, 30
"""Passes over the features in which linear classifiers are solved, and one alone. Measured on
250,000 to ten million samples of five classes: 35 to 61; of two 36, and 21 of rank 200."""

ROUNDS: Final = 2
"""Times that samples are read for landmarks where features are not kept: to take the part that is
searched, and to compute the error on all."""

SQUARES: Final = 0.9
"""Multiply-adds of a sample in products of features by features, as a share of the features
squared: while landmarks are chosen, and in the Hessians that guide the solver."""

VALUE_SECONDS: Final = 4e-10
COLUMN_SECONDS: Final = 1e-10
"""Seconds of one core to read a feature from memory in a pass, and to multiply it for each column
that is solved. Measured on a million samples of rank 1,000, one column and five: 0.6 and 0.7 ns."""

FLOPS: Final = 2e10
"""Floating-point operations of a core in a second, in products of any size."""


@dataclass(frozen=True)
class Speeds:
    """Seconds of one core for the parts of fits."""

    entry: float
    """A kernel value of two samples."""
    product: float
    """A multiply-add in a large product."""
    sample: float
    """A sample that is read, checked and mapped."""


def exact_seconds(
    sizes: Sequence[int],
    columns: int,
    kernels: int,
    cores: int,
    entry: float,
    ways: Sequence[MultiClass] = ("ovo",),
) -> float:
    """Seconds of exact fits to classes of these sizes, in some ways, with a number of columns.

    `columns` is the number of folds times that of values of C. `entry` has the seconds of computing
    a kernel value from the samples where none are stored; 0 where they are.
    """
    whole, solving, reading = sum(sizes) ** 2, 0.0, 0.0
    for way in ways:
        fits = len(classes_of_problems(len(sizes), way))
        pairs = sum((a + b) ** 2 for a, b in combinations(sizes, 2))
        squares = whole * fits * REST_STEPS if way == "ovr" else pairs
        solving += columns * (fits * FIT_SECONDS + STEP_SECONDS * squares)
        reading += BLOCK_SECONDS * (whole if way == "ovr" else pairs)
    computing = MOST_COLUMNS * entry * whole
    return kernels * (solving + reading + computing) / cores


def few_support_seconds(
    sizes: Sequence[int], cores: int, speeds: Speeds, way: MultiClass, support: int = FEW_SUPPORT
) -> float:
    """Seconds of exact fits as of `exact_seconds`, of which each has few support vectors.

    Then columns of these are all that is computed.
    """
    pairs = [a + b for a, b in combinations(sizes, 2)]
    problems = [sum(sizes)] if way == "ovr" else pairs  # one column serves all classes of "ovr"
    own = [min(n, support) for n in problems]
    columns = COLUMNS_OF_SUPPORT * sum(n * some for n, some in zip(problems, own, strict=True))
    work = FIT_SECONDS * len(problems) + columns * (speeds.entry + COMBINED_SECONDS)
    solving = SET_SECONDS * sum(some**2 for some in own) / min(cores, len(problems))
    return reading_seconds(sum(sizes), speeds) + work / cores + solving


def low_rank_seconds(
    n: int, rank: int, columns: int, kernels: int, cores: int, speeds: Speeds, readers: int = 0
) -> float:
    """Seconds of features of n samples, and of a number of linear classifiers on them.

    Features are kept in memory, or computed in every pass, from samples that `readers` threads
    read.
    """
    values, solved, passes = float(n * rank), COLUMN_SECONDS * columns, passes_of(columns)
    products = SQUARES * rank * values * speeds.product / cores

    def a_pass(value: float) -> float:
        """Seconds of one that computes features, and takes so long for each besides."""
        reading, work = reading_seconds(n, speeds), values * (speeds.entry + value)
        return max(reading / readers, (reading + work) / cores)

    if readers:
        return kernels * (products + ROUNDS * a_pass(0.0) + passes * a_pass(solved))
    making = reading_seconds(n, speeds) + values * speeds.entry / cores
    return kernels * (making + products + passes * values * (VALUE_SECONDS + solved) / cores)


def passes_of(columns: int) -> int:
    """Passes in which so many linear classifiers are solved together."""
    return PASSES_OF_ONE if columns == 1 else PASSES


def reading_seconds(n: int, speeds: Speeds) -> float:
    """Seconds in which one thread reads, checks and maps n samples."""
    return n * speeds.sample


def features_seconds(n: int, rank: int, cores: int, speeds: Speeds) -> float:
    """Seconds of features of n samples in memory."""
    return n * rank * (speeds.entry + SQUARES * rank * speeds.product) / cores
