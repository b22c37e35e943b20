"""The trained machine: LIBSVM's layout, decisions by blocks, and its file."""

import zipfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dhsk
from dhsk.errors import InputError
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.models import exact as model_module
from dhsk.models.exact import SvcModel
from dhsk.models.files import load_model, save_model
from dhsk.models.problem import Problem
from dhsk.models.train_exact import train_svc
from dhsk.samples import open_samples
from dhsk.solvers.platt import fit_sigmoid
from dhsk.solvers.problems import problems_of_classes

KERNEL = dhsk.HeatKernel.at_scale(64, 0.5)
TOL = 1e-9
"""Of both solvers: coefficients and decisions then agree to some ten thousand times that."""
CLOSE = 1e-5


def digits(k: int, n: int = 300) -> tuple[Any, Any]:
    """Images of the first k digits, and which."""
    X, y = load_digits(n_class=k, return_X_y=True)
    return X[:n], y[:n]


def trained(X: Any, y: Any, probability: bool = False, dtype: str = "float64") -> SvcModel:
    """A model of all samples."""
    classes, codes = np.unique(y, return_inverse=True)
    ones = np.ones(len(y))
    folds = np.arange(len(y)) % 3 if probability else None
    problem = Problem(classes, codes, ones, 2.0, TOL, folds, ones)
    return train_svc(problem, open_samples(X), RowMap(KERNEL, "hyperspherical", dtype), Run())


@pytest.fixture(scope="module")
def three() -> SvcModel:
    """A model of three digits, with probabilities."""
    return trained(*digits(3, 200), probability=True)


@pytest.fixture(scope="module")
def rows() -> Any:
    """Mapped test samples."""
    return dhsk.hyperspherical_map(load_digits().data[1500:])


def reference(X: Any, y: Any) -> tuple[SVC, Any]:
    """LIBSVM on the same matrix, and that matrix's samples."""
    unit = dhsk.hyperspherical_map(X)
    svc = SVC(C=2.0, kernel="precomputed", tol=TOL, decision_function_shape="ovo")
    return svc.fit(KERNEL(unit), y), unit


@pytest.mark.parametrize("k", [2, 3, 10])
def test_layout_is_that_of_libsvm(k: int) -> None:
    """Support vectors, their order, coefficients and intercepts are those of scikit-learn."""
    X, y = digits(k)
    model, (svc, _) = trained(X, y), reference(X, y)
    sign = -1.0 if k == 2 else 1.0
    np.testing.assert_array_equal(model.expansion.support, svc.support_)
    np.testing.assert_array_equal(model.expansion.n_support, svc.n_support_)
    np.testing.assert_allclose(sign * model.expansion.dual_coef, svc.dual_coef_, atol=CLOSE)
    np.testing.assert_allclose(sign * model.expansion.intercepts, svc.intercept_, atol=CLOSE)
    assert model.certificates.converged.all()


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("sparse", [False, True])
def test_decisions_are_those_of_libsvm(
    k: int, sparse: bool, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where blocks end within classes, and on CSR samples."""
    X, y = digits(k)
    svc, unit = reference(X, y)
    model = trained(csr_array(X) if sparse else X, y)
    expected = svc.decision_function(KERNEL(rows, unit)).reshape(len(rows), -1)
    whole = model.decisions(csr_array(rows) if sparse else rows)
    np.testing.assert_allclose(whole, -expected if k == 2 else expected, atol=CLOSE)
    monkeypatch.setattr(model_module, "ROWS", 50)
    monkeypatch.setattr(model_module, "SUPPORT", 7)
    np.testing.assert_allclose(model.decisions(rows), whole, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(rows), svc.predict(KERNEL(rows, unit)))


def test_decisions_do_not_hold_the_whole_kernel_matrix(
    three: SvcModel, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No block of kernel values is larger than was said."""
    monkeypatch.setattr(model_module, "ROWS", 40)
    monkeypatch.setattr(model_module, "SUPPORT", 30)
    shapes = []
    compute = dhsk.HeatKernel.of_rows

    def watched(kernel: Any, rows: Any, columns: Any, out: Any) -> Any:
        shapes.append((rows.shape[0], columns.shape[0]))
        return compute(kernel, rows, columns, out)

    monkeypatch.setattr(dhsk.HeatKernel, "of_rows", watched)
    three.decisions(rows)
    assert max(shape[0] for shape in shapes) == 40
    assert max(shape[1] for shape in shapes) == 30


@pytest.mark.parametrize("name", ["linear", "cosine"])
@pytest.mark.parametrize("sparse", [False, True])
def test_decisions_of_linear_kernels_are_those_of_their_columns(
    name: str, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By normal vectors, without a kernel value."""
    X, y = digits(10, 600)
    X = csr_array(X[:400]) if sparse else X[:400]
    model = dhsk.HeatSVC(kernel=name, C=0.1).fit(X, y[:400]).model_
    rows: Any = model.rows[::3] * 0.5
    shapes = list[tuple[int, ...]]()
    compute = type(model.kernel).of_rows

    def watched(kernel: Any, rows: Any, *rest: Any) -> Any:
        shapes.append(rows.shape)
        return compute(kernel, rows, *rest)

    monkeypatch.setattr(type(model.kernel), "of_rows", watched)
    found = model.decisions(rows)
    assert not shapes
    monkeypatch.setattr(type(model.kernel), "bilinear", False)
    expected = replace(model).decisions(rows)
    assert shapes
    # Sums of some hundred products, of sizes up to those of coefficients and kernel values.
    size = np.abs(model.expansion.dual_coef).sum() * float(
        np.abs(compute(model.kernel, rows)).max()
    )
    assert np.abs(found - expected).max() <= 4 * np.finfo(float).eps * size
    assert np.abs(found).max() > 0.1


def test_normal_vectors_take_no_more_than_support_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or little: few support vectors of many features, and many pairs."""
    rng = np.random.default_rng(0)
    X = csr_array((rng.random((40, 5000)) < 0.002) * 1.0)
    model = dhsk.HeatSVC(kernel="linear", C=1.0).fit(X, np.arange(40) % 10).model_
    assert replace(model)._normals is not None
    monkeypatch.setattr(model_module, "NORMALS_BYTES", 0)
    assert 12 * model.rows.nnz < 8 * 5000 * 45
    assert replace(model)._normals is None


def test_pairs_of_classes_are_in_the_order_of_libsvm() -> None:
    """Class 1 of four is in pairs 0 (0, 1), 3 (1, 2) and 4 (1, 3)."""
    assert problems_of_classes(4).tolist() == [[0, 1, 2], [0, 3, 4], [1, 3, 5], [2, 4, 5]]


def test_a_loose_tolerance_leaves_no_support_vectors(rows: Any, tmp_path: Path) -> None:
    """Then all decisions are the intercept, from a file too."""
    X, y = digits(2)
    classes, codes = np.unique(y, return_inverse=True)
    ones = np.ones(len(y))
    problem = Problem(classes, codes, ones, 1.0, 3.0)
    model = train_svc(problem, open_samples(X), RowMap(KERNEL, "hyperspherical"), Run())
    assert model.rows.shape == (0, 64)
    assert not model.decisions(rows).any()
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").rows.shape == (0, 64)


def test_sigmoids_are_those_of_samples_held_out() -> None:
    """Of each pair, from decisions of fits that the sample had no part in."""
    X, y = digits(4, 120)
    fold_of = np.arange(len(y)) % 3  # the folds of `trained`
    rows = dhsk.hyperspherical_map(X)
    decisions = np.empty((len(y), 6))
    for fold in range(3):
        held_out = fold_of == fold
        decisions[held_out] = trained(X[~held_out], y[~held_out]).decisions(rows[held_out])
    expected = [
        fit_sigmoid(decisions[used, number], y[used] == a)
        for number, (a, b) in enumerate(combinations(range(4), 2))
        for used in [(y == a) | (y == b)]
    ]
    found = trained(X, y, probability=True).sigmoids
    np.testing.assert_allclose(found, expected, rtol=CLOSE)


# Files

LABELS = {
    "strings": np.array(["zéro", "one", "two"]),
    "objects": np.array(["a", "bb", "ccc"], dtype=object),
    "floats": np.array([0.5, 1.5, 2.0]),
    "bytes": np.array([1, 2, 250], np.uint8),
}


@pytest.mark.parametrize("labels", LABELS)
def test_a_model_comes_back_to_the_last_bit(
    three: SvcModel, rows: Any, labels: str, tmp_path: Path
) -> None:
    """Labels of every kind, decisions, probabilities, certificates and notes."""
    noted = {"C": np.float32(0.5), "names": ["a"]}
    model = replace(three, classes=LABELS[labels], notes=noted)
    save_model(model, tmp_path / "model")
    found = load_model(tmp_path / "model")
    assert found.classes.dtype == model.classes.dtype
    np.testing.assert_array_equal(found.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(found.decisions(rows), model.decisions(rows))
    np.testing.assert_array_equal(found.probabilities(rows), model.probabilities(rows))
    np.testing.assert_array_equal(found.certificates.gap, model.certificates.gap)
    assert (found.certificates.tol, found.certificates.C) == (TOL, 2.0)
    assert found.notes == {"C": 0.5, "names": ["a"]}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_rows_stay_sparse_in_the_file(rows: Any, dtype: str, tmp_path: Path) -> None:
    """With their type."""
    X, y = digits(2, 100)
    model = trained(csr_array(X), y, dtype=dtype)
    save_model(model, tmp_path / "m.model")
    found = load_model(tmp_path / "m.model")
    assert isinstance(found.rows, csr_array)
    assert found.rows.dtype == dtype
    sparse = csr_array(rows).astype(dtype)
    np.testing.assert_array_equal(found.decisions(sparse), model.decisions(sparse))


def test_a_file_has_the_name_asked_for_and_no_pickles(three: SvcModel, tmp_path: Path) -> None:
    """Nothing else is left in the folder; an older file is replaced."""
    path = tmp_path / "model.of.mine"
    path.write_text("old")
    save_model(three, path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.of.mine"]
    with np.load(path, allow_pickle=False) as archive:
        assert not any(archive[name].dtype.hasobject for name in archive.files)


def test_labels_that_need_a_pickle_are_refused(three: SvcModel, tmp_path: Path) -> None:
    """And nothing is written."""
    strange = np.array([None, (1,), "a"], dtype=object)
    with pytest.raises(InputError, match="labels of dtype object cannot be written"):
        save_model(replace(three, classes=strange), tmp_path / "m")
    assert not list(tmp_path.iterdir())


def damaged(path: Path, how: str) -> None:
    """Write a file that is no model over a model."""
    content = path.read_bytes()
    match how:
        case "text":
            path.write_text("hello")
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "flipped":
            middle = len(content) // 2
            path.write_bytes(
                content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
            )
        case "archive":
            with path.open("wb") as file:
                np.savez(file, X=np.ones(3))
        case "missing":
            path.unlink()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("text", "is no dhsk model"),
        ("truncated", "is no dhsk model, or not the whole of one"),
        ("flipped", "cannot be read, is it complete"),
        ("archive", "it is an archive of something else"),
        ("missing", "there is no file"),
    ],
)
def test_a_file_that_is_no_model_is_refused(
    three: SvcModel, how: str, message: str, tmp_path: Path
) -> None:
    """In one sentence that names it."""
    path = tmp_path / "m.bin"
    save_model(three, path)
    damaged(path, how)
    with pytest.raises(InputError, match=message) as caught:
        load_model(path)
    assert "m.bin" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({"schema": 1}, {}, "schema 1, but this dhsk reads schema 2: train it again"),
        ({"kernel": {"name": "new"}}, {}, "unknown kernel 'new'"),
        ({"sphere_map": "cubic"}, {}, "there is no map 'cubic'"),
        ({}, {"dual_coef": np.ones((1, 3))}, "damaged model: dual_coef has 1 rows for 3 classes"),
        ({}, {"n_support": np.array([1, 1, 1])}, "damaged model: n_support sums to 3"),
    ],
)
def test_contradictions_in_a_file_are_refused(
    rewritten: Any, three: SvcModel, header: Any, arrays: Any, message: str, tmp_path: Path
) -> None:
    """Another schema, unknown words, arrays that do not fit together."""
    save_model(three, tmp_path / "m")
    rewritten(tmp_path / "m", header, **arrays)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "m")


def test_every_byte_of_the_arrays_is_under_a_checksum(three: SvcModel, tmp_path: Path) -> None:
    """A byte flipped within any member is found."""
    path = tmp_path / "m"
    save_model(three, path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        starts = sorted(member.header_offset for member in archive.infolist())
    for end in [*starts[1:], content.index(b"PK\x01\x02")]:
        path.write_bytes(content[: end - 1] + bytes([content[end - 1] ^ 1]) + content[end:])
        with pytest.raises(InputError, match="cannot be read, is it complete"):
            load_model(path)


def test_probabilities_need_sigmoids(three: SvcModel, rows: Any) -> None:
    """A model without them says how to get them."""
    with pytest.raises(InputError, match="train it with --probability"):
        replace(three, sigmoids=None).probabilities(rows)
