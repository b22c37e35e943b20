"""Columns of results: the kernel and C, the score, and the certificate of a fit."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar

import numpy as np

from dhsk.results.paired import deviation

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class KernelColumns:
    """Columns that name a kernel, and its features if it is of low rank."""

    kernel: str
    """Family, such as "heat"."""
    label: str
    """Name that tells the members of a family apart, such as "heat s=1"."""
    time_scale: float | None = None
    time: float | None = None
    sigma: float | None = None
    """Parameter of the kernel, as `time_scale` and `time` are; None if it has none."""
    rank: int | None = None
    """Number of features, as given; None for exact kernels."""
    trace_error: float | None = None
    """Part of the kernel's trace that the features miss; None for exact kernels."""

    def at(self, C: float, C_scaled: float | None = None) -> "GridPoint":
        """Columns of the kernel at one C."""
        return GridPoint(**{name: getattr(self, name) for name in _KERNEL}, C=C, C_scaled=C_scaled)


def penalty_text(C: float) -> str:
    """Return C to four digits, without separators, so that it can be typed: 38480, 3.2e12."""
    rounded = float(f"{C:.4g}")
    return f"{rounded:.10g}" if 1e-4 <= rounded < 1e7 else short_power(rounded)


def short_power(value: float) -> str:
    """Return a round number that may be very large or small: 0.01, 100, 1e-6, 1e12."""
    return f"{value:g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


@dataclass(frozen=True, kw_only=True)
class GridPoint(KernelColumns):
    """A kernel at one C; `C_scaled` is C in units of the spread, if it was chosen so."""

    C: float
    C_scaled: float | None = None

    @property
    def penalty(self) -> float:
        """C in the units that it was chosen in; those of the spread suit all kernels alike."""
        return self.C if self.C_scaled is None else self.C_scaled

    @property
    def brief(self) -> str:
        """Kernel, rank and C: heat s=1, C = 2.516."""
        return f"{self.kernel_words}, C = {penalty_text(self.C)}"

    @property
    def kernel_words(self) -> str:
        """Kernel and rank: heat s=1, rank 2000."""
        return self.label if self.rank is None else f"{self.label}, rank {self.rank}"

    @property
    def point(self) -> "GridPoint":
        """Kernel and C without the scores, which all rows of a cell share."""
        return self.at(self.C, self.C_scaled)


TFIDF: Final = "tf-idf "
CLR: Final = "clr "
SCALED: Final = "scaled "
MAP_OF: Final[Mapping[str, str]] = {TFIDF: "tfidf", SCALED: "scaled", CLR: "clr"}
"""What family and label of a kernel under another map than that of the search begin with: the map
of each."""

ONE_VS_REST: Final = ", one-vs-rest"
"""What family and label of a kernel end with whose exact fits are of each class against the rest;
others are of pairs of classes."""


def is_rest(name: str) -> bool:
    """Whether a family or label is of fits of each class against the rest."""
    return name.endswith(ONE_VS_REST)


def prefix_under(sphere_map: str) -> str:
    """What families and labels begin with under another map than that of the search."""
    return next(prefix for prefix, name in MAP_OF.items() if name == sphere_map)


def prefix_of(name: str) -> str:
    """What tells the map of a family or label; empty under the map of the search."""
    return next((prefix for prefix in MAP_OF if name.startswith(prefix)), "")


def bare(name: str) -> str:
    """A family or label without what tells maps and fits of several classes apart."""
    return name.removeprefix(prefix_of(name)).removesuffix(ONE_VS_REST)


_KERNEL = tuple(field.name for field in fields(KernelColumns))


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Proofs and bounds of a fit: the worst over its classes, and over folds in a summary."""

    seconds: float
    """Time of the solver, summed over folds."""
    converged: bool
    """Whether every violation, or gradient, is within the tolerance."""
    n_iter: int
    """Sum of the SMO steps of exact fits, or Newton steps of low rank."""
    gap: float
    """Largest duality gap relative to the primal objective; of low rank, an upper bound on it."""
    n_support: float | None = None
    """Support vectors of an exact fit, mean over folds; None of low rank."""
    kkt: float | None = None
    """Largest KKT violation of an exact fit; None of low rank."""
    margin: float | None = None
    """Smallest margin in feature space; None if no pair of classes has a hyperplane."""
    vc: float | None = None
    """Largest upper bound of the VC dimension; None if unknown."""
    effective: float | None = None
    """Smallest effective sample size; None if unknown."""
    n_features: int | None = None
    """Features of a fit of low rank; None for exact fits."""
    gradient: float | None = None
    """Length of the gradient of a fit of low rank, relative to that at zero; None if exact."""

    @property
    def size(self) -> float:
        """Support vectors, or features of low rank: the fewer, the simpler the classifier."""
        return (self.n_features if self.n_support is None else self.n_support) or 0


_WORST: Final[dict[str, Any]] = {
    **dict.fromkeys(("gap", "kkt", "vc", "n_features", "gradient"), max),
    **dict.fromkeys(("margin", "effective"), min),
}
"""What takes the worst over folds."""

_PROOF = tuple(field.name for field in fields(Certificate))


@dataclass(frozen=True, kw_only=True)
class Row(Certificate, GridPoint):
    """A fit on the training part of one fold, and its score on the rest."""

    fold: int
    score: float
    sample: int | None = None
    """Samples of the round of a search by halving; None where all were used."""


@dataclass(frozen=True, kw_only=True)
class Cell(Certificate, GridPoint):
    """The fits of one kernel at one C on all folds: mean and standard deviation of their scores."""

    mean: float
    std: float


def flat(columns: Row | Cell) -> dict[str, Any]:
    """Plain values by column: kernel and C, score, then the certificate."""
    found = dict(vars(columns))
    proof = {name: found.pop(name) for name in _PROOF}
    return found | proof


def summarise(rows: Iterable[Row]) -> tuple[Cell, ...]:
    """Gather rows of the same kernel and C over the folds, in order of first appearance."""
    cells = grouped(rows, lambda row: row.point)
    return tuple(_over_folds(point, own) for point, own in cells.items())


def rows_by_point(rows: Iterable[Row]) -> dict[GridPoint, tuple[Row, ...]]:
    """Rows of each kernel and C, in the order of the folds."""
    found = grouped(sorted(rows, key=lambda row: row.fold), lambda row: row.point)
    return {point: tuple(own) for point, own in found.items()}


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by a key of theirs, both in order of first appearance."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def _over_folds(point: GridPoint, rows: Sequence[Row]) -> Cell:
    scores = np.array([row.score for row in rows])
    support = [row.n_support for row in rows if row.n_support is not None]
    return Cell(
        **vars(point),
        mean=float(scores.mean()),
        std=deviation(scores),
        seconds=float(sum(row.seconds for row in rows)),
        converged=all(row.converged for row in rows),
        n_iter=sum(row.n_iter for row in rows),
        n_support=float(np.mean(support)) if support else None,
        **{name: worst(_known(rows, name), default=None) for name, worst in _WORST.items()},
    )


def _known(rows: Sequence[Row], name: str) -> list[Any]:
    return [value for row in rows if (value := getattr(row, name)) is not None]
