"""Typed results of a cross-validation: `Results`, and its parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dhsk.caching import cached_value
from dhsk.results.baselines import NO_BASELINES, Baselines, Beside
from dhsk.results.chance import CLEAR, guessing
from dhsk.results.columns import Cell, Certificate, GridPoint, Row, rows_by_point
from dhsk.results.decision import Decision, decide
from dhsk.results.examined import ClassWeights, Examined
from dhsk.results.low_rank import LowRank
from dhsk.results.paired import FoldSizes

UNEVEN: Final = 1.5
"""Share of the largest class over that of equal classes, from which on classes count as uneven."""


@dataclass(frozen=True)
class SamplesSummary:
    """Source and size of the samples; `nnz` is None for dense ones.

    The `zero_rows` samples of zeros took the centre of the positive orthant.
    """

    source: str
    n_samples: int
    dim: int
    sphere_map: str
    fingerprint: str
    nnz: int | None = None
    zero_rows: int = 0


@dataclass(frozen=True)
class Splitting:
    """Number of folds, the splitter that made them, and the mean size of their parts."""

    n: int
    splitter: str
    n_train: float
    """Samples that a fold is trained on."""
    n_test: float

    @property
    def shuffled(self) -> bool:
        """Whether they are shuffled, stratified folds, not the user's own."""
        kinds = ("StratifiedKFold(", "StratifiedGroupKFold(", "RepeatedStratifiedKFold(")
        return self.splitter.startswith(kinds)

    def sizes(self, repeats: int, n_samples: int) -> FoldSizes:
        """What standard errors over the folds depend on."""
        each = self.n // repeats
        return FoldSizes(each, repeats, self.n_train, self.n_test, n_samples, self.shuffled)


@dataclass(frozen=True)
class FewSamples:
    """A class of few samples; `folds` is the number of folds that lack it."""

    name: str | float
    samples: int
    folds: int


@dataclass(frozen=True)
class ChoiceOfBest:
    """How the cell to take was chosen."""

    rule: str
    """"simplest" or "best", see `Choose`."""
    left_out: int
    """Number of cells left out because they did not converge."""


@dataclass(frozen=True)
class SearchStage:
    """One stage of the search for a time scale: its grid, its best cell, the next step."""

    time_scales: tuple[float, ...]
    C: tuple[float, ...]
    C_scaled: tuple[float, ...]
    best: Cell
    why: str
    samples: int | None = None
    """Number of samples of a round of a search by halving; None for all."""


@dataclass(frozen=True)
class SearchRound:
    """A round of a search by halving: everything that was tried on a sample, and what went on.

    `rows` has a row for each kernel, C and fold, with the number of samples as its ``sample``;
    `kept` the cells that the next round had.
    """

    samples: int
    rows: tuple[Row, ...]
    kept: tuple[GridPoint, ...]


@dataclass(frozen=True)
class HeldOutScore:
    """Score of the model on a held-out test set; `confusion` counts (true, predicted)."""

    score: float
    n: int
    confusion: tuple[tuple[int, ...], ...]
    seconds: float


@dataclass(frozen=True)
class Timings:
    """Seconds for Gram matrices or features, for the fits, and in all."""

    gram: float
    fits: float
    total: float


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Samples, plan and spectrum of a cross-validation.

    `eigenvalues` are the leading ones of the taken kernel, or lower bounds of them; empty of low
    rank. `plan` has pairs (what, value) for people.
    """

    samples: SamplesSummary
    plan: tuple[tuple[str, str], ...]
    eigenvalues: tuple[float, ...] = ()
    eigenvalues_exact: bool = False
    trace: float


@dataclass(frozen=True, kw_only=True)
class Results(RunFacts):
    """One cell for each kernel and C."""

    version: str
    created: str
    classes: tuple[str | float, ...]
    class_counts: tuple[int, ...]
    folds: Splitting
    scoring: str
    tol: float
    low_rank: LowRank | None
    """None for exact classifiers."""
    rows: tuple[Row, ...]
    """One for each kernel, C and fold."""
    summary: tuple[Cell, ...]
    """One cell for each kernel and C."""
    best: Cell
    """The cell that was taken; `decision` says why, and has the highest mean."""
    choice: ChoiceOfBest
    """How it was chosen."""
    confusion: tuple[tuple[int, ...], ...]
    """Counts (true, predicted) of `best` over the folds."""
    seconds: Timings
    examined: Examined | None = None
    """Single samples as the taken cell saw them; None if that was not kept."""
    search: tuple[SearchStage, ...] = ()
    """Stages of the search for a time scale; empty if there was none."""
    search_ended: str = ""
    """Why the search ended; empty if there was none."""
    rounds: tuple[SearchRound, ...] = ()
    """Rounds of a search by halving before that on all samples; empty without."""
    test: HeldOutScore | None = None
    """Score of the taken cell, fitted on all samples, on a test set; None without one."""
    refit: Certificate | None = None
    """Certificate of the taken cell, fitted on all samples; None without that fit."""
    weights: tuple[ClassWeights, ...] = ()
    """Its features of most weight for each class; empty of kernels whose features have none."""
    dropped_classes: tuple[FewSamples, ...] = ()
    """Classes that were left out for having too few samples."""
    untrained_classes: tuple[FewSamples, ...] = ()
    """Classes that some folds lack in training."""
    untested_classes: tuple[FewSamples, ...] = ()
    """Classes that some folds lack in their test part."""
    repeats: int = 1
    """Number of times that the samples were divided; `folds` counts those of all."""
    baselines: Baselines = NO_BASELINES
    """Common methods of scikit-learn on the same folds."""
    settings: Mapping[str, Any] | None = None
    """Options of the command line; None for results of `cross_validate`."""

    @cached_value
    def cells(self) -> tuple[Cell, ...]:
        """The taken cell, then the others by their mean; of equals the smaller C, as simpler."""
        others = [cell for cell in self.summary if cell != self.best]
        return (self.best, *sorted(others, key=lambda c: (-c.mean, c.C, c.label)))

    @cached_value
    def rows_of(self) -> Mapping[GridPoint, tuple[Row, ...]]:
        """Rows of each kernel and C, in the order of the folds."""
        return rows_by_point(self.rows)

    @cached_value
    def decision(self) -> Decision:
        """The simplest kernel within one standard error of the best, paired over the folds."""
        return decide(self.summary, self.rows_of, self.fold_sizes, self.best)

    @property
    def fold_sizes(self) -> FoldSizes:
        """What standard errors over the folds depend on."""
        return self.folds.sizes(self.repeats, sum(self.class_counts))

    @property
    def advice(self) -> str:
        """What to take: the decision between kernels, and how a common method compares.

        Where no score is clear of guessing, that none is to be used, and what may help.
        """
        if self.unlearnt:
            return f"none is to be used: {self.unlearnt}. More samples or other features may help"
        beside = self.beside
        if beside is None:
            return self.decision.sentence
        if not beside.ahead:
            return f"{self.decision.sentence}; {beside.words}"
        return f"{beside.words}. Of the kernels: {self.decision.sentence}"

    @property
    def ends_of_grid(self) -> str:
        """Which parameters of the taken cell end the grid, in words: better may lie outside.

        Empty if none does, or no score is clear of guessing.
        """
        if self.unlearnt:
            return ""
        rivals = [cell for cell in self.cells if cell.kernel == self.best.kernel]
        found = [
            f"{side} {name.replace('_', ' ').replace('penalty', 'C')}"
            for name in ("time_scale", "sigma", "rank", "penalty")
            if not (name == "time_scale" and self.search_ended)  # the search says why it ended
            for side, end in (("smallest", min), ("largest", max))
            if _at_end(getattr(self.best, name), {getattr(c, name) for c in rivals} - {None}, end)
        ]
        return f"the {' and the '.join(found)} that was tried" if found else ""

    @property
    def tested_counts(self) -> Sequence[float]:
        """Samples of each class that the folds of a repeat test, without classes of none.

        Folds in time order test the later ones alone, whose classes may have other shares.
        """
        tested = [sum(row) / self.repeats for row in self.confusion if any(row)]
        return tested or self.class_counts  # of a run that goes on nothing is counted

    @property
    def unlearnt(self) -> str:
        """A sentence where no score is clearly above that of guessing.

        It is above by more than the standard error of its folds, and by more than `CLEAR` of those
        of guessing, as it is the best of many.
        """
        chance = guessing(self.scoring, self.tested_counts)
        if chance is None:
            return ""
        best = [[row.score for row in self.rows_of[self.decision.best.point]]]
        best += [] if self.baselines.best is None else [list(self.baselines.best.scores)]
        gains = [self.fold_sizes.paired(own, [chance.score] * len(own)) for own in best]
        least = CLEAR * chance.standard_error
        if any(gain.difference > least and not gain.within for gain in gains):
            return ""
        said = f"no score is clearly above {chance.score:.4f}, {chance.words}"
        largest = max(self.class_counts) / sum(self.class_counts)
        if self.scoring != "accuracy" or largest * len(self.class_counts) < UNEVEN:
            return said
        # Of a test part without one of two classes there is no area under the curve.
        curve = len(self.classes) == 2 and not self.untested_classes
        other = "roc_auc or balanced_accuracy" if curve else "balanced_accuracy"
        return (
            f"{said}: try --scoring {other}, which counts every class the same, and "
            "--class-weight balanced, which trains for that"
        )

    @cached_value
    def beside(self) -> Beside | None:
        """The best common method beside the best cell; None without any."""
        found, cell = self.baselines.best, self.decision.best
        if found is None:
            return None
        kernel = [row.score for row in self.rows_of[cell.point]]
        below = self.fold_sizes.paired(kernel, found.scores)
        return Beside(found, cell.brief, below, self.best.mean)

    def unfinished(self, *cells: Cell) -> int:
        """Count the fits of some cells that did not converge."""
        return sum(not row.converged for cell in cells for row in self.rows_of[cell.point])

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes as text."""
        return tuple(str(name) for name in self.classes)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the grid, ascending; empty for exact classifiers."""
        return tuple(sorted({cell.rank for cell in self.summary if cell.rank is not None}))


def _at_end(value: Any, tried: set[Any], end: Callable[[set[Any]], Any]) -> bool:
    return len(tried) > 1 and bool(value == end(tried))
