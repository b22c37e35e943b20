"""Pilot fits: the arithmetic of made-up times, which samples are taken, that the range holds."""

from collections.abc import Callable
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.errors import InputError
from dhsk.planning.pilot import NOISE, SECONDS, Pilot, check_pilot, run_pilot
from dhsk.samples import open_samples


@pytest.mark.parametrize("p", [0.5, 1.0, 2.3])
def test_a_power_law_is_found(p: float) -> None:
    """The likely seconds are exact, the others off by the noise of two times."""
    sizes = [500, 1000, 2000]
    pilot = Pilot(sizes, [1e-6 * n**p for n in sizes])
    low, likely, high = pilot.seconds_at(8000)
    assert likely == pytest.approx(1e-6 * 8000**p)
    spread = NOISE * 4 ** (np.log(NOISE) / np.log(4))  # of the level, and of the exponent
    assert (likely / low, high / likely) == pytest.approx((spread, spread))


def test_neighbours_that_differ_widen_the_range() -> None:
    """Exponents of 1 and 2: the range has both, the likely one is between."""
    low, likely, high = Pilot([100, 200, 400], [1.0, 2.0, 8.0]).exponents
    assert (low, likely, high) == pytest.approx((1.0, 1.5, 2.0))
    capped = Pilot([100, 200, 400], [1.0, 2.0, 8.0], steepest=1.2).exponents
    assert capped == pytest.approx((1.0, 1.2, 1.2))


def test_more_samples_never_take_less() -> None:
    """Times that fall by noise are taken for constant."""
    pilot = Pilot([100, 200], [2.0, 1.0])
    assert pilot.exponents == (0.0, 0.0, 0.0)
    assert pilot.seconds_at(1000) == pytest.approx((1 / NOISE, 1.0, NOISE))


def test_words_say_the_range_and_what_was_timed() -> None:
    """Of one fit and of several."""
    pilot = Pilot([1000, 2000], [1.0, 2.0])
    assert pilot.words(2000) == "1.7 s to 2.4 s"
    assert pilot.words(2000, 10) == "17 s to 24 s"
    assert pilot.timed == "1,000 samples in 1 s, 2,000 samples in 2 s: like n^0.7 to n^1.3"


class Clock:
    """Time as a made-up fit takes it."""

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self.now = 0.0
        self.fits: list[tuple[Any, Any]] = []
        self._seconds = seconds

    def fit(self, rows: Any, labels: Any) -> None:
        """Take the time of so many samples."""
        self.fits.append((rows, labels))
        self.now += self._seconds(rows.shape[0])

    def __call__(self) -> float:
        """Seconds so far."""
        return self.now


@pytest.mark.parametrize("sparse", [False, True])
def test_samples_go_with_their_labels(sparse: bool, rng: np.random.Generator) -> None:
    """Every fit gets rows of the source, each with its own label."""
    y = rng.integers(0, 3, 2000)
    X = np.column_stack([np.arange(1.0, 2001), y + 1.0])
    clock = Clock(lambda n: n * 1e-4)
    run_pilot(open_samples(csr_array(X) if sparse else X), y, clock.fit, clock=clock)
    sizes = [rows.shape[0] for rows, _ in clock.fits]
    assert sizes == [256, *[256] * 3, *[512] * 3, *[1024] * 3]  # one to load, then the best of 3
    for rows, labels in clock.fits:
        dense = rows.toarray() if sparse else rows
        np.testing.assert_array_equal(dense[:, 1], labels + 1)
        assert len(np.unique(dense[:, 0])) == len(dense)


def test_every_part_is_stratified(rng: np.random.Generator) -> None:
    """Classes keep their proportions to a sample, and the rarest one is in every part."""
    y = rng.permutation(np.repeat(["a", "b", "c"], [1200, 799, 1]))
    clock = Clock(lambda n: n * 1e-4)
    run_pilot(open_samples(np.ones((2000, 1))), y, clock.fit, clock=clock)
    for _, labels in clock.fits:
        assert np.count_nonzero(labels == "c") == 1
        assert abs(np.count_nonzero(labels == "a") - 0.6 * len(labels)) <= 1.5


def test_it_ends_within_some_seconds() -> None:
    """Sizes double until the next fit could take too long; the three largest are kept."""
    y = np.arange(60_000) % 2
    clock = Clock(lambda n: 1e-7 * n**2)
    pilot = run_pilot(open_samples(y[:, None] + 1.0), y, clock.fit, clock=clock)
    assert len(pilot.sizes) == 3
    assert all(b == 2 * a for a, b in pairwise(pilot.sizes))
    assert 4 * pilot.seconds[-1] + sum(pilot.seconds) > SECONDS
    assert sum(pilot.seconds) < SECONDS
    assert clock.now < 3 * SECONDS
    slow = Clock(lambda _: 100.0)
    assert len(run_pilot(open_samples(y[:, None] + 1.0), y, slow.fit, clock=slow).sizes) == 2


def test_too_few_samples_are_refused() -> None:
    """Two sizes are needed, and samples of every class in both."""
    with pytest.raises(InputError, match="need 512 samples or more, but there are 511: train on"):
        check_pilot(np.zeros(511))
    y = np.arange(1000)
    with pytest.raises(InputError, match="need 4,000 samples or more, but there are 1,000"):
        run_pilot(open_samples(y[:, None] + 1.0), y, lambda *_: None)


def fastest(work: Callable[[], object], enough: float, most: int = 10) -> float:
    """Processor time of the fastest run: up to `most`, none after one that took at most enough."""
    seconds = np.inf
    for _ in range(most):
        begin = process_time()
        work()
        seconds = min(seconds, process_time() - begin)
        if seconds <= enough:
            break
    return seconds


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, 60])
def test_the_range_holds_for_twice_as_many(rank: int | None, rng: np.random.Generator) -> None:
    """A fit to all samples, timed here too, is in the range to a factor of 3 for a busy machine.

    In processor time, as other work may come or go between the pilot and the fit.
    """
    y = rng.integers(0, 2, 4096)
    X = rng.poisson(1.0 + 0.5 * (np.arange(30) % 2 == y[:, None])) + 0.5
    model = dhsk.HeatSVC() if rank is None else dhsk.NystromSVC(rank, random_state=0)
    pilot = run_pilot(open_samples(X[:2048]), y[:2048], model.fit_samples, clock=process_time)
    assert pilot.sizes[-1] <= 2048
    n = 2 * pilot.sizes[-1]
    low, _, high = pilot.seconds_at(n)
    seconds = fastest(lambda: model.fit_samples(X[:n], y[:n]), 3 * high)
    assert low / 3 <= seconds <= 3 * high
