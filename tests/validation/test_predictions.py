"""The table of held-out predictions: what `out_of_fold` holds, as rows of a file."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GroupKFold

import dhsk
from dhsk.samples import Samples
from dhsk.validation import predictions
from dhsk.validation.predictions import write_predictions

NAMES = ['a, "b"', "c\nd", " é "]
"""Labels that a careless table would break."""


def digits(n: int, classes: int) -> tuple[Any, Any]:
    """Images and labels, the fifth part of them wrong."""
    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(y < classes)[:n]
    rng = np.random.default_rng(0)
    return X[chosen], np.where(rng.random(n) < 0.2, rng.integers(0, classes, n), y[chosen])


def written(
    result: Any, place: Path, samples: Samples | None = None
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table."""
    write_predictions(result.held_out_, result.best.point, samples, place)
    with place.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        header, *rows = csv.reader(file)
    return header, rows


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("repeats", [1, 2])
def test_rows_are_those_of_out_of_fold(
    tmp_path: Path, monkeypatch: Any, classes: int, repeats: int
) -> None:
    """Number by number, in blocks that do not divide the samples."""
    monkeypatch.setattr(predictions, "BLOCK", 32)
    X, y = digits(100, classes)
    result = dhsk.cross_validate(
        X, y, time_scale=0.5, C=3, cv=dhsk.StratifiedFolds(4, n_repeats=repeats)
    )
    header, rows = written(result, tmp_path / "p.csv")
    found = result.out_of_fold()
    decided = ["decision_1"] if classes == 2 else [f"decision_{k}" for k in range(3)]
    extra = [] if repeats == 1 else ["repeat"]
    assert header == ["sample", "true", "predicted", "fold", *extra, *decided]
    assert len(rows) == 100 * repeats
    columns = dict(zip(header, map(np.array, zip(*rows, strict=True)), strict=True))
    names = {"samples": "sample", "true": "true", "predicted": "predicted", "fold": "fold"}
    for attribute, column in (names | dict(zip(["repeat"], extra, strict=False))).items():
        assert columns[column].astype(int).tolist() == getattr(found, attribute).tolist()
    decisions = np.column_stack([columns[name].astype(np.float32) for name in decided])
    np.testing.assert_array_equal(decisions, found.decisions.reshape(len(rows), -1))


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        (np.array(NAMES), NAMES),
        (np.array(NAMES, dtype=object), NAMES),
        (np.array([10, 2, 30]), ["10", "2", "30"]),
        (np.array([3.0, -1.0, 2.0**53]), ["3", "-1", "9007199254740992"]),
        (np.array(["01", "1", "1.0"]), ["01", "1", "1.0"]),
        (np.array(["x", "y", "\udcff"]), ["x", "y", "\udcff"]),
    ],
    ids=[
        "text",
        "objects",
        "integers",
        "whole floats",
        "texts of numbers",
        "bytes of a folder's name",
    ],
)
def test_labels_come_out_as_they_went_in(tmp_path: Path, labels: Any, texts: list[str]) -> None:
    """Whatever their type."""
    X, y = digits(60, 3)
    result = dhsk.cross_validate(X, labels[y], time_scale=0.5, C=3, cv=3)
    header, rows = written(result, tmp_path / "p.csv")
    assert [row[header.index("true")] for row in rows] == [texts[k] for k in y]
    assert {row[header.index("predicted")] for row in rows} <= set(texts)


class Named(Samples):
    """Samples with ids, which are read in blocks of another size than was asked for."""

    def __init__(self, n: int) -> None:
        self.n, self.readings = n, 0

    def ids(self, rows: int) -> Any:
        """Names p0, p1 and so on."""
        del rows
        self.readings += 1
        return (
            [f"p{k}" for k in range(first, min(first + 7, self.n))] for first in range(0, self.n, 7)
        )


Named.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]


def test_each_row_has_the_id_of_its_sample(tmp_path: Path, monkeypatch: Any) -> None:
    """Also in a second repeat, and where samples of a small class were left out."""
    monkeypatch.setattr(predictions, "BLOCK", 16)
    X, y = digits(90, 3)
    y[:] = np.where(np.arange(90) % 30 == 7, 2, np.minimum(y, 1))
    result = dhsk.cross_validate(
        X, y, time_scale=0.5, C=3, cv=dhsk.StratifiedFolds(3, n_repeats=2, min_class=5)
    )
    samples = Named(90)
    header, rows = written(result, tmp_path / "p.csv", samples)
    assert header[:3] == ["sample", "id", "true"]
    assert [row[1] for row in rows] == [f"p{row[0]}" for row in rows]
    kept = np.flatnonzero(y < 2).tolist()
    assert [int(row[0]) for row in rows] == [*kept, *kept]
    assert samples.readings == 2


def test_decisions_of_classes_that_a_fold_lacked_are_empty(tmp_path: Path) -> None:
    """A class of one group is in no training set of the fold that holds it out."""
    X, y = digits(60, 3)
    groups = np.where(y == 2, 0, 1 + np.arange(60) % 2)
    cv = list(GroupKFold(3).split(X, y, groups))
    result = dhsk.cross_validate(X, y, time_scale=0.5, C=3, cv=cv)
    assert result.untrained_classes
    header, rows = written(result, tmp_path / "p.csv")
    last = header.index("decision_2")
    assert [row[last] == "" for row in rows] == (y == 2).tolist()
    assert all(re.fullmatch(r"-?[\d.e-]+", row[last - 1]) for row in rows)


def test_decisions_that_were_not_kept_have_no_columns(tmp_path: Path) -> None:
    """Labels are always there."""
    X, y = digits(60, 3)
    result = dhsk.cross_validate(X, y, time_scale=0.5, C=3, cv=3)
    (kept,) = result.held_out_.cells.values()
    object.__setattr__(kept, "decisions", [None] * 3)  # as of a very large cell
    assert written(result, tmp_path / "p.csv")[0] == ["sample", "true", "predicted", "fold"]
