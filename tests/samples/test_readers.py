import gzip
import shutil
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dhsk.errors import InputError, InputWarning, SamplesChangedError
from dhsk.samples import open_samples, scan
from dhsk.samples.readers import FORMATS

N_SAMPLES, DIM = 23, 7


def counts() -> np.ndarray:
    """Return a small sparse matrix of fractions that fill every decimal digit."""
    rng = np.random.default_rng(7)
    X = rng.lognormal(size=(N_SAMPLES, DIM)) * (rng.random((N_SAMPLES, DIM)) < 0.5)
    X[0, 0] = X[1, -1] = 0.1  # the first and the last feature occur, the first row is not empty
    X[5] = 0
    return X


X = counts()


def dense_npy(folder: Path) -> str:
    """Write a .npy file."""
    np.save(folder / "x.npy", X)
    return str(folder / "x.npy")


def fortran_npy(folder: Path) -> str:
    """Write a .npy file by columns."""
    np.save(folder / "x.npy", np.asfortranarray(X))
    return str(folder / "x.npy")


def big_endian_npy(folder: Path) -> str:
    """Write a .npy file of another byte order."""
    np.save(folder / "x.npy", X.astype(">f8"))
    return str(folder / "x.npy")


def dense_npz(folder: Path) -> str:
    """Write an archive whose array is chosen by key."""
    np.savez(folder / "x.npz", other=np.arange(3), samples=X)
    return f"{folder / 'x.npz'}:samples"


def compressed_npz(folder: Path) -> str:
    """Write a compressed archive whose array has the usual name."""
    np.savez_compressed(folder / "x.npz", X=X, y=np.arange(3))
    return str(folder / "x.npz")


def images_npz(folder: Path) -> str:
    """Write an archive of one three-dimensional array."""
    np.savez(folder / "x.npz", X.reshape(N_SAMPLES, DIM, 1))
    return str(folder / "x.npz")


def csv_with_header(folder: Path) -> str:
    """Write a CSV file as spreadsheets do, with header and byte order mark."""
    path = folder / "x.csv"
    names = ",".join(f"word{j}" for j in range(DIM))
    path.write_text("\ufeff" + names + "\n" + table(","), encoding="utf-8")
    return str(path)


def tsv_gz(folder: Path) -> str:
    """Write a compressed TSV file without header."""
    path = folder / "x.TSV.gz"
    path.write_bytes(gzip.compress(table("\t").encode()))
    return str(path)


def csv_named_with_colon(folder: Path) -> str:
    """Write a CSV file whose name looks like FILE:KEY."""
    path = folder / "a:b.csv"
    path.write_text(table(","))
    return str(path)


def table(separator: str) -> str:
    """Return the samples as text."""
    return "".join(separator.join(map(repr, row)) + "\n" for row in X.tolist())


def csr_npz(folder: Path) -> str:
    """Write a CSR matrix as scipy does."""
    sp.save_npz(folder / "x.npz", sp.csr_array(X))
    return str(folder / "x.npz")


def four_keys_npz(folder: Path) -> str:
    """Write the four arrays of a CSR matrix, and another."""
    A = sp.csr_array(X)
    np.savez(
        folder / "x.npz", data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, y=[1]
    )
    return str(folder / "x.npz")


def svmlight(first_index: int, comment: str = "") -> str:
    """Return the samples as svmlight text."""
    rows = [
        " ".join(f"{j + first_index}:{v!r}" for j, v in enumerate(row) if v) for row in X.tolist()
    ]
    return comment + "".join(f"{i % 2} {row} # row {i}\n" for i, row in enumerate(rows))


def one_based_svm(folder: Path) -> str:
    """Write an svmlight file that counts from 1."""
    (folder / "x.svm").write_text(svmlight(1))
    return str(folder / "x.svm")


def zero_based_gz(folder: Path) -> str:
    """Write a compressed svmlight file that counts from 0."""
    path = folder / "x.svmlight.gz"
    path.write_bytes(gzip.compress(svmlight(0, comment="# a comment\n\n").encode()))
    return str(path)


DENSE = [
    lambda _: X,
    lambda _: np.asfortranarray(X),
    lambda _: X.tolist(),
    lambda _: X.reshape(N_SAMPLES, 1, DIM),
    dense_npy,
    fortran_npy,
    big_endian_npy,
    dense_npz,
    compressed_npz,
    images_npz,
    csv_with_header,
    tsv_gz,
    csv_named_with_colon,
]
SPARSE = [
    lambda _: sp.csr_array(X),
    lambda _: sp.csc_matrix(X),
    lambda _: sp.coo_array(X),
    csr_npz,
    four_keys_npz,
    one_based_svm,
    zero_based_gz,
]


@pytest.mark.parametrize("write", DENSE)
def test_dense_formats_give_the_same_blocks(write, tmp_path, placed):
    """Every dense format yields the same values, block by block, as often as asked."""
    samples = open_samples(placed(write(tmp_path)))
    assert samples.shape == X.shape
    assert not samples.is_sparse
    assert samples.nnz is None
    for rows in (1, 4, N_SAMPLES, 100):
        blocks = list(samples.blocks(rows))
        assert [len(block) for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
        np.testing.assert_array_equal(np.concatenate(blocks), X)
        for block in blocks:
            assert block.dtype == np.float64
            assert block.flags.c_contiguous
            assert block.flags.writeable


@pytest.mark.parametrize("write", SPARSE)
def test_sparse_formats_give_the_same_blocks(write, tmp_path, placed):
    """Every sparse format yields the same canonical CSR blocks."""
    samples = open_samples(placed(write(tmp_path)))
    assert samples.shape == X.shape
    assert samples.is_sparse
    assert samples.nnz == np.count_nonzero(X)
    for rows in (1, 4, N_SAMPLES, 100):
        blocks = list(samples.blocks(rows))
        assert [block.shape[0] for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
        for block in blocks:
            assert isinstance(block, sp.csr_array)
            assert block.dtype == np.float64
            assert block.indices.dtype == np.int32
            assert block.has_canonical_format
        np.testing.assert_array_equal(sp.vstack(blocks).toarray(), X)


@pytest.mark.parametrize("writers", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_formats_share_a_fingerprint(writers, tmp_path):
    """The fingerprint does not depend on the format that the samples come in."""
    prints = set()
    for number, write in enumerate(writers):
        folder = tmp_path / str(number)
        folder.mkdir()
        prints.add(scan(open_samples(write(folder)), "identity").fingerprint)
    assert len(prints) == 1


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
def test_every_real_dtype_becomes_float64(dtype, tmp_path):
    """Narrow types are widened exactly, in memory and from files."""
    Y = (X > 0.5).astype(dtype)
    np.savez(tmp_path / "y.npz", Y)
    for source in (Y, sp.csr_array(Y), tmp_path / "y.npz"):
        (block,) = open_samples(source).blocks(N_SAMPLES)
        assert block.dtype == np.float64
        assert (block != Y).sum() == 0


def test_sparse_blocks_are_canonical_whatever_is_stored(tmp_path):
    """Duplicates are summed without overflow, zeros dropped, indices sorted; the input stays."""
    parts = {
        "data": np.array([100, 100, 0, 5], dtype=np.int8),
        "indices": np.array([2, 2, 1, 0], dtype=np.int32),
        "indptr": np.array([0, 3, 4], dtype=np.int32),
        "shape": np.array([2, 3]),
    }
    np.savez(tmp_path / "x.npz", **parts)
    A = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(2, 3))
    for source in (A, tmp_path / "x.npz"):
        (block,) = open_samples(source).blocks(2)
        assert block.nnz == 2
        np.testing.assert_array_equal(block.toarray(), [[0, 0, 200], [5, 0, 0]])
    assert (A.nnz, A.indices.tolist()) == (4, [2, 2, 1, 0])


def test_blocks_are_fresh():
    """Writing to a block changes neither the source nor the next reading."""
    for source in (X.copy(), sp.csr_array(X)):
        samples = open_samples(source)
        first = next(samples.blocks(N_SAMPLES))
        first *= 2
        (again,) = samples.blocks(N_SAMPLES)
        assert (again != X).sum() == 0


def test_a_whole_name_wins_over_a_key(tmp_path):
    """`x.npz:X` is the file of that name where there is one."""
    np.savez(tmp_path / "x.npz", X=np.zeros((1, 1)))
    (tmp_path / "x.npz:X.csv").write_text("5,6\n")
    assert open_samples(tmp_path / "x.npz:X").shape == (1, 1)
    assert open_samples(tmp_path / "x.npz:X.csv").shape == (1, 2)


def test_open_samples_are_returned_as_they_are():
    """Samples pass through the door unchanged."""
    samples = open_samples(X)
    assert open_samples(samples) is samples


def test_columns_can_be_dropped(tmp_path):
    """A text column is left out by name, a column of a table without header by number."""
    (tmp_path / "x.csv").write_text('\ufeffwho,a,b\n"Lee, Ann",1,2\nBo,3,4\n', "utf-8")
    (block,) = open_samples(tmp_path / "x.csv", drop_columns=["who"]).blocks(9)
    np.testing.assert_array_equal(block, [[1, 2], [3, 4]])
    (tmp_path / "y.csv").write_text("9,1,2\n9,3,4\n")
    (block,) = open_samples(tmp_path / "y.csv", drop_columns=["0"]).blocks(9)
    np.testing.assert_array_equal(block, [[1, 2], [3, 4]])


def test_svmlight_dimension_can_be_given(tmp_path):
    """A test set that lacks the last features gets the dimension of its training set."""
    path = one_based_svm(tmp_path)
    with pytest.warns(InputWarning, match="from 1 to 7: they are taken to count from 1.* 0:0"):
        samples = open_samples(path, n_features=10)
    assert samples.shape == (N_SAMPLES, 10)
    assert next(samples.blocks(2)).shape == (2, 10)
    with pytest.raises(InputError, match="7 features, but only 6"):
        open_samples(path, n_features=6)
    open_samples(path, n_features=7)  # no index is beyond those that count from 1
    Path(path).write_text("0 0:0 2:24\n")
    (block,) = open_samples(path, n_features=7).blocks(9)
    assert block.toarray()[0].tolist() == [0, 0, 24, 0, 0, 0, 0]


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("layout", ["dense", "csr", "npy"])
def test_reading_stays_within_few_blocks_of_memory(layout, tmp_path):
    """40 MB of samples are read in 1 MB blocks with a few blocks of memory."""
    dim, n_samples = 500, 10_000
    block_rows = 250  # 1 MB of float64
    dense = np.arange(n_samples * dim, dtype=np.float64).reshape(n_samples, dim) + 1
    path = tmp_path / ("x.npy" if layout == "npy" else "x.npz")
    if layout == "dense":
        np.savez(path, dense)
    elif layout == "csr":
        sp.save_npz(path, sp.csr_array(dense), compressed=False)
    else:
        np.save(path, dense)
    del dense
    tracemalloc.start()
    try:
        total = sum(block.sum() for block in open_samples(path).blocks(block_rows))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = n_samples * dim
    assert total == size * (size + 1) / 2  # exact: below 2^53
    # One block as stored and two in float64 (the loop still holds the last); for CSR the indices as
    # well; and half a block for the rest.
    assert peak < (6.5 if layout == "csr" else 3.5) * 1_000_000


def test_missing_and_unknown_files_are_refused(tmp_path):
    """A missing file, a folder, an unknown format and a useless key each get their sentence."""
    with pytest.raises(InputError, match=r"there is no file .*nothing\.npy:X"):
        open_samples(tmp_path / "nothing.npy:X")
    with pytest.raises(InputError, match="is a folder"):
        open_samples(tmp_path)
    (tmp_path / "x.xlsx").write_bytes(b"x")
    with pytest.raises(InputError, match=r"unknown format \(\.xlsx\).*\.h5ad, .*\.svm.*\.tsv\.gz"):
        open_samples(tmp_path / "x.xlsx")
    (tmp_path / "README").write_bytes(b"x")
    with pytest.raises(InputError, match=r"unknown format \(no extension\)"):
        open_samples(tmp_path / "README")
    for source in (dense_npy(tmp_path), one_based_svm(tmp_path)):
        with pytest.raises(InputError, match="has no parts"):
            open_samples(f"{source}:X")
    with pytest.raises(InputError, match=r"no named columns \(who\)"):
        open_samples(dense_npy(tmp_path), drop_columns=["who"])


@pytest.mark.parametrize(
    "write", [dense_npy, dense_npz, csr_npz, zero_based_gz, tsv_gz], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("keep", [0, 5, 0.5, 0.99])
def test_truncated_files_are_refused(write, keep, tmp_path):
    """A file cut anywhere is an error, never fewer samples."""
    source = write(tmp_path)
    path = Path(source.removesuffix(":samples"))
    content = path.read_bytes()
    path.write_bytes(content[: keep if isinstance(keep, int) else int(keep * len(content))])
    with pytest.raises(InputError, match=r"cannot be read|truncated|is empty"):
        list(open_samples(source).blocks(5))


def test_a_suffix_is_of_one_format():
    """The table gives each file one reader, in lower case, as files are told apart by it."""
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(suffixes) == len(set(suffixes)) > 30
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in suffixes)


def test_damaged_archives_are_refused(tmp_path):
    """A flipped byte in an archive is caught by its checksum."""
    path = Path(dense_npz(tmp_path).removesuffix(":samples"))
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("samples.npy").header_offset
    content = bytearray(path.read_bytes())
    content[start + 800] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="CRC"):
        list(open_samples(f"{path}:samples").blocks(5))


def test_changed_files_are_refused(tmp_path):
    """A file that changes after it was opened is not read as if it were the same."""
    for write in (dense_npy, dense_npz, csr_npz, one_based_svm, csv_with_header):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        source = write(tmp_path)
        samples = open_samples(source)
        with Path(source.removesuffix(":samples")).open("ab") as handle:
            handle.write(b"0\n")
        with pytest.raises(SamplesChangedError, match="has changed since it was opened"):
            list(samples.blocks(5))


@pytest.mark.parametrize("source", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_blocks_need_a_row(source):
    """Blocks of no rows are refused."""
    with pytest.raises(InputError, match="at least 1 row, got 0"):
        next(open_samples(source).blocks(0))
