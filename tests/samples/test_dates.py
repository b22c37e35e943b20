"""Dates in columns, and warnings where rows follow them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit

import dhsk
from dhsk.samples.dates import is_date, order_of, time_order

DAYS = pd.date_range("2016-01-29", periods=40)


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%d",
        "%m/%d/%Y",
        "%d/%m/%Y",
        "%d.%m.%Y",
        "%Y/%m/%d",
        "%m/%d/%Y %H:%M",
        "%m/%d/%y",
        "%d-%b-%y",
        "%d %B %Y",
        "%b %d, %Y",
        "%m/%d/%Y %I:%M %p",
    ],
)
def test_dates_are_read_however_they_are_written(form: str) -> None:
    """In the one way that reads all of a column, and in order of time, not of text."""
    written = DAYS.strftime(form).tolist()
    assert all(map(is_date, written))
    assert time_order(written) == 1
    assert time_order(written[::-1]) == -1
    assert time_order([*written[1:], written[0]]) == 0
    assert time_order(written[:1] * 40) == 0
    assert time_order([day for day in written for _ in range(24)]) == 1  # hours of a day
    assert time_order([*written[:5], "", *written[5:]]) == 1
    assert time_order(sorted(written[:9] * 5)) == 0  # few that come again


@pytest.mark.parametrize("text", ["1.5.3", "red", "13/13/2020", "1/2", "20.5", "3.10.12", "7", ""])
def test_what_is_no_date(text: str) -> None:
    """Versions, shares and numbers."""
    assert not is_date(text)


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc")).abs()
    return table.assign(day=DAYS.strftime("%m/%d/%Y"), label=["u", "v"] * 20)


@pytest.mark.parametrize("door", ["column", "ids", "parquet", "index"])
def test_folds_across_time_are_warned_of(tmp_path: Path, door: str) -> None:
    """Wherever the dates are; folds in their order are not."""
    table, path = _table(), tmp_path / "t.csv"
    y, features = table["label"], table[list("abc")]
    table.to_csv(path, index=False)
    if door == "column":
        X: Any = dhsk.open_samples(path, drop_columns=["day", "label"])
    elif door == "ids":
        X = dhsk.open_samples(path, drop_columns=["label"], id_column="day")
    elif door == "parquet":
        table.assign(day=DAYS).to_parquet(tmp_path / "t.parquet")
        X = dhsk.open_samples(tmp_path / "t.parquet", drop_columns=["day", "label"])
    else:
        X = features.set_index(DAYS)
    asked: Any = {"C": 1.0, "kernels": ["cosine"]}
    with pytest.warns(dhsk.InputWarning, match=r"follow .*: shuffled folds .* --in-order"):
        dhsk.cross_validate(X, y, cv=2, **asked)
    found = dhsk.cross_validate(X, y, cv=TimeSeriesSplit(2), **asked)
    assert found.folds.n == 2
    assert order_of(dhsk.open_samples(features)) is None


def test_guessing_is_that_of_what_is_tested() -> None:
    """Folds in time order test the later samples, of which more may be of one class."""
    rng = np.random.default_rng(0)
    late = np.arange(600) >= 100
    y = np.where(rng.random(600) < np.where(late, 0.85, 0.55), "up", "down")
    X, cv = rng.normal(size=(600, 6)), TimeSeriesSplit(5)
    found = dhsk.cross_validate(X, y, cv=cv, kernels=["linear"], C=1e-6)
    share = (y[late] == "up").mean()
    assert found.advice.startswith(f"none is to be used: no score is clearly above {share:.4f}")


@pytest.mark.parametrize("kind", ["months", "days"])
def test_indices_of_pandas_are_dates(kind: str) -> None:
    """Of periods too; folds in order are warned of where the newest rows come first."""
    periods = pd.period_range("2000-01", periods=40, freq="M" if kind == "months" else "D")
    features = _table()[list("abc")].set_index(periods)
    y = ["u", "v"] * 20
    asked: Any = {"C": 1.0, "kernels": ["cosine"]}
    with pytest.warns(dhsk.InputWarning, match="the dates that name them: shuffled folds"):
        dhsk.cross_validate(features, y, cv=2, **asked)
    dhsk.cross_validate(features, y, cv=TimeSeriesSplit(2), **asked)
    with pytest.warns(dhsk.InputWarning, match="newest first: folds in their order are trained on"):
        dhsk.cross_validate(features[::-1], y, cv=TimeSeriesSplit(2), **asked)
