"""Seconds of a fit to all samples, extrapolated from fits to small subsamples.

Rejected: pilot ranks below the one that is asked for, as overheads hide the growth; constants
fitted to data sets, which are off by the labels.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Indices, Rows, stacked
from dhsk.errors import InputError
from dhsk.samples import Samples
from dhsk.samples.scan import rows_within
from dhsk.samples.taken import rows_taken
from dhsk.units import human_seconds

SMALLEST: Final = 256
"""Samples of the smallest pilot fit: with fewer, calls take longer than arithmetic."""

SECONDS: Final = 3.0
"""Pilot fits grow while the next one is expected to end within this time."""

SIZES: Final = 3
"""The extrapolation uses this many of the largest pilot fits."""

MOST_BYTES: Final = 2**28
"""Most bytes of samples that are read for pilot fits."""

NOISE: Final = 1.2
"""Factor by which a time may be off on a machine that does other work too."""

SURE: Final = 0.5
"""Seconds from which a fit is timed twice, a shorter one three times: the least counts, because
other programs come and go."""

_STEEPER: Final = 4
"""A fit to twice as many samples is expected to take at most this many times as long."""

Fit = Callable[[Rows, NDArray[Any]], object]
"""Fits a classifier to samples, (n, dim), and their labels, (n,)."""


@dataclass(frozen=True)
class Pilot:
    """Times of pilot fits, and their extrapolation to other numbers of samples."""

    sizes: Sequence[int]
    """Samples of each fit, ascending, at least two."""
    seconds: Sequence[float]
    """Time of each fit."""
    steepest: float = math.inf
    """Largest p that is believed."""

    @property
    def exponents(self) -> tuple[float, float, float]:
        """Lowest, likely and highest p >= 0, where seconds grow like n^p.

        Likely is the slope of the line through the logarithms. The others are those of neighbours,
        and no closer than what the noise of the first and the last time makes of it.
        """
        x, y = np.log(self.sizes), np.log(self.seconds)
        likely = float(np.polyfit(x, y, 1)[0])
        noise = math.log(NOISE) / (x[-1] - x[0])
        own = np.diff(y) / np.diff(x)
        low, high = min(own.min(), likely - noise), max(own.max(), likely + noise)
        found = (max(0.0, min(float(p), self.steepest)) for p in (low, likely, high))
        return next(found), next(found), next(found)

    def seconds_at(self, n: int) -> tuple[float, float, float]:
        """Lowest, likely and highest seconds of a fit to n samples."""
        low, likely, high = ((n / self.sizes[-1]) ** p for p in self.exponents)
        last = self.seconds[-1]
        return last / NOISE * low, last * likely, last * NOISE * high

    def words(self, n: int, fits: int = 1) -> str:
        """Range of seconds of a number of fits to n samples."""
        low, _, high = (fits * seconds for seconds in self.seconds_at(n))
        return f"{human_seconds(low)} to {human_seconds(high)}"

    @property
    def timed(self) -> str:
        """Sizes and times of the pilot fits, and how they grow."""
        pairs = zip(self.sizes, self.seconds, strict=True)
        low, _, high = self.exponents
        times = ", ".join(f"{n:,} samples in {human_seconds(t)}" for n, t in pairs)
        return f"{times}: like n^{low:.1f} to n^{high:.1f}"


def check_pilot(labels: NDArray[Any], smallest: int = SMALLEST) -> None:
    """Raise InputError for too few samples for two pilot fits, of `smallest` and twice that."""
    if len(labels) < 2 * smallest:
        raise InputError(
            f"pilot fits need {2 * smallest:,} samples or more, but there are {len(labels):,}: "
            "train on all of them instead"
        )


def run_pilot(
    samples: Samples,
    labels: NDArray[Any],
    fit: Fit,
    smallest: int = SMALLEST,
    clock: Callable[[], float] = perf_counter,
    *,
    steepest: float = math.inf,
) -> Pilot:
    """Time fits to stratified subsamples, each twice as large, for some seconds in all.

    The samples are read once. `fit` is called once before, so that nothing is loaded or compiled
    while it is timed. `smallest` is the size of the first subsample; `clock` returns seconds;
    `steepest` is that of `Pilot`.
    InputError if there are too few samples.
    """
    loading = max(SMALLEST, 2 * len(np.unique(labels)))
    n = max(smallest, loading)
    check_pilot(labels, n)
    most = min(len(labels), max(2 * n, rows_within(samples, MOST_BYTES)))
    chosen = _stratified(labels)[:most]
    rows, labels = _taken(samples, chosen), labels[chosen]
    fit(rows[:loading], labels[:loading])
    sizes: list[int] = []
    seconds: list[float] = []
    while n <= most and (len(sizes) < 2 or sum(seconds) + _STEEPER * seconds[-1] <= SECONDS):
        seconds.append(_best_of(partial(fit, rows[:n], labels[:n]), clock))
        sizes.append(n)
        n *= 2
    return Pilot(sizes[-SIZES:], seconds[-SIZES:], steepest)


def _best_of(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds of the fastest of two or three runs."""
    found: list[float] = []
    while len(found) < 2 or (len(found) < 3 and min(found) < SURE):
        begin = clock()
        work()
        found.append(clock() - begin)
    return min(found)


def _stratified(labels: NDArray[Any]) -> Indices:
    """Order of the samples in which every beginning has about the proportions of the classes."""
    rng = np.random.default_rng(0)
    place = np.empty(len(labels))
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        place[rng.permutation(own)] = np.arange(len(own)) / len(own)
    return np.argsort(place, kind="stable")


def _taken(samples: Samples, chosen: Indices) -> Rows:
    """Some samples as the source has them, (chosen, dim), read in one pass."""
    ascending = np.sort(chosen)
    parts: list[Any] = [block[inside] for _, block, inside in rows_taken(samples, ascending)]
    return stacked(parts)[np.searchsorted(ascending, chosen)]
