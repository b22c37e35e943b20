"""Names of features and samples: where readers find them, and columns put in their order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

from dhsk.errors import InputError, InputWarning
from dhsk.samples import Samples, open_samples, scan
from dhsk.samples.names import in_order

DIM = 6
X = np.random.default_rng(3).poisson(0.8, size=(9, DIM)).astype(np.float64)
NAMES = tuple(f"g{i}" for i in range(DIM))
IDS = tuple(f"cell {i}" for i in range(len(X)))
ORDER = np.random.default_rng(4).permutation(DIM)


def table_of(group: Any, name: str, index: Any) -> None:
    """Write a table of AnnData that has an index alone."""
    table = group.create_group(name)
    table.attrs["_index"] = "_index"
    values = np.asarray(index)
    if isinstance(group, h5py.Group):
        table.create_dataset("_index", data=np.array(index, dtype=object))
    else:
        table.create_array("_index", data=values)


def anndata(group: Any, A: Any, names: Any = NAMES, key: str = "X") -> None:
    """Write an AnnData object into an HDF5 file or a zarr group."""
    table_of(group, "obs", IDS)
    table_of(group, "raw/var" if key == "raw/X" else "var", names)
    if not sp.issparse(A):
        (group.create_dataset if isinstance(group, h5py.Group) else group.create_array)(key, data=A)
        return
    made = group.create_group(key)
    made.attrs["encoding-type"] = "csr_matrix"
    made.attrs["shape"] = list(A.shape)
    for part in ("data", "indices", "indptr"):
        values = getattr(A, part)
        (made.create_dataset if isinstance(group, h5py.Group) else made.create_array)(
            part, data=values
        )


def h5ad(path: Path, A: Any = X, names: Any = NAMES, key: str = "X") -> Path:
    """Write an .h5ad file."""
    with h5py.File(path, "w") as file:
        anndata(file, A, names, key)
    return path


def zarr_folder(path: Path, A: Any = X, names: Any = NAMES) -> Path:
    """Write AnnData's zarr folder."""
    anndata(zarr.create_group(path, zarr_format=2), A, names)
    return path


def table(path: Path, A: Any = X, names: Any = NAMES) -> Path:
    """Write a CSV file with a header and a column of ids in the middle."""
    frame = pd.DataFrame(A, columns=list(names))
    frame.insert(2, "who", IDS)
    frame.to_csv(path, index=False)
    return path


def archive(path: Path, A: Any = X, names: Any = NAMES) -> Path:
    """Write an archive like that of the TCGA counts."""
    A = sp.csr_array(A)
    parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr, "shape": A.shape}
    np.savez(path, genes=np.array(names), samples=np.array(IDS), **parts)
    return path


SOURCES: dict[str, Callable[..., Samples]] = {
    "h5ad": lambda folder: open_samples(h5ad(folder / "x.h5ad")),
    "h5ad of csr": lambda folder: open_samples(h5ad(folder / "x.h5ad", sp.csr_array(X))),
    "layer": lambda folder: open_samples(f"{h5ad(folder / 'x.h5ad', key='layers/l')}:layers/l"),
    "raw": lambda folder: open_samples(f"{h5ad(folder / 'x.h5ad', key='raw/X')}:raw/X"),
    "zarr": lambda folder: open_samples(zarr_folder(folder / "x.zarr")),
    "zarr of csr": lambda folder: open_samples(zarr_folder(folder / "x.zarr", sp.csr_array(X))),
    "csv": lambda folder: open_samples(table(folder / "x.csv"), id_column="who"),
    "npz of csr": lambda folder: open_samples(archive(folder / "x.npz")),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_files_give_names_of_features_and_samples(kind: str, tmp_path: Path) -> None:
    """AnnData's var and obs, the header of a table, arrays of strings in an archive."""
    samples = SOURCES[kind](tmp_path)
    assert samples.shape == X.shape
    assert samples.feature_names == NAMES
    ids = samples.ids(4)
    assert ids is not None
    blocks = [tuple(block) for block in ids]
    assert blocks == [IDS[:4], IDS[4:8], IDS[8:]]


@pytest.mark.parametrize("kind", SOURCES)
def test_columns_are_put_in_order(kind: str, tmp_path: Path) -> None:
    """Block by block, dense or CSR; the fingerprint is that of samples that were in order."""
    samples = SOURCES[kind](tmp_path)
    wanted = [NAMES[i] for i in ORDER]
    found = in_order(samples, wanted, "the model")
    assert found.feature_names == tuple(wanted)
    assert (found.shape, found.is_sparse, found.nnz) == (X.shape, samples.is_sparse, samples.nnz)
    blocks: list[Any] = [b.toarray() if sp.issparse(b) else b for b in found.blocks(4)]
    np.testing.assert_array_equal(np.concatenate(blocks), X[:, ORDER])
    right = sp.csr_array(X[:, ORDER]) if samples.is_sparse else X[:, ORDER]
    expected = scan(open_samples(right), "identity")
    assert scan(found, "identity").fingerprint == expected.fingerprint
    ids = found.ids(100)
    assert ids is not None
    assert tuple(next(ids)) == IDS


def test_dense_arrays_of_an_archive_have_names_if_the_length_is_right(tmp_path: Path) -> None:
    """Strings, one a feature; arrays of objects are never unpickled."""
    path = tmp_path / "x.npz"
    words = np.array([name.encode() for name in NAMES])
    np.savez(path, X=X, features=np.array(["a", "b"]), words=words, ids=np.arange(len(X)))
    samples = open_samples(path)
    assert samples.feature_names == NAMES
    assert samples.ids(5) is None
    np.savez(path, X=X, feature_names=np.array(NAMES, dtype=object))
    assert open_samples(path).feature_names is None


def test_dataframes_have_names_by_scikit_learns_rule() -> None:
    """If all columns are strings; arrays have none."""
    frame = pd.DataFrame(X, columns=list(NAMES))
    assert open_samples(frame).feature_names == NAMES
    assert open_samples(frame.rename(columns={"g1": 1})).feature_names is None
    assert open_samples(pd.DataFrame(X)).feature_names is None
    assert open_samples(X).feature_names is None
    assert open_samples(X).ids(3) is None


def test_tables_without_header_and_columns_left_out_have_no_names(tmp_path: Path) -> None:
    """Column numbers are no names; labels and ids are no features."""
    path = tmp_path / "x.csv"
    np.savetxt(path, X, delimiter=",")
    assert open_samples(path).feature_names is None
    table(path)
    kept = open_samples(path, drop_columns=["g0"], id_column="who")
    assert kept.feature_names == NAMES[1:]


def test_an_index_of_the_wrong_length_is_refused(tmp_path: Path) -> None:
    """AnnData does not write such files: which name belongs to which column is unknown."""
    with pytest.raises(InputError, match="has 6 columns, but the index of var has 5 names"):
        open_samples(h5ad(tmp_path / "x.h5ad", names=NAMES[1:]))


def test_what_is_no_index_of_anndata_gives_no_names(tmp_path: Path) -> None:
    """Tables of other programs, and the compound ones of AnnData before 0.7."""
    path = tmp_path / "x.h5ad"
    for index in (3, "absent"):
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=X)
            file.create_group("var").attrs["_index"] = index
            file.create_dataset("obs", data=np.zeros(len(X), [("index", "S4")]))
        samples = open_samples(path)
        assert (samples.feature_names, samples.ids(3)) == (None, None)


def test_names_that_are_not_utf8_are_kept_apart(tmp_path: Path) -> None:
    """They are no reason to refuse the values."""
    np.savez(tmp_path / "x.npz", X=X, genes=np.array([b"g\xe9%d" % i for i in range(DIM)]))
    samples = open_samples(tmp_path / "x.npz")
    assert samples.feature_names == tuple(f"g\\xe9{i}" for i in range(DIM))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("g0", "g1", "g2", "g3", "g4", "z"), r"lacks 1 of the 6 features of M \(z\) and has 1 "),
        (NAMES[:5], r"X has 1 feature that M does not know \(g5\)"),
        ((*NAMES, "y", "z"), r"X lacks 2 of the 8 features of M \(y, z\): give"),
        ([f"h{i}" for i in range(9)], r"lacks 9 of the 9 features of M \(h0, h1, h2, h3, h4, \.\."),
        (("g1", "g1", "g2", "g3", "g4", "g5"), r"lacks 1 .*\(g1\) and has 1 .*\(g0\)"),
    ],
)
def test_missing_and_unknown_names_are_listed(names: Any, words: str) -> None:
    """The first five of each, how many, and the way out."""
    samples = open_samples(pd.DataFrame(X, columns=list(NAMES)))
    with pytest.raises(InputError, match=words):
        in_order(samples, names, "M")


def test_names_that_occur_twice_are_taken_in_the_same_order_only() -> None:
    """Which of two columns of a name is meant cannot be told."""
    double = ["a", "a", *NAMES[2:]]
    samples = open_samples(pd.DataFrame(X, columns=double))
    assert in_order(samples, double, "M") is samples
    with pytest.raises(InputError, match="and a more than once: make the names unique"):
        in_order(samples, double[::-1], "M")


def test_without_names_on_a_side_nothing_is_compared() -> None:
    """The samples are taken as they are, and that is said."""
    named, bare = open_samples(pd.DataFrame(X, columns=list(NAMES))), open_samples(X)
    with pytest.warns(InputWarning, match="M has feature names and X has none"):
        assert in_order(bare, NAMES, "M") is bare
    with pytest.warns(InputWarning, match="X has feature names and M has none"):
        assert in_order(named, None, "M") is named
    assert in_order(named, NAMES, "M") is named
    assert in_order(bare, None, "M") is bare
    assert in_order(bare, NAMES, "M", warn=False) is bare
