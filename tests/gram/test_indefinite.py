"""Stores of indefinite kernels say so, and SVMs on them are refused unless they are allowed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import dhsk
from dhsk.gram.storage.store import GramStore

EXPANSION = dhsk.ParametrixKernel(0.1, order=1, dim=6)
WAY_OUT = "not positive semi-definite, .* or give indefinite='allow'"
LABELS = np.tile(["a", "b"], 20)


@pytest.fixture
def X(counts: Callable[[int, int], Any]) -> Any:
    """Counts of two classes that differ a little."""
    X = counts(40, 6)
    X[::2, :2] += 1
    return X


def test_a_store_flags_its_indefinite_kernels(X: Any, tmp_path: Path) -> None:
    """By their numbers."""
    kernels = [dhsk.CosineKernel(), EXPANSION, dhsk.ParametrixKernel(0.1)]
    dhsk.compute_gram(X, kernels, store=tmp_path / "three.gram")
    dhsk.compute_gram(X, kernels[::2], store=tmp_path / "two.gram")
    said = [
        json.loads((tmp_path / name / "zarr.json").read_text())["attributes"]["dhsk"]
        for name in ("three.gram", "two.gram")
    ]
    assert said[0]["indefinite"] == [1]
    assert "indefinite" not in said[1]
    assert GramStore.open(tmp_path / "three.gram").header.indefinite == (1,)
    assert dhsk.open_gram(tmp_path / "three.gram").verify() == 1


def test_cross_validation_refuses_unless_it_is_allowed(X: Any, tmp_path: Path) -> None:
    """On samples, on a store, and on a kernel derived from cosines."""
    stored = dhsk.compute_gram(X, EXPANSION, store=tmp_path / "x.gram")
    cosines = dhsk.compute_gram(X, "cosine")
    grid: dict[str, Any] = {"C": 1.0, "cv": 2}
    for given in (X, stored, cosines, cosines.with_kernel(EXPANSION)):
        with pytest.raises(dhsk.InputError, match=WAY_OUT):
            dhsk.cross_validate(given, LABELS, kernels=EXPANSION, **grid)
    with pytest.raises(dhsk.InputError, match=WAY_OUT):
        dhsk.cross_validate(stored, LABELS, **grid)
    allowed = dhsk.cross_validate(
        stored, LABELS, fit=dhsk.Fitting(indefinite="allow"), refit=True, **grid
    )
    assert len(allowed.results_) == 2
    assert allowed.estimator_parameters_["indefinite"] == "allow"
    usual = dhsk.cross_validate(X, LABELS, kernels="parametrix", refit=True, **grid)
    assert "indefinite" not in usual.estimator_parameters_
    with pytest.raises(dhsk.InputError, match="indefinite must be 'error' or 'allow'"):
        dhsk.cross_validate(X, LABELS, fit=dhsk.Fitting(indefinite="warn"), **grid)  # type: ignore[arg-type]


def test_low_rank_refuses_it_too(X: Any) -> None:
    """In cross-validation, and where the best cell is fitted again."""
    options: dict[str, Any] = {"C": 1.0, "cv": 2, "low_rank": dhsk.LowRank(10), "refit": True}
    with pytest.raises(dhsk.InputError, match=WAY_OUT):
        dhsk.cross_validate(X, LABELS, kernels=EXPANSION, **options)
    found = dhsk.cross_validate(
        X, LABELS, kernels=EXPANSION, fit=dhsk.Fitting(indefinite="allow"), **options
    )
    best = found.best_estimator_
    assert best.indefinite == "allow"
    assert clone(best).fit(X, LABELS).kernel_ == EXPANSION


@pytest.mark.parametrize("kind", [dhsk.HeatSVC, dhsk.HeatOneClassSVM, dhsk.NystromSVC])
def test_estimators_refuse_it(kind: Any, X: Any) -> None:
    """All SVMs, of any kernel that is known to be indefinite."""
    with pytest.raises(dhsk.InputError, match=WAY_OUT):
        kind(kernel=EXPANSION).fit(X, LABELS)
    with pytest.raises(dhsk.InputError, match="indefinite must be"):
        kind(indefinite="warn").fit(X, LABELS)
    assert kind(kernel=EXPANSION, indefinite="allow").fit(X, LABELS).kernel_ == EXPANSION
    kind(kernel="parametrix").fit(X, LABELS)


@pytest.mark.parametrize("kind", [dhsk.HeatSVC, dhsk.NystromSVC])
def test_a_model_keeps_that_it_was_allowed(kind: Any, X: Any, tmp_path: Path) -> None:
    """So that it can be fitted again."""
    model = kind(kernel=EXPANSION, indefinite="allow").fit(X, LABELS)
    model.save(tmp_path / "a.dhsk")
    again = kind.load(tmp_path / "a.dhsk")
    assert again.indefinite == "allow"
    kind().fit(X, LABELS).save(tmp_path / "b.dhsk")
    assert kind.load(tmp_path / "b.dhsk").indefinite == "error"
