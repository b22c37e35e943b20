"""Refusals of values name the column, and ask whether one is a code for what is missing."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dhsk
from dhsk.samples.refusals import ValueRefusedError


def _counts(value: float) -> pd.DataFrame:
    counts = np.random.default_rng(0).poisson(5.0, (100, 4)).astype(float)
    counts[70, 2] = value
    return pd.DataFrame(counts, columns=list("abcd"))


@pytest.mark.parametrize("door", ["fit", "fit_samples", "gram", "search", "scaled"])
def test_the_column_is_named(tmp_path: Path, door: str) -> None:
    """Where samples have names of features, whoever refuses a value says that of its column."""
    value = np.inf if door == "scaled" else -1.0
    table, y, path = _counts(value), ["u", "v"] * 50, tmp_path / "t.parquet"
    table.to_parquet(path)
    doors: dict[str, Any] = {
        "fit": lambda: dhsk.HeatSVC().fit(table, y),
        "fit_samples": lambda: dhsk.HeatSVC().fit_samples(str(path), y),
        "gram": lambda: dhsk.compute_gram(str(path), dhsk.HeatKernel.at_scale(4, 1.0)),
        "search": lambda: dhsk.cross_validate(str(path), y),
        "scaled": lambda: dhsk.cross_validate(str(path), y, sphere_map="scaled"),
    }
    with pytest.raises(dhsk.InputError, match=r"row 70, column 2 'c' \(counted from 0\) holds"):
        doors[door]()


def test_a_code_for_what_is_missing_is_asked_for() -> None:
    """One whole value below 0 may be one; several values, and fractions, are none."""
    code = "if this is a code for what is missing, fill it in first"
    coded = np.array([[1.0, 2.0], [3.0, -99.0], *[[4.0, 5.0]] * 40])
    with pytest.raises(dhsk.InputError, match=code):
        dhsk.hyperspherical_map(coded)
    for others in ([-0.5], [-99.0, -1.0]):
        coded[2 : 2 + len(others), 1] = others
        coded[1, 1] = 2.0
        with pytest.raises(dhsk.InputError, match=r"non-negative samples: (?!if this is a code)"):
            dhsk.hyperspherical_map(coded)


def test_workers_can_send_it() -> None:
    """It keeps its column where it was pickled; names that are longer than a line are cut."""
    error = ValueRefusedError.at(np.array([[1.0, np.nan]]), 1, 6, "but")
    sent = pickle.loads(pickle.dumps(error))
    assert sent.of(["a", "b"]) == "row 6, column 1 'b' (counted from 0) holds nan, but"
    assert sent.of(None) == "row 6, column 1 (counted from 0) holds nan, but"


@pytest.mark.parametrize("door", ["HeatSVC", "SVC", "HeatKernelPCA", "search"])
@pytest.mark.parametrize("kind", ["words", "category", "dates"])
def test_columns_that_are_no_numbers_are_named(door: str, kind: str) -> None:
    """With the line that leaves them out, and the one that encodes words."""
    table, y = _counts(1.0), ["u", "v"] * 50
    kinds = {
        "words": pd.Series(["red", "blue"] * 50),
        "category": pd.Series(["red", "blue"] * 50, dtype="category"),
        "dates": pd.Series([pd.Timestamp("2024-01-01")] * 100),
    }
    table = table.assign(kind=kinds[kind])
    said = r"X has 1 column of values that are no numbers \(kind\), such as .*"
    ways = r"X.drop\(columns=\['kind'\]\), "
    ways += "or make" if kind == "dates" else r".*get_dummies\(X, columns=\['kind'\]\)"
    call = dhsk.cross_validate if door == "search" else getattr(dhsk, door)().fit
    with pytest.raises(dhsk.InputError, match=said + ways):
        call(table, y)
    assert dhsk.HeatSVC().fit(table[list("abcd")].astype(object), y).n_features_in_ == 4


def test_texts_of_a_table_are_given_alone() -> None:
    """As a column, whose words are counted; of two the one of long texts."""
    texts = [
        "a long story of red roses, white wine and of green tea",
        "another story, of bread, cheese and butter",
    ] * 20
    table = pd.DataFrame({"title": ["roses", "bread"] * 20, "text": texts})
    for door in (dhsk.cross_validate, dhsk.HeatSVC().fit):
        with pytest.raises(
            dhsk.InputError, match=r"to count words give X\['text'\]; else leave out"
        ):
            door(table, ["u", "v"] * 20)


def test_each_column_gets_what_is_its_own() -> None:
    """The code leaves out all of them, encodes what are kinds, and reads numbers among words."""
    table = _counts(1.0)
    for number in range(6):
        table[f"k{number}"] = ["red", "blue"] * 50
    table["dose"] = [*map(str, range(99)), "?"]
    table["id"] = [f"p{number}" for number in range(100)]
    flags = pd.array([True, None] * 50, dtype="boolean")
    with pytest.raises(dhsk.InputError, match="has 8 columns") as caught:
        dhsk.HeatSVC().fit(table.assign(flag=flags), ["u", "v"] * 50)
    said, kinds = str(caught.value), [f"k{number}" for number in range(6)]
    assert f"X.drop(columns={[*kinds, 'dose', 'id']!r})" in said
    assert f"pandas.get_dummies(X, columns={kinds!r})" in said
    assert "read dose with pandas.to_numeric(X['dose'], errors='coerce')" in said
    fine = _counts(1.0).assign(flag=flags)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        dhsk.HeatSVC(sphere_map="scaled", kernel="gaussian").fit(fine, ["u", "v"] * 40)
