"""Every estimator goes to a file and comes back, without a pickle."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import dhsk
from dhsk.errors import InputError
from dhsk.kernels.centre import marked_rows, without_marks
from dhsk.models import archive
from dhsk.models.files import FittedState, save_model

GP = dhsk.HeatGaussianProcessRegressor

ESTIMATORS = {
    "ridge": dhsk.HeatKernelRidge(0.1, time_scale=0.5),
    "ridge of a kernel": dhsk.HeatKernelRidge(kernel=dhsk.GaussianKernel(3.0)),
    "process": GP(0.8, "auto", normalize_y=True),
    "iterative process": GP(0.8, solver="iterative", preconditioner_rank=7, tol=1e-8),
    "one class": dhsk.HeatOneClassSVM(0.2, dtype="float32"),
    "pca": dhsk.HeatKernelPCA(3),
    "density": dhsk.HeatKernelDensity(),
    "neighbors": dhsk.HeatKernelNeighbors(3, mode="connectivity"),
    "pca of a smoothed kernel": dhsk.HeatKernelPCA(
        kernel=dhsk.SmoothedKernel(dhsk.ParametrixKernel(0.1), 0.5)
    ),
    "averaged ridge": dhsk.HeatKernelRidge(
        kernel=dhsk.AveragedKernel(dhsk.HeatKernel(6, 0.3), 0.5, 4)
    ),
    "clustering": dhsk.HeatSpectralClustering(3),
    "features": dhsk.NystromFeatures(8, random_state=0),
    "features of centres": dhsk.NystromFeatures(8, selection="kmeans", random_state=0),
    "features of indices": dhsk.NystromFeatures(selection=np.arange(5)),
    "hyperspherical": dhsk.HypersphericalMap(),
    "projective": dhsk.ProjectiveMap(zero_rows="error"),
    "tfidf": dhsk.TfidfMap(),
    "exact": dhsk.HeatSVC(),
    "low rank": dhsk.NystromSVC(8, random_state=0),
}
OURS = [name for name in ESTIMATORS if name not in ("exact", "low rank")]
METHODS = (
    "predict", "transform", "decision_function", "score_samples", "predict_proba",
)  # fmt: skip


@pytest.fixture(scope="module")
def X() -> Any:
    """Counts."""
    return np.random.default_rng(0).poisson(2.0, (60, 6)).astype(float) + 1.0


def fitted(name: str, X: Any) -> Any:
    """A fitted clone of an estimator."""
    y = np.arange(60) % 3
    targets = X[:, :2] + X[:, 2:4] if name in ("ridge", "process") else y
    return clone(ESTIMATORS[name]).fit(X, targets)


def results(model: Any, X: Any) -> list[Any]:
    """What it says of samples, by all of its methods, and its public fitted attributes."""
    found = [getattr(model, name)(X) for name in METHODS if hasattr(model, name)]
    if isinstance(model, GP):
        found += model.predict(X, return_std=True)
    public = [n for n in vars(model) if n.endswith("_") and n not in ("model_", "kernel_")]
    public += ["X_fit_", "support_vectors_", "landmarks_"]
    return found + [getattr(model, name) for name in sorted(public) if hasattr(model, name)]


def assert_same(found: list[Any], expected: list[Any]) -> None:
    """Same bits."""
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, csr_array):
            assert (one != other).nnz == 0
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_comes_back_to_the_last_bit(
    name: str, X: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its results, fitted attributes and kernel; no pickle is read or written."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a pickle")

    model = fitted(name, X)
    for function in ("load", "loads", "dump", "dumps", "Unpickler", "Pickler"):
        monkeypatch.setattr(pickle, function, refuse)
    model.save(tmp_path / "m")
    found = type(model).load(tmp_path / "m")
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["m"]
    assert_same(results(found, X[:20] + 0.5), results(model, X[:20] + 0.5))
    assert getattr(found, "kernel_", None) == getattr(model, "kernel_", None)


@pytest.mark.parametrize("name", OURS)
def test_all_that_a_fit_sets_is_in_the_file(name: str, X: Any, tmp_path: Path) -> None:
    """A new attribute is to be added to `_learnt`; parameters are kept but for the machine's."""
    model = fitted(name, X)
    model.save(tmp_path / "m")
    found = type(model).load(tmp_path / "m")
    assert set(vars(found)) - {"_takes_any_order"} == set(vars(model)) - {"_takes_any_order"}
    for key, value in model.get_params(deep=False).items():
        assert isinstance(value, np.ndarray) or getattr(found, key) == value, key


def test_parameters_of_the_machine_are_not_in_the_file(X: Any, tmp_path: Path) -> None:
    """Memory, folders and generators have their defaults again."""
    model = dhsk.HeatKernelPCA(
        np.int64(2),  # type: ignore[arg-type]
        time_scale=np.float32(0.5),
        memory="9GB",
        journal=tmp_path / "journal",
        random_state=np.random.RandomState(0),
    ).fit(X)
    model.save(tmp_path / "m")
    found = dhsk.HeatKernelPCA.load(tmp_path / "m")
    assert (found.memory, found.journal, found.random_state) == (None, None, 0)
    assert (found.n_components, found.time_scale) == (2, 0.5)
    assert_same(results(found, X), results(model, X))


def test_a_loaded_estimator_can_be_fitted_again(X: Any, tmp_path: Path) -> None:
    """As one that never was in a file."""
    fitted("process", X).save(tmp_path / "m")
    found = GP.load(tmp_path / "m")
    assert_same(results(found.fit(X, X[:, 0]), X), results(fitted("process", X).fit(X, X[:, 0]), X))


def test_sparse_rows_and_samples_of_zeros_come_back(X: Any, tmp_path: Path) -> None:
    """Rows stay sparse, and those that stand for the centre stay so."""
    counts = np.where(X > 3, X, 0.0)
    counts[4] = 0.0
    sparse = csr_array(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dhsk.ZeroRowsWarning)
        model = dhsk.HeatKernelRidge().fit(sparse, X[:, 0])
        model.save(tmp_path / "m")
        found = dhsk.HeatKernelRidge.load(tmp_path / "m")
        assert isinstance(found._rows, csr_array)
        assert marked_rows(found._rows) is not None
        assert without_marks(found._rows, marked_rows(found._rows)).nnz > 0
        assert_same([found.predict(sparse)], [model.predict(sparse)])


@pytest.mark.parametrize("name", ["ridge", "tfidf"])
def test_named_columns_may_be_in_any_order(name: str, X: Any, tmp_path: Path) -> None:
    """For a loaded estimator, as it may have been fitted elsewhere."""
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = fitted(name, frame) if name == "tfidf" else dhsk.HeatKernelRidge().fit(frame, X[:, 0])
    model.save(tmp_path / "m")
    found = type(model).load(tmp_path / "m")
    assert list(found.feature_names_in_) == list("abcdef")
    method = "transform" if name == "tfidf" else "predict"
    assert_same([getattr(found, method)(frame[list("fedcba")])], [getattr(model, method)(frame)])


# Refusals


@pytest.mark.parametrize("name", ["ridge", "tfidf", "exact"])
def test_there_is_nothing_to_save_before_a_fit(name: str, tmp_path: Path) -> None:
    """And no file is made."""
    with pytest.raises(NotFittedError):
        clone(ESTIMATORS[name]).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("written", "read", "message"),
    [
        ("ridge", "pca", r"m is a model of dhsk\.HeatKernelRidge: read it with HeatKernelRidge"),
        ("exact", "pca", r"m is a model of dhsk\.HeatSVC: read it with HeatSVC\.load"),
        ("ridge", "exact", r"m is a model of dhsk\.HeatKernelRidge: read it with HeatKernelRidge"),
    ],
)
def test_a_file_of_another_estimator_is_refused(
    written: str, read: str, message: str, X: Any, tmp_path: Path
) -> None:
    """By a sentence that says what it is and what reads it."""
    fitted(written, X).save(tmp_path / "m")
    with pytest.raises(InputError, match=message):
        type(ESTIMATORS[read]).load(tmp_path / "m")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"schema": 1}, "schema 1, but this dhsk reads schema 2: train it again"),
        ({"format": "dhsk new model"}, "is a dhsk new model, but this dhsk reads a"),
        ({"row_map": {"kernel": {"name": "new"}}}, "unknown kernel 'new'"),
        ({"learnt": {}}, "m is a damaged model, or of a later dhsk: 'dual_coef'"),
        ({"learnt": {"dual_coef": {"array": "sparse"}}}, "damaged model: dual_coef is not sparse"),
        ({"learnt": []}, "damaged model"),
        ({"parameters": {"later": 1}}, "or of a later dhsk: .*later"),
        ({"feature_names": ["a"]}, "damaged model: feature_names are 1 and not 6 names"),
    ],
)
def test_contradictions_in_a_file_are_refused(
    rewritten: Any, changed: Any, message: str, X: Any, tmp_path: Path
) -> None:
    """Another schema, unknown words, parts that are missing."""
    fitted("ridge", X).save(tmp_path / "m")
    rewritten(tmp_path / "m", changed)
    with pytest.raises(InputError, match=message):
        dhsk.HeatKernelRidge.load(tmp_path / "m")


@pytest.mark.parametrize("half", [True, False])
def test_a_file_that_is_not_whole_is_refused(half: bool, X: Any, tmp_path: Path) -> None:
    """Cut, or with one bit flipped."""
    path = tmp_path / "m"
    fitted("pca", X).save(path)
    content, middle = bytearray(path.read_bytes()), path.stat().st_size // 2
    content[middle] ^= 1
    path.write_bytes(content[:middle] if half else content)
    with pytest.raises(InputError, match="not the whole of one" if half else "is it complete"):
        dhsk.HeatKernelPCA.load(path)


def test_an_interrupted_save_leaves_the_file_before(
    X: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file takes its place in one step, when all of it is written."""
    model = fitted("pca", X)
    model.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def stopped(file: Any, **_: Any) -> None:
        file.write(b"half")
        assert (tmp_path / "m").read_bytes() == before
        raise KeyboardInterrupt

    monkeypatch.setattr(archive.np, "savez", stopped)
    with pytest.raises(KeyboardInterrupt):
        model.save(tmp_path / "m")
    assert [file.name for file in tmp_path.iterdir()] == ["m"]
    assert (tmp_path / "m").read_bytes() == before


def test_files_say_what_they_are(X: Any, tmp_path: Path) -> None:
    """One format for all of these estimators, with the name of each."""
    fitted("tfidf", X).save(tmp_path / "m")
    with np.load(tmp_path / "m", allow_pickle=False) as arrays:
        header = arrays["header"].tobytes().decode()
    assert f'"format": "{FittedState.format}"' in header
    assert '"estimator": "TfidfMap"' in header


OTHER = """
import sys
import dhsk
try:
    dhsk.HeatSVC.load(sys.argv[1])
except dhsk.InputError as error:
    print(error)
"""


def test_a_file_of_another_estimator_is_told_in_a_new_process(tmp_path: Path) -> None:
    """Where the other one was never loaded."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 5)), np.arange(60) % 2
    found = dhsk.cross_validate(X, y, time_scale=1.0, C=1.0, low_rank=dhsk.LowRank(10), refit=True)
    save_model(found.model_, tmp_path / "m.dhsk")
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(tmp_path / "m.dhsk")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "is a model of dhsk.NystromSVC" in done.stdout
