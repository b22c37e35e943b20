"""What earlier versions kept on disk opens, and gives what it gave. See write.py."""

import importlib.util
import json
import shutil
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dhsk
from dhsk import NystromSVC

HERE = Path(__file__).parent
OLD = HERE / "2026-11"
ROUNDING = 1e-12
"""Sums of 48 products of numbers about 1 in another order: other processors, another BLAS."""


def _load(name: str) -> Any:
    """A module beside this one; the tests are no package when dhsk is installed."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


inputs = _load("inputs")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of the old files."""
    return Path(shutil.copytree(OLD, tmp_path / "old"))


@pytest.fixture(scope="module")
def values() -> Any:
    """What they gave."""
    return np.load(OLD / "values.npz")


def test_a_gram_store_has_the_same_bits(old: Path, values: Any) -> None:
    """Its checksums hold, and resuming it changes nothing."""
    G = dhsk.open_gram(old / "gram")
    assert G.verify() == 6
    np.testing.assert_array_equal(np.asarray(G), values["gram"])
    X, _ = inputs.samples()
    again = dhsk.compute_gram(X, "heat", store=old / "gram", tile=16)
    np.testing.assert_array_equal(np.asarray(again), values["gram"])


def test_models_decide_as_they_did(old: Path, values: Any) -> None:
    """Decisions and probabilities of both models."""
    X, _ = inputs.samples()
    exact = dhsk.HeatSVC.load(old / "exact.dhsk")
    low_rank = NystromSVC.load(old / "low-rank.dhsk")
    for found, name in (
        (exact.decision_function(X), "exact"),
        (exact.predict_proba(X), "probability"),
        (low_rank.decision_function(X), "low_rank"),
    ):
        np.testing.assert_allclose(found, values[name], rtol=0, atol=ROUNDING)


def files_of(folder: Path) -> dict[Path, bytes]:
    """All files of a store."""
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_feature_store_is_complete(old: Path, values: Any) -> None:
    """The same features write nothing into it; those of another processor are refused.

    It does not hold its landmarks, so that nobody can tell what these would have been there.
    """
    X, _ = inputs.samples()
    before = files_of(old / "features")
    Z = zarr.open_array(str(old / "features"), mode="r")
    np.testing.assert_array_equal(Z[:], values["features"])
    model = dhsk.NystromFeatures(8, time_scale=1.0, random_state=0).fit(X)
    kept, found = Z.attrs["dhsk_features"]["landmarks"], model._features.described()["landmarks"]
    same = nullcontext() if kept == found else pytest.raises(dhsk.StoreMismatchError)
    with same:
        model.write(X, old / "features")
    assert files_of(old / "features") == before


def test_a_feature_store_goes_on_on_another_processor(old: Path) -> None:
    """To the features of its own landmarks and normalization, which the model takes."""
    X, _ = inputs.samples()
    expected = np.load(old / "features-begun.npy")
    model = dhsk.NystromFeatures(8, time_scale=1.0, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* was begun on another machine")
        Z = model.write(X, old / "features-begun").compute()
    off = ROUNDING * np.abs(model.normalization_).sum(axis=0).max()
    np.testing.assert_allclose(Z, expected, rtol=0, atol=off)
    np.testing.assert_allclose(model.transform(X), expected, rtol=0, atol=off)


@pytest.mark.parametrize(("name", "options"), [("cv", "GRID"), ("cv-rank", "LOW_RANK")])
def test_a_grid_goes_on_from_its_journal(old: Path, name: str, options: str) -> None:
    """Nothing is fitted again, so that even the seconds are the same."""
    X, y = inputs.samples()
    out = old / "out"
    shutil.copytree(old / f"{name}-journal", out / "fits")
    before = sorted((out / "fits").iterdir())
    found = dhsk.cross_validate(X, y, **getattr(inputs, options), out=out)
    assert sorted((out / "fits").iterdir()) == before
    kept = json.loads((old / f"{name}.json").read_text())
    assert [row["score"] for row in found.results_] == [row["score"] for row in kept["rows"]]
    assert [row["seconds"] for row in found.results_] == [row["seconds"] for row in kept["rows"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cv", "cv-rank"])
def test_results_open_and_have_a_report(old: Path, name: str) -> None:
    """With the scores and the winner that they had."""
    kept = json.loads((old / f"{name}.json").read_text())
    found = dhsk.CvResult.from_json(old / f"{name}.json")
    assert [row["score"] for row in found.results_] == [row["score"] for row in kept["rows"]]
    assert found.best_score_ == kept["best"]["mean"]
    found.report(old / "report.html")
    assert "<svg" in (old / "report.html").read_text()


def assert_as_good(model: Any, whole: Any, X: Any, decided: Any) -> None:
    """A model minimises what another does, and decides as an older one, to what `tol` leaves open.

    Half the squared gradient bounds what an objective is above the least, and C times the squares
    of the differences of decisions, over the samples within all margins, are at most that much.
    """
    found, other = model.model_.certificates, whole.model_.certificates
    gaps = 0.5 * np.array([found.gradient_norm, other.gradient_norm]) ** 2
    np.testing.assert_array_less(np.abs(found.objective - other.objective), gaps.max(axis=0))
    worst = 0.5 * (found.gradient_norm / found.relative * model.tol) ** 2  # of the older one
    open_ = np.sqrt(gaps[0] / model.C) + np.sqrt(worst / model.C)
    own, kept = (np.reshape(f, (len(X), -1)) for f in (model.decision_function(X), decided))
    within = np.maximum(np.abs(own), np.abs(kept)) < 1
    assert within.any(axis=0).all()
    assert (np.abs(own - kept) <= open_)[within].all()


def numbers(reports: list[dhsk.Progress], stage: str) -> list[int]:
    """What a stage had done at each of its reports."""
    return [report.done for report in reports if report.stage == stage]


def test_a_killed_training_goes_on(old: Path, values: Any, tmp_path: Path) -> None:
    """From the step that was kept, to the model that it would have had."""
    X, _ = inputs.samples(inputs.KILLED)
    inputs.kill(inputs.train_in_steps, tmp_path / "anew", *inputs.AT_STEP)
    same = have_same_arrays(old / "killed", tmp_path / "anew")
    rest: list[dhsk.Progress] = []
    found = inputs.train_in_steps(rest.append, old / "killed")
    every: list[dhsk.Progress] = []
    whole = inputs.train_in_steps(every.append, None)
    assert_as_good(found, whole, X, values["killed"])
    if not same:
        pytest.skip("with this processor and BLAS the kept step has other bits")
    np.testing.assert_array_equal(found.decision_function(X), whole.decision_function(X))
    stage, step = inputs.AT_STEP
    assert 1 < step < len(numbers(every, stage))
    # The report that killed it is that of the step that was kept.
    assert len(numbers(rest, stage)) == len(numbers(every, stage)) - step


def have_same_arrays(kept: Path, found: Path) -> bool:
    """Whether the files of two folders have the same names and the same arrays, bit by bit."""
    if {p.name for p in kept.iterdir()} != {p.name for p in found.iterdir()}:
        return False
    for path in kept.iterdir():
        with np.load(path) as one, np.load(found / path.name) as other:
            if not all(np.array_equal(one[name], other[name]) for name in one.files):
                return False
    return True


def test_a_killed_choice_of_landmarks_goes_on(old: Path, values: Any, tmp_path: Path) -> None:
    """From the round that was kept, under the name that it has, to the same landmarks."""
    X, _ = inputs.different_samples()
    (kept,) = (old / "killed-landmarks").iterdir()
    inputs.kill(inputs.train_in_rounds, tmp_path / "anew", *inputs.AT_ROUND)
    (ours,) = (tmp_path / "anew").iterdir()
    assert ours.name == kept.name
    same = have_same_arrays(kept.parent, ours.parent)
    with np.load(kept) as one, np.load(ours) as other:
        np.testing.assert_array_equal(one["pivots"], other["pivots"])
        chosen = len(one["pivots"])
    rest: list[dhsk.Progress] = []
    every: list[dhsk.Progress] = []
    resumed = inputs.train_in_rounds(rest.append, kept.parent)
    whole = inputs.train_in_rounds(every.append, None)
    stage, count = inputs.AT_ROUND
    assert numbers(every, stage)[0] == 0
    assert numbers(rest, stage) == numbers(every, stage)[count - 1 :]
    assert numbers(rest, stage)[0] == chosen < len(resumed.landmark_indices_)
    np.testing.assert_array_equal(resumed.landmark_indices_, values["landmark_indices"])
    assert_as_good(resumed, whole, X, values["landmarks"])
    if not same:
        pytest.skip("with this processor and BLAS the kept round has other bits")
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))
