"""Gaussian process regression: scikit-learn's answers, estimates with errors, fits of time."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sklearn_kernels
from threadpoolctl import threadpool_limits

import dhsk
from dhsk.errors import InputError
from dhsk.estimators import gaussian_process
from dhsk.estimators.gaussian_process import HeatGaussianProcessRegressor
from dhsk.models.sources import RowsSource
from dhsk.solvers.sources import ArraySource

SAME = {"rtol": 0.0, "atol": 1e-8}
"""The bar beside scikit-learn."""

TIGHT = 1e-12
"""Tolerance of residuals at which the iterative solver meets it: 200 samples, noise 0.05."""

ERRORS = 5.0
"""Standard errors within which an estimate lies, but for one of a million seeds."""


class Precomputed(sklearn_kernels.Kernel):
    """A kernel of dhsk times an amplitude for scikit-learn, without hyperparameters."""

    def __init__(self, kernel: Any, amplitude: float) -> None:
        self.kernel, self.amplitude = kernel, amplitude

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Kernel matrix."""
        K = self.amplitude * self.kernel(X, *([] if Y is None else [Y]))
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: Any) -> Any:
        """Diagonal."""
        return np.diagonal(self(X)).copy()

    def is_stationary(self) -> bool:
        """Of no consequence."""
        return False


@pytest.fixture
def data(counts: Callable[[int, int], Any], rng: np.random.Generator) -> tuple[Any, Any]:
    """Counts, and two smooth targets with noise of variance 0.04."""
    X = counts(220, 12)
    shares = X / X.sum(axis=1, keepdims=True)
    y = np.stack([np.sin(20 * shares[:, 0]), 5 * shares[:, 1]], axis=1)
    return X, y + 0.2 * rng.normal(size=y.shape)


def oracle(model: Any, X: Any, y: Any) -> GaussianProcessRegressor:
    """scikit-learn's fit at the kernel, the noise and the amplitude of a fitted model."""
    return GaussianProcessRegressor(
        Precomputed(model.kernel_, model.amplitude_),
        alpha=model.noise_ * model.amplitude_,
        optimizer=None,
        normalize_y=model.normalize_y,
    ).fit(X, y)


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("amplitude", [2.5, "auto"])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("solver", ["cholesky", "iterative"])
def test_answers_are_those_of_scikit_learn(
    data: Any, normalize_y: bool, amplitude: Any, targets: int, solver: Any
) -> None:
    """Mean and standard deviation to 1e-8, and the likelihood exactly or within its error."""
    X, y = data[0], data[1][:, 0] if targets == 1 else data[1]
    prior = {"amplitude": amplitude, "normalize_y": normalize_y}
    model = HeatGaussianProcessRegressor(
        0.8, 0.05, **prior, solver=solver, tol=TIGHT, preconditioner_rank=40
    ).fit(X[:200], y[:200])
    rows = np.asarray(dhsk.hyperspherical_map(X))
    exact = oracle(model, rows[:200], y[:200])
    mean, std = model.predict(X[190:], return_std=True)
    expected, deviation = exact.predict(rows[190:], return_std=True)
    np.testing.assert_allclose(mean, expected, **SAME)
    np.testing.assert_allclose(std, deviation, **SAME)
    np.testing.assert_allclose(model.predict(X[190:]), expected, **SAME)
    likelihood = exact.log_marginal_likelihood_value_
    if solver == "cholesky":
        np.testing.assert_allclose(model.log_marginal_likelihood_value_, likelihood, **SAME)
        assert model.log_marginal_likelihood_error_ == model.residual_ == 0
    else:
        off = abs(model.log_marginal_likelihood_value_ - likelihood)
        assert 0 < off < ERRORS * model.log_marginal_likelihood_error_
        assert 0 < model.residual_ <= TIGHT
        assert model.rank_ == 40
    assert model.solver_ == solver
    assert model.n_iter_ == 1


def test_other_kernels_and_sparse_samples(data: Any) -> None:
    """Rows of other maps, kernels whose diagonal is not 1, CSR."""
    X, y = data
    kernel = dhsk.PolynomialKernel(2, 1.0)
    scaled = X / X.max()
    for solver in ("cholesky", "iterative"):
        model = HeatGaussianProcessRegressor(
            noise=0.1, kernel=kernel, solver=solver, tol=TIGHT, preconditioner_rank=30
        ).fit(csr_array(scaled[:200]), y[:200])
        exact = oracle(model, scaled[:200], y[:200])
        found = model.predict(csr_array(scaled[200:]), return_std=True)
        for own, other in zip(found, exact.predict(scaled[200:], return_std=True), strict=True):
            np.testing.assert_allclose(own, other, **SAME)
        assert np.isnan(model.gradient_[0])
        assert model.time_scale_ is None


@pytest.mark.parametrize("place", ["memory", "rows", "client"])
def test_where_the_matrix_is_does_not_show(
    data: Any, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory, computed in every pass, or on the workers of a client."""
    X, y = data

    def fitted(client: Any = None) -> Any:
        return HeatGaussianProcessRegressor(
            0.8, 0.05, solver="iterative", tol=TIGHT, preconditioner_rank=40, client=client
        ).fit(X[:200], y[:200])

    expected = HeatGaussianProcessRegressor(0.8, 0.05).fit(X[:200], y[:200])
    if place != "memory":
        monkeypatch.setattr("dhsk.execution.run.Run.room", 100_000)
    if place == "client":
        with Client(
            processes=False, n_workers=1, dashboard_address="127.0.0.1:0", set_as_default=False
        ) as client:
            model = fitted(client)
            assert model._matrices.gram is not None
            found = model.predict(X[200:], return_std=True)
    else:
        model = fitted()
        assert isinstance(model._matrices.of(model.kernel_), ArraySource | RowsSource)
        found = model.predict(X[200:], return_std=True)
    for own, other in zip(found, expected.predict(X[200:], return_std=True), strict=True):
        np.testing.assert_allclose(own, other, **SAME)
    exact, errors = expected.gradient_, model.gradient_error_
    assert (np.abs(model.gradient_ - exact) < ERRORS * errors).all()
    copied = pickle.loads(pickle.dumps(model))
    for own, other in zip(copied.predict(X[200:], return_std=True), found, strict=True):
        np.testing.assert_allclose(own, other, **SAME)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["cholesky", "iterative"])
def test_time_and_noise_are_fitted(data: Any, solver: Any) -> None:
    """The likelihood is at its maximum: the gradient vanishes, and neighbours are no better."""
    X, y = data
    model = HeatGaussianProcessRegressor("auto", "auto", solver=solver, preconditioner_rank=60).fit(
        X, y
    )
    slack = 0.3 + ERRORS * model.gradient_error_  # it ends where a step gains a hundredth
    assert (np.abs(model.gradient_) < slack).all()
    assert model.converged_
    assert model.n_iter_ > 3
    best = HeatGaussianProcessRegressor(model.time_scale_, model.noise_)
    value = best.fit(X, y).log_marginal_likelihood_value_
    value += ERRORS * model.log_marginal_likelihood_error_  # 0 if it is exact
    for time, noise in ((1.3, 1), (0.77, 1), (1, 1.3), (1, 0.77)):
        other = HeatGaussianProcessRegressor(model.time_scale_ * time, model.noise_ * noise).fit(
            X, y
        )
        assert other.log_marginal_likelihood_value_ < value
    for factor in (1.2, 0.8):
        other = HeatGaussianProcessRegressor(
            model.time_scale_, model.noise_, amplitude=factor * best.amplitude_
        ).fit(X, y)
        assert other.log_marginal_likelihood_value_ < value


def test_units_of_targets_do_not_matter_and_defaults_beat_the_mean() -> None:
    """A table of measurements with targets of 25 to 346: R^2 was -3.9 with an amplitude of 1."""
    X, y = load_diabetes(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    model = HeatGaussianProcessRegressor().fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.35
    raw = HeatGaussianProcessRegressor(normalize_y=False).fit(X[::2], y[::2])
    assert raw.score(X[1::2], y[1::2]) > 0.35
    scaled = HeatGaussianProcessRegressor(normalize_y=False).fit(X[::2], 1024 * y[::2])
    assert scaled.noise_ == pytest.approx(raw.noise_, rel=1e-3)  # the search ends a little earlier
    constant = HeatGaussianProcessRegressor(0.8, 0.1).fit(X, np.full(len(X), 3.0))
    assert constant.predict(X[:2]).tolist() == [3.0, 3.0]


def test_noise_alone_is_fitted(data: Any) -> None:
    """At a given time, which stays."""
    X, y = data
    model = HeatGaussianProcessRegressor(0.8, "auto").fit(X, y[:, 0])
    assert model.time_scale_ == pytest.approx(0.8)
    assert abs(model.gradient_[1]) < 0.3
    for factor in (1.2, 0.8):
        other = HeatGaussianProcessRegressor(0.8, model.noise_ * factor).fit(X, y[:, 0])
        assert other.log_marginal_likelihood_value_ < model.log_marginal_likelihood_value_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of three steps
def test_an_interrupted_fit_resumes_to_the_same_bits(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after any product, also of the derivative; only what was lost is computed again."""
    X, y = data[0][:100], data[1][:100]
    options: dict[str, Any] = {"solver": "iterative", "preconditioner_rank": 20, "noise": "auto"}
    product, done = ArraySource.product, []
    monkeypatch.setattr("dhsk.estimators.evidence.MOST_ITERATIONS", 3)
    whole = HeatGaussianProcessRegressor("auto", **options).fit(X, y)

    def counted(self: Any, V: Any) -> Any:
        done.append(V.shape)
        if len(done) in (4, 9, 30):
            raise KeyboardInterrupt
        return product(self, V)

    monkeypatch.setattr(ArraySource, "product", counted)
    model = HeatGaussianProcessRegressor("auto", journal=tmp_path / "journal", **options)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert list((tmp_path / "journal").glob("gaussian-process-*.npz"))
    model.fit(X, y)
    assert np.array_equal(model.dual_coef_, whole.dual_coef_)
    assert model.time_scale_ == whole.time_scale_
    assert model.log_marginal_likelihood_value_ == whole.log_marginal_likelihood_value_
    # Derivatives are other matrices; a line search may ask for a likelihood a second time.
    assert len(done) <= whole.n_passes_ - whole.n_iter_ + 3
    assert not list((tmp_path / "journal").glob("*"))


def test_interrupted_standard_deviations_resume_to_the_same_bits(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in any block of samples; blocks that are done are not computed again."""
    X, y = data
    monkeypatch.setattr("dhsk.estimators.posterior.AT_ONCE", 20)
    product, done, stops = ArraySource.product, list[int](), list[int]()
    model = HeatGaussianProcessRegressor(0.8, 0.01, solver="iterative", preconditioner_rank=20)
    model.fit(X[:140], y[:140])

    def counted(self: Any, V: Any) -> Any:
        done.append(V.shape[1])
        if len(done) in stops:
            raise KeyboardInterrupt
        return product(self, V)

    monkeypatch.setattr(ArraySource, "product", counted)
    expected, other = (model.predict(part, return_std=True)[1] for part in (X[140:], X[:20]))
    done.clear()
    model.predict(X[140:], return_std=True)
    whole = len(done)
    done.clear()
    model.journal = tmp_path / "journal"
    stops += [whole * k // 10 for k in (3, 6, 9)]
    for _ in stops:
        with pytest.raises(KeyboardInterrupt):
            model.predict(X[140:], return_std=True)
        assert list((tmp_path / "journal").glob("standard-deviations-*.npz"))
    found = model.predict(X[140:], return_std=True)[1]
    assert np.array_equal(found, expected)
    assert len(done) <= whole + len(stops) * whole // 4  # four blocks
    assert not list((tmp_path / "journal").glob("*"))
    stops.append(len(done) + whole // 8)
    with pytest.raises(KeyboardInterrupt):
        model.predict(X[140:], return_std=True)
    assert np.array_equal(model.predict(X[:20], return_std=True)[1], other)


def test_the_number_of_cores_does_not_change_a_bit(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a matrix in memory or computed by rows, in fits and in standard deviations."""
    X, y = data
    found = []
    for cores in (1, 2, 3):
        for module in ("regression", "posterior", "evidence"):
            monkeypatch.setattr(f"dhsk.estimators.{module}.core_count", lambda cores=cores: cores)
        with threadpool_limits(cores):
            model = HeatGaussianProcessRegressor(
                0.8, "auto", solver="iterative", preconditioner_rank=20, tol=1e-4
            ).fit(X, y)
            std = model.predict(X[:20], return_std=True)[1]
        found.append((model.noise_, model.dual_coef_.tobytes(), std.tobytes()))
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
def test_too_few_passes_warn(data: Any) -> None:
    """With the residual."""
    model = HeatGaussianProcessRegressor(noise=1e-4, solver="iterative", max_iter=3)
    with pytest.warns(ConvergenceWarning, match=r"systems did not converge: .*tol=1e-06"):
        model.fit(*data)
    assert not model.converged_


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"time_scale": "fast"}, 'time_scale must be "auto" or a number, but it is .fast'),
        ({"time_scale": 0.0}, "time_scale must be above 0"),
        ({"noise": "none"}, 'noise must be "auto" or a number'),
        ({"noise": 0.0}, "noise must be above 0"),
        ({"amplitude": 0.0}, "amplitude must be above 0"),
        ({"solver": "lu"}, "solver must be 'auto', 'cholesky' or 'iterative'"),
        ({"n_probes": 1}, "n_probes must be a whole number, at least 2"),
        ({"max_iter": 1}, "max_iter must be a whole number, at least 2"),
        ({"tol": 0.0}, "tol must be above 0"),
        ({"preconditioner_rank": "full"}, "preconditioner_rank must be"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(parameters: dict[str, Any], match: str) -> None:
    """Before the samples are even looked at."""
    with pytest.raises(InputError, match=match):
        HeatGaussianProcessRegressor(**parameters).fit("no samples", "no targets")


def test_indefinite_matrices_are_refused(counts: Callable[[int, int], Any]) -> None:
    """They are no covariances: said of the matrix, and of a kernel that is known to be none."""
    X = counts(300, 4)
    kernel = dhsk.ParametrixKernel(time=2.0, order=None, dim=4)
    with pytest.raises(InputError, match="not positive"):
        HeatGaussianProcessRegressor(noise=1e-6, kernel=kernel).fit(X, X[:, 0])


def test_many_samples_are_pointed_to_ridge_of_same_means(
    data: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ridge regression with the time and noise of a process has its means."""
    X, Y = data
    process = HeatGaussianProcessRegressor(noise=0.05).fit(X, Y)
    ridge = dhsk.HeatKernelRidge(alpha=process.noise_, time_scale=process.time_scale_).fit(X, Y)
    np.testing.assert_allclose(ridge.predict(X), process.predict(X), rtol=0, atol=1e-8)
    monkeypatch.setattr(gaussian_process, "MANY", len(X) - 1)
    with pytest.warns(UserWarning, match=r"HeatKernelRidge\(alpha=process\.noise_"):
        HeatGaussianProcessRegressor(noise=0.05, time_scale=1.0).fit(X, Y)
