"""Training on features: LIBLINEAR's optimum, in any memory, from wherever it was interrupted."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import dhsk
from dhsk.clock import NO_END
from dhsk.errors import BudgetError, InputError
from dhsk.execution.memory import Share
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.models.low_rank import LowRankModel
from dhsk.models.low_rank_plan import plan_low_rank
from dhsk.models.problem import Problem
from dhsk.models.train_low_rank import train_low_rank as train
from dhsk.nystrom.approximation import approximate
from dhsk.progress import Progress, ignore
from dhsk.samples import open_samples

REFERENCE_TOL = 1e-12
"""LIBLINEAR's own tolerance in these tests."""

AGREEMENT = 1e-5
"""Greatest difference of coefficients and decisions from LIBLINEAR's, relative (issue's bar)."""

TIGHT = dhsk.LowRank(40)

train_low_rank = partial(train, seed=3)


def digits(k: int, n: int = 500) -> tuple[Any, Any]:
    """Images of the first k digits, and which."""
    X, y = load_digits(n_class=k, return_X_y=True)
    return X[:n], y[:n]


def problem_of(X: Any, y: Any, weights: Any = None, tol: float = 1e-9) -> Problem:
    """A problem at a tight tolerance."""
    classes, codes = np.unique(y, return_inverse=True)
    weights = np.ones(len(y)) if weights is None else weights
    return Problem(classes, codes, weights, 2.0, tol)


def row_map(dim: int = 64, dtype: str = "float64") -> RowMap:
    """The heat kernel of counts."""
    return RowMap(dhsk.HeatKernel.at_scale(dim, 0.5), "hyperspherical", dtype)


def trained(X: Any, y: Any, how: dhsk.LowRank = TIGHT, weights: Any = None) -> LowRankModel:
    """A model in float64."""
    return train_low_rank(
        problem_of(X, y, weights), open_samples(X), row_map(X.shape[1]), how, Run()
    )


def features(X: Any, how: dhsk.LowRank = TIGHT) -> tuple[Any, Any]:
    """The features that it is trained on, and their root."""
    found = approximate(open_samples(X), row_map(X.shape[1]), how, seed=3)
    assert found.features.values is not None
    return found.features.values, found.root


def assert_same(model: LowRankModel, reference: Any, root: Any, Z: Any, X: Any) -> None:
    """Coefficients, intercepts, decisions and labels are those of a fit to the features."""
    expected = root @ reference.coef_.T
    assert np.abs(model.coef - expected).max() <= AGREEMENT * np.abs(expected).max()
    intercepts = np.atleast_1d(reference.intercept_)
    np.testing.assert_allclose(model.intercepts, intercepts, rtol=AGREEMENT, atol=AGREEMENT)
    rows = dhsk.hyperspherical_map(X)
    decisions = reference.decision_function(Z).reshape(len(Z), -1)
    found = model.decisions(rows)
    assert np.abs(found - decisions).max() <= AGREEMENT * np.abs(decisions).max()
    np.testing.assert_array_equal(model.predict(rows), reference.predict(Z))


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_that_of_linear_svc(k: int, weighted: bool) -> None:
    """Two classes in one column, four in one each; weighted or not."""
    X, y = digits(k)
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    Z, root = features(X)
    reference = LinearSVC(C=2.0, dual=False, tol=REFERENCE_TOL, max_iter=100_000)
    reference.fit(Z, y, sample_weight=weights)
    model = trained(X, y, weights=weights)
    assert_same(model, reference, root, Z, X)
    assert model.coef.shape == (40, 1 if k == 2 else k)
    assert model.certificates.converged.all()


def test_logistic_loss_is_that_of_logistic_regression() -> None:
    """Coefficients and probabilities of two classes."""
    X, y = digits(2)
    Z, root = features(X)
    reference = LogisticRegression(C=2.0, solver="liblinear", tol=REFERENCE_TOL, max_iter=10_000)
    reference.fit(Z, y)
    model = trained(X, y, replace(TIGHT, loss="logistic"))
    assert_same(model, reference, root, Z, X)
    found = model.probabilities(dhsk.hyperspherical_map(X))
    np.testing.assert_allclose(found, reference.predict_proba(Z), atol=AGREEMENT)


def test_an_unknown_loss_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(InputError, match="loss must be 'squared_hinge' or 'logistic', but"):
        trained(*digits(2), replace(TIGHT, loss="cubic"))  # type: ignore[arg-type]


CURVATURES = 500 * 8
"""Bytes of those of a column: one of each sample."""


def small_room(monkeypatch: pytest.MonkeyPatch, factors: int) -> None:
    """Leave room for the factors of some columns only, and four matrices besides."""
    leave(monkeypatch, (factors + 4) * 41**2 * 8 + factors * CURVATURES)


def leave(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Leave the solver so many bytes."""

    def short(*words: Any, **named: Any) -> Share:
        return replace(plan_low_rank(*words, **named), room=room)

    monkeypatch.setattr("dhsk.models.train_low_rank.plan_low_rank", short)


@pytest.mark.parametrize(("factors", "batches"), [(1, 10), (3, 4), (9, 2), (10, 1)])
def test_classes_that_do_not_fit_together_are_solved_in_batches(
    factors: int, batches: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To the same optimum."""
    X, y = digits(10)
    whole = trained(X, y)
    small_room(monkeypatch, factors)
    parts = train_low_rank(
        problem_of(X, y),
        open_samples(X),
        row_map(),
        TIGHT,
        Run(journal=tmp_path),
    )
    assert len(list(tmp_path.glob("newton-*.npz"))) == batches + 1  # solutions, and the memory
    scale = np.abs(whole.coef).max()
    np.testing.assert_allclose(parts.coef, whole.coef, atol=1e-6 * scale)
    assert parts.certificates.converged.all()


def test_not_even_one_column_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are named."""
    small_room(monkeypatch, 0)
    with pytest.raises(BudgetError, match=r"second derivatives of 40 features take .* but .* left"):
        trained(*digits(10))


# Going on


class Interrupting:
    """Progress that ends training at one of its steps."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.steps = 0

    def __call__(self, event: Progress) -> None:
        """Count, and interrupt."""
        if event.stage == "training":
            self.steps += 1
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt


def many() -> tuple[Any, Any]:
    """So many samples that a part of them is solved first."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 25_000)
    X = rng.poisson(1.0 + 2.0 * (np.arange(6) % 3 == y[:, None]))
    return X + 1.0, y


def assert_bits(found: LowRankModel, expected: LowRankModel) -> None:
    """Two models are the same."""
    np.testing.assert_array_equal(found.coef, expected.coef)
    np.testing.assert_array_equal(found.intercepts, expected.intercepts)
    proofs = [vars(model.certificates) for model in (found, expected)]
    for name, value in proofs[0].items():
        np.testing.assert_array_equal(value, proofs[1][name])


Training = Callable[..., LowRankModel]


@pytest.fixture(params=["few", "many", "in batches"])
def run(request: Any, monkeypatch: pytest.MonkeyPatch) -> Training:
    """Train on samples of some kind."""
    X, y = many() if request.param == "many" else digits(4, 300)
    how = replace(TIGHT, rank=20)
    if request.param == "in batches":
        leave(monkeypatch, 6 * 21**2 * 8)

    def train(
        report: Any = ignore, journal: Path | None = None, over: Any = NO_END
    ) -> LowRankModel:
        problem = problem_of(X, y)
        return train_low_rank(
            problem,
            open_samples(X),
            row_map(X.shape[1]),
            how,
            Run(report=report, journal=journal, over=over),
        )

    return train


@pytest.mark.slow
def test_interrupted_at_any_step_it_goes_on_to_the_same_bits(run: Training, tmp_path: Path) -> None:
    """Also if it is interrupted at every step."""
    count = Interrupting(0)
    undisturbed = run(count)
    assert count.steps > 3
    for at in {1, 2, count.steps // 2, count.steps - 1, count.steps}:
        with pytest.raises(KeyboardInterrupt):
            run(Interrupting(at), tmp_path / str(at))
        again = Interrupting(0)
        assert_bits(run(again, tmp_path / str(at)), undisturbed)
        assert again.steps == count.steps - at
    for _ in range(count.steps):
        with pytest.raises(KeyboardInterrupt):
            run(Interrupting(1), tmp_path / "each")
    assert_bits(run(journal=tmp_path / "each"), undisturbed)


class Ending:
    """A time that is over some looks after training or another stage has begun."""

    def __init__(self, looks: int, stage: str = "training") -> None:
        self.left = looks
        self.stage = stage
        self.begun = False

    def __call__(self, event: Progress | None = None) -> bool:
        """Hear of progress, or say whether it is over."""
        if event is not None:
            self.begun |= event.stage == self.stage
        else:
            self.left -= self.begun
        return self.left < 0


@pytest.mark.slow
def test_ended_by_its_time_it_goes_on_to_the_same_bits(run: Training, tmp_path: Path) -> None:
    """At a step or within one, with a model that is bounded, and says what it is."""
    undisturbed = run()
    assert undisturbed.stopped is None
    for looks in (0, 1, 2, 7, 20):
        end, journal = Ending(looks), tmp_path / str(looks)
        found = run(end, journal, end)
        assert "the objective is " in str(found.stopped)
        proof, best = found.certificates, undisturbed.certificates.objective
        assert not proof.converged.all()
        assert (proof.objective - best <= proof.gap).all()
        assert (found.coef != undisturbed.coef).any()
        again = run(journal=journal)
        assert_bits(again, undisturbed)
        assert again.stopped is None


def test_over_before_training_it_says_what_to_do(tmp_path: Path) -> None:
    """There is no model then, and with checkpoints it goes on."""
    X, y = digits(4, 300)
    given = problem_of(X, y), open_samples(X), row_map(), TIGHT
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "landmarks-some.npz").write_bytes(b"of a run of more samples")
    for journal, way in ((None, "give a"), (tmp_path / "new", "give a"), (kept, "goes on from")):
        end = Ending(0, "landmarks")
        with pytest.raises(BudgetError, match=rf"training began \(landmarks, 0 of 40\).*{way}"):
            train_low_rank(*given, Run(journal=journal, report=end, over=end))
    assert_bits(train_low_rank(*given, Run(journal=kept)), trained(X, y))


def test_with_other_memory_it_goes_on_as_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same batches, so that rounding is the same."""
    X, y = digits(4, 300)
    undisturbed = trained(X, y)
    with pytest.raises(KeyboardInterrupt):
        train_low_rank(
            problem_of(X, y),
            open_samples(X),
            row_map(),
            TIGHT,
            Run(report=Interrupting(3), journal=tmp_path),
        )
    small_room(monkeypatch, 1)
    found = train_low_rank(
        problem_of(X, y),
        open_samples(X),
        row_map(),
        TIGHT,
        Run(journal=tmp_path),
    )
    assert_bits(found, undisturbed)


def test_what_differs_does_not_match(tmp_path: Path) -> None:
    """One value of a sample that is no landmark, a label, C or the loss: it begins anew."""
    X, y = digits(4, 300)
    with pytest.raises(KeyboardInterrupt):
        train_low_rank(
            problem_of(X, y),
            open_samples(X),
            row_map(),
            TIGHT,
            Run(report=Interrupting(3), journal=tmp_path),
        )
    changed, labels = X.copy(), y.copy()
    landmarks = trained(X, y).indices
    other = next(i for i in range(300) if i not in landmarks)
    changed[other, 30] += 1
    labels[other] = (labels[other] + 1) % 4
    for given, problem, how in [
        (changed, problem_of(changed, y), TIGHT),
        (X, problem_of(X, labels), TIGHT),
        (X, replace(problem_of(X, y), C=2.1), TIGHT),
        (X, problem_of(X, y), replace(TIGHT, loss="logistic")),
    ]:
        fresh, alone = Interrupting(0), Interrupting(0)
        found, expected = (
            train_low_rank(problem, open_samples(given), row_map(), how, options)
            for options in (
                Run(report=fresh, journal=tmp_path),
                Run(report=alone),
            )
        )
        assert_bits(found, expected)
        assert fresh.steps == alone.steps


@pytest.mark.parametrize("part", ["0", "1"], ids=["state", "factor"])
@pytest.mark.parametrize("how", ["truncated", "flipped", "empty"])
def test_a_damaged_state_is_not_used(how: str, part: str, tmp_path: Path) -> None:
    """It begins anew; of many samples, factors are kept from the first step on."""
    X, y = many()
    few, given = replace(TIGHT, rank=20), (problem_of(X, y), open_samples(X), row_map(6))
    with pytest.raises(KeyboardInterrupt):
        train_low_rank(*given, few, Run(report=Interrupting(2), journal=tmp_path))
    parts = sorted(tmp_path.glob("newton-*-steps*.npz"), key=lambda path: len(path.name))
    assert len(parts) == 4  # a state, and the factors of three classes
    file = parts[int(part)]
    content = file.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    file.write_bytes({"truncated": content[:middle], "flipped": flipped, "empty": b""}[how])
    found = train_low_rank(*given, few, Run(journal=tmp_path))
    assert_bits(found, trained(X, y, few))
