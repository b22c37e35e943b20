"""Fits of all folds, classes and C on features: the scores of LIBLINEAR, in any memory."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.threads import Threads
from dhsk.linear.losses import LOSSES
from dhsk.nystrom.spans import FeatureMatrix
from dhsk.results.columns import KernelColumns
from dhsk.run_progress import RunProgress
from dhsk.solvers.problems import positives
from dhsk.validation.cells import Cells
from dhsk.validation.fold_fits import FoldFits
from dhsk.validation.folds import divide
from dhsk.validation.grid import make_grid

N, RANK, TOL, PLENTY = 300, 12, 1e-9, 10**9
VALUES_OF_C = (0.01, 3.0)
NAMES = KernelColumns("heat", "heat s=1", rank=RANK, trace_error=0.1)


def samples(classes: int) -> tuple[Any, Any]:
    """Features, and classes that overlap."""
    rng = np.random.default_rng(classes)
    Z = rng.normal(size=(N, RANK))
    return Z, np.argmax(Z[:, :classes] + rng.normal(size=(N, classes)), axis=1)


def cells(
    Z: Any, y: Any, loss: str = "squared_hinge", room: int = PLENTY, cv: Any = 3, **options: Any
) -> tuple[Any, Cells]:
    """A grid, and its rows on some features."""
    grid = make_grid(divide(len(y), y, cv), VALUES_OF_C, tol=TOL, **options)
    features = FeatureMatrix.in_memory(Z, Threads(1))
    fits = FoldFits(features, grid, LOSSES[loss], room, seed=0, threads=1, run=RunProgress())
    return grid, fits.cells(NAMES)


def peer(loss: str, C: float) -> Any:
    """What LIBLINEAR fits, one class against the rest."""
    if loss == "squared_hinge":
        return LinearSVC(C=C, dual=False, tol=1e-9, max_iter=10_000)
    logistic = LogisticRegression(C=C, solver="liblinear", tol=1e-9, max_iter=10_000)
    return OneVsRestClassifier(logistic)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_scores_and_labels_are_those_of_liblinear(loss: str, classes: int) -> None:
    """A row for each fold and C, fold by fold, and the classes that it predicts."""
    Z, y = samples(classes)
    grid, found = cells(Z, y, loss)
    places = [(fold, C) for fold in range(3) for C in VALUES_OF_C]
    for row, predicted, (fold, C) in zip(found.rows, found.predicted, places, strict=True):
        train, test = grid.folds[fold]
        expected = peer(loss, C).fit(Z[train], y[train]).predict(Z[test])
        assert (row.fold, row.C, row.label, row.rank) == (fold, C, "heat s=1", RANK)
        assert predicted == expected.tolist()
        assert row.score == np.mean(expected == y[test])


def test_certificates_are_of_low_rank() -> None:
    """Features and a gradient, no support vectors and no KKT violation."""
    for row in cells(*samples(3))[1].rows:
        assert row.n_features == RANK
        assert (row.n_support, row.kkt, row.margin, row.vc) == (None, None, None, None)
        assert row.converged
        assert row.gradient is not None
        assert 0 <= row.gradient <= TOL
        assert 0 <= row.gap < 1e-12
        assert row.n_iter > 0


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
def test_little_memory_changes_no_score(scoring: str) -> None:
    """Problems that are solved one after the other give what all give together."""
    Z, y = samples(4)
    _, whole = cells(Z, y, scoring=scoring)
    _, parts = cells(Z, y, scoring=scoring, room=1)
    assert parts.predicted == whole.predicted
    # Probabilities are a smooth function of decisions, which both solve to 1e-9.
    np.testing.assert_allclose(
        [row.score for row in parts.rows], [row.score for row in whole.rows], rtol=1e-6
    )


def test_folds_hold_out_in_any_order_and_more_than_once() -> None:
    """Predictions are in the order of the fold."""
    Z, y = samples(3)
    train, test = np.arange(200), np.array([250, 203, 203, 299, 201])
    _, found = cells(Z, y, cv=[(train, test)])
    for predicted, C in zip(found.predicted, VALUES_OF_C, strict=True):
        assert predicted == peer("squared_hinge", C).fit(Z[:200], y[:200]).predict(Z[test]).tolist()


def test_a_class_that_a_fold_lacks_is_not_predicted_there() -> None:
    """The others are told apart as if there were no more."""
    Z, y = samples(3)
    train, test = np.flatnonzero(y[:200] != 1), np.arange(200, 300)
    _, found = cells(Z, y, cv=[(train, test)])
    for predicted in found.predicted:
        assert set(predicted) == {0, 2}


def test_two_classes_are_one_problem() -> None:
    """Of more, each is one against the rest."""
    assert list(positives(2)) == [1]
    assert list(positives(4)) == [0, 1, 2, 3]


class Counted(FeatureMatrix):
    """Features that count their passes, and end a run in one of them."""

    count, last = 0, 0

    def map(self, *given: Any) -> Any:
        """A pass."""
        self.count += 1
        if self.count == self.last:
            raise KeyboardInterrupt
        return super().map(*given)


def counted_cells(last: int, folder: Path | None, room: int) -> tuple[Counted, Cells | None]:
    """Features after a run that ends in one of their passes, and its cells if it did not."""
    Z, y = samples(4)
    grid = make_grid(divide(len(y), y, 3), VALUES_OF_C, tol=TOL)
    features = Counted.in_memory(Z, Threads(1))
    assert isinstance(features, Counted)
    features.last, loss = last, LOSSES["squared_hinge"]
    kept = Checkpoint(folder)
    fits = FoldFits(features, grid, loss, room, seed=0, threads=1, run=RunProgress(), entries=kept)
    with suppress(KeyboardInterrupt):
        return features, fits.cells(NAMES)
    return features, None


@pytest.mark.parametrize("batches", [1, 8])
def test_killed_it_repeats_no_more_than_a_step(
    batches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any pass, in any of the batches."""
    monkeypatch.setattr("dhsk.validation.fold_fits.UNKEPT_SECONDS", 0.0)
    room = PLENTY if batches == 1 else 1
    undisturbed, expected = counted_cells(0, None, room)
    assert expected is not None
    most_of_step = 40
    for last in np.linspace(1, undisturbed.count - 1, 12, dtype=int).tolist():
        folder = tmp_path / str(last)
        counted_cells(last, folder, room)
        resumed, found = counted_cells(0, folder, room)
        assert found is not None
        assert found.predicted == expected.predicted
        for own, other in zip(found.decisions, expected.decisions, strict=True):
            np.testing.assert_array_equal(own, other)
        assert resumed.count <= undisturbed.count - last + most_of_step
    assert not list(tmp_path.glob("*/*-folds*"))
