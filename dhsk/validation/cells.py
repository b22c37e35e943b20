"""Cells of a grid: the fits of one kernel, and the rows of results that they give."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.kernels import Kernel
from dhsk.models.pair_tasks import PairFits
from dhsk.results.columns import (
    Certificate,
    GridPoint,
    KernelColumns,
    Row,
    flat,
    is_rest,
    summarise,
)
from dhsk.results.schema import decoded
from dhsk.solvers.ball import capacity
from dhsk.solvers.problems import REST, MultiClass, Pair
from dhsk.validation.grid import Grid
from dhsk.validation.out_of_fold import Decisions, KeptCell
from dhsk.validation.scores import (
    ACCURACY,
    decisions_one_vs_rest,
    score,
    sigmoids_of_folds,
)

MOST_BYTES: Final = 32 * 2**20
"""Decisions that are kept of a kernel, if those of its best cell take no more."""


@dataclass(frozen=True)
class Cells:
    """Results of one kernel: a row for every fold and C, and the classes that each predicted."""

    rows: Sequence[Row]
    predicted: list[list[int]]
    decisions: Sequence[Decisions | None] = ()
    """Decisions of each row; None, or no entries at all, if they are not kept."""
    waiting: Sequence[Floats] = ()
    """Decisions of the problems of each row, (n, problems), if its score waits for other folds."""

    def with_more(self, others: "Cells") -> "Cells":
        """These cells, and others."""
        return Cells(
            [*self.rows, *others.rows],
            [*self.predicted, *others.predicted],
            [*self.decisions, *others.decisions],
            [*self.waiting, *others.waiting],
        )

    def named(self, prefix: str) -> "Cells":
        """These cells with a prefix before family and label."""
        rows = [replace(r, kernel=prefix + r.kernel, label=prefix + r.label) for r in self.rows]
        return replace(self, rows=rows)

    @property
    def kept(self) -> "Cells":
        """The same without the decisions that do not fit `MOST_BYTES`, the lowest means first."""
        room, kept = MOST_BYTES, set[int]()
        cells = sorted(summarise(self.rows), key=lambda cell: (not cell.converged, -cell.mean))
        for cell in cells:
            numbers = [n for n, row in enumerate(self.rows) if row.point == cell.point]
            given = (self.decisions[number] for number in numbers)
            room -= sum(0 if one is None else one.nbytes for one in given)
            if room < 0 and kept:
                break
            kept.update(numbers)
        chosen = [one if n in kept else None for n, one in enumerate(self.decisions)]
        return replace(self, decisions=chosen)

    def by_point(self) -> dict[GridPoint, KeptCell]:
        """Predictions and decisions of each cell, fold by fold."""
        found: dict[GridPoint, list[int]] = {}
        for number in sorted(range(len(self.rows)), key=lambda n: self.rows[n].fold):
            found.setdefault(self.rows[number].point, []).append(number)
        return {
            point: KeptCell([self.predicted[n] for n in own], [self.decisions[n] for n in own])
            for point, own in found.items()
        }

    def entry(self, rest: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and values of a checkpoint, from which `of_entry` makes the same cells.

        Arrays are the decisions that are kept, one after the other, and the numbers of their rows.
        """
        own = {"rows": [flat(row) for row in self.rows], "predicted": self.predicted}
        values = {"rest": {**own, **(rest or {})}}
        arrays = {f"waiting-{n}": one for n, one in enumerate(self.waiting)}
        decided = {n: one for n, one in enumerate(self.decisions) if one is not None}
        if decided:
            arrays["decisions"] = np.concatenate(list(decided.values()))
            arrays["decided"] = np.array(list(decided))
        return arrays, values

    @classmethod
    def of_entry(cls, kept: dict[str, Any]) -> "Cells":
        """Cells from a checkpoint, which has arrays if decisions were kept."""
        rows = [decoded(Row, row, f"rows[{i}]") for i, row in enumerate(kept["rest"]["rows"])]
        predicted = kept["rest"]["predicted"]
        decisions: list[Decisions | None] = [None] * len(rows)
        if "decided" in kept:
            numbers = kept["decided"].tolist()
            ends = np.cumsum([len(predicted[number]) for number in numbers])
            parts = np.split(kept["decisions"], ends[:-1])
            for number, part in zip(numbers, parts, strict=True):
                decisions[number] = part
        waiting = [kept[name] for n in range(len(rows)) if (name := f"waiting-{n}") in kept]
        return cls(rows, predicted, decisions, waiting)


def rows_of_kernel(
    decisions: Iterable[Floats],
    grid: Grid,
    pairs: Sequence[Pair],
    solved: PairFits,
    names: KernelColumns,
) -> Cells:
    """Score the fits of all problems on the samples of each fold.

    `decisions` has those of each fold, (values of C, samples, problems); see `scored`.
    """
    rule: MultiClass = "ovr" if pairs[0].second == REST else "ovo"
    held_out = (column for fold in decisions for column in fold)
    return scored(held_out, grid, rule, names, partial(certificate, pairs, solved))


def scored(
    held_out: Iterable[Floats],
    grid: Grid,
    rule: MultiClass,
    names: KernelColumns,
    proof_of: Callable[[int], Certificate],
) -> Cells:
    """Score the decisions of each fold and C, fold by fold: a row for each of these columns.

    `names` are the columns of the kernel, `proof_of` gives the certificate of a column of the grid.
    Probabilities are of sigmoids fitted to other folds: a fold alone has no scores, but waits for
    the others, see `scored_together`.
    """
    rows, predicted, kept = [], [], []
    sigmoids: Sequence[Floats | None] = [None] * grid.columns
    waits = grid.scoring.probabilities and len(grid.folds) == 1
    if grid.scoring.probabilities:
        held_out = list(held_out)
        sigmoids = sigmoids if waits else _sigmoids(grid, held_out, rule)
    scoring = ACCURACY if waits else grid.scoring
    for column, decided in enumerate(held_out):
        fold, c = divmod(column, len(grid.C))
        present = grid.present(fold)
        truth = grid.y[grid.folds[fold][1]]
        found, guess = score(scoring, decided, present, grid.classes, truth, rule, sigmoids[column])
        point = names.at(grid.C[c], None if grid.C_scaled is None else grid.C_scaled[c])
        found = math.nan if waits else found
        rows.append(Row(**vars(point), fold=fold, score=found, **vars(proof_of(column))))
        predicted.append(guess.tolist())
        kept.append(decisions_one_vs_rest(decided, present, grid.classes, rule))
    return Cells(rows, predicted, kept, list(held_out) if waits else ()).kept


def scored_together(parts: Sequence[Cells], grid: Grid) -> list[list[Row]]:
    """Rows of each fold, with the scores for which they waited; see `scored`."""
    truth, scores = [grid.y[test] for _, test in grid.folds], list[list[float]]()
    for number, row in enumerate(parts[0].rows):
        of_each = is_rest(row.kernel) or row.rank is not None  # low rank is always one-vs-rest
        rule: MultiClass = "ovr" if of_each else "ovo"
        decided = [part.waiting[number] for part in parts]
        own = list(zip(decided, truth, strict=True))
        found = sigmoids_of_folds(own, len(grid.classes), rule, grid.repeats)
        scores.append(
            [
                score(grid.scoring, d, grid.present(k), grid.classes, truth[k], rule, found[k])[0]
                for k, d in enumerate(decided)
            ]
        )
    return [
        [replace(row, score=scores[number][k]) for number, row in enumerate(part.rows)]
        for k, part in enumerate(parts)
    ]


def _sigmoids(grid: Grid, held_out: Sequence[Floats], rule: MultiClass) -> list[Floats | None]:
    """Platt's sigmoids of each column, fitted to the decisions of the other folds."""
    found: list[Floats | None] = [None] * grid.columns
    truth, k = [grid.y[test] for _, test in grid.folds], len(grid.C)
    for c in range(k):
        decided = list(zip(held_out[c::k], truth, strict=True))
        found[c::k] = sigmoids_of_folds(decided, len(grid.classes), rule, grid.repeats)
    return found


def certificate(pairs: Sequence[Pair], solved: PairFits, column: int) -> Certificate:
    """Certificate of the fits of all pairs of classes in one column: the worst of each quantity."""
    fits = [own[column] for own in solved.fits]
    support = [pair.members[fit.support] for pair, fit in zip(pairs, fits, strict=True)]
    capacities = [
        capacity(fit.norm2, radius2, int(pair.dual.counts[column].sum()))
        for pair, fit, radius2 in zip(pairs, fits, solved.radii2, strict=True)
        if not pair.dual.trivial(column)
    ]
    # Lengths in feature space go with the root of the kernel; their quotients have no unit.
    margins = [f.margin * math.sqrt(solved.unit) for f in capacities if f.margin is not None]
    return Certificate(
        seconds=sum(fit.seconds for fit in fits),
        converged=all(fit.converged for fit in fits),
        n_iter=sum(fit.steps for fit in fits),
        gap=max(fit.gap for fit in fits),
        n_support=int(np.count_nonzero(np.bincount(np.concatenate(support)))),
        kkt=max(fit.violation for fit in fits),
        margin=min(margins, default=None),
        vc=max((found.vc for found in capacities), default=None),
        effective=min((found.effective for found in capacities), default=None),
    )


def names_of(kernel: Kernel, dim: int) -> KernelColumns:
    """Columns that name a kernel of samples with `dim` features; low rank adds its rank."""
    time = getattr(kernel, "time", None)
    # Only sphere times are told in units of the sweet spot; twelve digits, so that a scale reads as
    # it was typed.
    scale, label = None, kernel.label
    if time is not None and kernel.spherical:
        scale = float(f"{time * dim / math.log(dim):.12g}")
        label = label.replace(f"t={time:.4g}", f"s={scale:g}")
    sigma = getattr(kernel, "sigma", None)
    return KernelColumns(kernel.name, label, time_scale=scale, time=time, sigma=sigma)
