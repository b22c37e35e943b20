"""What a cross-validation asks of an engine that fits kernels, and the options of all engines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from numpy.typing import NDArray

from dhsk.arrays import Indices
from dhsk.execution.run import Run
from dhsk.kernels import Kernel
from dhsk.objects.places import Place
from dhsk.results.columns import Certificate, Row
from dhsk.results.parts import RunFacts
from dhsk.solvers.problems import MultiClass
from dhsk.validation.cells import Cells
from dhsk.validation.grid import Grid
from dhsk.validation.grid_progress import GridProgress

NO_MODEL: Final = (
    "a precomputed matrix, or one of graph nodes, has no samples that a model could keep: leave "
    "refit and test (--model, --test) out, and "
    "fit scikit-learn's SVC(kernel='precomputed') with the winning C"
)


@dataclass(frozen=True)
class CvOptions(Run):
    """Where a grid is computed, and where finished kernels are kept."""

    report: GridProgress = field(default_factory=GridProgress)
    """Called with each event of progress."""
    table: Place | None = None
    """CSV file for the rows of finished kernels; None for no file."""
    on_demand: bool = False
    """Whether kernel values may be computed on demand, as no store was asked for."""
    earlier: tuple[Row, ...] = ()
    """Rows of earlier rounds of a search, which the table has too."""
    disk: int | None = None
    """Most bytes that products may take on disk; None for some, see `dhsk.validation.disk`."""
    stores_fit: bool = True
    """Whether they may, see `dhsk.validation.disk`."""
    eigenvalues: bool | None = None
    """Whether to compute those of the taken kernel; None for few samples only."""
    keeps_fits: bool = True
    """Whether finished fits are kept in the journal, and not only the kernels of which all are."""


@dataclass(frozen=True)
class TriedKernel:
    """Results of a kernel, of low rank at one rank."""

    kernel: Kernel | None
    """None of a precomputed matrix."""
    C: list[float]
    """Values of C that were tried."""
    cells: Cells
    """Results of each fold and C."""
    rank: int | None = None
    trace: float = 0.0
    """Trace of the matrix that the features of low rank stand for."""


@dataclass(frozen=True)
class Needs:
    """What an engine takes, known before it runs."""

    memory: int
    """Most bytes of all processes together."""
    stored: bool
    """Whether products are stored."""
    features: int = 0
    """Bytes of features in memory."""


class Engine(Protocol):
    """Fits the cells of a grid, kernel by kernel."""

    @property
    def prepared(self) -> float:
        """Seconds spent on Gram matrices, or on landmarks and features."""

    def needs(self, kernels: Sequence[Kernel]) -> Needs:
        """Memory and products of some kernels."""

    def relative_work(self, kernel: Kernel) -> float:
        """About the time of a kernel's fits, that of most kernels being 1."""

    def run(self, kernels: Sequence[Kernel], grid: Grid) -> Sequence[TriedKernel]:
        """Try some kernels.

        `grid` is the one that the engine was made with, or differs from it in C, and in which fits
        of several classes are tried.
        """

    def refit(
        self, winner: TriedKernel, C: float, multi_class: MultiClass
    ) -> tuple[Any, Certificate]:
        """Fit one cell on all samples; return the model and its certificate."""

    def facts(self, winner: TriedKernel) -> RunFacts:
        """Samples, plan and spectrum of the winner."""

    def among(self, winner: TriedKernel, members: Indices) -> NDArray[Any]:
        """Values of the winner's kernel among some samples, ascending, (n, n)."""
