"""Tables and AnnData objects as samples: names, ids, columns that are not features."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.errors import InputError

pa = pytest.importorskip("pyarrow", reason="tables of Arrow need pyarrow")


@pytest.fixture
def frame(rng: np.random.Generator) -> pd.DataFrame:
    """Two columns of counts between names and labels."""
    return pd.DataFrame(
        {
            "who": list("abcdefgh"),
            "x": rng.poisson(3.0, 8),
            "kind": list("mmmmnnnn"),
            "y": rng.poisson(3.0, 8) + 1,
        }
    )


def names_of(samples: Any) -> list[str] | None:
    """All ids, in parts of three."""
    ids = samples.ids(3)
    return None if ids is None else [name for part in ids for name in part]


def test_columns_of_a_frame_may_be_no_features(frame: pd.DataFrame) -> None:
    """They are left out as those of a file are."""
    samples = dhsk.open_samples(frame, drop_columns=["kind"], id_column="who")
    (block,) = samples.blocks(100)
    np.testing.assert_array_equal(block, frame[["x", "y"]].to_numpy(float))
    assert samples.feature_names == ("x", "y")
    assert names_of(samples) == list("abcdefgh")
    with pytest.raises(InputError, match=r"X has no column 'z': its columns are who, x, kind, y"):
        dhsk.open_samples(frame, drop_columns=["z"])
    with pytest.raises(InputError, match=r"X has no column 'z': its columns are none"):
        dhsk.open_samples(np.eye(3), drop_columns=["z"])


def test_an_index_of_text_names_the_samples(frame: pd.DataFrame) -> None:
    """One of numbers does not."""
    own = frame.set_index("who")[["x", "y"]]
    assert names_of(dhsk.open_samples(own)) == list("abcdefgh")
    assert names_of(dhsk.open_samples(own.reset_index(drop=True))) is None
    assert names_of(dhsk.open_samples(np.eye(3))) is None


def test_a_sparse_frame_stays_sparse(rng: np.random.Generator) -> None:
    """Its zeros take no memory."""
    X = csr_array(rng.poisson(0.3, (30, 12)).astype(float))
    own = pd.DataFrame.sparse.from_spmatrix(X, columns=list("abcdefghijkl"))
    samples = dhsk.open_samples(own)
    assert (samples.is_sparse, samples.nnz) == (True, X.nnz)
    (block,) = samples.blocks(100)
    assert (block != X).nnz == 0
    assert samples.feature_names == tuple("abcdefghijkl")


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_an_anndata_object_has_names_on_both_sides(make: Any, rng: np.random.Generator) -> None:
    """Cells are the ids, genes the features; it is known by its attributes alone."""
    X = rng.poisson(2.0, (5, 3)).astype(float)
    adata = SimpleNamespace(
        X=make(X), obs_names=pd.Index(list("vwxyz")), var_names=pd.Index(["g1", "g2", "g3"])
    )
    samples = dhsk.open_samples(adata)
    assert samples.feature_names == ("g1", "g2", "g3")
    assert names_of(samples) == list("vwxyz")
    assert samples.shape == X.shape


def test_a_frame_gives_samples_and_labels(frame: pd.DataFrame) -> None:
    """From one table to a cross-validation."""
    found = dhsk.cross_validate(
        dhsk.open_samples(frame, drop_columns=["who", "kind"]),
        frame["kind"],
        kernels=[dhsk.CosineKernel()],
        C=[1.0],
        cv=2,
    )
    assert [row["fold"] for row in found.results_] == [0, 1]


class Stream:
    """Arrow data that can be streamed, and nothing else, as what DuckDB and others give."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a capsule of Arrow's C interface."""
        return self._table.__arrow_c_stream__(requested_schema)


def polars_of(frame: pd.DataFrame) -> Any:
    """The same table of polars."""
    reason = "polars is not installed"
    return pytest.importorskip("polars", reason=reason).DataFrame(frame.to_dict("list"))


OTHERS = {
    "polars": polars_of,
    "arrow": lambda frame: pa.table(frame.to_dict("list")),
    "batch": lambda frame: pa.RecordBatch.from_pydict(frame.to_dict("list")),
    "stream": lambda frame: Stream(pa.table(frame.to_dict("list"))),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_tables_of_others_are_those_of_pandas(frame: pd.DataFrame, kind: str) -> None:
    """Names, ids, columns left out, values and labels; without pandas."""
    table = OTHERS[kind](frame)
    samples = dhsk.open_samples(table, drop_columns=["kind"], id_column="who")
    (block,) = samples.blocks(100)
    np.testing.assert_array_equal(block, frame[["x", "y"]].to_numpy(float))
    assert samples.feature_names == ("x", "y")
    assert names_of(samples) == list("abcdefgh")
    with pytest.raises(InputError, match=r"X has no column 'z': its columns are who, x, kind, y"):
        dhsk.open_samples(table, drop_columns=["z"])
    with pytest.raises(InputError, match=r"\(who, kind\).*drop_columns=\['who', 'kind'\]"):
        dhsk.open_samples(table)
    if kind != "stream":
        assert dhsk.read_labels(table["kind"], 8).tolist() == list("mmmmnnnn")


@pytest.mark.parametrize("kind", OTHERS)
def test_matrices_and_grids_take_tables_of_others(frame: pd.DataFrame, kind: str) -> None:
    """With the bits that numpy's array gives."""
    own = frame[["x", "y"]]
    table = OTHERS[kind](own)
    X, y = own.to_numpy(), frame["kind"].to_numpy()
    kernel = dhsk.HeatKernel.at_scale(2, 0.5)
    G = dhsk.compute_gram(table, kernel)
    np.testing.assert_array_equal(G[:, :], dhsk.compute_gram(X, kernel)[:, :])
    asked = {"kernels": [kernel], "C": [1.0, 10.0], "cv": 2}
    found, expected = (dhsk.cross_validate(one, y, **asked) for one in (table, X))
    assert [row["score"] for row in found.results_] == [row["score"] for row in expected.results_]


def test_a_stream_needs_pyarrow(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it there is one sentence that says so."""
    stream = Stream(pa.table({"x": [1]}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r'read by pyarrow .*: pip install "dhsk\[parquet\]"'):
        dhsk.open_samples(stream)


@pytest.mark.parametrize("kind", ["pandas", "series", "arrow", "arrow column", "polars"])
@pytest.mark.parametrize(
    "use",
    [lambda X, y: dhsk.SVC().fit(X, y), lambda X, y: dhsk.cross_validate(X, y, C=[1], cv=2)],
    ids=["estimator", "search"],
)
def test_lists_in_a_column_are_refused_with_what_reads_them(
    kind: str, use: Any, rng: np.random.Generator
) -> None:
    """Embeddings are kept so; the line of the message gives the samples."""
    E, y = rng.standard_normal((12, 3)), np.arange(12) % 2
    rows: list[list[float]] = E.tolist()
    if kind == "polars":
        X = pytest.importorskip("polars", reason="polars is not installed").DataFrame({"e": rows})
    else:
        whole = pa.table({"e": rows}) if kind.startswith("arrow") else pd.DataFrame({"e": rows})
        X = whole["e"] if kind in ("series", "arrow column") else whole
    with pytest.raises(InputError, match="holds a list of 3 values in each row") as found:
        use(X, y)
    line = str(found.value).rpartition("give ")[2]
    np.testing.assert_array_equal(eval(line, {"np": np, "X": X}), E)


def test_lists_in_a_column_that_is_left_out(frame: pd.DataFrame) -> None:
    """They are no samples, whatever they hold."""
    frame["kind"] = [[1, 2]] * len(frame)
    assert dhsk.open_samples(frame, drop_columns=["kind", "who"]).shape == (8, 2)
