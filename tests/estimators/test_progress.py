"""What the fits of estimators report, and that they say nothing unless asked."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import dhsk
from dhsk.progress import Progress
from dhsk.solvers import eigenpairs

GP = dhsk.HeatGaussianProcessRegressor

ESTIMATORS = {
    "ridge": (dhsk.HeatKernelRidge(0.1, preconditioner_rank=4), {"landmarks", "passes"}),
    "process": (GP(), {"likelihoods"}),
    "iterative": (GP(solver="iterative", preconditioner_rank=4), {"landmarks", "passes"}),
    "pca": (dhsk.HeatKernelPCA(2), {"passes"}),
    "clustering": (dhsk.HeatSpectralClustering(2, n_init=1), {"passes"}),
    "one class": (dhsk.HeatOneClassSVM(), {"tiles"}),
    "features": (dhsk.NystromFeatures(8, random_state=0), {"landmarks"}),
    "exact": (dhsk.HeatSVC(), {"reading"}),
    "low rank": (dhsk.NystromSVC(8, random_state=0), {"landmarks", "training"}),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits_report_their_stages(
    name: str,
    counts: Any,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """All of them end; a fit without progress is silent and has the same result."""
    monkeypatch.setattr(eigenpairs, "SMALL", 20)
    model, stages = ESTIMATORS[name]
    X, y = counts(120, 6), np.arange(120) % 2
    seen: list[Progress] = []
    told = clone(model).fit(X, y, progress=seen.append)
    ends = {event.stage: event for event in seen}
    assert stages <= set(ends)
    assert all(event.done == event.total for event in ends.values()), ends
    silent = clone(model).fit(X, y)
    assert capfd.readouterr() == ("", "")
    method = next(m for m in ("predict", "transform", "fit_predict") if hasattr(model, m))
    np.testing.assert_array_equal(getattr(told, method)(X), getattr(silent, method)(X))


def test_likelihoods_are_counted_and_their_passes_too(counts: Any) -> None:
    """With what was found so far; each solve of a fit says whose it is."""
    X = counts(60, 6)
    seen: list[Progress] = []
    fitted = GP(0.8, "auto").fit(X, X[:, 0], progress=seen.append)
    told = [event for event in seen if event.stage == "likelihoods"]
    assert [event.done for event in told[:-1]] == list(range(1, fitted.n_iter_ + 1))
    assert told[-1] == Progress("likelihoods", fitted.n_iter_, fitted.n_iter_)
    assert "log likelihood -" in told[0].detail
    seen.clear()
    GP(0.8, "auto", solver="iterative").fit(X, X[:, 0], progress=seen.append)
    assert any("likelihood 2, residual" in event.detail for event in seen)


def test_standard_deviations_report_their_systems(counts: Any) -> None:
    """Which samples they are of."""
    X = counts(60, 6)
    fitted = GP(solver="iterative", preconditioner_rank=0).fit(X, X[:, 0])
    seen: list[Progress] = []
    fitted.predict(X[:20], return_std=True, progress=seen.append)
    assert seen[-1].detail.startswith("samples 0 to 20 of 20, residual ")
    assert seen[-1].done == seen[-1].total > 0
