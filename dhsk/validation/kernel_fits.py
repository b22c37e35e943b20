"""Fits of the kernels of a grid in one way, and the matrices that they are on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.execution.checkpoint import digest_of
from dhsk.execution.limits import core_count
from dhsk.models.gram_source import GramSource
from dhsk.models.pair_tasks import MatrixProblem
from dhsk.models.rescaling import matrix_in_units
from dhsk.models.sources import RowsSource
from dhsk.results.columns import ONE_VS_REST, KernelColumns
from dhsk.solvers.problems import MultiClass
from dhsk.validation.grid import Grid
from dhsk.validation.matrices import KernelMatrix

ROWS_WORK: Final = 0.15
"""Time of fits of a linear kernel on rows in memory, as a share of that of fits on matrices.
Measured: 300 fits of 39,774 recipes against the rest took 18 s, those of a heat kernel 120."""


@dataclass(frozen=True)
class KernelFits:
    """Fits of some kernels in one way."""

    way: MultiClass
    matrices: Sequence[KernelMatrix]
    problems: Sequence[MatrixProblem]
    C_scaled: list[float] | None
    ways: int
    """Number of ways."""

    @property
    def on_rows(self) -> bool:
        """Whether these are linear kernels, whose problems are solved on rows in memory."""
        return self.problems[0].source.bilinear

    def names(self, k: int) -> KernelColumns:
        """Columns of a kernel, by its number."""
        names = self.matrices[k].names
        if self.way == "ovo":
            return names
        return replace(names, kernel=names.kernel + ONE_VS_REST, label=names.label + ONE_VS_REST)

    @property
    def named_problems(self) -> list[MatrixProblem]:
        """The problems, with names of this way."""
        own = ["one-vs-rest"] if self.way == "ovr" else []
        return [replace(one, name=digest_of(one.name, *own)) for one in self.problems]


def groups_of(problems: Sequence[MatrixProblem]) -> list[list[int]]:
    """Numbers of problems that are solved in the same way: those on rows in memory come first."""
    on = [one.source.bilinear for one in problems]
    groups = ([k for k, rows in enumerate(on) if rows is which] for which in (True, False))
    return [group for group in groups if group]


def name_of(grid: Grid, weights: Floats, tests: list[list[int]]) -> str:
    """Digest of a grid without its matrices and values of C, for the names of checkpoints."""
    weights = np.ascontiguousarray(weights)
    return digest_of(grid.y, weights, tests, grid.tol, grid.scoring.key)


def in_units(matrix: KernelMatrix, C: Sequence[float]) -> MatrixProblem:
    """Dual problem of a kernel with some values of C, its matrix rescaled if that is needed."""
    if not isinstance(matrix.source, GramSource):
        return MatrixProblem(matrix.source, tuple(C))
    G, unit = matrix_in_units(matrix.source.G)
    if matrix.on_rows and unit == 1.0:
        rows = G.staged_rows(np.arange(G.shape[0]))
        return MatrixProblem(RowsSource(rows, G.kernel, core_count()), tuple(C))
    source = matrix.source if unit == 1.0 else GramSource(G)
    return MatrixProblem(source, tuple(C), unit)


def steepness(matrix: KernelMatrix) -> float:
    """Sort key, cheap kernels first: the larger the time, the fewer support vectors."""
    time = matrix.names.time
    return -math.inf if time is None else -time
