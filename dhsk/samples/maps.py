"""Maps from data to the unit sphere: hyperspherical, projective and smoothed multinomial."""

from typing import Any, Literal, NoReturn, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.samples.memory import from_memory

SphereMap: TypeAlias = Literal["hyperspherical", "projective", "identity"]
"""How a sample becomes a point of the sphere; "identity" takes it as it is."""


def parse_sphere_map(name: str) -> SphereMap:
    """Return `name` if it is one of the maps, or say which there are."""
    for known in get_args(SphereMap):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise InputError(f"there is no map {name!r}: choose one of {', '.join(get_args(SphereMap))}")


def hyperspherical_map(X: ArrayLike | Any) -> Rows:
    """Map non-negative samples to the sphere: sqrt(x / sum x), row by row.

    Parameters
    ----------
    X
        (n_samples, dim), non-negative, each row with a positive sum; dense or sparse.

    Returns
    -------
    Unit rows, (n_samples, dim), float64; CSR if `X` is sparse.

    Raises
    ------
    InputError
        If an entry is negative, NaN or infinite, or a row is zero; the entry is named.

    References
    ----------
    Zhao & Song (2017), "Exact heat kernel on a hypersphere and its applications in kernel SVM",
    Definition 1.
    """
    return apply_map("hyperspherical", _rows(X))


def projective_map(X: ArrayLike | Any) -> Rows:
    """Map samples to the sphere: x / ||x||, row by row.

    Parameters
    ----------
    X
        (n_samples, dim), no row zero; dense or sparse.

    Returns
    -------
    Unit rows, (n_samples, dim), float64; CSR if `X` is sparse.

    Raises
    ------
    InputError
        If an entry is NaN or infinite, or a row is zero; the entry is named.

    References
    ----------
    Zhao & Song (2017), "Exact heat kernel on a hypersphere and its applications in kernel SVM",
    section 2.3.
    """
    return apply_map("projective", _rows(X))


def multinomial_map(X: ArrayLike | Any, alpha: float) -> Rows:
    """Map counts to the sphere with Dirichlet smoothing: sqrt((x + alpha) / sum (x + alpha)).

    Parameters
    ----------
    X
        (n_samples, dim), non-negative; dense or sparse.
    alpha
        Count added to every feature, at least 0; 0 is `hyperspherical_map`.

    Returns
    -------
    Unit rows, (n_samples, dim), float64; dense where `alpha` > 0, as no entry is zero then.

    Raises
    ------
    InputError
        If `alpha` or an entry is negative, NaN or infinite, or a row is zero and `alpha` is 0.

    References
    ----------
    Lafferty & Lebanon (2002), "Information diffusion kernels", section 2.
    """
    if not 0 <= alpha < np.inf:
        raise InputError(f"alpha must be a finite number and at least 0, got {alpha}")
    if alpha == 0:
        return hyperspherical_map(X)
    block = _rows(X)
    _refuse_nonfinite(block, 0)
    _refuse_negative(block, 0)
    counts = block.toarray() if isinstance(block, csr_array) else block
    scale = _exact_scale(np.maximum(counts.max(axis=1), alpha))[:, None]
    return _sqrt_shares(counts * scale + alpha * scale, counts)


def apply_map(name: SphereMap, block: Rows, first_row: int = 0) -> Rows:
    """Check a block of rows and map it to the sphere.

    Parameters
    ----------
    name
        Which map.
    block
        (rows, dim), dense or canonical CSR; left as it is.
    first_row
        Number of the block's first row in the whole, for messages.

    Returns
    -------
    Unit rows, (rows, dim); for "identity" the block itself. At most two more blocks of memory are
    in use.

    Raises
    ------
    InputError
        If the block has an entry or a row without an image.
    """
    check_rows(name, block, first_row)
    match name:
        case "hyperspherical":
            return _sqrt_shares(_scaled(block), block)
        case "projective":
            values = _scaled(block)
            values /= _spread(_euclidean(values, block), block)
            return _rebuilt(values, block)
        case "identity":
            return block


def check_rows(name: SphereMap, block: Rows, first_row: int = 0) -> None:
    """Refuse what has no image under a map, naming the row and column (see `apply_map`)."""
    _refuse_nonfinite(block, first_row)
    if name == "identity":
        return
    if name == "hyperspherical":
        _refuse_negative(block, first_row)
    zero = np.flatnonzero(_peaks(block) == 0)
    if zero.size:
        total = "X" if name == "hyperspherical" else "abs(X)"
        raise InputError(
            f"row {first_row + zero[0]} (counted from 0) is all zero and has no image on the "
            f"sphere: drop it with X[{total}.sum(axis=1) > 0], and its label"
        )


def row_norms(block: Rows) -> Floats:
    """Return the Euclidean norms of the rows, (rows,), safe from overflow and underflow."""
    with np.errstate(over="ignore"):  # a norm above the largest float64 is infinite
        return _euclidean(_scaled(block), block) / _exact_scale(_peaks(block))


def _rows(X: ArrayLike | Any) -> Rows:
    samples = from_memory(X)
    return next(samples.blocks(samples.shape[0]))


def _refuse_nonfinite(block: Rows, first_row: int) -> None:
    wrong = np.flatnonzero(~np.isfinite(_values(block)))
    if wrong.size:
        _refuse(block, wrong[0], first_row, "but samples must be finite: drop it or fill it in")


def _refuse_negative(block: Rows, first_row: int) -> None:
    wrong = np.flatnonzero(_values(block) < 0)
    if wrong.size:
        _refuse(
            block,
            wrong[0],
            first_row,
            "but the hyperspherical map needs non-negative samples: use the projective map "
            "(--map projective, sphere_map='projective', dhsk.projective_map)",
        )


def _refuse(block: Rows, position: np.intp, first_row: int, reason: str) -> NoReturn:
    """Name the entry at a flat position of `_values`."""
    if isinstance(block, csr_array):
        row = int(np.searchsorted(block.indptr, position, side="right")) - 1
        column = int(block.indices[position])
    else:
        row, column = divmod(int(position), block.shape[1])
    value = _values(block).reshape(-1)[position]
    raise InputError(
        f"row {first_row + row}, column {column} (counted from 0) holds {value}, {reason}"
    )


def _values(block: Rows) -> Floats:
    """Return the stored values: (rows, dim) dense, (nnz,) for CSR."""
    return block.data if isinstance(block, csr_array) else block


def _rebuilt(values: Floats, block: Rows) -> Rows:
    """Return a block of the same structure with other values, without those that are zero."""
    if not isinstance(block, csr_array):
        return values
    # Copies, because dropping the entries that underflowed moves indices in place.
    structure = block.indices.copy(), block.indptr.copy()
    rebuilt = csr_array((values, *structure), shape=block.shape)
    rebuilt.eliminate_zeros()
    return rebuilt


def _spread(per_row: Floats, block: Rows) -> Floats:
    """Repeat one number a row so that it combines with `_values`."""
    if isinstance(block, csr_array):
        return np.repeat(per_row, np.diff(block.indptr))
    return per_row.reshape(-1, 1)


def _reduce_rows(operation: np.ufunc, values: Floats, block: Rows) -> Floats:
    """Reduce each row over its stored values, (rows,); 0 for a row that stores none.

    numpy adds in pairs here, so that the error of a sum grows with log(dim), not with dim.
    """
    if not isinstance(block, csr_array):
        return np.asarray(operation.reduce(values, axis=1), dtype=np.float64)
    reduced = np.zeros(block.shape[0])
    filled = np.diff(block.indptr) > 0
    if filled.any():
        reduced[filled] = operation.reduceat(values, block.indptr[:-1][filled])
    return reduced


def _peaks(block: Rows) -> Floats:
    """Return the largest magnitude of each row, (rows,)."""
    values = _values(block)
    highest = _reduce_rows(np.maximum, values, block)
    return np.maximum(highest, -_reduce_rows(np.minimum, values, block))


def _exact_scale(peaks: Floats) -> Floats:
    """Return the powers of two that bring the peaks near 1; multiplying by them is exact."""
    _, exponents = np.frexp(peaks)
    scale: Floats = np.ldexp(1.0, -np.clip(exponents, -1022, 1022))
    return scale


def _scaled(block: Rows) -> Floats:
    """Return new values, scaled by row so that neither sums nor squares overflow or vanish."""
    return _values(block) * _spread(_exact_scale(_peaks(block)), block)


def _sqrt_shares(scaled: Floats, block: Rows) -> Rows:
    """Return sqrt(x / sum x) by row of scaled values, which it overwrites."""
    scaled /= _spread(_reduce_rows(np.add, scaled, block), block)
    return _rebuilt(np.sqrt(scaled, out=scaled), block)


def _euclidean(scaled: Floats, block: Rows) -> Floats:
    """Return the norms of rows of scaled values, (rows,)."""
    return np.sqrt(_reduce_rows(np.add, np.square(scaled), block))
