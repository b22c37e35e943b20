"""Machines of kernels that are nearly constant: solved on differences, in units of their spread."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dhsk
from dhsk.kernels import mean_difference
from dhsk.models.files import load_model, save_model
from dhsk.models.fit_plan import plan_fits
from dhsk.models.rescaling import LOOKED_AT, sample_of, unit_for
from dhsk.solvers.rounds import solve_in_rounds

DIM = 64
N = 300
FLAT = 7.0
"""Time scale at which 1 - K is about 1e-12: what differs is the last four digits of K."""
TOL = 1e-6

warns_of_few_digits = pytest.warns(UserWarning, match="few of their digits tell samples apart")


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    """Handwritten digits of four classes, in no order."""
    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(y < 4)[:N]
    return X[chosen], y[chosen]


def heat(scale: float) -> dhsk.HeatKernel:
    """Kernel of the digits."""
    return dhsk.HeatKernel.at_scale(DIM, scale)


def linear_machine(X: Any, y: Any, C: float) -> SVC:
    """LIBSVM on the cosines: what the heat kernel becomes at large times."""
    unit = np.asarray(dhsk.hyperspherical_map(X))
    return SVC(C=C, kernel="precomputed", tol=TOL).fit(unit @ unit.T, y)


def slope_of(kernel: dhsk.HeatKernel) -> float:
    """1 - K over 1 - c, where that is the same everywhere."""
    assert kernel.nonlinearity < 1e-7
    return -float(kernel.of_cosine_minus_one(0.0))


@pytest.mark.parametrize("scale", [FLAT, 30.0])
@pytest.mark.parametrize("form", ["dense", "csr", "store", "float32"])
def test_machine_at_a_large_time_is_the_linear_one(
    digits: Any, tmp_path: Path, form: str, scale: float
) -> None:
    """With C over the kernel's slope; K itself rounds at 1e-16, and at scale 30 is 1."""
    X, y = digits
    options: dict[str, Any] = {}
    if form == "store":
        options["store"] = tmp_path / "store"
    if form == "float32":
        options["dtype"] = "float32"
    slope = slope_of(heat(scale))
    model = dhsk.HeatSVC(C=5.0 / slope, time_scale=scale, tol=TOL, **options)
    model.fit(csr_array(X) if form == "csr" else X, y)
    assert model.kkt_violation_ <= TOL
    peer = linear_machine(X, y, 5.0)
    tolerance = 2e-3 if form == "float32" else 1e-4
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=tolerance)
    unit = np.asarray(dhsk.hyperspherical_map(X))
    decisions = model.model_.decisions(unit)
    expected = pair_decisions(peer, unit @ unit[peer.support_].T)
    np.testing.assert_allclose(decisions, expected, atol=tolerance)
    assert np.abs(model.dual_coef_).max() <= 5.0 / slope
    np.testing.assert_allclose(np.abs(model.dual_coef_).max(), 5.0 / slope, rtol=1e-12)


def pair_decisions(peer: SVC, K: Any) -> Any:
    """LIBSVM's decisions of all pairs of classes, (N, pairs)."""
    ends = np.concatenate([[0], np.cumsum(peer.n_support_)])
    columns = []
    for a in range(len(peer.classes_)):
        for b in range(a + 1, len(peer.classes_)):
            of_a, of_b = slice(ends[a], ends[a + 1]), slice(ends[b], ends[b + 1])
            own = K[:, of_a] @ peer.dual_coef_[b - 1, of_a]
            columns.append(own + K[:, of_b] @ peer.dual_coef_[a, of_b])
    return np.column_stack(columns) + peer.intercept_


@pytest.mark.parametrize("scale", [0.6, 2.0, 3.0])
def test_machine_is_libsvms_where_the_kernel_has_its_digits(digits: Any, scale: float) -> None:
    """C keeps its meaning: coefficients, intercepts, objective and margin are those on K."""
    X, y = digits
    K = heat(scale)(dhsk.hyperspherical_map(X))
    C = 3.0 / mean_difference(heat(scale), np.asarray(dhsk.hyperspherical_map(X)))
    model = dhsk.HeatSVC(C=C, time_scale=scale, tol=TOL).fit(X, y)
    peer = SVC(C=C, kernel="precomputed", tol=TOL).fit(K, y)
    # LIBSVM rounds the matrix to float32 in its cache: 6e-8 of 1, times the coefficients' sum.
    rounding = 6e-8 * np.abs(peer.dual_coef_).sum(axis=1).max()
    tolerance = 10 * TOL + rounding
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=tolerance)
    own = pair_decisions(peer, K[:, peer.support_])
    np.testing.assert_allclose(
        model.model_.decisions(np.asarray(dhsk.hyperspherical_map(X))), own, atol=tolerance
    )
    assert (model.model_.unit == 1.0) == (scale == 0.6)
    assert np.abs(model.dual_coef_).max() <= C
    certificates = model.model_.certificates
    coef, support = model.dual_coef_, model.support_
    of_first_pair = (y[support] == 0) | (y[support] == 1)
    b = np.where(y[support] == 0, coef[0], coef[0])[of_first_pair]
    norm2 = b @ K[np.ix_(support[of_first_pair], support[of_first_pair])] @ b
    np.testing.assert_allclose(certificates.norm2[0], norm2, rtol=1e-6)
    objective = np.abs(b).sum() - norm2 / 2
    np.testing.assert_allclose(certificates.objective[0], objective, rtol=1e-6)


def test_grid_at_large_times_converges_and_is_the_linear_one(digits: Any) -> None:
    """All fits; with C in units of the spread, the scores no longer depend on the time."""
    X, y = digits
    found = dhsk.cross_validate(X, y, time_scale=[FLAT, 12.0, 30.0], C="auto", cv=3)
    assert all(row["converged"] for row in found.results_)
    cosine = dhsk.cross_validate(X, y, kernels=[dhsk.CosineKernel()], C="auto", cv=3)
    expected = [row["mean"] for row in cosine.summary_]
    means = np.array([row["mean"] for row in found.summary_]).reshape(3, 4)
    np.testing.assert_allclose(means, [expected] * 3, atol=1.01 / N)
    spread = mean_difference(heat(30.0), np.asarray(dhsk.hyperspherical_map(X)))
    for row in found.results_:
        if row["time_scale"] == 30.0:
            assert row["C"] * spread == pytest.approx(row["C_scaled"], rel=1e-5)
    margins = [row["margin"] for row in found.summary_ if row["C_scaled"] == 5.0]
    slopes = [slope_of(heat(scale)) for scale in (FLAT, 12.0, 30.0)]
    ratios = np.array(margins) / np.sqrt(slopes)
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-2)


def test_rows_of_a_stretched_kernel_are_those_of_the_kernel_itself(digits: Any) -> None:
    """Where K has its digits, a matrix of finished values and the samples give the same rows."""
    X, y = digits
    K = heat(2.0)(dhsk.hyperspherical_map(X))
    options: dict[str, Any] = {"C": [30.0, 300.0], "cv": 3, "fit": dhsk.Fitting(tol=TOL)}
    by_samples = dhsk.cross_validate(X, y, time_scale=2.0, **options).results_
    by_matrix = dhsk.cross_validate(K, y, kernels="precomputed", **options).results_
    for a, b in zip(by_samples, by_matrix, strict=True):
        assert a["score"] == b["score"]
        assert a["vc"] == pytest.approx(b["vc"], abs=1)
        assert a["margin"] == pytest.approx(b["margin"], rel=1e-4)
        assert a["C"] == b["C"]
        assert a["C_scaled"] is None


@pytest.mark.slow
def test_rounds_are_in_the_same_unit(
    digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Problems that do not fit the memory give the same scores and margins."""
    X, y = digits
    options: dict[str, Any] = {
        "time_scale": [FLAT],
        "C": "auto",
        "cv": 3,
        "fit": dhsk.Fitting(tol=TOL),
    }
    whole = dhsk.cross_validate(X, y, **options).results_
    solved: list[int] = []

    def counting(source: Any, pairs: Any, *args: Any) -> Any:
        solved.extend(pairs)
        return solve_in_rounds(source, pairs, *args)

    def in_rounds(*args: Any, **options: Any) -> Any:
        return replace(plan_fits(*args, **options), whole=False, room=64**2 * 8)

    monkeypatch.setattr("dhsk.validation.exact.plan_fits", in_rounds)
    monkeypatch.setattr("dhsk.solvers.pairs.solve_in_rounds", counting)
    stored = dhsk.cross_validate(X, y, out=dhsk.Output(store=tmp_path / "gram"), **options).results_
    for a, b in zip(whole, stored, strict=True):
        assert b["converged"]
        assert a["score"] == b["score"]
        assert a["margin"] == pytest.approx(b["margin"], rel=1e-4)
    assert len(solved) == 6


def test_the_journal_is_in_the_same_unit(digits: Any, tmp_path: Path) -> None:
    """Fits that a journal keeps give the same model."""
    X, y = digits
    options: dict[str, Any] = {"time_scale": [FLAT], "C": "auto", "cv": 3, "refit": True}
    whole = dhsk.cross_validate(X, y, **options)
    kept = dhsk.cross_validate(X, y, out=tmp_path, **options)
    again = dhsk.cross_validate(X, y, out=tmp_path, **options)
    assert again.results_ == kept.results_
    assert [r["score"] for r in whole.results_] == [r["score"] for r in kept.results_]
    assert whole.model_ is not None
    assert again.model_ is not None
    rows = np.asarray(dhsk.hyperspherical_map(X))
    np.testing.assert_array_equal(whole.model_.decisions(rows), again.model_.decisions(rows))
    K = rows @ rows.T  # the linear kernel, in units of whose spread C is
    peer = SVC(C=whole.best_["C_scaled"] / (1 - K.mean()), kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(whole.model_.predict(rows), peer.predict(K))


def test_model_files_keep_the_unit(digits: Any, tmp_path: Path) -> None:
    """Decisions come back to the bit."""
    X, y = digits
    model = dhsk.HeatSVC(C=5.0 / slope_of(heat(FLAT)), time_scale=FLAT).fit(X, y)
    assert model.model_.unit < 1e-9
    save_model(model.model_, tmp_path / "m")
    back = load_model(tmp_path / "m")
    assert back.unit == model.model_.unit
    rows = np.asarray(dhsk.hyperspherical_map(X))
    np.testing.assert_array_equal(back.decisions(rows), model.model_.decisions(rows))


@pytest.mark.slow
def test_stored_values_without_digits_are_told_of(digits: Any, tmp_path: Path) -> None:
    """A warning where few are left, and none where the store has cosines or digits enough."""
    X, y = digits
    options: dict[str, Any] = {"C": 1e9, "cv": 3}
    flat = dhsk.compute_gram(X, heat(FLAT), store=tmp_path / "flat")
    with warns_of_few_digits:
        dhsk.cross_validate(flat, y, **options)
    single = dhsk.compute_gram(X, heat(3.2), store=tmp_path / "single", dtype="float32")
    with warns_of_few_digits:
        dhsk.cross_validate(single, y, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double = dhsk.compute_gram(X, heat(2.5), store=tmp_path / "double")
        dhsk.cross_validate(double, y, **options)
        cosines = dhsk.compute_gram(X, dhsk.CosineKernel(), store=tmp_path / "cosines")
        found = dhsk.cross_validate(cosines, y, time_scale=[FLAT], C="auto", cv=3)
    expected = dhsk.cross_validate(cosines, y, kernels="cosine", C="auto", cv=3)
    assert found.best_score_ == expected.best_score_


def test_a_store_that_others_read_keeps_its_values(digits: Any, tmp_path: Path) -> None:
    """A stored Gram matrix of K serves a fit as before, where K has digits enough."""
    X, y = digits
    dhsk.compute_gram(X, heat(2.0), store=tmp_path / "store")
    model = dhsk.HeatSVC(C=50.0, time_scale=2.0, store=tmp_path / "store").fit(X, y)
    assert dhsk.open_gram(tmp_path / "store").kernel == heat(2.0)
    assert model.kkt_violation_ <= 1e-3


@pytest.mark.parametrize(
    ("kernel", "sphere_map"),
    [(dhsk.GaussianKernel(1e8), "identity"), (dhsk.ParametrixKernel(1e12), "hyperspherical")],
    ids=["gaussian", "parametrix"],
)
def test_other_kernels_that_become_constant(digits: Any, kernel: Any, sphere_map: Any) -> None:
    """A wide Gaussian becomes the linear kernel, the parametrix that of squared angles."""
    X, y = digits
    rows = X if sphere_map == "identity" else np.asarray(dhsk.hyperspherical_map(X))
    spread = mean_difference(kernel, rows)
    assert spread is not None
    assert spread < 1e-11
    model = dhsk.HeatSVC(C=5.0 / spread, kernel=kernel, sphere_map=sphere_map, tol=TOL).fit(X, y)
    if sphere_map == "identity":
        distances2 = ((X[:, None] - X) ** 2).sum(axis=2)
        K = 1 - distances2 / distances2.mean()
    else:
        squares = np.arccos(np.clip(rows @ rows.T, -1, 1)) ** 2
        K = 1 - squares / squares.mean()
    peer = SVC(C=5.0, kernel="precomputed", tol=TOL).fit(K, y)
    # LIBSVM rounds the matrix to float32 in its cache, as above.
    rounding = 6e-8 * np.abs(K).max() * np.abs(peer.dual_coef_).sum(axis=1).max()
    np.testing.assert_allclose(
        model.model_.decisions(rows), pair_decisions(peer, K[:, peer.support_]),
        atol=10 * TOL + rounding,
    )  # fmt: skip


def test_few_samples_are_looked_at() -> None:
    """At most some hundred, from the first to the last; all of a small set."""
    assert len(sample_of(10**6)) == LOOKED_AT
    assert sample_of(10**6)[[0, -1]].tolist() == [0, 10**6 - 1]
    assert sample_of(3).tolist() == [0, 1, 2]
    assert unit_for(dhsk.LinearKernel(), 10, lambda chosen: np.zeros((len(chosen), 2))) == 1.0
