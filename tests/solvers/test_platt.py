"""Platt's sigmoids and pairwise coupling: optimality, recovery, and LIBSVM's own numbers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import expit

from dhsk.errors import InputError
from dhsk.solvers.platt import class_probabilities, couple, fit_sigmoid

EPS = float(np.finfo(float).eps)

STOP = 1e-12
"""Gradient at which the fit stops, per unit of weight where decisions are within [-1, 1]."""

COUPLING = 1e-13
"""Eigenvalues of the coupling's matrix lie between about 1/k² and k: some 1000 EPS for k <= 8."""

LIBSVM_STOP = 0.005 / 4
"""LIBSVM stops its coupling of four classes when the optimality conditions hold to this."""

# Of sklearn.svm.SVC(kernel="precomputed", C=0.01, probability=True, random_state=0), scikit-learn
# 1.9: linear kernel on its digits 0 to 3 (pixels / 16), fitted on every second one; _probA and
# _probB of the fit, and for three of the others its decisions and probabilities.
LIBSVM_SIGMOIDS = [
    [-5.155759212239, 0.44201376866],
    [-5.01884570046, 0.412340138102],
    [-5.173353606162, 0.16792068973],
    [-5.53668155378, 0.01864627479],
    [-6.717798289547, 0.410076682836],
    [-6.927351777276, -0.48457051046],
]
LIBSVM_DECISIONS = [
    [-0.972535914, -1.201906574, -1.168964184, -0.016802283, -0.163887315, 0.010425065],
    [-0.850098349, -0.795192856, -0.828529354, 0.416923089, 0.058658685, -0.302784790],
    [-0.262181515, -0.688343726, -0.679730847, -0.598586242, -0.572120973, 0.205517666],
]
LIBSVM_PROBABILITIES = [
    [0.009026558915, 0.196764247476, 0.438567580563, 0.355641613046],
    [0.003599076218, 0.465400788440, 0.068343102055, 0.462657033287],
    [0.008480143078, 0.016390928476, 0.848190853643, 0.126938074802],
]

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALES = st.sampled_from([1e-300, 1e-9, 1.0, 1e9, 1e300])


def smoothed(positive: Any, weights: Any) -> Any:
    """Platt's targets."""
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    return np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))


def cross_entropy(point: Any, f: Any, positive: Any, weights: Any) -> float:
    """What the fit minimises, written with its definition's logarithms; per unit of weight."""
    t, z = smoothed(positive, weights), point[0] * f + point[1]
    loss = t * np.logaddexp(0, z) + (1 - t) * np.logaddexp(0, -z)
    return float((weights * loss).sum() / weights.sum())


def gradient(A: float, B: float, f: Any, positive: Any, weights: Any) -> Any:
    """Derivatives of `cross_entropy` by A, times the largest decision, and by B."""
    slopes = weights * (smoothed(positive, weights) - expit(-(A * f + B))) / weights.sum()
    largest = np.abs(f).max()
    return (slopes * (f / largest if largest else f)).sum(), slopes.sum()


def overlapping(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Decisions and noisy classes."""
    f = rng.normal(size=n)
    return f, f + rng.normal(size=n) > 0.3


@pytest.mark.parametrize("n", [2, 3, 10, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_sigmoid_is_optimal(rng: np.random.Generator, n: int, weighted: bool) -> None:
    """The gradient vanishes, and a general minimiser finds nothing better."""
    f, positive = overlapping(rng, n)
    weights = rng.uniform(0.1, 5.0, n) if weighted else np.ones(n)
    A, B = fit_sigmoid(f, positive, weights if weighted else None)
    # The fit's own centre moves the gradient by B of it: twice the stop, and rounding.
    assert np.abs(gradient(A, B, f, positive, weights)).max() < 3 * STOP
    other = minimize(cross_entropy, (0.0, 0.0), (f, positive, weights), method="BFGS")
    assert cross_entropy((A, B), f, positive, weights) <= other.fun + 10 * EPS
    # BFGS stops at a gradient of 1e-5; curvatures here are above 0.01.
    np.testing.assert_allclose((A, B), other.x, atol=2e-3)


def test_sigmoid_follows_the_true_probabilities(rng: np.random.Generator) -> None:
    """Classes drawn from a sigmoid give it back, the sign included."""
    f = rng.normal(size=100_000)
    positive = rng.random(len(f)) < expit(2.0 * f - 0.5)
    # Standard errors of a logistic fit of 1e5 samples: about 0.012 and 0.009. Six of them.
    np.testing.assert_allclose(fit_sigmoid(f, positive), (-2.0, 0.5), atol=0.07)


@pytest.mark.slow
@given(st.data(), st.integers(1, 20), SCALES, st.booleans())
def test_sigmoid_is_finite_and_optimal_whatever_the_decisions(
    data: st.DataObject, n: int, scale: float, separable: bool
) -> None:
    """No decisions, classes or scale stop the fit short of a finite optimum."""
    f = data.draw(arrays(float, n, elements=st.floats(-1, 1) | st.just(0.25))) * scale
    weights = data.draw(arrays(float, n, elements=st.sampled_from([0.5, 1.0, 3.0])))
    positive = f > 0.1 * scale if separable else data.draw(arrays(bool, n))
    A, B = fit_sigmoid(f, positive, weights)
    assert np.isfinite([A, B]).all()
    # A f + B loses |B| EPS to rounding where all decisions are far from 0 but close together.
    tolerance = 3 * STOP + 4 * EPS * (abs(B) + np.abs(A * f).max())
    spread = f.max() / 2 - f.min() / 2 > EPS * max(np.abs(f).max(), 1e-270)
    slope, intercept = gradient(A, B, f, positive, weights)
    assert abs(intercept) < tolerance
    assert abs(slope) < tolerance if spread else A == 0


@example(np.array([1.7e308, -1.7e308, 0.0]), 1)
@given(arrays(float, st.integers(1, 9), elements=FLOATS), st.integers(0, 2**9 - 1))
def test_sigmoid_never_overflows(f: Any, classes: int) -> None:
    """Decisions of any size give a finite sigmoid and no warning."""
    positive = (classes >> np.arange(len(f))) % 2 == 1
    assert np.isfinite(fit_sigmoid(f, positive)).all()


@pytest.mark.parametrize("place", [3.0, 30.0, 1000.0])
def test_rare_outlier_does_not_throw_newton_off(place: float) -> None:
    """A far sample of a rare class, where full Newton steps diverge, needs backtracking."""
    f = np.append(np.linspace(-1, 1, 500), place)
    positive = f == place
    A, B = fit_sigmoid(f, positive)
    assert np.abs(gradient(A, B, f, positive, np.ones(501))).max() < 3 * STOP


def test_moved_decisions_move_the_sigmoid(rng: np.random.Generator) -> None:
    """Decisions far from 0 are fitted as well as those around it."""
    f, positive = overlapping(rng, 100)
    f = np.round(f * 2**20) / 2**20  # so that moving is exact
    A, B = fit_sigmoid(f, positive)
    moved_A, moved_B = fit_sigmoid(f + 2.0**30, positive)
    # Both stop at a gradient of 1e-12; curvatures here are above 0.01.
    assert moved_A == pytest.approx(A, abs=1e3 * STOP)
    assert moved_B == pytest.approx(B - A * 2**30, abs=1e3 * STOP * 2**30)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.3, 1e308])
def test_constant_decisions_give_the_frequency(value: float) -> None:
    """Decisions that tell nothing leave A at 0 and B at the mean target."""
    positive = np.arange(50) < 10
    A, B = fit_sigmoid(np.full(50, value), positive)
    assert A == 0
    mean = (10 * 11 / 12 + 40 / 42) / 50
    # The stop is at a gradient of 1e-12, and the curvature is mean (1 - mean).
    np.testing.assert_allclose(expit(-B), mean, rtol=0, atol=10 * STOP)


@pytest.mark.parametrize("positive", [True, False])
def test_one_class_alone_gives_its_smoothed_frequency(
    rng: np.random.Generator, positive: bool
) -> None:
    """With one class the sigmoid is flat at (n + 1) / (n + 2) for it."""
    A, B = fit_sigmoid(rng.normal(size=30), np.full(30, positive))
    assert abs(A) < 1e3 * STOP  # curvatures here are about 1 / 30
    assert expit(-B) == pytest.approx(31 / 32 if positive else 1 / 32, abs=1e-10)


def test_many_separable_samples_reach_their_targets() -> None:
    """Two far clusters meet Platt's targets exactly, after many Newton steps."""
    f = np.repeat([1.0, -1.0], 100_000)
    A, B = fit_sigmoid(f, f > 0)
    # The curvature at the optimum is 1e-5: so is the gradient's share in the logit.
    np.testing.assert_allclose((A, B), (-np.log(100_001), 0.0), atol=10 * STOP * 1e5)


def test_targets_that_round_to_one_end_the_fit() -> None:
    """Separable classes of 1e20 samples each have no finite optimum in float64: the fit ends."""
    f = np.array([1.0, 0.5, -0.5, -1.0])
    A, B = fit_sigmoid(f, f > 0, np.full(4, 1e20))
    assert np.isfinite([A, B]).all()
    assert expit(-(A * 0.5 + B)) > 1 - 1e-9


def test_whole_weights_are_repetitions(rng: np.random.Generator) -> None:
    """A sample of weight 3 counts as three samples, one of weight 0 as none."""
    f, positive = overlapping(rng, 60)
    weights = rng.integers(0, 4, 60)
    repeated = fit_sigmoid(np.repeat(f, weights), np.repeat(positive, weights))
    # Two gradients below the stop; curvatures here are above 0.01.
    np.testing.assert_allclose(
        fit_sigmoid(f, positive, weights.astype(float)), repeated, rtol=0, atol=1e3 * STOP
    )


@pytest.mark.parametrize(
    ("f", "weights", "message"),
    [
        pytest.param([0.0, np.nan], [1.0, 1.0], "got 2 .* of which 1 are not finite", id="nan"),
        pytest.param([np.inf, 0.0], [1.0, 1.0], "of which 1 are not finite", id="infinite"),
        pytest.param([1.0, 2.0], [0.0, 0.0], "got 0 with a positive weight", id="no-weight"),
        pytest.param([], [], "got 0 with a positive weight", id="empty"),
    ],
)
def test_unusable_decisions_are_refused(f: Any, weights: Any, message: str) -> None:
    """Nothing is fitted to nothing, nor to what is not a number."""
    with pytest.raises(InputError, match=message):
        fit_sigmoid(np.array(f), np.zeros(len(f), dtype=bool), np.array(weights))


@given(arrays(float, st.tuples(st.integers(1, 4), st.integers(2, 8)), elements=st.floats(1e-9, 1)))
def test_coupling_recovers_consistent_probabilities(weights: Any) -> None:
    """Pairwise probabilities p_i / (p_i + p_j) give back p."""
    p = weights / weights.sum(axis=1, keepdims=True)
    pairwise = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    np.testing.assert_allclose(couple(pairwise), p, rtol=0, atol=COUPLING)


@pytest.mark.slow
@given(st.data(), st.integers(2, 8))
def test_coupling_meets_the_optimality_conditions(data: st.DataObject, k: int) -> None:
    """Of any pairwise probabilities, 0 and 1 too: Q p is a multiple of ones, p on the simplex."""
    value = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 1e-7, 1 - 1e-7, 0.5])
    r = np.full((k, k), np.nan)  # the diagonal is not read
    first, second = np.triu_indices(k, 1)
    r[first, second] = data.draw(arrays(float, len(first), elements=value))
    r[second, first] = 1 - r[first, second]
    p = couple(r[None])[0]
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1.0, abs=2 * k * EPS)
    Q = np.array(
        [
            [
                sum(r[s, i] ** 2 for s in range(k) if s != i) if i == j else -r[j, i] * r[i, j]
                for j in range(k)
            ]
            for i in range(k)
        ]
    )
    np.testing.assert_allclose(Q @ p, p @ Q @ p, rtol=0, atol=COUPLING)


def test_probabilities_are_those_of_libsvm() -> None:
    """Decisions and sigmoids of a LIBSVM model give its probabilities of four classes."""
    found = class_probabilities(np.array(LIBSVM_DECISIONS), np.array(LIBSVM_SIGMOIDS), 4)
    np.testing.assert_allclose(found, LIBSVM_PROBABILITIES, rtol=0, atol=LIBSVM_STOP)


def test_two_classes_go_straight_through(rng: np.random.Generator) -> None:
    """The sigmoid is the first class's probability, and coupling would not change it."""
    f = rng.normal(size=(20, 1))
    found = class_probabilities(f, np.array([[-2.0, 0.5]]), 2)
    first = expit(2.0 * f[:, 0] - 0.5)
    np.testing.assert_array_equal(found, np.column_stack([first, 1 - first]))
    pairwise = np.stack([np.array([[0, p], [1 - p, 0]]) for p in first])
    np.testing.assert_allclose(couple(pairwise), found, rtol=0, atol=COUPLING)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_certain_decisions_are_clipped(classes: int) -> None:
    """Enormous decisions, for the first class of every pair, count as 1 - 1e-7."""
    first, second = np.triu_indices(classes, 1)
    sigmoids = np.tile([-1.0, 0.0], (len(first), 1))
    found = class_probabilities(np.full((1, len(first)), 1e6), sigmoids, classes)
    pairwise = np.zeros((1, classes, classes))
    pairwise[:, first, second], pairwise[:, second, first] = 1 - 1e-7, 1e-7
    np.testing.assert_allclose(found, couple(pairwise), rtol=0, atol=COUPLING)
    assert found[0, 0] < 1 - 0.9e-7
