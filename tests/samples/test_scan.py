import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csr_array, save_npz
from sklearn.datasets import dump_svmlight_file

from dhsk.errors import InputError
from dhsk.gram import compute_gram
from dhsk.kernels.rows import UNIT_NORM_TOLERANCE
from dhsk.samples import Scan, open_samples, scan
from dhsk.samples import scan as scan_function
from dhsk.samples.scan import rows_within
from dhsk.samples.zeros import ZeroRows

X = np.abs(np.random.default_rng(5).normal(size=(11, 6)))
X[X < 0.3] = 0


class InBlocks:
    """Samples that are cut into blocks of a fixed size, whatever is asked for."""

    def __init__(self, source, rows: int) -> None:
        self._samples, self._rows = open_samples(source), rows
        self.source, self.shape = self._samples.source, self._samples.shape
        self.is_sparse, self.nnz = self._samples.is_sparse, self._samples.nnz
        self.indptr = self.feature_names = None

    def blocks(self, _rows: int):
        """Yield blocks of the fixed size."""
        return self._samples.blocks(self._rows)


def fingerprint(source, rows: int = 100) -> str:
    """Return the fingerprint of samples read in blocks of so many rows."""
    return scan_function(InBlocks(source, rows), "identity").fingerprint


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_fingerprint_does_not_depend_on_blocks(layout):
    """The same samples in blocks of any size have one fingerprint."""
    assert len({fingerprint(layout(X), rows) for rows in (1, 2, 5, 11, 100)}) == 1


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_fingerprint_depends_on_everything_else(layout):
    """A changed value, place, row order or shape changes the fingerprint."""
    nudged, moved, wide = X.copy(), X.copy(), np.hstack([X, np.zeros((11, 1))])
    nudged[10, 5] = np.nextafter(1.0 if X[10, 5] == 0 else X[10, 5], 2)
    moved[0] = np.roll(X[0], 1)
    variants = [X, nudged, moved, X[::-1], X[:-1], wide, X.reshape(22, 3), X.reshape(6, 11)]
    assert len({fingerprint(layout(variant)) for variant in variants}) == len(variants)


def test_fingerprint_tells_rows_of_sparse_samples_apart():
    """An entry that moves to the next row in the same column changes the fingerprint."""
    first, second = sp.csr_array([[0, 1.0], [0, 0]]), sp.csr_array([[0, 0], [0, 1.0]])
    assert fingerprint(first) != fingerprint(second)


def test_fingerprint_tells_dense_from_sparse():
    """Dense and CSR samples differ on purpose: their products may differ in the last bit."""
    assert fingerprint(X) != fingerprint(sp.csr_array(X))


def test_fingerprint_ignores_dtype_and_the_sign_of_zero():
    """Equal numbers are equal samples: float32 ones, and -0.0 for 0.0."""
    ones = np.eye(3)
    assert fingerprint(ones) == fingerprint(ones.astype(np.uint8))
    assert fingerprint(ones) == fingerprint(np.where(ones == 0, -0.0, ones))


def test_fingerprint_is_stable():
    """The fingerprint of one release is the fingerprint of the next: stores rely on it."""
    assert fingerprint(np.eye(2)) == "bcc6a0c4692e57a3a6f4650d22404378"
    assert fingerprint(sp.csr_array(np.eye(2))) == "e83255e76e42a17b318214ac97d31531"


def test_scan_reports_what_it_read():
    """Shape, entries that are not zero and progress come back."""
    done: list[int] = []
    found = scan(InBlocks(X, 4), "hyperspherical", on_rows=done.append)
    assert found == Scan(11, 6, None, found.fingerprint)
    assert len(found.fingerprint) == 32
    assert done == [4, 8, 11]
    with_zero = sp.csr_array((np.array([1.0, 0.0]), np.array([0, 1]), np.array([0, 2])))
    assert scan(open_samples(with_zero), "projective").nnz == 1


@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_scan_refuses_what_the_map_would(rows, layout):
    """Defects are named with the source and the absolute row, in blocks of any size."""
    negative, empty = X.copy(), X.copy()
    negative[7, 2] = -3
    empty[9] = 0
    with pytest.raises(InputError, match=r"^X: row 7, column 2 .* holds -3\.0"):
        scan(InBlocks(layout(negative), rows), "hyperspherical")
    with pytest.raises(InputError, match=r"^X: row 9 .* all zero"):
        scan(InBlocks(layout(empty), rows), "projective", zero_rows=ZeroRows("error"))
    scan(InBlocks(layout(empty), rows), "identity")


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_unit_rows_are_checked(layout):
    """Under the identity map unit rows pass, also those rounded to float32, and others do not."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    compute_gram(layout(unit), "cosine", sphere_map="identity")
    compute_gram(layout(unit.astype(np.float32)), "cosine", sphere_map="identity")
    scan(open_samples(layout(3 * unit)), "identity")
    off = 3 * UNIT_NORM_TOLERANCE
    for factor in (1 + off, 1 - off, 0.0, 1e-170, 1e308):
        wrong = unit.copy()
        wrong[6] *= factor
        with pytest.raises(InputError, match=r"row 6 .* has (a )?norm .*1e-06.*--map projective"):
            compute_gram(layout(wrong), "cosine", sphere_map="identity")
    compute_gram(layout(3 * unit), "cosine", sphere_map="projective")


def test_blocks_of_the_scan_are_bounded():
    """Rows in a block follow from their average size, and are at least one."""
    assert rows_within(open_samples(np.ones((5, 100))), 8000) == 10
    assert rows_within(open_samples(np.ones((5, 100))), 1) == 1
    assert rows_within(open_samples(sp.csr_array(np.ones((5, 100)))), 12_040) == 10


def long_rows_last(n: int = 3_000) -> csr_array:
    """Sparse samples of one entry each, but for the last tenth with a hundred."""
    lengths = np.ones(n, int)
    lengths[-n // 10 :] = 100
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = np.concatenate([np.arange(length, dtype=np.int32) for length in lengths])
    return csr_array((np.ones(columns.size), columns, indptr), shape=(n, 200))


@pytest.mark.slow
def test_blocks_are_bounded_where_rows_are_fullest(tmp_path) -> None:
    """A block of as many rows as fit on average would hold nine times as much here."""
    X = long_rows_last()
    save_npz(tmp_path / "x.npz", X)
    dump_svmlight_file(X, np.zeros(X.shape[0]), str(tmp_path / "x.svm"))
    for source in (X, tmp_path / "x.npz", tmp_path / "x.svm"):
        samples = open_samples(source)
        for n_bytes in (5_000, 50_000, 200_000):
            rows = rows_within(samples, n_bytes)
            sizes = [12 * block.nnz + 4 * block.shape[0] for block in samples.blocks(rows)]
            assert max(sizes) <= n_bytes
            assert rows >= n_bytes // (12 * 100 + 4)  # as many as fit of the longest
        assert samples.most_entries(10) == 1_000
        assert samples.most_entries(10_000) == X.nnz


def test_one_row_is_a_block_whatever_it_holds() -> None:
    """A limit that not even a row keeps does not stop the reading."""
    assert rows_within(open_samples(long_rows_last()), 10) == 1
