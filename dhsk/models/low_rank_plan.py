"""Memory of fits on Nyström features in this process: features first, then the solver."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.execution.memory import Allowance, MemoryNeed
from dhsk.gram.prepare import takes_float32
from dhsk.kernels import Kernel
from dhsk.linear.passes import Columns
from dhsk.linear.preconditioner import Factors
from dhsk.models.fit_plan import PROCESS_BYTES
from dhsk.models.sources import RowsShape
from dhsk.nystrom.room import ApproximationNeed, ApproximationPlan, plan_here

MOST_IN_DOUBLE: Final = 1 << 22
"""Number of feature values up to which float64 is the default: 32 MB, whose cost is small."""


@dataclass(frozen=True)
class LowRankPlan:
    """How fits on Nyström features divide the memory of a process; make it with `plan_low_rank`.

    Attributes
    ----------
    need
        What they take.
    features
        Where features are made, and what is in memory.
    solver
        Bytes for second derivatives and curvatures.
    """

    need: MemoryNeed
    features: ApproximationPlan
    solver: int


def usual_dtype(kernel: Kernel, n: int, rank: int) -> str:
    """Type of features, if none is asked for: float32 of many, if the kernel takes it.

    Parameters
    ----------
    kernel
        The kernel.
    n
        Number of samples.
    rank
        Number of features.
    """
    many = n * min(n, rank) > MOST_IN_DOUBLE
    return "float32" if many and takes_float32(kernel) else "float64"


def solver_bytes(n: int, m: int, itemsize: int, keys: int, folds: int = 1) -> int:
    """Bytes in which a solver has the second derivatives of all problems at the same time.

    Parameters
    ----------
    n, m
        Samples and landmarks.
    itemsize
        Bytes of a feature.
    keys
        Problems that have second derivatives of their own: one for each class and C.
    folds
        Fits that share them, each with its curvatures in memory.
    """
    none = np.zeros(1, np.intp)
    one = Factors.bytes_of(Columns(none, none, np.ones(1)), m, itemsize)
    return keys * (one + folds * n * itemsize)


def plan_low_rank(
    rows: RowsShape, m: int, keys: int, allowed: Allowance, folds: int = 1
) -> LowRankPlan:
    """Divide the memory of this process among samples, features and solver.

    Features are held if they leave the solver what it has use for, or a quarter of the memory.

    Parameters
    ----------
    rows
        The mapped samples.
    m
        Number of landmarks.
    keys, folds
        As for `solver_bytes`.
    allowed
        What this process may use.

    Raises
    ------
    BudgetError
        Not even one task fits beside the landmarks.
    """
    own = max(0, allowed.room - PROCESS_BYTES)
    most = solver_bytes(rows.n, m, rows.itemsize, keys, folds)
    need = ApproximationNeed.of(rows.n, rows.mapped_bytes, rows.itemsize, m)
    what = f"{m} landmarks of {rows.n} samples"
    features = plan_here(need, what, own - min(most, own // 4), allowed.cores)
    if features.tier != "features in memory":  # curvatures are then computed in every pass
        most = solver_bytes(rows.n, m, rows.itemsize, keys, folds=0)
    solver = min(most, own - features.planned)
    parts = need.parts(features.tier, features.threads)
    process = {"process": allowed.held + PROCESS_BYTES}
    name = "a low-rank fit"
    return LowRankPlan(
        MemoryNeed(name, process | parts | {"second derivatives": solver}), features, solver
    )
