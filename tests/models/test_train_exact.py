"""Training on working sets: the same model on threads, on workers, and after it was killed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dhsk
from dhsk.progress import Progress

N = 3_000


@pytest.fixture(autouse=True)
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets begin with few samples, and are used for these few samples too."""
    for name, count in (("FIRST", 128), ("LEAST", 128), ("SPARE", 32), ("JOINING", 64)):
        monkeypatch.setattr(f"dhsk.solvers.working_set.{name}", count)
    monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 64)
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)


def samples(classes: int, n: int = N) -> tuple[NDArray[Any], NDArray[Any]]:
    """Counts of words that are more frequent in a class, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    rates = 1.0 + 3.0 * rng.random((classes, 30))
    return rng.poisson(rates[y]).astype(float) + 0.1, y


def model(**options: Any) -> dhsk.HeatSVC:
    """Estimator of these tests."""
    return dhsk.HeatSVC(C=10.0, **options)


def arrays_of(fitted: dhsk.HeatSVC) -> dict[str, Any]:
    """Everything that the file of a model has."""
    return dict(fitted.model_.to_arrays()[1], rows=fitted.support_vectors_)


def assert_equal(first: dhsk.HeatSVC, second: dhsk.HeatSVC) -> None:
    """Equal bits."""
    a, b = arrays_of(first), arrays_of(second)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 4])
def test_the_model_is_that_of_whole_matrices(
    classes: int, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On threads and on workers: support vectors, decisions and objectives to the tolerance."""
    X, y = samples(classes)
    found = [model(tol=1e-5).fit(X, y), model(tol=1e-5, client=client).fit(X, y)]
    monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", N)
    whole = model(tol=1e-5).fit(X, y)
    objective = whole.model_.certificates.objective
    for fitted in found:
        assert fitted.converged_
        np.testing.assert_allclose(fitted.model_.certificates.objective, objective, rtol=1e-6)
        np.testing.assert_allclose(
            fitted.decision_function(X[:200]), whole.decision_function(X[:200]), atol=1e-3
        )


@pytest.mark.slow
def test_bits_do_not_depend_on_workers() -> None:
    """One process or three."""
    X, y = samples(3)
    found = []
    for workers in (1, 3):
        with dhsk.connect("local", n_workers=workers) as cluster:
            found.append(model(client=cluster).fit(X, y))
    assert_equal(*found)


class _KilledError(Exception):
    """Stands for the end of a process."""


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("anywhere", ["threads", "client"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_killed_fit_goes_on(anywhere: str, rounds: int, tmp_path: Path, client: Any) -> None:
    """The same call ends with the model of an uninterrupted one, bit for bit."""
    X, y = samples(3)
    options = {"client": client} if anywhere == "client" else {}
    whole = model(**options).fit(X, y)
    seen: list[Progress] = []

    def kill(event: Progress) -> None:
        if event.stage.startswith("columns"):
            seen.append(event)
            if len(seen) == rounds:
                raise _KilledError

    with pytest.raises(_KilledError):
        model(**options).fit_samples(X, y, kill, tmp_path / "part")
    assert list((tmp_path / "part").glob("exact-*.npz"))
    resumed: list[Progress] = []
    again = model(**options).fit_samples(X, y, resumed.append, tmp_path / "part")
    assert_equal(whole, again)
    columns = [event for event in resumed if event.stage.startswith("columns")]
    assert columns[0].done > seen[-1].done  # it does not begin anew
    assert columns[-1].done == columns[-1].total


@pytest.mark.slow
def test_a_checkpoint_of_another_fit_is_not_used(tmp_path: Path) -> None:
    """Other labels, C or samples begin anew, though the folder is the same."""
    X, y = samples(2)
    model().fit_samples(X, y, journal=tmp_path)
    for C, own_X, own_y in ((1.0, X, y), (10.0, X + 0.5, y), (10.0, X, 1 - y)):
        expected = dhsk.HeatSVC(C=C).fit(own_X, own_y)
        found = dhsk.HeatSVC(C=C).fit_samples(own_X, own_y, journal=tmp_path)
        assert_equal(expected, found)


def test_progress_says_what_is_known() -> None:
    """Support vectors, the violation, and columns of all: of those expected, in the end all."""
    X, y = samples(2)
    events: list[Progress] = []
    fitted = model().fit_samples(X, y, events.append)
    columns = [event for event in events if event.stage == f"columns of {N:,}"]
    assert f"{len(fitted.support_):,} support vectors" in columns[-1].detail
    assert f"{fitted.kkt_violation_:.1e}" in columns[-1].detail
    assert all(event.done < event.total for event in columns[:-1])
