"""Kernel ridge regression: scikit-learn's contract and scikit-learn's answers."""

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from threadpoolctl import threadpool_limits

import dhsk
from dhsk.errors import InputError
from dhsk.estimators import regression, ridge
from dhsk.estimators.ridge import HeatKernelRidge
from dhsk.execution.workers import current_client
from dhsk.models import sources
from dhsk.models.gram_source import GramSource
from dhsk.solvers.sources import ArraySource

TOL = 1e-6
"""Default tolerance of conjugate gradients."""

TIGHT = 1e-12
"""Tolerance at which fits in another order of sums agree to `SAME`. Rounding leaves some eps times
the condition of K + alpha, 200 here and 1e4 at most: 1e-13 is out of reach of some processors."""

SAME = {"rtol": 0.0, "atol": 1e-9}  # 2 tol |y| sqrt(N) / alpha, 200 samples and alpha 1


@pytest.fixture
def data(counts: Callable[[int, int], Any], rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Counts, two targets and weights."""
    return counts(200, 15), rng.normal(size=(200, 2)), rng.uniform(0.1, 3.0, 200)


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it for matrices that do not fit; a limit is for the whole process, far above theirs."""
    return lambda: monkeypatch.setattr("dhsk.execution.run.Run.room", 200_000)


def oracle(model: HeatKernelRidge, X: Any, y: Any, new: Any, weights: Any = None) -> Any:
    """Coefficients and predictions of scikit-learn on the same matrix."""
    kernel = dhsk.HeatKernel.at_scale(15, model.time_scale)
    rows, others = dhsk.hyperspherical_map(X), dhsk.hyperspherical_map(new)
    centre = np.average(y, axis=0, weights=weights) if model.fit_intercept else 0.0
    exact = KernelRidge(alpha=model.alpha, kernel="precomputed").fit(
        kernel(rows), y - centre, weights
    )
    return exact.dual_coef_, exact.predict(kernel(others, rows)) + centre


def error_bound(model: HeatKernelRidge, y: Any, weights: Any = 1.0) -> float:
    """How far coefficients may be off: |inverse| <= 1 / alpha, in the norm of the weights."""
    size = np.sqrt((np.ones(len(y)) * weights) @ y**2).max()
    tol = TOL if model.tol == "auto" else model.tol
    return float(tol * size * np.sqrt(np.max(weights)) / model.alpha)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fits", [False, True])
def test_answers_are_those_of_scikit_learn(
    data: Any, weighted: bool, sparse: bool, fits: bool, no_room: Callable[[], None]
) -> None:
    """Coefficients and predictions, from a matrix in memory and from one computed every pass."""
    if not fits:
        no_room()
    X, y, weights = data[0], data[1], data[2] if weighted else None
    model = HeatKernelRidge(alpha=0.3, time_scale=0.8)
    given = csr_array(X) if sparse else X
    model.fit(given[:150], y[:150], None if weights is None else weights[:150])
    coef, predicted = oracle(model, X[:150], y[:150], X, None if weights is None else weights[:150])
    bound = error_bound(model, y[:150], 1.0 if weights is None else weights[:150])
    np.testing.assert_allclose(model.dual_coef_, coef, atol=bound)
    np.testing.assert_allclose(model.predict(given), predicted, atol=bound * np.sqrt(150))
    assert 0 < model.residual_ <= TOL


@pytest.mark.parametrize("targets", [1, 2])
def test_a_shift_of_the_targets_shifts_the_predictions(data: Any, targets: int) -> None:
    """Without an intercept they are drawn to 0, and targets about 1,000 are fitted worse."""
    X, y, weights = data
    y = y[:, 0] if targets == 1 else y
    shift = 1000.0 if targets == 1 else np.array([1000.0, -50.0])
    model = HeatKernelRidge(tol=TIGHT).fit(X, y, weights)
    shifted = HeatKernelRidge(tol=TIGHT).fit(X, y + shift, weights)
    np.testing.assert_allclose(shifted.predict(X), model.predict(X) + shift, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, np.average(y, axis=0, weights=weights))
    none = HeatKernelRidge(fit_intercept=False).fit(X, y + shift, weights)
    assert np.array_equal(none.intercept_, np.zeros_like(model.intercept_))
    assert none.score(X, y + shift) < model.score(X, y)


def test_one_target_stays_one_dimensional(data: Any) -> None:
    """Shapes follow those of y."""
    X, y, _ = data
    one, two = HeatKernelRidge(tol=TIGHT).fit(X, y[:, 0]), HeatKernelRidge(tol=TIGHT).fit(X, y)
    assert one.dual_coef_.shape == one.predict(X).shape == (200,)
    assert two.dual_coef_.shape == two.predict(X).shape == (200, 2)
    np.testing.assert_allclose(one.predict(X), two.predict(X)[:, 0], **SAME)


def test_weight_zero_is_absence(data: Any) -> None:
    """Samples of weight 0 are left out, to the last bit."""
    X, y, weights = data
    weights[::3] = 0
    kept = weights > 0
    some = HeatKernelRidge(tol=TIGHT).fit(X[kept], y[kept], weights[kept])
    all_ = HeatKernelRidge(tol=TIGHT).fit(X, y, weights)
    assert np.array_equal(all_.predict(X), some.predict(X))
    assert len(all_.X_fit_) == kept.sum()


def test_blocks_do_not_show(
    data: Any, monkeypatch: pytest.MonkeyPatch, no_room: Callable[[], None]
) -> None:
    """Matrices and predictions in small blocks are those in one."""
    X, y, _ = data
    whole = HeatKernelRidge(tol=TIGHT).fit(X, y).predict(X)
    monkeypatch.setattr(sources, "EDGE", 64)
    monkeypatch.setattr("dhsk.models.predict.ROWS", 48)
    monkeypatch.setattr("dhsk.models.combined.COMBINED_COLUMNS", 32)
    for limit in (lambda: None, no_room):
        limit()
        parts = HeatKernelRidge(tol=TIGHT).fit(X, y).predict(X)
        np.testing.assert_allclose(parts, whole, **SAME)


def test_a_stored_matrix_gives_the_same(data: Any, tmp_path: Path) -> None:
    """A named store is filled, found again, and read in every pass."""
    X, y, weights = data
    weights[5] = 0
    here = HeatKernelRidge(tol=TIGHT).fit(X, y, weights).predict(X)
    for _ in range(2):
        stored = HeatKernelRidge(tol=TIGHT, store=tmp_path / "gram").fit(X, y, weights).predict(X)
        np.testing.assert_allclose(stored, here, **SAME)
    assert dhsk.open_gram(tmp_path / "gram").shape == (199, 199)


@pytest.mark.slow
def test_workers_compute_what_does_not_fit(
    data: Any, monkeypatch: pytest.MonkeyPatch, no_room: Callable[[], None]
) -> None:
    """With a client the passes run on its workers, and nothing is stored."""
    X, y, _ = data
    here = HeatKernelRidge(tol=TIGHT).fit(X, y).predict(X)
    no_room()
    clients: list[Any] = []

    class Recorder(GramSource):
        def product(self, V: Any) -> Any:
            clients.append(current_client())
            return super().product(V)

    monkeypatch.setattr("dhsk.estimators.regression.GramSource", Recorder)
    with Client(
        processes=False, n_workers=1, dashboard_address="127.0.0.1:0", set_as_default=False
    ) as own:
        model = HeatKernelRidge(tol=TIGHT, client=own).fit(X, y)
        assert clients == [own] * model.n_iter_
        assert clone(model).client is own
    np.testing.assert_allclose(model.predict(X), here, **SAME)
    assert pickle.loads(pickle.dumps(model)).client is None


@pytest.mark.parametrize("fits", [False, True])
def test_single_precision(data: Any, fits: bool, no_room: Callable[[], None]) -> None:
    """In float32 the answers move by what the rounded matrix moves them."""
    X, y, _ = data
    double = HeatKernelRidge().fit(X, y)
    if not fits:
        no_room()
    single = HeatKernelRidge(dtype="float32").fit(X, y)
    assert single.X_fit_.dtype == np.float32
    assert single.predict(X).dtype == np.float64
    # A cosine is off by up to dim eps, an entry by that times the slope 1/(2 time).
    entry = 15 * 1.2e-7 / (2 * double.kernel_.time)
    bound = 200 * entry * np.abs(double.dual_coef_).max() * 2 + error_bound(double, y) * 15
    np.testing.assert_allclose(single.predict(X), double.predict(X), atol=bound)
    assert not np.array_equal(single.predict(X), double.predict(X))


def test_too_few_passes_warn(data: Any) -> None:
    """The numbers are in the warning, and the unfinished model predicts."""
    X, y, _ = data
    model = HeatKernelRidge(alpha=1e-6, max_iter=5, preconditioner_rank=0)
    words = r"2 of 2 targets .* after 5 passes, tol=1e-06; .* or give preconditioner_rank=200"
    with pytest.warns(ConvergenceWarning, match=words):
        model.fit(X, y)
    assert model.n_iter_ == 5
    assert model.residual_ > TOL
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_few_samples_are_solved_directly_at_a_small_alpha(dtype: str) -> None:
    """Where 1,000 passes left a residual of 0.7: to the bar, with scikit-learn's predictions."""
    X, y = load_diabetes(return_X_y=True)
    X, kernel = (X / X.std(axis=0)), dhsk.GaussianKernel.at_gamma(0.01)
    alpha = 1e-6 if dtype == "float64" else 1e-2
    model = HeatKernelRidge(alpha, kernel=kernel, dtype=dtype, fit_intercept=False).fit(X, y)
    assert model.converged_
    assert model.rank_ == len(X)
    assert model.n_iter_ <= 5
    exact = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.01).fit(X, y)
    if dtype == "float64":
        # |K b - K exact| <= |residual|, as K (K + alpha)^-1 is at most 1.
        off = model.predict(X) - exact.predict(X)
        assert np.linalg.norm(off) <= 2 * TOL * np.linalg.norm(y)
    weights = 1.0 + np.arange(len(X)) % 3
    weighted = HeatKernelRidge(alpha, kernel=kernel, dtype=dtype).fit(X, y, weights)
    assert weighted.converged_
    iterated = HeatKernelRidge(1.0, kernel=kernel, preconditioner_rank=0, tol=TIGHT)
    direct = HeatKernelRidge(1.0, kernel=kernel, tol=TIGHT).fit(X, y, weights)
    np.testing.assert_allclose(
        direct.predict(X), iterated.fit(X, y, weights).predict(X), atol=1e-9 * np.abs(y).max()
    )


def test_an_indefinite_kernel_warns(counts: Callable[[int, int], Any]) -> None:
    """The parametrix expansion may be indefinite: that is said, not passed over."""
    X = counts(300, 4)
    kernel = dhsk.ParametrixKernel(time=2.0, order=None, dim=4)
    assert np.linalg.eigvalsh(kernel(dhsk.hyperspherical_map(X)))[0] < -1e-3
    with pytest.warns(ConvergenceWarning, match="not positive definite, so raise alpha"):
        HeatKernelRidge(alpha=1e-6, kernel=kernel).fit(X, X[:, 0] % 2)


def test_other_kernels_take_their_own_map(data: Any) -> None:
    """With sphere_map None the kernel says how rows are mapped."""
    X, y, _ = data
    kernel = dhsk.GaussianKernel(sigma=5.0)
    model = HeatKernelRidge(sphere_map=None, kernel=kernel, fit_intercept=False).fit(X, y)
    exact = KernelRidge(alpha=1.0, kernel="precomputed").fit(kernel(X), y)
    np.testing.assert_allclose(model.dual_coef_, exact.dual_coef_, atol=error_bound(model, y))


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"alpha": 0.0}, "alpha must be above 0, but it is 0.0"),
        ({"alpha": "1"}, "alpha must be a finite number"),
        ({"tol": -1e-3}, "tol must be above 0"),
        ({"preconditioner_rank": -1}, "preconditioner_rank must be a whole number, at least 0"),
        ({"preconditioner_rank": "full"}, "must be \"auto\" or a number, but it is 'full'"),
        ({"max_iter": 1}, "max_iter must be a whole number, at least 2"),
        ({"dtype": "float16"}, "dtype must be 'float32' or 'float64' or None, but it is 'float16'"),
        ({"memory": "much"}, "memory must be a positive size"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(parameters: dict[str, Any], match: str) -> None:
    """Before the samples are even looked at."""
    with pytest.raises(InputError, match=match):
        HeatKernelRidge(**parameters).fit("no samples", "no targets")


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"time_scale": 0.0}, "time_scale must be above 0"),
        ({"sphere_map": "flat"}, "there is no map 'flat'"),
        ({"kernel": dhsk.HeatKernel(5, 0.1)}, "dim 5 but X has 15 features"),
        (
            {"kernel": dhsk.PolynomialKernel(2, 1.0), "dtype": "float32"},
            "polynomial kernel takes no float32",
        ),
    ],
)
def test_kernels_that_do_not_go_with_samples_are_refused(
    data: Any, parameters: dict[str, Any], match: str
) -> None:
    """With the parameter and its value."""
    with pytest.raises(InputError, match=match):
        HeatKernelRidge(**parameters).fit(data[0], data[1])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("value", "match"),
    [
        (-1.0, "row 7, column 3 .* holds -1.0"),
        (np.nan, "row 7, column 3 .* holds nan"),
        (0, "zero"),
    ],
)
def test_a_bad_row_is_named(data: Any, value: float, match: str, sparse: bool) -> None:
    """In fit, even where rows before it have weight 0, and in predict, where counts are clipped."""
    X, y, weights = data
    weights[:5] = 0
    model = HeatKernelRidge(zero_rows="error").fit(X, y)
    wrong = X.copy()
    wrong[7, 3] = value
    if value == 0:
        wrong[7] = 0
        match = r"row 7 \(counted from 0\) is all zero"
    given = csr_array(wrong) if sparse else wrong
    with pytest.raises(InputError, match=match):
        HeatKernelRidge(zero_rows="error").fit(given, y, weights)
    if value != -1:
        with pytest.raises(InputError, match=match):
            model.predict(given)


def test_rows_off_the_sphere_are_refused(data: Any) -> None:
    """Unmapped rows of a spherical kernel must be unit vectors."""
    rows = np.asarray(dhsk.hyperspherical_map(data[0]))
    HeatKernelRidge(sphere_map="identity").fit(rows, data[1])
    rows[4] *= 1.1
    with pytest.raises(InputError, match=r"row 4 of X \(counted from 0\) has norm 1.1"):
        HeatKernelRidge(sphere_map="identity").fit(rows, data[1])


def test_one_weight_for_all(data: Any) -> None:
    """As scikit-learn's takes it: twice the weight is half of alpha."""
    weighted = HeatKernelRidge(1.0).fit(data[0], data[1], 2.0)
    halved = HeatKernelRidge(0.5).fit(data[0], data[1])
    np.testing.assert_allclose(weighted.predict(data[0]), halved.predict(data[0]), atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (-np.ones(200), r"is -1.0 for sample 0 \(counted from 0\)"),
        (np.zeros(200), "all sample weights are zero"),
        (np.ones(3), r"sample_weight has shape \(3,\), but it must be \(200,\)"),
    ],
)
def test_bad_weights_are_refused(data: Any, weights: Any, match: str) -> None:
    """Weights are one a sample, none below 0, some above."""
    with pytest.raises(InputError, match=match):
        HeatKernelRidge().fit(data[0], data[1], weights)


@pytest.mark.slow
@pytest.mark.parametrize("fits", [False, True])
def test_the_preconditioner_saves_passes_and_changes_nothing(
    counts: Callable[[int, int], Any],
    rng: np.random.Generator,
    fits: bool,
    no_room: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By default from 1,000 samples on: less than half the passes, the same coefficients."""
    X, y = counts(1000, 15), rng.normal(size=(1000, 2))
    if not fits:
        no_room()
        monkeypatch.setattr("dhsk.estimators.regression.usual_rank", lambda *_, **__: 200)
    plain = HeatKernelRidge(0.1, preconditioner_rank=0).fit(X, y)
    usual = HeatKernelRidge(0.1).fit(X, y)
    given = HeatKernelRidge(0.1, preconditioner_rank=100).fit(X, y)
    assert plain.rank_ == 0
    assert given.rank_ == 100
    assert usual.rank_ > 16
    assert max(usual.n_iter_, given.n_iter_) < plain.n_iter_ / 2
    for model in (usual, given):
        assert 0 < model.residual_ <= TOL
        bound = 2 * error_bound(model, y)
        np.testing.assert_allclose(model.dual_coef_, plain.dual_coef_, atol=bound)


def test_an_interrupted_fit_resumes_to_the_same_bits(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the folder of the journal, which is empty after the fit."""
    X, y, weights = data
    model = HeatKernelRidge(0.01, journal=tmp_path / "journal", preconditioner_rank=10)
    whole = HeatKernelRidge(0.01, preconditioner_rank=10).fit(X, y, weights)
    product, done = ArraySource.product, []

    def counted(self: Any, V: Any) -> Any:
        done.append(V.shape)
        if len(done) == 6:
            raise KeyboardInterrupt
        return product(self, V)

    monkeypatch.setattr(ArraySource, "product", counted)
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, weights)
    assert len(list((tmp_path / "journal").glob("ridge-*.npz"))) == 1
    model.fit(X, y, weights)
    assert np.array_equal(model.dual_coef_, whole.dual_coef_)
    assert model.n_iter_ == whole.n_iter_ == len(done) - 1
    assert not list((tmp_path / "journal").glob("*"))


@pytest.mark.parametrize("killed", range(1, 12))
def test_stopped_after_any_pass_it_resumes_to_the_same_bits(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: int
) -> None:
    """Where the next pass begins there is an entry, whatever was in flight is made again."""
    X, y, _ = data
    options: dict[str, Any] = {"alpha": 0.01, "preconditioner_rank": 10, "max_iter": 12}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = HeatKernelRidge(**options).fit(X, y)
        product, done = ArraySource.product, []

        def counted(self: Any, V: Any) -> Any:
            if len(done) == killed:
                done.append("killed")
                raise KeyboardInterrupt
            done.append("made")
            return product(self, V)

        monkeypatch.setattr(ArraySource, "product", counted)
        monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
        model = HeatKernelRidge(journal=tmp_path / "journal", **options)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        model.fit(X, y)
    assert model.dual_coef_.tobytes() == whole.dual_coef_.tobytes()
    assert done.count("made") == model.n_iter_ == whole.n_iter_ == 12
    assert not list((tmp_path / "journal").iterdir())


@pytest.mark.slow
def test_the_number_of_cores_does_not_change_a_bit(
    counts: Callable[[int, int], Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matrix in memory is multiplied by strips, not by as many threads as BLAS has."""
    X, y = counts(1300, 15), rng.normal(size=(1300, 2))
    found = []
    for cores in (1, 2, 3):
        monkeypatch.setattr("dhsk.estimators.regression.core_count", lambda cores=cores: cores)
        with threadpool_limits(cores):
            model = HeatKernelRidge(0.1, preconditioner_rank=20).fit(X, y)
        found.append((model.n_iter_, model.dual_coef_.tobytes()))
    assert found[0] == found[1] == found[2]


def test_answers_are_those_of_scikit_learn_to_eight_digits(data: Any) -> None:
    """Coefficients and predictions to 1e-8 of the largest, from the same kernel matrix."""
    X, y, weights = data
    for alpha, used in ((1.0, None), (0.01, None), (0.01, weights[:180])):
        model = HeatKernelRidge(alpha, 0.8, tol=TIGHT, max_iter=5000, fit_intercept=used is None)
        model.fit(X[:180], y[:180], used)
        exact = oracle(model, X[:180], y[:180], X, used)
        for own, other in zip((model.dual_coef_, model.predict(X)), exact, strict=True):
            assert np.abs(own - other).max() <= 1e-8 * np.abs(other).max()


@pytest.fixture
def many(no_room: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few samples count as many, which are solved in blocks; the matrix does not fit."""
    no_room()
    monkeypatch.setattr(regression, "MANY", 100)
    monkeypatch.setattr(ridge, "MANY", 100)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_many_samples_are_solved_in_blocks(data: Any, weighted: bool, sparse: bool) -> None:
    """With scikit-learn's coefficients and predictions, of all targets together."""
    X, y, weights = data[0], data[1], data[2] if weighted else None
    model = HeatKernelRidge(alpha=0.3, time_scale=0.8, tol=1e-8, dtype="float64")
    model.fit(csr_array(X) if sparse else X, y, weights)
    coef, predicted = oracle(model, X, y, X[:20], weights)
    bound = error_bound(model, y, 1.0 if weights is None else weights)
    np.testing.assert_allclose(model.dual_coef_, coef, rtol=0, atol=bound)
    np.testing.assert_allclose(model.predict(X[:20]), predicted, rtol=0, atol=200 * bound)
    assert model.converged_
    assert model.rank_ == 0
    assert model.n_iter_ > 1


@pytest.mark.usefixtures("many")
def test_blocks_end_by_themselves(data: Any) -> None:
    """At a residual that is a tenth of an error, far above that of conjugate gradients."""
    X, y, _ = data
    model = HeatKernelRidge(alpha=0.3).fit(X, y)
    assert model.converged_
    # An error on targets of noise is about their spread, and never much above.
    assert 1e-3 < model.residual_ <= 0.1 * 1.5
    exact = HeatKernelRidge(alpha=0.3, preconditioner_rank=len(X)).fit(X, y)
    apart = np.linalg.norm(model.predict(X) - exact.predict(X), axis=0)
    assert (apart <= 1.01 * model.residual_ * np.linalg.norm(y - y.mean(axis=0), axis=0)).all()


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(("alpha", "dtype"), [(0.3, "float32"), (1e-4, "float64")])
def test_many_samples_are_in_single_precision(data: Any, alpha: float, dtype: str) -> None:
    """Unless alpha is so small that rounding of the matrix would count."""
    model = HeatKernelRidge(alpha=alpha, tol=1e-3).fit(data[0], data[1])
    assert model.X_fit_.dtype == dtype
    assert HeatKernelRidge(alpha=alpha).fit(data[0][:90], data[1][:90]).X_fit_.dtype == "float64"


@pytest.mark.usefixtures("many")
def test_too_few_sweeps_warn(data: Any) -> None:
    """The numbers are in the warning."""
    X, y, _ = data
    model = HeatKernelRidge(alpha=1e-6, max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"2 of 2 targets .* after 2 passes, tol=1e-09"):
        model.fit(X, y)


@pytest.mark.parametrize("given", ["fast", 0.0, -1.0])
def test_a_tolerance_that_is_none(data: Any, given: Any) -> None:
    """It is refused before anything is computed."""
    with pytest.raises(InputError, match="tol must be"):
        HeatKernelRidge(tol=given).fit(data[0], data[1])
