"""One-class SVM: scikit-learn's contract, LIBSVM's problem, and its certificate."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM

import dhsk
from dhsk.errors import BudgetError, InputError
from dhsk.estimators.one_class import HeatOneClassSVM
from dhsk.solvers import box_solver

TIGHT = 1e-9
"""KKT violation of fits that are compared."""

FLOAT32_CACHE = 1e-6
"""LIBSVM keeps kernel rows in float32, and so its optimum is off by some 1e-7 of its objective."""


@pytest.fixture
def data(counts: Callable[[int, int], Any], rng: np.random.Generator) -> tuple[Any, Any]:
    """Counts and weights; the last 50 rows are not for fitting."""
    return counts(250, 20), rng.uniform(0.2, 3.0, 200)


def matrices(X: Any) -> tuple[Any, Any]:
    """Kernel of the first 200 rows, and of all with them."""
    rows, kernel = dhsk.hyperspherical_map(X), dhsk.HeatKernel.at_scale(20, 1.0)
    return kernel(rows[:200]), kernel(rows, rows[:200])


@pytest.mark.parametrize("nu", [0.01, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_answers_are_those_of_libsvm(data: Any, nu: float, weighted: bool, sparse: bool) -> None:
    """Objective, decisions and predictions on the same matrix."""
    X, weights = data[0], data[1] if weighted else None
    K, cross = matrices(X)
    exact = OneClassSVM(nu=nu, kernel="precomputed", tol=TIGHT).fit(K, sample_weight=weights)
    model = HeatOneClassSVM(nu=nu, time_scale=1.0, tol=TIGHT)
    model.fit(csr_array(X[:200]) if sparse else X[:200], sample_weight=weights)
    b = np.zeros(200)
    b[exact.support_] = exact.dual_coef_[0]
    np.testing.assert_allclose(model.objective_, b @ K @ b / 2, rtol=FLOAT32_CACHE)
    size = FLOAT32_CACHE * nu * (200 if weights is None else weights.sum())
    np.testing.assert_allclose(model.offset_, exact.offset_, atol=size)
    expected = exact.decision_function(cross)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=size)
    clear = np.abs(expected) > size
    assert clear[200:].all()
    assert np.array_equal(model.predict(X)[clear], exact.predict(cross)[clear])
    assert set(model.predict(X)) == {-1, 1}


def test_solution_is_feasible_and_certified(data: Any) -> None:
    """Coefficients keep their bounds and their sum, and the violation is that of the definition."""
    X, weights = data
    K, _ = matrices(X)
    model = HeatOneClassSVM(nu=0.3, time_scale=1.0).fit(X[:200], sample_weight=weights)
    b = np.zeros(200)
    b[model.support_] = model.dual_coef_
    assert (b >= 0).all()
    assert (b <= weights).all()
    assert b.sum() == pytest.approx(0.3 * weights.sum(), rel=1e-12)
    product = K @ b
    violation = product[b > 0].max() - product[b < weights].min()
    assert model.kkt_violation_ == pytest.approx(violation, abs=1e-10)
    assert 0 < model.kkt_violation_ <= model.tol


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.6])
def test_nu_bounds_outliers_and_support(data: Any, nu: float) -> None:
    """At most a share nu lies outside, and at least as many are support vectors."""
    model = HeatOneClassSVM(nu=nu, time_scale=1.0, tol=1e-8)
    outside = model.fit(data[0]).decision_function(data[0]) < -1e-7
    assert outside.mean() <= nu <= len(model.support_) / 250


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("nu", [0.05, 0.2, 0.6])
def test_the_boundary_is_inside(data: Any, nu: float, dtype: str) -> None:
    """Samples within their bounds lie on it, and are inliers however they are scored."""
    model = HeatOneClassSVM(nu=nu, time_scale=1.0, dtype=dtype).fit(data[0])
    free = model.support_[model.dual_coef_ < 1]
    assert len(free) > 2
    for samples in (data[0][free], data[0][free[::-1]], data[0][free[:1]]):
        assert (model.predict(samples) == 1).all()
    assert (model.predict(data[0]) == -1).mean() <= nu


def test_weights_are_repeats(data: Any) -> None:
    """A sample of weight w decides as w samples do, and one of weight 0 as none."""
    X, rng = data[0][:60], np.random.default_rng(1)
    weights = rng.integers(0, 4, 60)
    weighted = HeatOneClassSVM(tol=TIGHT).fit(X, sample_weight=weights)
    repeated = HeatOneClassSVM(tol=TIGHT).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(
        weighted.decision_function(data[0]), repeated.decision_function(data[0]), atol=100 * TIGHT
    )
    assert (weights[weighted.support_] > 0).all()


def test_all_samples_at_their_bounds(data: Any) -> None:
    """With nu = 1 there is one solution, and a finite offset: none is inside by more than 0."""
    X, weights = data[0][:200], data[1]
    model = HeatOneClassSVM(nu=1.0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(model.dual_coef_, weights, rtol=1e-12)
    decisions = model.decision_function(X)
    assert decisions.max() == pytest.approx(0.0, abs=1e-9)
    assert model.kkt_violation_ <= model.tol


def test_a_drifted_gradient_is_repaired(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver's own gradient is not believed: from a new one it goes on."""
    real, calls = box_solver.ascend, []

    def drifting(K: Any, bounds: Any, b: Any, f: Any, *rest: Any, zone: float) -> Any:
        calls.append(f.copy())
        if len(calls) == 1:
            f += np.linspace(0, 1, len(f))
        return real(K, bounds, b, f, *rest, zone=zone)

    exact = HeatOneClassSVM(tol=1e-8).fit(data[0])
    monkeypatch.setattr(box_solver, "ascend", drifting)
    model = HeatOneClassSVM(tol=1e-8).fit(data[0])
    assert len(calls) == 3  # the last goes on beyond the tolerance
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-8)
    assert model.kkt_violation_ <= 1e-8


def test_too_few_steps_warn(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solution that is not optimal is said to be none, with the numbers."""

    def idle(*_: Any, zone: float) -> tuple[int, float]:
        return 0, 0.0

    monkeypatch.setattr(box_solver, "ascend", idle)
    with pytest.warns(ConvergenceWarning, match=r"after 0 steps with a violation of .* tol=0.001"):
        HeatOneClassSVM().fit(data[0])


def test_single_precision(data: Any) -> None:
    """In float32 decisions move by what the rounded matrix moves them."""
    double = HeatOneClassSVM(tol=1e-6).fit(data[0])
    single = HeatOneClassSVM(tol=1e-6, dtype="float32").fit(data[0])
    assert single.support_vectors_.dtype == np.float32
    # A cosine is off by up to dim eps, an entry by that times the slope 1/(2 time).
    entry = 20 * 1.2e-7 / (2 * double.kernel_.time)
    bound = 4 * entry * 0.5 * 250
    decisions = single.decision_function(data[0])
    assert decisions.dtype == np.float64
    np.testing.assert_allclose(decisions, double.decision_function(data[0]), atol=bound)


def test_blocks_do_not_show(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores in small blocks are those in one."""
    model = HeatOneClassSVM().fit(data[0])
    whole = model.score_samples(data[0])
    monkeypatch.setattr("dhsk.models.predict.ROWS", 48)
    monkeypatch.setattr("dhsk.models.combined.COMBINED_COLUMNS", 32)
    np.testing.assert_allclose(model.score_samples(data[0]), whole, rtol=1e-12)


def test_what_does_not_fit_is_solved_on_blocks(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same optimum; what does not leave room for the smallest block is refused."""
    X = data[0]
    whole = HeatOneClassSVM(tol=1e-8).fit(X)
    # A limit is for the whole process, of which a matrix of 250 samples is a small part.
    monkeypatch.setattr("dhsk.execution.run.Run.room", 400_000)
    sets = HeatOneClassSVM(tol=1e-8).fit(X)
    assert sets.converged_
    assert sets.kkt_violation_ <= 1e-8 < sets.n_iter_
    assert sets.objective_ == pytest.approx(whole.objective_, rel=1e-10)
    np.testing.assert_allclose(sets.score_samples(X), whole.score_samples(X), atol=1e-7)
    monkeypatch.setattr("dhsk.execution.run.Run.room", 90_000)
    match = r"a fit of 250 samples take 96\.00 kiB but 87\.89 kiB of memory are left: allow"
    with pytest.raises(BudgetError, match=match):
        HeatOneClassSVM().fit(X)
    HeatOneClassSVM(dtype="float32").fit(X)


def test_memory_is_that_of_the_process(data: Any) -> None:
    """As in every estimator: what the process holds already counts."""
    with pytest.raises(BudgetError, match=r"samples take 39\.06 kiB but 0 B .* fewer samples"):
        HeatOneClassSVM(memory="1MB").fit(data[0])


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"nu": 0.0}, "nu must be above 0, but it is 0.0"),
        ({"nu": 1.5}, "nu must be at most 1, but it is 1.5"),
        ({"nu": None}, "nu must be a finite number"),
        ({"tol": 0.0}, "tol must be above 0"),
        ({"dtype": "half"}, "dtype must be 'float32' or 'float64', but it is 'half'"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], match: str) -> None:
    """Before the samples are even looked at, with the parameter and its value."""
    with pytest.raises(InputError, match=match):
        HeatOneClassSVM(**parameters).fit("no samples")


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_a_bad_row_is_named(data: Any, value: float) -> None:
    """In fit, even where rows before it have weight 0, and in predict, where counts are clipped."""
    X = data[0].copy()
    X[7, 3] = value
    weights = np.r_[np.zeros(5), np.ones(245)]
    match = rf"row 7, column 3 \(counted from 0\) holds {value}"
    with pytest.raises(InputError, match=match):
        HeatOneClassSVM().fit(X, sample_weight=weights)
    if value != -1:
        with pytest.raises(InputError, match=match):
            HeatOneClassSVM().fit(data[0]).predict(X)


def test_a_nearly_constant_kernel_is_the_linear_one(data: Any) -> None:
    """At a large time, where values differ from 1 by 1e-13: the outliers are those of LIBSVM.

    On the cosines, to which the kernel is then proportional but for a constant.
    """
    X = data[0][:200]
    kernel = dhsk.HeatKernel.at_scale(X.shape[1], 9.0)
    assert kernel.nonlinearity < 1e-6
    rows = np.asarray(dhsk.hyperspherical_map(X))
    slope = -float(kernel.of_cosine_minus_one(0.0))
    assert slope < 1e-8
    model = HeatOneClassSVM(nu=0.2, kernel=kernel, tol=1e-6).fit(X)
    peer = OneClassSVM(nu=0.2, kernel="precomputed", tol=1e-6).fit(rows @ rows.T)
    expected = peer.decision_function(rows @ rows.T)
    np.testing.assert_allclose(model.decision_function(X) / slope, expected, atol=1e-4)
    clear = np.abs(expected) > 1e-4
    np.testing.assert_array_equal(model.predict(X)[clear], peer.predict(rows @ rows.T)[clear])
    assert 0.1 < (model.predict(X) == -1).mean() <= 0.2
    np.testing.assert_allclose(
        model.score_samples(X) - model.offset_, model.decision_function(X), atol=1e-13
    )
