"""Rows of a kernel: the scores of scikit-learn fold by fold, certificates, and names."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dhsk
from dhsk.execution.memory import MemoryNeed, Share
from dhsk.execution.threads import Threads
from dhsk.models.pair_fits import PairSolver
from dhsk.models.pair_tasks import MatrixProblem
from dhsk.results.columns import KernelColumns
from dhsk.solvers.sources import ArraySource
from dhsk.validation.cells import Cells, names_of, rows_of_kernel
from dhsk.validation.folds import divide
from dhsk.validation.grid import make_grid

TOL, VALUES_OF_C = 1e-8, (0.5, 20.0)
NAMES = KernelColumns("heat", "heat s=0.5", time_scale=0.5)


@pytest.fixture(scope="module")
def problem() -> tuple[Any, Any]:
    """Matrix of 150 digits of three classes with some wrong labels, and these."""
    X, y = load_digits(n_class=3, return_X_y=True)
    rng = np.random.default_rng(3)
    y = np.where(rng.random(150) < 0.1, rng.integers(0, 3, 150), y[:150])
    return np.asarray(dhsk.HeatKernel.at_scale(64, 0.5)(dhsk.hyperspherical_map(X[:150]))), y


def cells(K: Any, y: Any, *, unit: float = 1.0, C_scaled: Any = None, **options: Any) -> Cells:
    """Rows of a matrix that was divided by a unit."""
    grid = make_grid(divide(len(y), y, 3), VALUES_OF_C, tol=TOL, **options)
    source = ArraySource(K / unit)
    matrix = MatrixProblem(source, tuple(grid.C), unit)
    share = Share(MemoryNeed("fits", {}), 1, room=10**9)
    solver = PairSolver(grid.y, grid.weights, TOL, [matrix], Threads(1), share, balls=True)
    ((_, solved),) = solver.solved()
    held_out = solver.held_out(0, solved, [test for _, test in grid.folds])
    grid = replace(grid, C_scaled=C_scaled)
    return rows_of_kernel(held_out, grid, solver.pairs(), solved, NAMES)


def fold_fits(K: Any, y: Any) -> Any:
    """scikit-learn's machine of each fold and C, and what the fold holds out."""
    grid = make_grid(divide(len(y), y, 3), VALUES_OF_C, tol=TOL)
    for fold, (train, test) in enumerate(grid.folds):
        for C in VALUES_OF_C:
            svc = SVC(C=C, kernel="precomputed", tol=TOL)
            yield fold, C, svc.fit(K[np.ix_(train, train)], y[train]), train, test


def test_scores_and_labels_are_those_of_scikit_learn(problem: Any) -> None:
    """A row for each fold and C, fold by fold, and the classes that it predicts."""
    K, y = problem
    found = cells(K, y)
    assert len(found.rows) == len(found.predicted) == 6
    for row, predicted, (fold, C, svc, train, test) in zip(
        found.rows, found.predicted, fold_fits(K, y), strict=True
    ):
        assert (row.fold, row.C, row.label) == (fold, C, "heat s=0.5")
        assert predicted == svc.predict(K[np.ix_(test, train)]).tolist()
        assert row.score == np.mean(predicted == y[test])


def test_certificates_are_of_the_worst_pair(problem: Any) -> None:
    """Support vectors of all pairs; the least margin is one over the largest norm."""
    K, y = problem
    for row, (_, _, svc, train, _) in zip(cells(K, y).rows, fold_fits(K, y), strict=True):
        assert row.n_support == len(svc.support_)
        own = K[np.ix_(train, train)][np.ix_(svc.support_, svc.support_)]
        starts = np.cumsum([0, *svc.n_support_])
        norms = []
        for i in range(3):
            for j in range(i + 1, 3):
                a, b = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
                coef = np.zeros(len(svc.support_))
                coef[a], coef[b] = svc.dual_coef_[j - 1, a], svc.dual_coef_[i, b]
                norms.append(math.sqrt(coef @ own @ coef))
        # LIBSVM keeps its matrix as float32.
        assert row.margin == pytest.approx(1 / max(norms), rel=1e-5)
        assert row.converged
        assert row.kkt is not None
        assert 0 <= row.kkt <= TOL
        assert 0 <= row.gap <= 1e-6
        assert row.n_iter > 0


def test_the_unit_of_the_matrix_changes_no_column(problem: Any) -> None:
    """Margins are lengths of the kernel itself, whatever the matrix was divided by."""
    K, y = problem
    for row, other in zip(cells(K, y).rows, cells(K, y, unit=1e-3).rows, strict=True):
        assert (other.C, other.score, other.n_support) == (row.C, row.score, row.n_support)
        assert other.margin == pytest.approx(row.margin, rel=1e-6)
        assert other.vc == row.vc
        assert other.effective == pytest.approx(row.effective, rel=1e-6)


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
def test_decisions_are_computed_in_the_memory_for_them(
    problem: Any, scoring: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All samples of a fold at once or a few, the rows are the same but for rounding."""
    whole = cells(*problem, scoring=scoring)
    monkeypatch.setattr("dhsk.solvers.sources.PANEL_ROWS", 7)
    parts = cells(*problem, scoring=scoring)
    assert parts.predicted == whole.predicted
    # The sigmoids of a log loss are iterated: some 1e4 eps of what their decisions are off.
    np.testing.assert_allclose(
        [row.score for row in parts.rows], [row.score for row in whole.rows], rtol=1e-10
    )


def test_scaled_values_of_C_stand_beside_the_values(problem: Any) -> None:
    """In the same order."""
    found = cells(*problem, C_scaled=(1.0, 40.0))
    assert [(row.C, row.C_scaled) for row in found.rows] == [(0.5, 1.0), (20.0, 40.0)] * 3
    assert {row.C_scaled for row in cells(*problem).rows} == {None}


@pytest.mark.parametrize(
    ("kernel", "label", "scale"),
    [
        (dhsk.HeatKernel.at_scale(64, 0.7), "heat s=0.7", 0.7),
        (dhsk.HeatKernel.at_scale(64, 1 / 3), "heat s=0.333333", pytest.approx(1 / 3, rel=1e-12)),
        (dhsk.ParametrixKernel.at_scale(64, 2, order=1), "parametrix s=2 order=1", 2.0),
        (dhsk.CosineKernel(), "cosine", None),
        (dhsk.GaussianKernel(2.5), "gaussian sigma=2.5", None),
    ],
)
def test_names_have_times_in_units_of_the_sweet_spot(kernel: Any, label: str, scale: Any) -> None:
    """A scale reads as it was typed; kernels without a time have none."""
    found = names_of(kernel, 64)
    assert (found.kernel, found.label, found.time_scale) == (kernel.name, label, scale)
    assert found.time == getattr(kernel, "time", None)
    assert found.sigma == getattr(kernel, "sigma", None)
