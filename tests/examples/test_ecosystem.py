"""The examples beside other packages: numpy alone, Optuna, MLflow."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import dhsk
from dhsk.__main__ import main

FOLDER = Path(__file__).parents[2] / "examples" / "ecosystem"
ALONE = FOLDER / "predict_without_dhsk.py"

WITHOUT = """
import runpy, sys
for name in ("dhsk", "scipy", "sklearn", "numba"):
    sys.modules[name] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a script where these packages cannot be imported."""

RELATIVE = 1e-11
"""Rounding of a recurrence of some hundred steps, from 1e-12 proven of the kernel."""


def ended(command: list[Any], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command that has ended."""
    return subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def said(command: list[Any], folder: Path) -> str:
    """What a command prints that ends well."""
    done = ended(command, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_command(model: Path, samples: Path) -> list[str]:
    """Labels of `dhsk predict`."""
    table = samples.with_suffix(".csv")
    with pytest.raises(SystemExit) as done:
        main(["predict", str(model), str(samples), "--out", str(table)])
    assert done.value.code == 0
    return [line.split(",")[0] for line in table.read_text().splitlines()[1:]]


@pytest.fixture
def data(counts: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Three classes that overlap, and new samples, one of them of zeros."""
    X, y = counts(120, 9), np.repeat(["ant", "bee", "cow"], 40)
    for code in range(3):
        X[40 * code : 40 * code + 40, 3 * code : 3 * code + 3] += 1
    new = rng.poisson(1.2, (300, 9)).astype(float)
    new[7] = 0.0
    return X, y, new


MODELS = {
    "heat": dhsk.HeatSVC(10.0, 0.5),
    "heat of a short time": dhsk.HeatSVC(10.0, 0.1),
    "heat, nearly constant": dhsk.HeatSVC(time_scale=6.0),
    "heat of directions": dhsk.HeatSVC(10.0, 1.0, "projective"),
    "heat of tf-idf": dhsk.HeatSVC(10.0, 1.0, "tfidf"),
    "heat, one-vs-rest": dhsk.HeatSVC(10.0, 0.5, multi_class="ovr"),
    "float32": dhsk.HeatSVC(10.0, 0.5, dtype="float32"),
    "cosine": dhsk.HeatSVC(10.0, kernel="cosine"),
    "gaussian": dhsk.HeatSVC(10.0, kernel="gaussian"),
    "gaussian, nearly constant": dhsk.HeatSVC(kernel=dhsk.GaussianKernel(300.0)),
    "linear": dhsk.HeatSVC(1.0, kernel="linear"),
    "polynomial": dhsk.HeatSVC(1.0, kernel=dhsk.PolynomialKernel(2, 1.0)),
    "SVC": dhsk.SVC(),
    "SVC, linear": dhsk.SVC(kernel="linear"),
    "SVC, polynomial": dhsk.SVC(kernel="poly", coef0=1.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_numpy_alone_gives_the_labels_of_the_command(name: str, data: Any, tmp_path: Path) -> None:
    """Of each kernel and map; the other packages of dhsk cannot be imported there."""
    X, y, new = data
    MODELS[name].fit(X, y).save(tmp_path / "m")
    np.save(tmp_path / "new.npy", new)
    found = said(["-c", WITHOUT, ALONE, tmp_path / "m", "new.npy"], tmp_path).split()
    assert found == of_command(tmp_path / "m", tmp_path / "new.npy")
    assert set(found) == {"ant", "bee", "cow"}


@pytest.mark.parametrize("classes", [2, 3])
def test_of_sparse_samples_with_one_of_zeros(classes: int, data: Any, tmp_path: Path) -> None:
    """Whose image is marked in the file; and of two classes, of whole numbers."""
    X, y, new = data
    X[::8] = 0.0
    labels = np.unique(y, return_inverse=True)[1] % classes
    with pytest.warns(dhsk.ZeroRowsWarning):
        dhsk.HeatSVC(10.0, 0.5).fit(csr_array(X), labels).save(tmp_path / "m")
    assert "rows_data" in np.load(tmp_path / "m")
    np.save(tmp_path / "new.npy", new)
    save_npz(tmp_path / "new.npz", csr_array(new))
    found = said(["-c", WITHOUT, ALONE, tmp_path / "m", "new.npy"], tmp_path).split()
    assert found == of_command(tmp_path / "m", tmp_path / "new.npz")


def test_the_series_is_that_of_the_kernel() -> None:
    """K - 1, to full relative precision, in few and in many dimensions."""
    less_one = runpy.run_path(str(ALONE))["heat_less_one"]
    cosines = np.array([-1.0, -0.3, 0.0, 0.5, 0.99, 1.0 - 1e-9, 1.0])
    for dim, time in ((2, 0.05), (3, 0.5), (20, 0.1), (500, 0.02), (500, 0.1), (10_000, 1e-3)):
        expected = dhsk.HeatKernel(dim, time).of_cosine_minus_one(cosines)
        np.testing.assert_allclose(less_one(cosines, dim, time), expected, RELATIVE)


def test_other_models_are_refused(data: Any, tmp_path: Path) -> None:
    """With what they are."""
    X, y, _ = data
    dhsk.NystromSVC(20).fit(X, y).save(tmp_path / "low")
    dhsk.SVC(kernel="sigmoid").fit(X, y).save(tmp_path / "sigmoid")
    np.save(tmp_path / "x.npy", X)
    for name, words in (("low", "no exact SVM"), ("sigmoid", "kernel sigmoid is not in")):
        done = ended([ALONE, name, "x.npy"], tmp_path)
        assert done.returncode == 1
        assert words in done.stderr


def test_the_script_is_short() -> None:
    """Forty lines, and twelve for the series of the heat kernel."""
    text = ALONE.read_text()
    parts = re.findall(r"^def (\w+).*?(?=\n\n\n)", text, re.M | re.S)
    lengths = {part.group(1): len(part.group().splitlines())
               for part in re.finditer(r"^def (\w+).*?(?=\n\n\n)", text, re.M | re.S)}  # fmt: skip
    assert parts == ["heat_less_one", "kernel_values", "predict"]
    assert lengths["kernel_values"] + lengths["predict"] <= 40
    assert lengths["heat_less_one"] <= 12


@pytest.fixture
def files(data: Any, tmp_path: Path) -> Path:
    """Samples and labels in files."""
    X, y, _ = data
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.txt").write_text("\n".join(y))
    return tmp_path


def test_optuna_searches(files: Path) -> None:
    """Its best is near what dhsk finds, and is what a grid of that cell scores."""
    pytest.importorskip("optuna", reason="optuna is not installed")
    out = said([FOLDER / "tune.py", "x.npy", "y.txt", 12], files)
    best, s, C = re.findall(r"trials: ([\d.]+) at .*'time_scale': ([\d.]+), 'C': ([\d.]+)", out)[0]
    (own,) = re.findall(r"own search: ([\d.]+)", out)
    X, y = np.load(files / "x.npy"), (files / "y.txt").read_text().split()
    cell = dhsk.cross_validate(X, y, time_scale=[float(s)], C=[float(C)], cv=5)
    assert float(best) == pytest.approx(cell.best_score_, abs=5e-5)
    assert abs(float(best) - float(own)) < 0.1


def test_mlflow_keeps_a_model_without_pickles(files: Path) -> None:
    """What is logged is the file of `save` and code that reads it; the page is an artifact."""
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    out = said([FOLDER / "track.py", "x.npy", "y.txt"], files)
    (right,) = re.findall(r"its own samples: ([\d.]+)", out)
    (model,), pages = files.rglob("model.dhsk"), list(files.rglob("report.html"))
    assert len(pages) == 1
    logged = {file.name for file in model.parents[1].rglob("*") if file.is_file()}
    assert {"MLmodel", "served.py", "model.dhsk"} <= logged
    assert not [name for name in logged if name.endswith((".pkl", ".pickle"))]
    X, y = np.load(files / "x.npy"), (files / "y.txt").read_text().split()
    assert float(right) == pytest.approx(dhsk.HeatSVC.load(model).score(X, y), abs=5e-5)
