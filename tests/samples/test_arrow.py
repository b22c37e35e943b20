"""Parquet and Feather files as samples, texts and labels, written by pyarrow and by pandas."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import dhsk
from dhsk.errors import InputError
from dhsk.samples import arrow
from dhsk.samples.paths import Origin
from dhsk.samples.readers import describe

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

N = 50
TEXTS = [f"red rose {n} {'wine' * (n % 2)}" for n in range(N)]


def write(path: Path, table: Any) -> str:
    """Write a table in row groups, or batches, of seven rows."""
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=7)
    else:
        feather.write_feather(table, path, chunksize=7)
    return str(path)


@pytest.fixture(params=[".parquet", ".feather"])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Any) -> Path:
    """Path of a file; it is converted by eleven rows at a time."""
    monkeypatch.setattr(arrow, "_BATCH", 11)
    return tmp_path / f"x{request.param}"


@pytest.fixture
def frame(rng: np.random.Generator) -> pd.DataFrame:
    """Columns of several types of numbers, and of text."""
    return pd.DataFrame(
        {
            "name": [f"s{n}" for n in range(N)],
            "a": rng.poisson(3.0, N),
            "b": rng.random(N).astype(np.float32),
            "c": rng.random(N) < 0.5,
            "kind": pd.Categorical(np.where(np.arange(N) % 3, "x", "y")),
            "text": TEXTS,
            "d": rng.poisson(3.0, N).astype(np.uint8),
        }
    )


def stacked(samples: Any, rows: int) -> Any:
    """All samples, read in blocks."""
    parts = list(samples.blocks(rows))
    assert [len(part) for part in parts[:-1]] == [rows] * (len(parts) - 1)
    return np.concatenate(parts)


@pytest.mark.parametrize("rows", [1, 8, 100])
def test_columns_of_numbers_are_features(rows: int, file: Path, frame: pd.DataFrame) -> None:
    """Integers, floats and booleans; other columns are named and left out."""
    source = write(file, pa.Table.from_pandas(frame))
    samples = dhsk.open_samples(source, drop_columns=["kind", "text"], id_column="name")
    expected = frame[["a", "b", "c", "d"]].to_numpy(np.float64)
    np.testing.assert_array_equal(stacked(samples, rows), expected)
    assert samples.feature_names == ("a", "b", "c", "d")
    ids = samples.ids(rows)
    assert ids is not None
    assert [name for part in ids for name in part] == frame["name"].tolist()


def test_labels_are_a_column(file: Path, frame: pd.DataFrame) -> None:
    """Categories as their names; of one column, its name is not needed."""
    source = write(file, pa.Table.from_pandas(frame))
    assert dhsk.read_labels(f"{source}:kind", N).tolist() == frame["kind"].tolist()
    assert dhsk.read_labels(f"{source}:a", N).tolist() == frame["a"].tolist()
    with pytest.raises(InputError, match=r"has 7 columns: name the one .*:NAME \(name, a, b"):
        dhsk.read_labels(source, N)
    write(file, pa.Table.from_pandas(frame[["kind"]]))
    assert dhsk.read_labels(source, N).tolist() == frame["kind"].tolist()


def test_texts_are_a_column(file: Path, frame: pd.DataFrame) -> None:
    """Counted as scikit-learn does; a model of texts finds the column by itself."""
    source = write(file, pa.Table.from_pandas(frame.rename(columns={"name": "ID"})))
    samples = dhsk.open_samples(f"{source}:text", vectorizer=dhsk.Vectorizer(min_df=2))
    oracle = CountVectorizer(min_df=2)
    expected = oracle.fit_transform(TEXTS)
    (block,) = samples.blocks(100)
    assert (block != expected).nnz == 0
    assert samples.feature_names == tuple(oracle.get_feature_names_out())
    ids = samples.ids(100)
    assert ids is not None
    assert next(ids) == [f"s{n}" for n in range(N)]
    (again,) = dhsk.open_samples(source, vectorizer=samples.vectorizer).blocks(100)
    assert (again != expected).nnz == 0


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("rows", [1, 8, 100])
def test_lists_of_numbers_are_samples(
    fixed: bool, rows: int, file: Path, rng: np.random.Generator
) -> None:
    """Embeddings, as a column of lists of one length."""
    X = rng.normal(size=(N, 5)).astype(np.float32)
    kind = pa.list_(pa.float32(), 5) if fixed else pa.list_(pa.float32())
    source = write(file, pa.table({"id": range(N), "v": pa.array(X.tolist(), kind)}))
    samples = dhsk.open_samples(f"{source}:v")
    np.testing.assert_array_equal(stacked(samples, rows), X.astype(np.float64))
    assert samples.feature_names is None


def test_an_index_of_text_names_the_samples(file: Path, frame: pd.DataFrame) -> None:
    """Pandas keeps it as a column, which is no feature; an index of numbers is left out."""
    own = frame.set_index("name")[["a", "b"]]
    samples = dhsk.open_samples(write(file, pa.Table.from_pandas(own)))
    ids = samples.ids(100)
    assert ids is not None
    assert next(ids) == frame["name"].tolist()
    np.testing.assert_array_equal(stacked(samples, 9), own.to_numpy(np.float64))
    numbered = own.set_axis(np.arange(N)[::-1], axis=0)
    samples = dhsk.open_samples(write(file, pa.Table.from_pandas(numbered)))
    assert (samples.feature_names, samples.ids(9)) == (("a", "b"), None)


def test_files_of_pandas_are_read(tmp_path: Path, frame: pd.DataFrame) -> None:
    """As `to_parquet` and `to_feather` write them."""
    own = frame[["a", "b"]]
    own.to_parquet(tmp_path / "x.parquet")
    own.to_feather(tmp_path / "x.feather")
    for name in ("x.parquet", "x.feather"):
        np.testing.assert_array_equal(
            stacked(dhsk.open_samples(tmp_path / name), 20), own.to_numpy(np.float64)
        )


def test_views_of_strings_are_texts(tmp_path: Path) -> None:
    """Those that polars writes."""
    texts = pa.array(["red cat", "red dog sits"], pa.string_view())
    feather.write_feather(pa.table({"text": texts, "y": [1, 2]}), tmp_path / "t.feather")
    assert dhsk.open_samples(f"{tmp_path / 't.feather'}:text").shape == (2, 4)
    assert ("texts", "text") in describe(Origin.of(tmp_path / "t.feather")).rows


def test_what_is_wrong_is_said(file: Path, frame: pd.DataFrame) -> None:
    """One sentence with the column, the row and the way out."""
    source = write(file, pa.Table.from_pandas(frame))
    with pytest.raises(
        InputError,
        match=r"3 columns that hold no numbers: 'name' \(text\), 'kind' \(text\), 'text' \(text\).*"
        "by --id-column name, .*get_dummies.*--drop-column kind --drop-column text",
    ):
        dhsk.open_samples(source)
    with pytest.raises(
        InputError, match=r"'name' holds text and .*: it seems to name the .*--drop-col"
    ):
        dhsk.open_samples(source, drop_columns=["kind", "text"])
    with pytest.raises(InputError, match=r"no column 'what': its columns are name, a, b"):
        dhsk.open_samples(source, drop_columns=["what"])
    with pytest.raises(InputError, match=r"no column 'what'"):
        dhsk.open_samples(f"{source}:what")
    with pytest.raises(InputError, match=r"holds a number in each row, but samples are texts or"):
        dhsk.open_samples(f"{source}:a")
    holes = pa.table({"a": [*range(20), None], "t": [*map(str, range(20)), None]})
    write(file, holes)
    with pytest.raises(InputError, match=r"row 20 .* has no text in the column 't': fill it in"):
        dhsk.open_samples(f"{source}:t")
    write(file, pa.table({"v": [[1.0, 2.0]] * 12 + [[1.0]]}))
    with pytest.raises(InputError, match=r"row 12 .* has 1 numbers, but the first row has 2"):
        list(dhsk.open_samples(f"{source}:v").blocks(8))
    write(file, pa.table([[1.0], [2.0], [0]], names=["a", "a", "y"]))
    with pytest.raises(InputError, match="2 columns called 'a': rename all but one"):
        dhsk.open_samples(source, drop_columns=["y"])
    assert dhsk.read_labels(f"{source}:y", 1, min_classes=1).tolist() == [0]
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read, is it complete"):
        dhsk.open_samples(source)


def test_without_pyarrow_its_extra_is_named(file: Path, monkeypatch: Any) -> None:
    """It is optional."""
    write(file, pa.table({"a": [1.0]}))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r'without pyarrow .*: pip install "dhsk\[parquet\]"'):
        dhsk.open_samples(file)
