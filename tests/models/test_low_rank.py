"""The trained low-rank classifier: decisions by blocks, labels, probabilities, and its file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit

import dhsk
from dhsk.errors import InputError
from dhsk.models import low_rank as model_module
from dhsk.models.exact import SvcModel
from dhsk.models.files import load_model, save_model
from dhsk.models.low_rank import LowRankCertificates, LowRankModel

ROUNDING = 1e-12
"""Of sums of 30 terms of size 1."""


def made(k: int = 3, loss: str = "logistic", dtype: str = "float64") -> LowRankModel:
    """A model of random coefficients."""
    rng = np.random.default_rng(k)
    columns = 1 if k == 2 else k
    rows = dhsk.hyperspherical_map(rng.poisson(1.0, (30, 8)) + 1.0).astype(dtype)
    return LowRankModel(
        kernel=dhsk.HeatKernel.at_scale(8, 0.7),
        sphere_map="hyperspherical",
        classes=np.array(["a", "b", "c"][:k]),
        rows=rows,
        indices=rng.permutation(100)[:30],
        coef=rng.normal(size=(30, columns)),
        intercepts=rng.normal(size=columns),
        certificates=LowRankCertificates(
            objective=np.full(columns, 2.0),
            gradient_norm=np.full(columns, 0.1),
            relative=np.full(columns, 0.01),
            gap=np.full(columns, 0.005),
            converged=np.ones(columns, bool),
            loss=loss,
            C=1.5,
            tol=1e-4,
            steps=3,
            passes=7,
            width=29,
            trace_error=0.25,
        ),
        notes={"seed": np.int64(3)},
    )


@pytest.fixture
def rows() -> Any:
    """Mapped samples."""
    return dhsk.hyperspherical_map(np.random.default_rng(9).poisson(1.0, (50, 8)) + 1.0)


def test_decisions_are_sums_over_landmarks(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks too, and of sparse samples."""
    model = made()
    expected = model.kernel.of_rows(rows, model.rows) @ model.coef + model.intercepts
    np.testing.assert_allclose(model.decisions(rows), expected, atol=ROUNDING)
    monkeypatch.setattr(model_module, "ROWS", 7)
    monkeypatch.setattr(model_module, "SUPPORT", 11)
    np.testing.assert_allclose(model.decisions(rows), expected, atol=ROUNDING)
    np.testing.assert_allclose(model.decisions(csr_array(rows)), expected, atol=ROUNDING)


def test_labels_of_ties() -> None:
    """The first of equal classes; of two classes the first at 0, as LinearSVC."""
    three = made(3).labels_of(np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 2.0]]))
    assert three.tolist() == ["a", "b", "c"]
    assert made(2).labels_of(np.array([[0.0], [1e-9], [-1.0]])).tolist() == ["a", "b", "a"]


def test_probabilities_are_those_of_each_class_against_the_rest() -> None:
    """Scaled to sum to 1, also where all of them are below the smallest number."""
    decisions = np.array([[1.0, -2.0, 0.5], [-900.0, -901.0, -1000.0]])
    found = made(3).probabilities_of(decisions)
    expected = expit(decisions[0]) / expit(decisions[0]).sum()
    np.testing.assert_allclose(found[0], expected, rtol=ROUNDING)
    np.testing.assert_allclose(found[1], [expit(1.0), expit(-1.0), 0], atol=ROUNDING)
    two = made(2).probabilities_of(np.array([[2.0]]))
    np.testing.assert_allclose(two, [[expit(-2.0), expit(2.0)]], rtol=ROUNDING)


def test_probabilities_need_the_logistic_loss(rows: Any) -> None:
    """A model of another loss says how to get them."""
    with pytest.raises(InputError, match=r"loss 'squared_hinge' has no .* with loss='logistic'"):
        made(3, "squared_hinge").probabilities(rows)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_model_comes_back_to_the_last_bit(k: int, dtype: str, rows: Any, tmp_path: Path) -> None:
    """Decisions, certificates, landmarks and notes; sparse landmarks too."""
    for model in (made(k, dtype=dtype), replace(made(k), rows=csr_array(made(k).rows))):
        save_model(model, tmp_path / "m")
        found = load_model(tmp_path / "m")
        assert isinstance(found, LowRankModel)
        of_type = rows.astype(found.rows.dtype)
        np.testing.assert_array_equal(found.decisions(of_type), model.decisions(of_type))
        np.testing.assert_array_equal(found.predict(of_type), model.predict(of_type))
        np.testing.assert_array_equal(found.indices, model.indices)
        for name, value in vars(model.certificates).items():
            np.testing.assert_array_equal(getattr(found.certificates, name), value)
        assert found.notes == {"seed": 3}
        assert found.row_map == model.row_map
        assert type(found.rows) is type(model.rows)
    with np.load(tmp_path / "m", allow_pickle=False) as archive:
        assert not any(archive[name].dtype.hasobject for name in archive.files)


def test_both_kinds_are_told_apart(tmp_path: Path) -> None:
    """One function reads both; each estimator reads its own, and names the other's."""
    X = np.random.default_rng(0).poisson(1.0, (40, 8)) + 1.0
    y = np.repeat(["u", "v"], 20)
    dhsk.HeatSVC().fit(X, y).save(tmp_path / "exact")
    dhsk.NystromSVC(10, random_state=0).fit(X, y).save(tmp_path / "low")
    assert isinstance(load_model(tmp_path / "exact"), SvcModel)
    assert isinstance(load_model(tmp_path / "low"), LowRankModel)
    with pytest.raises(InputError, match=r"low is a model of dhsk.NystromSVC: read it with Nys"):
        dhsk.HeatSVC.load(tmp_path / "low")
    with pytest.raises(InputError, match=r"exact is a model of dhsk.HeatSVC: read it with Heat"):
        dhsk.NystromSVC.load(tmp_path / "exact")


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({"format": "dhsk cubic model"}, {}, "a dhsk cubic model, but this dhsk reads a dhsk svm"),
        ({"format": "a poem"}, {}, "is no dhsk model: it is an archive of something else"),
        ({"schema": 1}, {}, "schema 1, but this dhsk reads schema 2: train it again"),
        ({"kernel": {"name": "new"}}, {}, "unknown kernel 'new'"),
        ({}, {"coef": np.ones((30, 2))}, "damaged model: coef has shape"),
        ({}, {"objective": np.ones(2)}, "damaged model: objective has shape"),
        ({}, {"indices": np.arange(4)}, "damaged model: indices has shape"),
    ],
)
def test_contradictions_in_a_file_are_refused(
    rewritten: Any, header: Any, arrays: Any, message: str, tmp_path: Path
) -> None:
    """Other kinds and schemas, unknown words, arrays that do not fit together."""
    save_model(made(), tmp_path / "m")
    rewritten(tmp_path / "m", header, **arrays)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "m")
