"""Fits the cells of a grid where they run best, and the winner on all samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from distributed import Client

from dhsk.errors import InputError
from dhsk.execution.resources import Resources
from dhsk.execution.runners import in_threads, on_workers
from dhsk.models.exact import Certificates, Expansion, SvcModel
from dhsk.models.fit_plan import FitPlan, plan_fits
from dhsk.models.rescaling import fit_of_kernel, matrix_in_units
from dhsk.models.sources import GramSource
from dhsk.progress import OnProgress
from dhsk.samples import parse_sphere_map
from dhsk.solvers.problems import make_pairs
from dhsk.solvers.sources import ArraySource
from dhsk.validation.cells import certificate
from dhsk.validation.grid import Grid
from dhsk.validation.job import Candidate, Cells, Job
from dhsk.validation.journal import Journal
from dhsk.validation.result import write_rows
from dhsk.validation.search import scaled, spread_of

NO_MODEL: Final = (
    "a precomputed matrix has no samples that a model could keep: leave refit and test out, and "
    "fit scikit-learn's SVC(kernel='precomputed') with the winning C"
)


@dataclass(frozen=True)
class Found:
    """A kernel, the values of C that were tried on it, and what came of them."""

    candidate: Candidate
    C: list[float]
    cells: Cells


class Fitter:
    """Runs jobs on one grid of folds.

    Parameters
    ----------
    grid
        Folds, labels, values of C.
    resources
        Workers and memory.
    client
        The workers; None for threads of this process.
    journal
        Keeps what is finished.
    table
        File for the rows of all kernels that are finished, written anew after each; or None.
    report
        Receives progress.
    """

    def __init__(
        self,
        grid: Grid,
        resources: Resources,
        client: Client | None,
        journal: Journal,
        table: Path | None,
        report: OnProgress,
    ) -> None:
        self.grid = grid
        self.resources = resources
        self._client = client
        self._journal = journal
        self._table = table
        self._rows: list[dict[str, Any]] = []
        self._report = report

    def plan(self, dtype: "np.dtype[Any]", n_kernels: int) -> FitPlan:
        """Memory of the fits of some kernels, or `BudgetError`."""
        pairs = make_pairs(self.grid.y, self.grid.weights, self.grid.C)
        return plan_fits(pairs, len(self.grid.y), dtype, n_kernels, self.resources)

    def run(self, candidates: Sequence[Candidate], *, scale_C: bool) -> list[Found]:
        """Fit and score kernels on every fold with every C.

        Parameters
        ----------
        candidates
            The kernels.
        scale_C
            Divide the values of C by the spread of the samples under each kernel.

        Returns
        -------
        list of Found
            One for each, in their order.
        """
        wanted = [self._prepared(one, scale_C=scale_C) for one in candidates]
        found: dict[int, Cells] = {}
        before = self._rows
        for k, cells in self._job(self.grid, wanted).results():
            found[k] = cells
            self._rows = [*before, *(row for k in sorted(found) for row in found[k].rows)]
            if self._table is not None:
                write_rows(self._rows, self._table)
        return [
            Found(one, list(ready.C), found[k])
            for k, (one, ready) in enumerate(zip(candidates, wanted, strict=True))
        ]

    def _prepared(self, candidate: Candidate, *, scale_C: bool) -> Candidate:
        """A kernel with its values of C, and the matrix that its problems are solved on."""
        ready = _in_units(candidate)
        if not scale_C:
            return replace(ready, C=tuple(self.grid.C))
        spread = ready.unit * spread_of(ready.source)
        return replace(ready, C=tuple(scaled(self.grid.C, spread)), C_scaled=tuple(self.grid.C))

    def _job(self, grid: Grid, candidates: Sequence[Candidate]) -> Job:
        source = candidates[0].source
        pairs = make_pairs(grid.y, grid.weights, candidates[0].C)
        plan = plan_fits(pairs, source.n, source.dtype, len(candidates), self.resources)
        local = isinstance(source, ArraySource)  # workers would be sent the matrix
        run = in_threads(plan.at_once) if local else on_workers(self._client, plan.window)
        return Job(grid, candidates, plan, self._journal, run, self._report)

    def refit(self, candidate: Candidate, C: float) -> tuple[SvcModel, dict[str, Any]]:
        """Fit one cell on all samples.

        Parameters
        ----------
        candidate
            Its matrix.
        C
            Its C.

        Returns
        -------
        SvcModel
            The model.
        dict
            What proves and bounds it, as in a row of results.

        Raises
        ------
        InputError
            The matrix has no samples that a model could keep.
        """
        source = candidate.source
        if not isinstance(source, GramSource):
            raise InputError(NO_MODEL)
        n = source.n
        folds = [(np.arange(n), np.arange(0))]
        grid = replace(self.grid, weights=self.grid.all_weights[None], folds=folds)
        job = self._job(grid, [replace(_in_units(candidate), C=(C,))])
        _, solved = next(job.solved())
        fits = [fit_of_kernel(own[0], solved.unit) for own in solved.fits]
        expansion = Expansion.of(job.pairs(), fits, grid.y)
        model = SvcModel(
            kernel=source.G.kernel,
            sphere_map=parse_sphere_map(source.G.sphere_map),
            classes=grid.classes,
            rows=source.G.staged_rows(expansion.support),
            expansion=expansion,
            certificates=Certificates.of(fits, grid.tol, C),
            unit=solved.unit,
            feature_names=source.G.feature_names,
            n_zero_rows=zero_rows[0] if (zero_rows := source.G.header.zero_rows) else 0,
        )
        return model, certificate(job.pairs(), solved, 0)


def _in_units(candidate: Candidate) -> Candidate:
    """A kernel with the matrix that its problems are solved on."""
    if not isinstance(candidate.source, GramSource):
        return candidate
    G, unit = matrix_in_units(candidate.source.G)
    return candidate if unit == 1.0 else replace(candidate, source=GramSource(G), unit=unit)
