"""Exact SVMs against those of low rank: what each would cost, and which to take."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from dhsk.planning.exact_cost import ROUND_PASSES, STEPS, ExactCost, GridShape, exact_cost
from dhsk.planning.low_rank_cost import LowRankCost, low_rank_cost
from dhsk.planning.prediction import Prediction
from dhsk.units import human_bytes, human_seconds

RANKS: Final = 500, 1000, 2000, 5000
"""Ranks that are compared if none are named."""

MODERATE_N: Final = 100_000
"""Samples up to which exact SVMs may take longer and still be advised."""

NOT_MUCH_SLOWER: Final = 5.0
"""How many times longer."""

_APPROXIMATION: Final = "it is an approximation, whose trace error is reported"

COLUMNS: Final = "", "one model", "grid", "memory", "disk", "how"
"""Heads of the table."""

Cost: TypeAlias = ExactCost | LowRankCost


@dataclass(frozen=True)
class Way:
    """A way to train, with its cost for one model and for a grid."""

    name: str
    model: Cost
    grid: Cost
    disk_free: int | None

    @property
    def fits(self) -> bool:
        """Whether one model fits memory and disk."""
        return self._fits(self.model)

    @property
    def words(self) -> str:
        """What it is, and how long one model takes."""
        least = "at least" if _in_rounds(self.model) else "about"
        return f"{self.name} ({least} {human_seconds(self.model.seconds)} a model)"

    def row(self) -> list[str]:
        """Cells under `COLUMNS`: memory is the most of those that fit it."""
        costs = self.model, self.grid
        memory = max([self.model.memory, *(c.memory for c in costs if c.fits_memory)])
        seconds = [_seconds(cost) for cost in costs]
        return [self.name, *seconds, human_bytes(memory), human_bytes(self.model.disk), self._how()]

    def _fits(self, cost: Cost) -> bool:
        return cost.fits_memory and (self.disk_free is None or cost.disk <= self.disk_free)

    def _how(self) -> str:
        if not self.model.fits_memory:
            return "does not fit the memory"
        if not self.fits:
            return "does not fit the disk"
        own = _how(self.model)
        grid = _how(self.grid) if self._fits(self.grid) else "does not fit"
        return own if own == grid else f"{own}, the grid {grid}"


def _in_rounds(cost: Cost) -> bool:
    return isinstance(cost, ExactCost) and not cost.whole


def _seconds(cost: Cost) -> str:
    if not cost.fits_memory:
        return "-"
    return ("> " if _in_rounds(cost) else "") + human_seconds(cost.seconds)


def _how(cost: Cost) -> str:
    if isinstance(cost, LowRankCost):
        return "features held" if cost.held else "features recomputed"
    return "whole matrices" if cost.whole else "in rounds"


@dataclass(frozen=True)
class Comparison:
    """Ways to train SVMs on some samples; make it with `compare`.

    Attributes
    ----------
    shape
        The SVMs of the grid; one model has the same classes.
    exact
        Exact SVMs: on a stored matrix, and on one that is computed in every pass.
    low
        Low rank, by ascending rank.
    """

    shape: GridShape
    exact: Sequence[Way]
    low: Sequence[Way]

    @property
    def title(self) -> str:
        """What is compared."""
        s = self.shape
        return (
            f"Exact against low rank, SVMs of {s.classes} classes, a grid of {s.folds} folds x "
            f"{s.chain} C x {s.kernels} kernels"
        )

    def table(self) -> list[list[str]]:
        """Rows under `COLUMNS`."""
        return [way.row() for way in (*self.exact, *self.low)]

    def assumptions(self) -> str:
        """What the seconds rest on."""
        return (
            f"labels and C decide how long solvers take; assumed: exact {STEPS:g} steps a sample "
            f"(noise takes many more) and in rounds {ROUND_PASSES} passes (up to hundreds), low "
            "rank as many passes as MNIST"
        )

    def advice(self) -> str:
        """Which way to take, in one sentence: exact, or low rank up to the highest that fits."""
        exact = min(_fitting(self.exact), key=lambda way: way.model.seconds, default=None)
        low = _fitting(self.low)
        if exact is None:
            if not low:
                return "neither exact nor low rank fits: give more memory or fewer workers"
            return f"take low rank, {_span(low)}: exact does not fit; {_APPROXIMATION}"
        if not low:
            return f"take {exact.words}: low rank does not fit"
        moderate = exact.model.prediction.plan.tiling.n_rows <= MODERATE_N
        allowed = NOT_MUCH_SLOWER if moderate else 1.0
        if exact.model.seconds > allowed * low[-1].model.seconds:
            return f"take low rank, {_span(low)}: {exact.words} is slower; {_APPROXIMATION}"
        return f"take {exact.words}: it fits, and {low[-1].words} would be an approximation"


def compare(
    prediction: Prediction,
    shape: GridShape,
    ranks: Sequence[int] = RANKS,
    disk_free: int | None = None,
) -> Comparison:
    """Predict what exact SVMs and those of low rank would cost.

    Parameters
    ----------
    prediction
        The Gram matrix on some machine, symmetric.
    shape
        The SVMs of a grid; it is compared with one model of the same classes.
    ranks
        Ranks, at least 1 each; above N they count as N.
    disk_free
        Free bytes where stores would be; None if unknown.

    Returns
    -------
    Comparison
        The table, and which way to take.

    Raises
    ------
    InputError
        A rank is below 1.
    """
    one = GridShape(shape.classes)

    def exact(name: str, *, stored: bool) -> Way:
        model, grid = (exact_cost(prediction, each, stored=stored) for each in (one, shape))
        return Way(name, model, grid, disk_free)

    def low(rank: int) -> Way:
        model, grid = (low_rank_cost(prediction, each, rank) for each in (one, shape))
        return Way(f"rank {model.rank:,}", model, grid, disk_free)

    ways = {way.name: way for way in map(low, sorted(ranks))}  # those above N are the same
    return Comparison(
        shape,
        (exact("exact, stored", stored=True), exact("exact, recomputed", stored=False)),
        tuple(ways.values()),
    )


def _fitting(ways: Sequence[Way]) -> list[Way]:
    return [way for way in ways if way.fits]


def _span(low: Sequence[Way]) -> str:
    """Lowest and highest rank, in words."""
    return " to ".join(way.words for way in (low[0], *low[1:][-1:]))
