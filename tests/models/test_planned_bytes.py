"""Planned bytes of some thirty computations: a change of the code may not change them by a byte."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dhsk.errors import BudgetError
from dhsk.execution.memory import Allowance
from dhsk.execution.resources import Resources
from dhsk.models.fit_plan import FitCounts, plan_exact, plan_fits
from dhsk.models.low_rank_plan import plan_low_rank
from dhsk.models.predict import BlockNeed, plan_prediction
from dhsk.models.sources import RowsShape
from dhsk.nystrom.room import ApproximationNeed, plan_here
from dhsk.samples import open_samples

MB: Final = 10**6
GB: Final = 10**9
HELD: Final = 300 * MB
FILE: Final = Path(__file__).with_name("planned_bytes.json")

DENSE, SPARSE = RowsShape(20_000, 300, 8), RowsShape(20_000, 30_000, 4, 900_000)
FEW, MANY = (7000, 6000), (4000, 3000, 3000, 2000, *[1000] * 8)


def allowed(memory: int | None, cores: int = 4, room: int | None = None) -> Allowance:
    """Memory of a process that holds 300 MB."""
    return Allowance(memory, HELD, max(0, (memory or 0) - HELD) if room is None else room, cores)


def exact(rows: RowsShape, sizes: tuple[int, ...], memory: int) -> dict[str, Any]:
    """Fits of this process on rows in memory."""
    found = plan_exact(rows, FitCounts.of_classes(sizes), sizes, allowed(memory))
    numbers = {name: getattr(found, name) for name in ("room", "at_once", "threads", "whole")}
    return numbers | {"keep": found.held, "edge": found.rows, **found.need.parts}


def fits(
    sizes: tuple[int, ...], memory: int, resources: tuple[int, int] = (0, 4), **how: Any
) -> dict[str, Any]:
    """Fits of a grid of 5 folds, 3 C and 2 kernels."""
    counts = FitCounts.of_classes(sizes, 5, 3)
    dtype = np.dtype(how.pop("dtype", "float64"))
    found = plan_fits(counts, dtype, how.pop("kernels", 2), Resources(*resources, memory), **how)
    names = "at_once", "room", "whole", "held", "split_folds", "shared", "window"
    numbers = {name: getattr(found, name) for name in names} | dict(found.need.parts)
    words = dict(found.table)["fits"].split()
    return {"fits": int(words[0]), "tasks": int(words[3]), **numbers}


def low_rank(rows: RowsShape, m: int, keys: int, memory: int, folds: int = 1) -> dict[str, Any]:
    """Fits on features."""
    found = plan_low_rank(rows, m, keys, allowed(memory), folds)
    parts = found.need.parts
    planned = found.need.total - parts["process"] - parts["second derivatives"]
    numbers = {"solver": found.room, "tier": found.way, "threads": found.at_once}
    return numbers | {"planned": planned, **parts}


def prediction(n: int, fitted: RowsShape, width: int, *how: Any, workers: int = 0) -> Any:
    """A prediction of dense samples, whose results take 8 bytes each."""
    X: Any = np.broadcast_to(np.zeros(fitted.dim), (n, fitted.dim))
    block = BlockNeed(open_samples(X), fitted, width)
    found = plan_prediction(block, 8 * n, allowed(*how), workers)
    return {"rows": found.rows, "at_once": found.at_once, **found.need.parts}


def features(n: int, m: int, room: int) -> dict[str, Any]:
    """Features alone."""
    found = plan_here(ApproximationNeed.of(n, 8 * n * 100, 8, m), room, 4)
    return {"tier": found.way, "threads": found.at_once, "planned": found.need.total}


CASES: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "exact, ample": lambda: exact(DENSE, FEW, 16 * GB),
    "exact, two at a time": lambda: exact(DENSE, MANY, 2 * GB),
    "exact, matrices of classes": lambda: exact(DENSE, MANY, 8 * GB),
    "exact, parts": lambda: exact(DENSE, FEW, 1 * GB),
    "exact, hardly": lambda: exact(DENSE, FEW, 500 * MB),
    "exact, too little": lambda: exact(DENSE, FEW, 380 * MB),
    "exact, sparse": lambda: exact(SPARSE, MANY, 3 * GB),
    "exact, sparse parts": lambda: exact(SPARSE, FEW, 800 * MB),
    "fits, ample": lambda: fits(FEW, 64 * GB),
    "fits, one kernel": lambda: fits(FEW, 64 * GB, kernels=1),
    "fits, held": lambda: fits(MANY, 16 * GB),
    "fits, shared": lambda: fits(MANY, 2 * GB),
    "fits, parts": lambda: fits(FEW, 1 * GB),
    "fits, float32": lambda: fits(FEW, 2 * GB, dtype="float32"),
    "fits, workers": lambda: fits(MANY, 8 * GB, (4, 8)),
    "fits, few workers run": lambda: fits(FEW, 3 * GB, (6, 6)),
    "fits, too little": lambda: fits(FEW, 400 * MB),
    "fits, too little for workers": lambda: fits(FEW, 900 * MB, (3, 3)),
    "sets, ample": lambda: fits(FEW, 16 * GB, way="working sets"),
    "sets, little": lambda: fits(MANY, 1400 * MB, way="working sets"),
    "sets, workers": lambda: fits(MANY, 4 * GB, (4, 8), way="working sets"),
    "low rank, ample": lambda: low_rank(DENSE, 500, 10, 64 * GB),
    "low rank, folds": lambda: low_rank(DENSE, 500, 6, 2 * GB, 5),
    "low rank, samples": lambda: low_rank(DENSE, 2000, 10, 900 * MB),
    "low rank, passes": lambda: low_rank(RowsShape(200_000, 300, 8), 300, 10, 800 * MB),
    "low rank, sparse": lambda: low_rank(SPARSE, 3000, 1, 3 * GB),
    "low rank, too little": lambda: low_rank(DENSE, 5000, 10, 700 * MB),
    "prediction, no limit": lambda: prediction(50_000, DENSE, 45, None, 4, 4 * GB),
    "prediction, limit": lambda: prediction(50_000, DENSE, 45, 700 * MB),
    "prediction, sparse": lambda: prediction(50_000, SPARSE, 3, 4 * GB),
    "prediction, workers": lambda: prediction(50_000, DENSE, 1, 4 * GB, workers=3),
    "prediction, too little": lambda: prediction(50_000, DENSE, 1, 360_300_000),
    "features, ample": lambda: features(100_000, 1000, 8 * GB),
    "features, one thread": lambda: features(100_000, 1000, 1080 * MB),
    "features, samples": lambda: features(100_000, 1000, 500 * MB),
    "features, passes": lambda: features(2_000_000, 500, 1200 * MB),
    "features, too little": lambda: features(100_000, 1000, 100 * MB),
}


def planned(name: str) -> dict[str, Any]:
    """Numbers of a case, or the words of its refusal."""
    try:
        return CASES[name]()
    except BudgetError as error:
        return {"refused": str(error)}


def lines() -> Iterator[str]:
    """The file, made anew: only where numbers are meant to change."""
    yield from (f" {json.dumps(name)}: {json.dumps(planned(name))}" for name in CASES)


@pytest.mark.parametrize("name", CASES)
def test_planned_bytes_are_those_of_always(name: str) -> None:
    """Parts, tasks at a time and ways, as they were before plans became one type."""
    assert planned(name) == json.loads(FILE.read_text())[name]


if __name__ == "__main__":
    FILE.write_text("{\n" + ",\n".join(lines()) + "\n}\n")
