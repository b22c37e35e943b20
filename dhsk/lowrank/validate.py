"""Cross-validation on features of low rank: every kernel at every rank, all folds and C at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final, cast

import numpy as np
import psutil
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.errors import InputError
from dhsk.gram.prepare import check_kernels
from dhsk.gram.workers import current_client
from dhsk.kernels import Kernel
from dhsk.kernels.base import whole_parameter
from dhsk.lowrank.approximation import Approximation, approximate
from dhsk.lowrank.losses import LOSSES
from dhsk.lowrank.primal import Newton, Solution, Targets, solve_columns
from dhsk.lowrank.primal_passes import Columns, decisions
from dhsk.lowrank.train import problem_columns, train_low_rank
from dhsk.progress import OnProgress
from dhsk.samples import Samples, SphereMap
from dhsk.svm.cells import names_of
from dhsk.svm.engine import Engine, Means
from dhsk.svm.grid import Grid
from dhsk.svm.job import Cells
from dhsk.svm.journal import Journal, digest_of
from dhsk.svm.result import write_rows
from dhsk.svm.rows import RowMap
from dhsk.svm.runners import own_room
from dhsk.svm.scores import DecidedOneVsRest, score
from dhsk.svm.search import scaled
from dhsk.svm.square import Square

SELECTIONS: Final = ("rpcholesky", "uniform", "kmeans")

DTYPE: Final = "float32"
"""Type of products and features: the error of a low rank is far above its rounding."""


@dataclass(frozen=True)
class LowRank:
    """What is tried instead of the exact matrix.

    Attributes
    ----------
    ranks
        Numbers of landmarks, ascending.
    selection
        How they are chosen.
    loss
        Name of the loss.
    """

    ranks: tuple[int, ...]
    selection: str
    loss: str

    @classmethod
    def of(
        cls, rank: int | Sequence[int] | None, selection: str, loss: str, source: Square
    ) -> "LowRank | None":
        """Check the parameters of a cross-validation; None where it is to be exact.

        Raises
        ------
        InputError
            One cannot be used, or what is validated on are no samples.
        """
        if selection not in SELECTIONS:
            raise InputError(f"selection must be one of {', '.join(SELECTIONS)}, got {selection!r}")
        if loss not in LOSSES:
            raise InputError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
        if rank is None:
            return None
        if not isinstance(source, Samples):
            raise InputError("rank chooses landmarks among samples: give samples, not a matrix")
        ranks = {rank} if isinstance(rank, int) else set(rank)
        for one in ranks:
            whole_parameter("rank", one, 1)
        if not ranks:
            raise InputError("rank must be a number of landmarks, or several, got none")
        return cls(tuple(sorted(ranks)), selection, loss)


@dataclass(frozen=True)
class Tried:
    """A kernel at a rank, the values of C that were tried on it, and what came of them."""

    kernel: Kernel
    rank: int
    C: list[float]
    cells: Cells


class LowRankEngine:
    """Fits linear machines on Nyström features, see `dhsk.svm.engine.Engine`.

    Parameters
    ----------
    samples
        The samples.
    sphere_map
        Map for the spherical kernels.
    low_rank
        Ranks, selection, loss.
    grid
        Folds, labels, values of C.
    means
        Memory and folders.
    seed
        Of the landmarks.
    report
        Receives progress.
    """

    rule = DecidedOneVsRest

    def __init__(
        self,
        samples: Samples,
        sphere_map: SphereMap | None,
        low_rank: LowRank,
        grid: Grid,
        means: Means,
        seed: int,
        report: OnProgress,
    ) -> None:
        self.prepared = 0.0
        self._samples = samples
        self._map = sphere_map
        self._low_rank = low_rank
        self._grid = grid
        self._means = means
        self._client = means.client or current_client()
        self._journal = Journal(means.journal)
        self._seed = seed
        self._report = report
        self._scan: Scan | None = None
        self._rows: list[dict[str, Any]] = []
        self._features = ""
        if means.table is not None:
            means.table.unlink(missing_ok=True)

    def run(self, kernels: Sequence[Kernel], *, scale_C: bool) -> Sequence[Tried]:
        """Try some kernels, each at every rank."""
        begin = perf_counter()
        chosen = check_kernels(kernels, [self._samples], self._map, DTYPE)
        if self._scan is None:
            self._scan = scan_side(self._samples, kernels, chosen, self._report)
        self.prepared += perf_counter() - begin
        found = []
        for kernel in kernels:
            for rank in self._low_rank.ranks:
                found.append(self._try(RowMap(kernel, chosen, DTYPE), rank, self._scan, scale_C))
                self._rows += found[-1].cells.rows
                if self._means.table is not None:
                    write_rows(self._rows, self._means.table)
        return found

    def _try(self, row_map: RowMap, rank: int, scan: Scan, scale_C: bool) -> Tried:
        grid, kernel = self._grid, row_map.kernel
        name = digest_of(
            grid.y, grid.weights, grid.all_weights, [test.tolist() for _, test in grid.folds],
            grid.tol, grid.scoring, grid.C, scale_C, scan.fingerprint, kernel.to_spec(),
            row_map.sphere_map, DTYPE, rank, self._low_rank.selection, self._low_rank.loss,
            self._seed,
        )  # fmt: skip
        kept = self._journal.get(name)
        if kept is not None:
            return Tried(kernel, rank, kept[1]["C"], Cells(**kept[1]["cells"]))
        begin = perf_counter()
        made = self._approximate(row_map, rank)
        self.prepared += perf_counter() - begin
        C = scaled(grid.C, _spread(made, self._samples.shape[0])) if scale_C else list(grid.C)
        names = names_of(kernel, self._samples.shape[1])
        names["label"] += f", rank {rank}"
        names |= {"rank": rank, "trace_error": made.trace_error}
        fits = FoldFits(
            made.features, grid, LOSSES[self._low_rank.loss], own_room(self._means.memory),
            self._seed, self._report,
        )  # fmt: skip
        cells = fits.cells(C, names)
        self._journal.put(name, [], {"C": C, "cells": vars(cells)})
        return Tried(kernel, rank, C, cells)

    def _approximate(self, row_map: RowMap, rank: int) -> Approximation:
        made = approximate(
            self._samples,
            row_map,
            k=rank,
            selection=self._low_rank.selection,
            tol=0.0,
            seed=self._seed,
            memory=self._means.memory,
            client=self._client,
            report=self._report,
        )
        self._features = made.how
        return made

    def refit(self, winner: Tried, C: float) -> tuple[LowRankModel, dict[str, Any]]:
        """Fit one cell on all samples; the same seed chooses the same landmarks."""
        ...

    def facts(self, winner: Tried) -> dict[str, Any]:
        """Samples, plan, and what was fitted instead of the exact matrix."""
        assert self._scan is not None  # `run` was called
        samples = {
            "source": self._samples.source,
            "n_samples": self._scan.n_samples,
            "dim": self._scan.dim,
            "nnz": self._scan.nnz,
            "sphere_map": self._sphere_map,
            "fingerprint": self._scan.fingerprint,
        }
        ranks = ", ".join(f"{rank:,}" for rank in self._low_rank.ranks)
        plan = [
            ["landmarks", f"{ranks} by {self._low_rank.selection}"],
            ["features", self._features],
        ]
        return {
            "samples": samples,
            "plan": plan,
            "low_rank": {"selection": self._low_rank.selection, "loss": self._low_rank.loss},
            "eigenvalues": [],
            "eigenvalues_exact": False,
            "trace": float(self._scan.n_samples) ,
        }


def _spread(made: Approximation) -> float:
    """Mean squared distance of the features from their mean, see `dhsk.svm.search.spread_of`."""
    n = made.features.n
    total, squares = sum_of(made.features.map(sums, ()))
    ...


@contextmanager
def low_rank_engine(
    samples: Square,
    sphere_map: SphereMap | None,
    low_rank: LowRank,
    grid: Grid,
    means: Means,
    seed: int,
    report: OnProgress,
) -> Iterator[Engine]:
    """Give an engine of low rank; see `LowRankEngine`."""
    assert isinstance(samples, Samples)  # `LowRank.of` has checked it
    yield LowRankEngine(samples, sphere_map, low_rank, grid, means, seed, report)
