from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dhsk.errors import InputError
from dhsk.samples import open_samples

X = np.arange(23 * 7).reshape(23, 7) % 3.0


def write_npz(path: Path, **changes) -> Path:
    """Write the four arrays of a CSR matrix, some of them changed."""
    A = sp.csr_array(X)
    parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr, "shape": np.array(A.shape)}
    np.savez(path, **(parts | changes))
    return path


BAD_CSR = {
    "indices outside": (
        {"indices": np.full(np.count_nonzero(X), 9)},
        "row 0 .* column 9, .* gives 7 columns",
    ),
    "negative index": ({"indices": np.full(np.count_nonzero(X), -1)}, "row 0 .* column -1"),
    "short indptr": ({"indptr": np.arange(3)}, r"shape \(3,\), but 23 rows need \(24,\)"),
    "wrong end": ({"indptr": np.zeros(24, int)}, "runs from 0 to 0, but"),
    "short indices": ({"indices": np.arange(3)}, r"'indices' \(3,\)"),
    "float indices": ({"indices": np.zeros(np.count_nonzero(X))}, "indices has dtype float64"),
    "bad shape": ({"shape": np.array([23])}, r"two non-negative integers .* got \[23\]"),
    "csc": ({"format": np.array(b"csc")}, r"in CSC format.*load_npz\(FILE\)\.tocsr\(\)"),
    "objects": ({"data": np.array([None, 1])}, "never unpickles"),
}


@pytest.mark.parametrize(("changes", "message"), BAD_CSR.values(), ids=BAD_CSR)
@pytest.mark.parametrize("rows", [1, 100])
def test_inconsistent_csr_archives_are_refused(changes, message, rows, tmp_path):
    """Each way in which the arrays of a CSR matrix can disagree is named with its numbers."""
    path = write_npz(tmp_path / "x.npz", **changes)
    with pytest.raises(InputError, match=message):
        list(open_samples(path).blocks(rows))


def test_falling_row_pointers_are_refused(tmp_path):
    """Row pointers that fall are named by row."""
    indptr = sp.csr_array(X).indptr.copy()
    indptr[4] = 0
    path = write_npz(tmp_path / "x.npz", indptr=indptr)
    with pytest.raises(InputError, match=r"'indptr' falls from \d+ to 0 at row 3 .*never fall"):
        open_samples(path)


def test_index_outside_is_named_by_its_row(tmp_path):
    """An index that is too high in a later block is named with its absolute row."""
    A = sp.csr_array(X)
    indices = A.indices.copy()
    indices[A.indptr[17]] = 7
    path = write_npz(tmp_path / "x.npz", indices=indices)
    for rows in (1, 5, 100):
        with pytest.raises(InputError, match=r"row 17 \(counted from 0\) .* column 7"):
            list(open_samples(path).blocks(rows))


def test_inconsistent_csr_in_memory_is_refused():
    """A CSR matrix whose indices exceed its shape is refused before it is read."""
    A = sp.csr_array(X)
    A.indices[3] = 99
    with pytest.raises(InputError, match="inconsistent CSR"):
        open_samples(A)


BAD_ARRAYS = {
    "vector": (np.ones(5), r"shape \(5,\).*x\.reshape\(1, -1\)"),
    "no rows": (np.ones((0, 4)), "0 samples of 4 features"),
    "no columns": (np.ones((4, 0)), "4 samples of 0 features"),
    "complex": (np.ones((2, 2), complex), "dtype complex128"),
    "text": (np.full((2, 2), "a"), "dtype <U1"),
    "objects": (np.full((2, 2), "a", object), r"Python objects.*astype\(float\)"),
    "ragged": ([[1, 2], [3]], "not an array"),
    "empty sparse": (sp.csr_array((0, 3)), "0 samples of 3 features"),
    "complex sparse": (sp.csr_array(np.ones((2, 2), complex)), "dtype complex128"),
}


@pytest.mark.parametrize(("source", "message"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_unusable_arrays_are_refused(source, message):
    """Arrays that cannot be samples are refused with what is wrong."""
    with pytest.raises(InputError, match=message):
        open_samples(source)


def test_objects_in_memory_are_numbers_or_named():
    """Numbers of mixed types are taken, as scikit-learn takes them; a column of text is named."""
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 3.0]})
    (block,) = open_samples(frame.astype(object)).blocks(9)
    np.testing.assert_array_equal(block, [[1, 0.5], [2, 3]])
    frame["kind"] = ["x", "y"]
    with pytest.raises(InputError, match=r"\(kind\).*X.drop\(columns=\['kind'\]\)"):
        open_samples(frame)
