"""What tries the kernels of a grid, and the one that fits exact machines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from distributed import Client

from dhsk.execution.workers import computing, resources_of
from dhsk.kernels import Kernel
from dhsk.progress import OnProgress, Progress
from dhsk.samples import Samples, SphereMap, ZeroRule
from dhsk.solvers.eigenvalues import leading_eigenvalues
from dhsk.validation.fitter import Fitter, Found
from dhsk.validation.grid import Grid
from dhsk.validation.input import Square, describe, gram_plan
from dhsk.validation.job import Cells
from dhsk.validation.journal import Journal
from dhsk.validation.products import Products
from dhsk.validation.result import remove_rows
from dhsk.validation.scores import Decided


@dataclass(frozen=True)
class Means:
    """Where a grid is computed, and where what is finished is kept.

    Attributes
    ----------
    memory
        Most bytes for all processes together; None for what there is.
    client
        Where to compute; None for the current client, or for threads of this process.
    store
        Folder for stores of inner products.
    journal
        Folder for finished fits; None to keep nothing.
    table
        File for the rows of finished kernels; None for none.
    """

    memory: int | None
    client: Client | None
    store: Path
    journal: Path | None
    table: Path | None


class Outcome(Protocol):
    """What came of a kernel."""

    @property
    def C(self) -> list[float]:
        """Values of C that were tried on it."""

    @property
    def cells(self) -> Cells:
        """Their results."""


class Engine(Protocol):
    """Fits the cells of a grid, kernel by kernel."""

    prepared: float
    """Seconds spent on what all fits share: Gram matrices, or landmarks."""
    rule: type[Decided]
    """How decisions become classes."""

    def run(self, kernels: Sequence[Kernel], *, scale_C: bool) -> Sequence[Outcome]:
        """Try some kernels, with C divided by the spread of the samples if `scale_C` says so."""

    def refit(self, winner: Any, C: float) -> tuple[Any, dict[str, Any]]:
        """Fit one cell on all samples: the model, and what proves it."""

    def facts(self, winner: Any) -> dict[str, Any]:
        """What else the results say: samples, plan, spectrum."""


class ExactEngine:
    """Fits exact machines, on one stored product.

    Parameters
    ----------
    square
        What was given.
    sphere_map
        Map for the spherical kernels.
    zero_rows
        What becomes of samples of zeros.
    n_kernels
        How many kernels are tried first.
    grid
        Folds, labels, values of C.
    means
        Memory and folders.
    client
        The workers; None for threads of this process.
    report
        Receives progress.
    """

    rule = Decided

    def __init__(
        self,
        square: Square,
        sphere_map: SphereMap | None,
        zero_rows: ZeroRule,
        n_kernels: int,
        grid: Grid,
        means: Means,
        client: Client | None,
        report: OnProgress,
    ) -> None:
        self.prepared = 0.0
        self._square = square
        self._report = report
        resources = resources_of(client, means.memory)
        self._fitter = Fitter(grid, resources, client, Journal(means.journal), means.table, report)
        dtype = np.dtype(np.float64) if isinstance(square, Samples) else square.dtype
        self._plan = self._fitter.plan(dtype, max(1, n_kernels))
        self._stale = means.table  # of an earlier grid; it stays if the samples are refused
        self._zero_rows = zero_rows
        self._products = Products(
            square, sphere_map, zero_rows, means.store, means.memory, client, report
        )

    def run(self, kernels: Sequence[Kernel], *, scale_C: bool) -> Sequence[Found]:
        """Try some kernels; for a matrix of the user's own, none is that one."""
        begin = perf_counter()
        candidates = self._products.candidates(kernels)
        self.prepared += perf_counter() - begin
        remove_rows(self._stale)
        self._stale = None
        return self._fitter.run(candidates, scale_C=scale_C)

    def refit(self, winner: Found, C: float) -> tuple[Any, dict[str, Any]]:
        """Fit one cell on all samples."""
        model, proof = self._fitter.refit(winner.candidate, C)
        return replace(model, zero_rows=self._zero_rows), proof

    def facts(self, winner: Found) -> dict[str, Any]:
        """Samples, plan, leading eigenvalues and trace of the winner's matrix."""
        source, made = winner.candidate.source, self._products.made
        self._report(Progress("eigenvalues", 0, 1))
        values, exact = leading_eigenvalues(source)
        self._report(Progress("eigenvalues", 1, 1))
        gram = gram_plan(made or self._square, self._fitter.resources)
        return {
            "samples": describe(self._square, made),
            "plan": [*gram, *self._plan.table()],
            "eigenvalues": values.tolist(),
            "eigenvalues_exact": exact,
            "trace": float(source.diagonal().sum()),
        }


@contextmanager
def exact_engine(
    square: Square,
    sphere_map: SphereMap | None,
    zero_rows: ZeroRule,
    n_kernels: int,
    grid: Grid,
    means: Means,
    report: OnProgress,
) -> Iterator[Engine]:
    """Give an exact engine, with the client that it computes on; see `ExactEngine`."""
    with computing(means.client) as client:
        yield ExactEngine(square, sphere_map, zero_rows, n_kernels, grid, means, client, report)
