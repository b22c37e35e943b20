"""Rows of samples: checks, squared norms and inner products."""

import math
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, sparray, spmatrix

from dhsk.arrays import Floats, Rows, blocks
from dhsk.compiled import compiled
from dhsk.errors import InputError
from dhsk.kernels.centre import add_constants, constants_of, marked_rows, sums_of, without_marks
from dhsk.kernels.certified.evaluate import Reals
from dhsk.kernels.panels import are_enough, panel_cost, panel_product, suits_dense

RowsLike: TypeAlias = ArrayLike | sparray | spmatrix
"""What a caller may pass as samples: anything that numpy reads as 2-D, or a sparse matrix."""

_Numbers: TypeAlias = NDArray[np.int32] | NDArray[np.int64]

_Csr: TypeAlias = "csr_array[np.float64, tuple[int, int]]"

UNIT_NORM_TOLERANCE: Final = 1e-6
"""Largest |norm - 1| of a unit row: rows normalised in float32 (eps 1.2e-7) must pass."""

ProductPath: TypeAlias = Literal["dense", "panels", "sparse"]
"""How two CSR blocks are multiplied: by GEMM on dense strips of them, the entries of one times
panels of the other, see `dhsk.kernels.panels`, or entries times entries."""

SPARSE_ENTRY_COST: Final = 8.0
"""Cost of an entry of the sparse product, in multiply-adds of GEMM: 0.2 ns, whatever its terms."""

SPARSE_MULTIPLY_COST: Final = 48.0
"""Cost of a multiply-add of the sparse product, in multiply-adds of GEMM.

Measured with one BLAS thread on 1000 x 1000 tiles, d = 400 to 50000, where both products take about
the same time: 60 for uniform sparse rows (which break even at a density of 12 to 14 %), 38 for text
(Zipf) rows, and up to 160 at d = 400, where the difference is 10 ms.
"""

DENSE_BYTES: Final = 64 * 2**20
"""Largest temporary block of `inner_product`, in bytes.

At most three are in memory, and copies of the CSR blocks.
"""


def as_rows(X: RowsLike, what: str = "X") -> Rows:
    """Convert samples, (rows, dim), to a float64 C array or canonical CSR array, and check them.

    `X` is not modified, and copied only if necessary. Raises `InputError`, with the name `what`, if
    it is not 2-D, not of real numbers, or has an entry that is not finite.
    """
    sparse = isinstance(X, sparray | spmatrix)
    array: Any = X if sparse else np.asarray(X)
    if array.ndim != 2:
        raise InputError(
            f"{what} must be 2-D, one sample per row, but it has {array.ndim} dimensions:"
            " reshape it to (samples, features)"
        )
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{what} must hold real numbers, but its dtype is {array.dtype}: convert it to float64"
        )
    rows: Rows = _canonical(array) if sparse else np.ascontiguousarray(array, dtype=np.float64)
    check_finite(rows, what, way=", so drop or impute such samples")
    return rows


def _canonical(matrix: Any) -> Rows:
    rows: _Csr = csr_array(matrix, dtype=np.float64)  # shares memory with a float64 CSR
    if not rows.has_canonical_format:
        rows = rows.copy()  # sorting in place would reach the caller's matrix
        rows.sum_duplicates()
    return rows


def check_finite(rows: Rows, what: str, first_row: int = 0, way: str = "") -> None:
    """Raise InputError, with its place, for the first entry that is not finite."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    finite = np.isfinite(values)
    if finite.all():
        return
    row, column = place_of(rows, int(np.argmin(finite)))
    raise InputError(
        f"{what} has the value {values[~finite][0]} at row {first_row + row}, column {column} "
        f"(counted from 0): every entry must be finite{way}"
    )


def place_of(rows: Rows, position: int) -> tuple[int, int]:
    """Row and column of a flat position in the stored values."""
    if isinstance(rows, np.ndarray):
        return divmod(position, int(rows.shape[1]))
    row = np.searchsorted(rows.indptr, position, side="right") - 1
    return int(row), int(rows.indices[position])


def squared_norms(X: Rows) -> Floats:
    """Squared Euclidean norm of each row, (rows,)."""
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", X, X))
    norms2, marks = np.empty(X.shape[0]), marked_rows(X)
    inner: Any = without_marks(X, marks)
    _add_squares(inner.data, inner.indptr, norms2)
    if marks is not None:
        constants = constants_of(inner, marks)
        norms2 += constants * (2.0 * sums_of(inner) + X.shape[1] * constants)
    return norms2


@compiled()
def _add_squares(data: Any, indptr: _Numbers, out: Floats) -> None:
    """Sums of the squares of CSR rows, in the type of the entries, and in their order."""
    for i in range(len(out)):
        total = data.dtype.type(0.0)
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * data[k]
        out[i] = total


def require_unit_rows(norms2: Floats, what: str = "X", first_row: int = 0) -> None:
    """Refuse rows, by their squared norms, that do not lie on the unit sphere.

    Raises `InputError` if a norm differs from 1 by more than `UNIT_NORM_TOLERANCE`; it names the
    samples, `what`, and the first such row, counted from `first_row`.
    """
    norms = np.sqrt(norms2)
    off = np.abs(norms - 1.0) > UNIT_NORM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        norm = f"norm {norms[row]:.9g}" if norms[row] < np.inf else "a norm above 1.34e+154"
        raise InputError(
            f"row {first_row + row} of {what} (counted from 0) has {norm}, and a spherical kernel "
            f"takes unit rows (to {UNIT_NORM_TOLERANCE:g}): map the samples first, with "
            "dhsk.projective_map (--map projective, sphere_map='projective'), or counts with "
            "dhsk.hyperspherical_map"
        )


def inner_product(X: Rows, Y: Rows, out: Reals | None = None) -> Floats:
    """Inner products X Yᵀ, (a, b), of all pairs of rows, C-ordered and of their dtype.

    A CSR row may have a mark, see `dhsk.kernels.centre`. Two CSR blocks are multiplied in
    the way of `path_of`, dense ones of few features by panels, see `dhsk.kernels.panels`.
    Temporary arrays are bounded by `DENSE_BYTES`. The result is `out` if that is given.
    """
    if out is None:
        out = np.empty((X.shape[0], Y.shape[0]), np.result_type(X.dtype, Y.dtype))
    of_x, of_y = marked_rows(X), None if Y is X else marked_rows(Y)
    if of_x is None and of_y is None:
        return _product(X, Y, out)
    of_y = of_x if Y is X else of_y
    X, Y = without_marks(X, of_x), without_marks(Y, of_y)
    product = _product(X, Y, out)
    add_constants(product, X, Y, of_x, of_y)
    return product


def _product(X: Rows, Y: Rows, out: Reals) -> Floats:
    result: Any = out
    if isinstance(X, np.ndarray):
        if isinstance(Y, np.ndarray):
            if suits_dense(X, Y):
                panel_product(X, Y, result)
            else:
                np.matmul(X, Y.T, out=result)
        else:
            result[:] = (Y @ X.T).T
    elif isinstance(Y, np.ndarray):
        result[:] = X @ Y.T
    else:
        _product_of_csr(X, Y, result)
    return np.asarray(result)


def _product_of_csr(X: _Csr, Y: _Csr, out: Any) -> None:
    dim = X.shape[1]
    if dim > X.nnz + Y.nnz:  # arrays of one number per column would be the largest
        X, Y = _without_empty_columns(X, Y)
    path = path_of(X, Y, dim)
    if path == "sparse":
        _sparse_product(X, Y, out)
    elif path == "panels":
        panel_product(X, Y, out)
    else:
        _dense_product(X, Y, out)


def path_of(X: _Csr, Y: _Csr, dim: int) -> ProductPath:
    """How two CSR blocks are multiplied, of so many features with those that are left out."""
    a, b, width = max(1, X.shape[0]), max(1, Y.shape[0]), X.shape[1]
    in_column_x = np.bincount(X.indices, minlength=width).astype(np.float64)  # may pass 2^63
    in_column_y = np.bincount(Y.indices, minlength=width)
    multiplies = float(in_column_x @ in_column_y) / (a * b)
    entries = (X.nnz / a + Y.nnz / b) / 2 if are_enough(X, Y) else math.inf
    return cheapest_path(multiplies, entries, dim)


def cheapest_path(multiplies: float, entries: float, dim: int) -> ProductPath:
    """How CSR blocks of so many features are multiplied.

    `multiplies` is Σ_c a_c b_c, for the entries in each column c, over the entries of the product,
    and `entries` the mean number of those of a row.
    """
    costs: dict[ProductPath, float] = {
        "sparse": SPARSE_ENTRY_COST + SPARSE_MULTIPLY_COST * multiplies,
        "panels": panel_cost(entries, dim),
        "dense": float(dim),
    }
    return min(costs, key=costs.__getitem__)


def _without_empty_columns(X: _Csr, Y: _Csr) -> tuple[_Csr, _Csr]:
    """Both without empty columns, in the same order, so that products have the same bits."""
    columns = np.union1d(X.indices, Y.indices)
    width = max(1, len(columns))

    def renumbered(A: _Csr) -> _Csr:
        # Still sorted, so that SciPy need not check.
        parts = (A.data, np.searchsorted(columns, A.indices), A.indptr)
        return csr_array(parts, shape=(A.shape[0], width))

    return renumbered(X), renumbered(Y)


def are_never_dense(entries: float, dim: int) -> bool:
    """Whether CSR blocks of at most so many entries a row are not made dense to be multiplied."""
    # Σ_c f_c² <= Σ_c f_c for the shares f_c of the rows that have an entry in column c
    return SPARSE_ENTRY_COST + SPARSE_MULTIPLY_COST * entries < dim


def are_ever_panels(entries: float, dim: int) -> bool:
    """Whether CSR blocks of so many entries a row may be multiplied by panels."""
    others = min(float(dim), SPARSE_ENTRY_COST + SPARSE_MULTIPLY_COST * entries)
    return panel_cost(entries, dim) < others


def _sparse_product(X: _Csr, Y: _Csr, out: Floats) -> None:
    of_y = Y.T.tocsr()
    _add_terms(X.data, X.indices, X.indptr, of_y.data, of_y.indices, of_y.indptr, out)


@compiled()
def _add_terms(
    data: Floats,
    indices: _Numbers,
    indptr: _Numbers,
    of_y: Floats,
    columns: _Numbers,
    starts: _Numbers,
    out: Floats,
) -> None:
    """Product of CSR arrays X and Y.T, dense, with the bits of SciPy's sparse one.

    Measured on 10 entries in a row of 6,714 features: a fifth of the time of SciPy's and `toarray`.
    """
    # In float64: terms that are added one by one would lose too many digits in float32.
    sums = np.zeros(out.shape[1])
    for i in range(out.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[k])
            for place in range(starts[indices[k]], starts[indices[k] + 1]):
                sums[columns[place]] += value * np.float64(of_y[place])
        for j in range(out.shape[1]):
            out[i, j] = sums[j]
            sums[j] = 0.0


def _dense_product(X: _Csr, Y: _Csr, out: Any) -> None:
    step = _rows_within_bound(X.shape[1])
    for i in blocks(X.shape[0], step):
        rows = X[i].toarray()
        for j in blocks(Y.shape[0], step):
            np.matmul(rows, Y[j].toarray().T, out=out[i, j])


def _rows_within_bound(row_length: int) -> int:
    return max(1, DENSE_BYTES // (8 * max(1, row_length)))
