"""Memory of fits on Nyström features in this process: features first, then the solver."""

from dataclasses import replace
from typing import Final

from dhsk.execution.memory import Allowance, MemoryNeed, Share
from dhsk.gram.prepare import takes_float32
from dhsk.kernels import Kernel
from dhsk.linear.preconditioner import Factors
from dhsk.models.fit_plan import PROCESS_BYTES
from dhsk.models.sources import RowsShape
from dhsk.nystrom.room import ApproximationNeed, least_here, plan_here
from dhsk.units import counted

MOST_IN_DOUBLE: Final = 1 << 22
"""Number of feature values up to which float64 is the default: 32 MB, whose cost is small."""


_ALLOW: Final = "allow that, or more to keep samples in memory"


def usual_dtype(kernel: Kernel, n: int, rank: int) -> str:
    """Default type of rank features of n samples: float32 if they are many and the kernel can."""
    many = n * min(n, rank) > MOST_IN_DOUBLE
    return "float32" if many and takes_float32(kernel) else "float64"


def solver_bytes(n: int, m: int, itemsize: int, keys: int, folds: int = 1) -> int:
    """Memory in bytes for the Hessians of all problems at the same time, and for curvatures.

    n and m are the numbers of samples and landmarks, keys the number of Hessians, one for each
    class and C, and folds the number of fits that share one, each with its curvatures in memory.
    """
    return keys * (Factors.bytes_of(1, m, itemsize) + folds * n * itemsize)


def plan_low_rank(
    rows: RowsShape,
    m: int,
    keys: int,
    allowed: Allowance,
    folds: int = 1,
    *,
    on_device: bool = False,
) -> Share:
    """Divide the memory of this process among samples, features and solver, whose bytes are `room`.

    Features are kept in memory if they leave the solver all it needs, see `solver_bytes`, or a
    quarter of the memory, unless a device computes them in every pass. Raises BudgetError if not
    even one task fits beside the m landmarks.
    """
    own = max(0, allowed.room - PROCESS_BYTES)
    most = solver_bytes(rows.n, m, rows.itemsize, keys, folds)
    sizes = rows.n, rows.mapped_bytes, rows.itemsize
    need = ApproximationNeed.of(*sizes, m, on_device=on_device)
    least = least_here(need)
    least += min(most, least // 3 + 1)  # see below
    parts = {"Python and its packages": allowed.held + PROCESS_BYTES, "samples and features": least}
    name = f"a fit by {counted(m, 'landmark')} of {rows.n:,} samples"
    limit = allowed.held + allowed.room if allowed.memory is None else allowed.memory
    MemoryNeed(name, parts).check(limit, _ALLOW)
    features = plan_here(need, own - min(most, own // 4), allowed.cores)
    if not features.whole:  # curvatures are then computed in every pass
        most = solver_bytes(rows.n, m, rows.itemsize, keys, folds=0)
    solver = min(most, own - features.need.total)
    parts = {"process": allowed.held + PROCESS_BYTES, **features.need.parts}
    parts["second derivatives"] = solver
    return replace(features, need=MemoryNeed("a low-rank fit", parts), room=solver)
