"""Progress of a whole cross-validation: which kernel and fold, how far of all, the best so far."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from dhsk.models.pair_fits import DECISIONS
from dhsk.progress import OnProgress, ignore
from dhsk.report.running import tell_found
from dhsk.results.columns import ONE_VS_REST, Row, rows_by_point, summarise
from dhsk.results.decision import decide
from dhsk.results.parts import ChoiceOfBest, Results, SamplesSummary, Timings
from dhsk.run_progress import RunProgress, passes_reported
from dhsk.validation.grid import Grid

PRODUCTS: Final = "inner products"
VALUES: Final = "kernel values"
FITS: Final = "fits"
METHODS: Final = "common methods"
EIGENVALUES: Final = "eigenvalues"
MODEL: Final = "model of all samples"
SAMPLES: Final = "search on samples"

_SHARES: Final = {
    PRODUCTS: 1.0, VALUES: 0.2, FITS: 1.0, DECISIONS: 0.2,
    METHODS: 1.0, EIGENVALUES: 1.0, MODEL: 0.3,
}  # fmt: skip
"""Guesses of the time of a part, that of the fits of a kernel being 1, until it is measured."""


_PREPARED: Final = 0.05
"""The same for samples that are only mapped."""


class GridProgress(RunProgress):
    """Progress of a grid of kernels, of which a search adds some.

    A column is a fold and a C, whose fits are counted by their work, or one of each rank.

    Parameters
    ----------
    report
        Receives the events.
    later
        Whether common methods, eigenvalues, and a model of all samples come after the kernels.
    """

    def __init__(
        self, report: OnProgress = ignore, later: tuple[bool, bool, bool] = (False, False, False)
    ) -> None:
        super().__init__(report)
        for name, comes in zip((METHODS, EIGENVALUES, MODEL), later, strict=True):
            if comes:
                self.expect_part(name, 1.0)
        self._folds = self._C = 1
        self._work = 1.0
        self._decided = True
        self._numbers: dict[str, int] = {}
        self._kernels = ""
        self.on = ""
        """What the grid is on, if not on all samples, in words."""
        self._prefix, self._fold = "", -1
        self._rows: dict[tuple[str, float, int | None], dict[int, Row]] = {}
        self._grid: Grid | None = None

    def begin(self, grid: Grid, ranks: Any = None) -> None:
        """Begin a grid; of low rank, each kernel is fitted at some ranks, all pairs together."""
        self._grid = grid
        self._folds, self._C, self._decided = len(grid.folds), len(grid.C), ranks is None
        self._work = grid.work if ranks is None else len(ranks)

    def expect_stage(
        self, labels: Sequence[str], C: float, later: int, later_columns: float
    ) -> None:
        """Expect kernels, named without the prefix of a map, and about as many more later.

        `C` is the work of each on one fold, and `later_columns` that of all others, that of a
        kernel with one C being 1.
        """
        unseen = {self._prefix + label for label in labels} - self._numbers.keys()
        about = "about " if later else ""
        self._kernels = f"{about}{len(self._numbers) + len(unseen) + later}"
        column = 1 / (self._folds * self._C)
        ahead = self._folds * (len(labels) * C + later_columns)
        done = self.is_done(FITS) / self._work
        self.expect(FITS, (done + ahead) * self._work, column / self._work)
        if self._decided:
            self.expect(DECISIONS, done + ahead, _SHARES[DECISIONS] * column)

    def expect_matrices(self, count: int, *, stored: bool) -> None:
        """Expect products of samples, which are computed or else only prepared for that."""
        self.expect(PRODUCTS, count, _SHARES[PRODUCTS] if stored else _PREPARED)
        self.expect(VALUES, count if stored else 0, _SHARES[VALUES])

    def expect_no_products(self) -> None:
        """Expect matrices to be prepared only, as their values are computed on demand."""
        self.expect(PRODUCTS, self.units_of(PRODUCTS), _PREPARED)
        self.expect(VALUES, 0)

    def expect_part(self, name: str, units: float) -> None:
        """Expect one of the other parts."""
        self.expect(name, units, _SHARES[name])

    def trying(self, label: str, how: str = "") -> None:
        """Say which kernel is fitted, and how."""
        name = self._prefix + label
        number = self._numbers.setdefault(name.removesuffix(ONE_VS_REST), len(self._numbers) + 1)
        self.what = f"{name}{how} ({number} of {self._kernels}){self._in_fold}{self.on}"

    def preparing(self) -> None:
        """Say that matrices are computed, from which those of the kernels are derived."""
        self.what = f"{self._prefix}{PRODUCTS}{self._in_fold}{self.on}"

    @contextmanager
    def reading_values(self) -> Iterator[None]:
        """Within it, a pass over the values of a kernel is made or they are read into memory."""
        with passes_reported(self), self.part(VALUES, 1.0):
            yield

    @property
    def _in_fold(self) -> str:
        return "" if self._fold < 0 else f", fold {self._fold + 1} of {self._folds}"

    def scored(self, rows: Sequence[Row]) -> None:
        """Take the scores of a kernel: a mean over all folds may be the best so far.

        Rows that wait for other folds have none yet.
        """
        more = False
        for row in (one for one in rows if not np.isnan(one.score)):
            fold = row.fold if self._fold < 0 else self._fold
            label = self._prefix + row.label
            own = self._rows.setdefault((label, row.C, row.rank), {})
            first = next(iter(own.values()), row)  # has what is said of a cell once
            own[fold] = replace(
                row, fold=fold, kernel=self._prefix + row.kernel, label=label,
                C_scaled=first.C_scaled, trace_error=first.trace_error,
            )  # fmt: skip
            if len(own) == self._folds:
                more = True
                mean = float(np.mean([one.score for one in own.values()]))
                if np.isfinite(mean):
                    self.best = mean if self.best is None else max(self.best, mean)
        if more:
            tell_found(self.so_far)

    @property
    def _finished(self) -> list[Row]:
        """Rows of all candidates that have one of each fold."""
        cells = [own for own in self._rows.values() if len(own) == self._folds]
        return [row for own in cells for row in own.values()]

    def so_far(self) -> Results:
        """Results of all candidates that are finished, without samples, plan and mistakes."""
        grid, rows = self._grid, tuple(self._finished)
        assert grid is not None  # `begin` comes before any fit
        summary, n = summarise(rows), int(grid.counts.sum())
        sizes = grid.splitting.sizes(grid.repeats, n)
        return Results(
            **grid.described, rows=rows, summary=summary, low_rank=None,
            best=decide(summary, rows_by_point(rows), sizes).best, choice=ChoiceOfBest("best", 0),
            samples=SamplesSummary("", n, 0, "", ""), plan=(), trace=0.0, confusion=(),
            seconds=Timings(0.0, 0.0, 0.0), version=version("dhsk"), created="",
        )  # fmt: skip

    @contextmanager
    def within(self, *, prefix: str | None = None, fold: int | None = None) -> Iterator[None]:
        """Within it, names of kernels begin with that of a map, or there is one fold alone."""
        before = self._prefix, self._fold
        self._prefix = self._prefix if prefix is None else prefix
        self._fold = self._fold if fold is None else fold
        try:
            yield
        finally:
            self._prefix, self._fold = before
