"""What the fits of estimators report, and that they say nothing unless asked."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.cluster import KMeans

import dhsk
from dhsk.progress import Progress
from dhsk.solvers import box_solver, eigenpairs

GP = dhsk.HeatGaussianProcessRegressor
NF = dhsk.NystromFeatures

ESTIMATORS = {
    "ridge": (dhsk.HeatKernelRidge(0.1, preconditioner_rank=4), {"landmarks", "passes"}),
    "process": (GP(0.8), {"likelihoods"}),
    "iterative": (GP(0.8, solver="iterative", preconditioner_rank=4), {"landmarks", "passes"}),
    "pca": (dhsk.HeatKernelPCA(2), {"passes"}),
    "density": (dhsk.HeatKernelDensity(), {"reading", "blocks"}),
    "neighbors": (dhsk.HeatKernelNeighbors(), {"reading"}),
    "clustering": (dhsk.HeatSpectralClustering(2, n_init=1), {"passes", "clusterings"}),
    "one class": (dhsk.HeatOneClassSVM(), {"tiles", "training"}),
    "features": (dhsk.NystromFeatures(8, random_state=0), {"landmarks"}),
    "uniform": (NF(8, selection="uniform", random_state=0), {"features"}),
    "centres": (NF(8, selection="kmeans", random_state=0), {"clustering", "features"}),
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
    method = next(
        m for m in ("predict", "transform", "fit_predict", "score_samples") if hasattr(model, m)
    )
    results = (getattr(one, method)(X) for one in (told, silent))
    found, expected = (one.toarray() if issparse(one) else one for one in results)
    np.testing.assert_array_equal(found, expected)


def test_starts_of_k_means_are_counted(counts: Any) -> None:
    """The labels are those of scikit-learn's starts, the best of which is taken."""
    model = dhsk.HeatSpectralClustering(5, n_init=4, random_state=3)
    seen: list[Progress] = []
    model.fit(counts(120, 6), progress=seen.append)
    told = list(dict.fromkeys(event for event in seen if event.stage == "clusterings"))
    assert told == [Progress("clusterings", done, 4) for done in range(5)]
    expected = KMeans(5, n_init=4, random_state=3).fit(model.embedding_)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_a_one_class_fit_reports_its_violation(
    counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never goes back, also where steps are few between two reports."""
    monkeypatch.setattr(box_solver, "READ_AT_ONCE", 0)
    monkeypatch.setattr(box_solver, "LEAST_AT_ONCE", 1)
    X = counts(200, 6)
    seen: list[Progress] = []
    often = dhsk.HeatOneClassSVM(0.3).fit(X, progress=seen.append)
    told = [event for event in seen if event.stage == "training"]
    done = [event.done for event in told]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, told[-1].total) == (0, 1000)
    assert any(0 < share < 900 for share in done)
    assert told[-1].detail == f"violation {often.kkt_violation_ / often.unit_:.1e} of 1e-03"
    monkeypatch.undo()
    once = dhsk.HeatOneClassSVM(0.3).fit(X)
    assert once.n_iter_ == often.n_iter_
    np.testing.assert_array_equal(once.dual_coef_, often.dual_coef_)


def test_features_of_samples_are_counted_in_a_block(
    counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their rows; `transform` takes no argument for it."""
    monkeypatch.setattr("dhsk.nystrom.features.ROWS", 16)
    X = counts(40, 6)
    model = NF(8, random_state=0).fit(X)
    seen: list[Progress] = []
    with dhsk.show_progress(seen.append):
        model.transform(X)
    assert seen == [Progress("features", done, 40) for done in (0, 16, 32, 40)]


def test_likelihoods_are_counted_and_their_passes_too(counts: Any) -> None:
    """With what was found so far; each solve of a fit says whose it is."""
    X = counts(60, 6)
    seen: list[Progress] = []
    fitted = GP(0.8, "auto").fit(X, X[:, 0], progress=seen.append)
    told = list(dict.fromkeys(event for event in seen if event.stage == "likelihoods"))
    assert [event.done for event in told[:-1]] == list(range(1, fitted.n_iter_ + 1))
    assert told[-1] == Progress("likelihoods", fitted.n_iter_, fitted.n_iter_)
    assert "log likelihood -" in told[0].detail
    seen.clear()
    GP(0.8, "auto", solver="iterative").fit(X, X[:, 0], progress=seen.append)
    assert any("likelihood 2, residual" in event.detail for event in seen)


@pytest.mark.slow
def test_standard_deviations_report_their_systems(counts: Any) -> None:
    """Which samples they are of."""
    X = counts(60, 6)
    fitted = GP(0.8, solver="iterative", preconditioner_rank=0).fit(X, X[:, 0])
    seen: list[Progress] = []
    fitted.predict(X[:20], return_std=True, progress=seen.append)
    assert seen[-1].detail.startswith("samples 0 to 20 of 20, residual ")
    assert seen[-1].done == seen[-1].total > 0
