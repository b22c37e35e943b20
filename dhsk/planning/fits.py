"""Rough seconds of exact fits and of those on Nyström features, by arithmetic alone.

How many steps a fit takes depends on the data, so these are right to a factor of two or three.
Measured on nine runs of `dhsk cv` of 5 to 29 s (tests/benchmarks/costs.py): what is said was 0.47
to 1.4 times the seconds.
"""

from collections.abc import Sequence
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

PASSES: Final = 30
"""Passes over the features in which linear classifiers are solved."""

FLOPS: Final = 2e10
"""Floating-point operations of a core in a second, in products of any size."""


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


def few_support_seconds(sizes: Sequence[int], cores: int, entry: float, way: MultiClass) -> float:
    """Seconds of exact fits as of `exact_seconds`, if few samples are support vectors.

    Then columns of these are all that is computed. Measured on ten million samples of 100 features:
    85 s, of which 20 are reading; this says 160.
    """
    pairs = [a + b for a, b in combinations(sizes, 2)]
    problems = [sum(sizes)] if way == "ovr" else pairs  # one column serves all classes of "ovr"
    columns = sum(n * min(n, FEW_SUPPORT) for n in problems)
    return (FIT_SECONDS * len(problems) + columns * (entry + BLOCK_SECONDS)) / cores


def low_rank_seconds(
    n: int, multiply_adds: float, rank: int, columns: int, kernels: int, cores: int
) -> float:
    """Seconds of features of n samples, and of a number of linear classifiers on them.

    `multiply_adds` are those of an inner product of two samples.
    """
    passes = PASSES * columns * 4.0 * n * rank / (FLOPS * cores)
    return kernels * (features_seconds(n, multiply_adds, rank, cores) + passes)


def features_seconds(n: int, multiply_adds: float, rank: int, cores: int) -> float:
    """Seconds of features of n samples in memory."""
    return 2.0 * n * rank * (multiply_adds + 2 * rank) / (FLOPS * cores)
