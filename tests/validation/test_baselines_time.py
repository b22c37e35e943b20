"""How long common methods may take, and what is left out of those that take longer."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.validation import baselines, methods


def test_the_middle_C_alone_is_tried_where_all_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was left out of the method is said; where that takes too long too, it is left out."""
    rng, y = np.random.default_rng(0), np.arange(90) % 3
    X = csr_array(np.pad(rng.poisson(1.0 + rng.random((3, 30))[y]), ((0, 0), (0, 1200))) * 1.0)
    for each, expected in ((20.0, 1.0), (90.0, None)):
        monkeypatch.setattr(baselines, "allowed_seconds", lambda _: 100.0)
        monkeypatch.setattr(baselines._Trial, "_seconds_of_a_fit", lambda *_, each=each: each)
        monkeypatch.setattr(baselines._Trial, "_fitted", lambda *_: (1.0, 0.0))
        found = dhsk.cross_validate(X, y, cv=2).baselines
        several = [one for one in methods.OF_COUNTS if len(one.C) > 1]  # the others fit once
        assert {one.C for one in found.tried} == ({expected, None} if expected else set())
        assert len(found.left_out) == len(several if expected else methods.OF_COUNTS)
        said = "at C = 0.1, 10 (with which it takes about 2 min" if expected else " takes about "
        assert all(said in one for one in found.left_out)


def test_the_power_of_seconds_is_told_by_two_small_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within its limits: what grew with the square on few samples may not on more."""
    made = object.__new__(baselines._Trial)
    made.method = methods.SCALED_RBF
    made.workers = 1
    data = SimpleNamespace(train=lambda _: np.zeros(16_000), X=np.zeros((1, 1)))
    made.data = data  # type: ignore[assignment]
    for less, power in ((0.25 / 4**1.7, 1.7), (0.2, 1.5), (1e-9, 2.0)):
        spent = {1000: 0.25, 250: less}
        monkeypatch.setattr(
            baselines._Trial, "_trial", lambda _, most, spent=spent: (most, spent[most])
        )
        assert made._seconds_of_a_fit(0.0) == pytest.approx(0.25 * 16**power)
        assert made._seconds_of_a_fit(1e9) == pytest.approx(0.25 * 16**2)


def test_a_first_small_fit_that_loads_libraries_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where its method would be left out by it; not where that takes long."""
    made = object.__new__(baselines._Trial)
    made.method = methods.SCALED_RBF
    made.workers = 1
    data = SimpleNamespace(train=lambda _: np.zeros(240), X=np.zeros((1, 1)))
    made.data = data  # type: ignore[assignment]
    for first, tries, expected in ((1.9, 2, 0.1), (2.1, 1, 2.1), (0.9, 1, 0.9)):
        spent = iter((first, 0.1))
        monkeypatch.setattr(baselines._Trial, "_trial", lambda *_, spent=spent: (240, next(spent)))
        assert made._seconds_of_a_fit(1.0) == expected
        assert len(list(spent)) == 2 - tries
