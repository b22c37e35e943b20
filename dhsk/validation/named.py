"""Engine under another map than the kernels' own, whose kernels have names that begin with it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from dhsk.arrays import Indices
from dhsk.kernels import Kernel
from dhsk.results.columns import Certificate, Row
from dhsk.results.parts import RunFacts
from dhsk.solvers.problems import MultiClass
from dhsk.validation.cells import Cells
from dhsk.validation.engine import Engine, Needs, TriedKernel
from dhsk.validation.grid import Grid


@dataclass(frozen=True, eq=False)
class TriedNamed:
    """Results of a kernel under another name."""

    cells: Cells
    first: TriedKernel
    """What the engine tried, or that of the first fold."""

    @property
    def C(self) -> list[float]:
        """Values of C that were tried."""
        return self.first.C


def named(row: Row, prefix: str) -> Row:
    """Row of a kernel under the name of a map."""
    return replace(row, kernel=prefix + row.kernel, label=prefix + row.label)


@dataclass(frozen=True, eq=False)
class NamedEngine:
    """Names what another engine tries; see `Engine`."""

    engine: Engine
    prefix: str

    @property
    def prepared(self) -> float:
        """Seconds spent on Gram matrices, or on landmarks and features."""
        return self.engine.prepared

    def needs(self, kernels: Sequence[Kernel]) -> Needs:
        """Memory and products of some kernels."""
        return self.engine.needs(kernels)

    def relative_work(self, kernel: Kernel) -> float:
        """About the time of a kernel's fits."""
        return self.engine.relative_work(kernel)

    def run(self, kernels: Sequence[Kernel], *, scale_C: bool, grid: Grid) -> Sequence[TriedNamed]:
        """Try some kernels."""
        found = self.engine.run(kernels, scale_C=scale_C, grid=grid)
        return [TriedNamed(self._named(one.cells), one) for one in found]

    def _named(self, cells: Cells) -> Cells:
        return replace(cells, rows=[named(row, self.prefix) for row in cells.rows])

    def unfitted(self, kernel: Kernel, rank: int | None) -> TriedKernel:
        """A kernel without fits."""
        return self.engine.unfitted(kernel, rank)

    def refit(
        self, winner: TriedNamed, C: float, multi_class: MultiClass
    ) -> tuple[Any, Certificate]:
        """Fit one cell on all samples; return the model and its certificate."""
        return self.engine.refit(winner.first, C, multi_class)

    def among(self, winner: TriedNamed, members: Indices) -> NDArray[Any]:
        """Values of the winner's kernel among some samples."""
        return self.engine.among(winner.first, members)

    def facts(self, winner: TriedNamed) -> RunFacts:
        """Samples, plan and spectrum."""
        return self.engine.facts(winner.first)
