"""Samples in zarr folders and h5ad files, in files as AnnData 0.12 lays them out."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import dask.array as da
import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from dhsk.errors import InputError, SamplesChangedError
from dhsk.samples import chunked, open_samples, scan

N_SAMPLES, DIM = 23, 7
RNG = np.random.default_rng(11)
X = RNG.lognormal(size=(N_SAMPLES, DIM)) * (RNG.random((N_SAMPLES, DIM)) < 0.6)
X[5] = 0


def zarr_array(path: Path, values: Any = X, **options: Any) -> Path:
    """Write an array at the root of a folder."""
    options = {"chunks": (5, 3), "zarr_format": 3} | options
    array = zarr.create_array(path, shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return path


def in_group(path: Path, key: str) -> Path:
    """Write an array and another into a group."""
    root = zarr.create_group(path)
    root.create_array("other", data=np.ones(3))
    root.create_array(key, data=X, chunks=(5, 3))
    return path


def write_csr(group: Any, A: Any = None, encoding: str = "csr_matrix", **changes: Any) -> None:
    """Write a CSR matrix into a zarr or HDF5 group as AnnData does, some parts of it changed."""
    A = sp.csr_array(X) if A is None else A
    parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr} | changes
    shape = parts.pop("shape", list(A.shape))
    group.attrs["encoding-type"] = encoding
    if shape is not None:
        group.attrs["shape"] = shape
    for name, values in parts.items():
        if values is None:
            continue
        if isinstance(group, h5py.Group):
            group.create_dataset(name, data=values, chunks=(7,), maxshape=(None,))
        else:
            group.create_array(name, data=np.asarray(values), chunks=(7,))


def zarr_csr(path: Path, zarr_format: int = 3, **changes: Any) -> Path:
    """Write a folder of AnnData whose X is CSR."""
    root = zarr.create_group(path, zarr_format=zarr_format)
    root.create_group("obs")
    write_csr(root.create_group("X"), **changes)
    return path


def h5ad(path: Path, values: Any = X, **options: Any) -> Path:
    """Write a file of AnnData whose X is dense."""
    with h5py.File(path, "w") as file:
        file.create_group("obs")
        file.create_dataset("X", data=values, **options)
    return path


def h5ad_csr(path: Path, key: str = "X", **changes: Any) -> Path:
    """Write a file of AnnData that has a CSR matrix."""
    with h5py.File(path, "w") as file:
        write_csr(file.create_group(key), **changes)
    return path


DENSE = {
    "zarr 2": lambda f: zarr_array(f / "x.zarr", zarr_format=2),
    "zarr 3": lambda f: zarr_array(f / "x"),
    "zarr shards": lambda f: zarr_array(f / "x.zarr", shards=(10, 9)),
    "zarr by columns": lambda f: zarr_array(f / "x.zarr", zarr_format=2, order="F"),
    "zarr big-endian": lambda f: zarr_array(f / "x.zarr", X.astype(">f8"), zarr_format=2),
    "zarr X": lambda f: in_group(f / "g.zarr", "X"),
    "zarr key": lambda f: f"{in_group(f / 'g.zarr', 'layers/a')}:layers/a",
    "zarr object": lambda f: zarr.open(zarr_array(f / "x.zarr"), mode="r"),
    "dask object": lambda _: da.from_array(X, chunks=(4, 3)),
    "h5ad": lambda f: h5ad(f / "x.h5ad"),
    "h5ad chunks": lambda f: h5ad(f / "x.h5ad", chunks=(4, 2), compression="gzip"),
    "h5ad big-endian": lambda f: h5ad(f / "x.H5AD", X.astype(">f8")),
}
SPARSE = {
    "zarr 2": lambda f: zarr_csr(f / "x.zarr", zarr_format=2),
    "zarr 3": lambda f: f"{zarr_csr(f / 'x.zarr')}:X",
    "zarr folder": lambda f: zarr_csr(f / "x.zarr") / "X",
    "h5ad": lambda f: h5ad_csr(f / "x.h5ad"),
    "h5ad layer": lambda f: f"{h5ad_csr(f / 'x.h5ad', 'layers/raw')}:layers/raw",
}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: Any) -> None:
    """Pieces of single chunks, so that small files are read in many."""
    monkeypatch.setattr(chunked, "PIECE_BYTES", 1)


@pytest.mark.slow
@pytest.mark.parametrize("write", DENSE.values(), ids=DENSE)
def test_dense_blocks_equal_those_in_memory(write: Any, tmp_path: Path, placed: Any) -> None:
    """Every layout yields the values, the block sizes and the fingerprint of the array."""
    samples = open_samples(placed(write(tmp_path)))
    assert (samples.shape, samples.is_sparse, samples.nnz) == (X.shape, False, None)
    for rows in (1, 4, N_SAMPLES, 100):
        blocks = list(samples.blocks(rows))
        assert [len(block) for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
        np.testing.assert_array_equal(np.concatenate(blocks), X)
        for block in blocks:
            assert block.dtype == np.float64
            assert block.flags.c_contiguous
            assert block.flags.writeable
    assert scan(samples, "identity") == scan(open_samples(X), "identity")


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("write", SPARSE.values(), ids=SPARSE)
def test_csr_blocks_equal_those_in_memory(write: Any, tmp_path: Path, placed: Any) -> None:
    """Every layout yields the rows, the block sizes and the fingerprint of the CSR matrix."""
    samples = open_samples(write(tmp_path))
    A = sp.csr_array(X)
    assert (samples.shape, samples.is_sparse, samples.nnz) == (X.shape, True, A.nnz)
    for rows in (1, 4, N_SAMPLES, 100):
        blocks = list(samples.blocks(rows))
        assert [block.shape[0] for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
        assert all(block.has_canonical_format for block in blocks)
        np.testing.assert_array_equal(sp.vstack(blocks).toarray(), X)
    assert scan(samples, "identity") == scan(open_samples(A), "identity")


@pytest.mark.parametrize("write", [zarr_csr, h5ad_csr], ids=["zarr", "h5ad"])
def test_unsorted_and_duplicate_entries_are_merged(write: Any, tmp_path: Path) -> None:
    """Rows come sorted, duplicates summed without overflow, explicit zeros dropped."""
    parts = {
        "data": np.array([100, 100, 0, 5], dtype=np.int8),
        "indices": np.array([2, 2, 1, 0]),
        "indptr": np.array([0, 3, 4]),
        "shape": [2, 3],
    }
    (block,) = open_samples(write(tmp_path / "x.h5ad", **parts)).blocks(2)
    assert block.nnz == 2
    np.testing.assert_array_equal(block.toarray(), [[0, 0, 200], [5, 0, 0]])


BAD_CSR = {
    "indices outside": ({"indices": np.full(np.count_nonzero(X), 9)}, "row 0 .* column 9, .* 7 co"),
    "short indptr": ({"indptr": np.arange(3)}, r"shape \(3,\), but 23 rows need \(24,\)"),
    "no indices": ({"indices": None}, "lacks indices, which a CSR matrix needs"),
    "no shape": ({"shape": None}, "lacks the attribute shape"),
    "bad shape": ({"shape": [23]}, r"two non-negative integers .* got \[23\]"),
    "no rows": ({"shape": [0, 7], "indptr": np.zeros(1, int)}, "is empty: it has 0 samples of 7"),
    "complex": ({"data": np.ones(np.count_nonzero(X), complex)}, "X/data has dtype complex128"),
    "columns": ({"encoding": "csc_matrix"}, r"stored by columns \(csc_matrix\).*X\.tocsr\(\)"),
    "other": ({"encoding": "dataframe"}, r"indices, indptr\) and not a csr_matrix"),
}


@pytest.mark.slow(beyond=12)
@pytest.mark.parametrize("write", [zarr_csr, h5ad_csr], ids=["zarr", "h5ad"])
@pytest.mark.parametrize(("changes", "message"), BAD_CSR.values(), ids=BAD_CSR)
def test_inconsistent_csr_groups_are_refused(
    changes: Any, message: str, write: Any, tmp_path: Path
) -> None:
    """Each way in which a CSR group can be wrong is named with its numbers."""
    with pytest.raises(InputError, match=message):
        list(open_samples(write(tmp_path / "x.h5ad", **changes)).blocks(4))


BAD_ARRAYS = {
    "vector": (np.ones(5), r"shape \(5,\), but samples need two dimensions"),
    "images": (np.ones((4, 3, 2)), r"shape \(4, 3, 2\), but samples need two dimensions"),
    "no rows": (np.ones((0, 4)), "0 samples of 4 features"),
    "no columns": (np.ones((4, 0)), "4 samples of 0 features"),
    "complex": (np.ones((2, 2), complex), "dtype complex128"),
    "text": (np.full((2, 2), b"a"), "has dtype .S1"),
}


@pytest.mark.parametrize("write", [zarr_array, h5ad], ids=["zarr", "h5ad"])
@pytest.mark.parametrize(("values", "message"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_unusable_arrays_are_refused(values: Any, message: str, write: Any, tmp_path: Path) -> None:
    """Arrays that cannot be samples are refused with what is wrong."""
    path = tmp_path / "x.h5ad"
    if write is zarr_array:
        zarr_array(path, values, chunks=tuple(max(1, n) for n in values.shape), zarr_format=2)
    else:
        h5ad(path, values)
    with pytest.raises(InputError, match=message):
        open_samples(path)


def test_strings_of_hdf5_are_refused(tmp_path: Path) -> None:
    """Texts of any length are objects, but no pickles."""
    path = h5ad(tmp_path / "x.h5ad", np.full((2, 2), "a", dtype=object))
    with pytest.raises(InputError, match="has dtype object, but samples must be real numbers"):
        open_samples(path)


def test_wrong_keys_are_answered_with_the_right_ones(tmp_path: Path) -> None:
    """A key that does not exist, is a folder of others or goes with one array gets its sentence."""
    for path in (h5ad_csr(tmp_path / "x.h5ad", "layers/a"), zarr_csr(tmp_path / "x.zarr")):
        with pytest.raises(InputError, match=r"has no array 'nope': .*\((layers|X, obs)\)"):
            open_samples(f"{path}:nope")
    with pytest.raises(InputError, match=r"layers is a group \(of a\) and not a csr_matrix"):
        open_samples(f"{tmp_path / 'x.h5ad'}:layers")
    with pytest.raises(InputError, match="is one array, so give it without ':X'"):
        open_samples(f"{zarr_array(tmp_path / 'a.zarr')}:X")
    zarr.create_group(tmp_path / "empty.zarr")
    with pytest.raises(InputError, match=r"which holds samples: .*\(none\)"):
        open_samples(tmp_path / "empty.zarr")


def test_gram_stores_are_no_samples(tmp_path: Path) -> None:
    """A Gram store, and any part of it, is refused with the way out."""
    zarr.create_group(tmp_path / "g", attributes={"dhsk": {"schema": 1}})
    zarr_array(tmp_path / "g" / "gram")
    for source in ("g", "g:gram", "g/gram"):
        with pytest.raises(InputError, match=r"is a Gram store or in one.*dhsk\.open_gram"):
            open_samples(tmp_path / source)


@pytest.mark.slow(beyond=5)
@pytest.mark.parametrize(
    "write",
    [zarr_array, zarr_csr, h5ad, h5ad_csr],
    ids=["zarr", "zarr csr", "h5ad", "h5ad csr"],
)
@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "nan"), (np.inf, "inf"), (-1.0, "-1")],
    ids=["nan", "inf", "negative"],
)
def test_bad_values_are_named_by_row(
    value: float, message: str, write: Any, tmp_path: Path
) -> None:
    """A value without image is found at its row and column in every format."""
    Y = np.arange(1.0, 1 + X.size).reshape(X.shape)
    Y[17, 2] = value
    path = tmp_path / "x.h5ad"
    Z: Any = Y
    if write in (zarr_csr, h5ad_csr):
        Z = sp.csr_array(Y)
        write(path, A=Z)
    else:
        write(path, Z)
    sentences = []
    for source in (path, Z):
        with pytest.raises(InputError, match=rf"row 17\b.*{message}") as caught:
            scan(open_samples(source), "hyperspherical")
        sentences.append(str(caught.value).partition(": ")[2])
    assert sentences[0] == sentences[1]


@pytest.mark.parametrize("keep", [0, 5, 0.5, 0.99])
@pytest.mark.parametrize("write", [h5ad, h5ad_csr], ids=["dense", "csr"])
def test_truncated_h5ad_files_are_refused(write: Any, keep: float, tmp_path: Path) -> None:
    """A file cut anywhere is an error, never fewer samples."""
    path = write(tmp_path / "x.h5ad")
    content = path.read_bytes()
    path.write_bytes(content[: keep if isinstance(keep, int) else int(keep * len(content))])
    with pytest.raises(InputError, match=r"x\.h5ad cannot be read, is it complete\?"):
        list(open_samples(path).blocks(5))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("options", [{}, {"compressors": None}], ids=["compressed", "plain"])
@pytest.mark.parametrize("keep", [0, 5, 40])
def test_truncated_zarr_chunks_are_refused(
    keep: int, options: Any, zarr_format: int, tmp_path: Path
) -> None:
    """A chunk that is cut is an error, never fewer values."""
    path = zarr_array(tmp_path / "x.zarr", zarr_format=zarr_format, **options)
    chunk = path / ("1.1" if zarr_format == 2 else "c/1/1")
    chunk.write_bytes(chunk.read_bytes()[:keep])
    for source in (path, zarr.open(path, mode="r")):
        with pytest.raises(InputError, match=r"^(X|.*x\.zarr) cannot be read, is it complete\?"):
            list(open_samples(source).blocks(5))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"zarr_format": 3, "node_type": "array"}'])
def test_damaged_zarr_metadata_are_refused(content: str, tmp_path: Path) -> None:
    """Metadata that are cut or lack a field are an error with the folder's name."""
    path = zarr_array(tmp_path / "x.zarr")
    (path / "zarr.json").write_text(content)
    with pytest.raises(InputError, match=r"x\.zarr cannot be read"):
        open_samples(path)


def test_damaged_members_of_a_zarr_group_are_refused(tmp_path: Path) -> None:
    """Metadata of the parts of a CSR group are an error like its own."""
    path = zarr_csr(tmp_path / "x.zarr")
    metadata = path / "X" / "data" / "zarr.json"
    metadata.write_text(metadata.read_text().replace('"level"', '"leveb"'))
    with pytest.raises(InputError, match=r"x\.zarr/X cannot be read"):
        open_samples(path)


@pytest.mark.parametrize("write", [zarr_array, h5ad], ids=["zarr", "h5ad"])
def test_files_that_changed_are_refused(write: Any, tmp_path: Path) -> None:
    """A source that is written again after it was opened is not read as if it were the same."""
    path = tmp_path / "x.h5ad"
    samples = open_samples(write(path))
    (shutil.rmtree if path.is_dir() else Path.unlink)(path)
    write(path, X[:9])
    with pytest.raises(SamplesChangedError, match="has changed since it was opened"):
        list(samples.blocks(5))


@pytest.mark.parametrize("write", [h5ad, h5ad_csr], ids=["dense", "csr"])
@pytest.mark.parametrize("other", ["dense", "csr", "rows", "strings", "no file of HDF5", "no X"])
def test_a_rewritten_h5ad_has_changed(write: Any, other: str, tmp_path: Path) -> None:
    """Whatever it became, with the same size and time: what was read once is not damaged."""
    path, new = tmp_path / "x.h5ad", tmp_path / "new.h5ad"
    samples = open_samples(write(path))
    list(samples.blocks(5))
    status = path.stat()
    match other:
        case "dense":
            h5ad(new, X[::-1])
        case "csr":
            h5ad_csr(new, A=sp.csr_array(X[::-1]))
        case "rows":
            h5ad(new, X[:3])
        case "strings":
            h5ad(new, np.full(X.shape, b"a"))
        case "no X":
            h5py.File(new, "w").close()
        case _:
            new.write_bytes(b"x" * status.st_size)
    new.replace(path)
    os.truncate(path, status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(SamplesChangedError, match="changed"):
        list(samples.blocks(5))


def test_h5ad_without_h5py_names_the_extra(monkeypatch: Any, tmp_path: Path) -> None:
    """The sentence is the command that installs what is missing."""
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "x.h5ad").write_bytes(b"x")
    with pytest.raises(InputError, match=r'without h5py .*: pip install "dhsk\[h5ad\]"'):
        open_samples(tmp_path / "x.h5ad")


def test_chunks_of_unknown_size_are_refused() -> None:
    """A selection from a Dask array has as many rows as its condition will find."""
    array = da.from_array(X, chunks=(4, 3))
    with pytest.raises(InputError, match=r"sizes are unknown: call its compute_chunk_sizes\(\)"):
        open_samples(array[array[:, 0] >= 0])
