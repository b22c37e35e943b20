"""Estimators on tables of pandas, polars and Arrow: names are kept, and matched."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk

N, NAMES = 60, ["beak", "claw", "fin", "wing"]


@pytest.fixture
def data(counts: Any) -> tuple[Any, Any]:
    """Two classes that differ in their first column."""
    X, y = counts(N, len(NAMES)), np.repeat(["a", "b"], N // 2)
    X[: N // 2, 0] += 5
    return X, y


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("made", [dhsk.HeatSVC(), dhsk.NystromSVC(20, random_state=0)], ids=repr)
def test_columns_keep_their_names_and_their_order(
    kind: str, made: Any, data: Any, tables: Any, tmp_path: Path
) -> None:
    """A fit remembers them and refuses others; a loaded model puts them in order."""
    (X, y), make = data, tables(kind)

    def table_of(X: Any, names: list[str]) -> Any:
        return make({name: X[:, place] for place, name in enumerate(names)})

    table = table_of(X, NAMES)
    model = made.fit(table, y)
    assert model.feature_names_in_.tolist() == NAMES
    expected = type(made)(**made.get_params()).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(model.decision_function(table), expected)
    turned = table_of(X[:, ::-1], NAMES[::-1])
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(turned)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- gill"):
        model.predict(table_of(X, ["gill", *NAMES[1:]]))
    model.save(tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = type(made).load(tmp_path / "m").decision_function(turned)
    np.testing.assert_array_equal(found, expected)


def test_tables_of_dask_are_read_into_memory(data: Any) -> None:
    """As scikit-learn reads them, without their names; searches keep these."""
    frames = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    pandas = pytest.importorskip("pandas")
    X, y = data
    table = frames.from_pandas(pandas.DataFrame(X, columns=NAMES), npartitions=2)
    expected = dhsk.HeatSVC(0.5).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(
        dhsk.HeatSVC(0.5).fit(table, y).decision_function(table), expected
    )
    assert dhsk.open_samples(table).feature_names == tuple(NAMES)


def test_a_lazy_frame_of_polars_has_no_values(data: Any) -> None:
    """Which is said with the way out, by every door."""
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, y = data
    table = polars.DataFrame(X, schema=NAMES)
    model = dhsk.HeatSVC(0.5).fit(table, y)
    for door in (dhsk.open_samples, model.predict, lambda X: dhsk.SVC().fit(X, y)):
        with pytest.raises(dhsk.InputError, match=r"X is a LazyFrame, .*: give X\.collect\(\)"):
            door(table.lazy())
