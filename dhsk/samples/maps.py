"""Maps from data to the unit sphere: hyperspherical, projective, log-ratios, and smoothed."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from dhsk.arrays import Indices, Rows
from dhsk.errors import InputError
from dhsk.kernels.centre import with_all_entries, with_centres
from dhsk.samples.images import (
    MapToSphere,
    directions,
    exact_scale,
    peaks_of,
    roots_of_shares,
    sqrt_shares,
)
from dhsk.samples.log_ratios import log_ratios, most_entries
from dhsk.samples.memory import from_memory
from dhsk.samples.refusals import refuse_negative, refuse_nonfinite
from dhsk.samples.zeros import ZeroRows, ZeroRule

SphereMap: TypeAlias = str
"""Name of a map to the sphere, one of `MAPS`; "identity" leaves samples unchanged. "clr:0.5" has a
pseudo-count of 0.5."""

MAPS: Final[Mapping[SphereMap, MapToSphere]] = {
    "hyperspherical": MapToSphere("square roots of proportions", roots_of_shares, counts=True),
    "projective": MapToSphere("rows of norm 1", directions),
    "clr": MapToSphere(
        "centred log-ratios, of norm 1",
        log_ratios,
        counts=True,
        most_entries=most_entries,
    ),
    "identity": MapToSphere("rows as they are", lambda block: block),
}
"""Maps by name, as in `sphere_map` and --map."""


def parse_sphere_map(name: object, *others: str) -> SphereMap:
    """Return `name` if it is a map or one of other names, or raise `InputError`."""
    if isinstance(name, str) and name in others:  # not an array, whose comparison is none
        return name
    map_of(name, *others)
    return str(name)


def map_of(name: object, *others: str) -> MapToSphere:
    """Map of this name; InputError if there is none, or it says a pseudo-count that is none."""
    if not isinstance(name, str) or name.partition(":")[0] not in MAPS:
        scaled = isinstance(name, str) and name == "scaled"  # which classifiers learn
        way = "; put a StandardScaler before it, and take kernel='gaussian'" if scaled else ""
        known = ", ".join((*MAPS, *others))
        raise InputError(f"there is no map {name!r}: choose one of {known}{way}")
    kind, colon, number = name.partition(":")
    if not colon:
        return MAPS[kind]
    if kind != "clr":
        raise InputError(f"the {kind} map has no pseudo-count, but {name!r} gives it one")
    try:
        pseudo_count = _checked(float(number))
    except ValueError:
        raise InputError(f"{name!r} has no number after the colon: write clr:0.5, say") from None
    does = f"{MAPS[kind].does}, after {pseudo_count:g} is added to each value"
    return replace(MAPS[kind], does=does, image=partial(log_ratios, pseudo_count=pseudo_count))


def _checked(pseudo_count: float) -> float:
    if not 0 < pseudo_count < np.inf:
        raise InputError(f"a pseudo-count must be finite and above 0, but it is {pseudo_count!r}")
    return pseudo_count


def of_counts(name: str) -> bool:
    """Whether this is a map of counts, which refuses values below 0."""
    kind = name.partition(":")[0]
    return kind in MAPS and MAPS[kind].counts


def hyperspherical_map(X: ArrayLike | Any, zero_rows: ZeroRule = "center") -> Rows:
    """Map non-negative samples to the sphere: sqrt(x / sum x), row by row.

    Parameters
    ----------
    X
        (n_samples, dim), non-negative; dense or sparse.
    zero_rows
        What to do with rows that are all zero. "center" maps them to the centre of the positive
        orthant, 1/sqrt(dim) in every coordinate, and warns of their number; it is the limit of
        smoothed counts, `multinomial_map`, at any alpha. "error" raises an error that names the
        first.

    Returns
    -------
    Rows
        Unit rows, (n_samples, dim), float64; CSR if `X` is sparse, where the centre has dim
        entries.

    Raises
    ------
    InputError
        If an entry is negative, NaN or infinite, or a row is zero and `zero_rows` is "error"; the
        entry is named.

    Warns
    -----
    ZeroRowsWarning
        If rows are zero and `zero_rows` is "center".

    References
    ----------
    Zhao & Song (2017), "Exact heat kernel on a hypersphere and its applications in kernel SVM",
    Definition 1.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.hyperspherical_map([[1.0, 3.0], [4.0, 0.0]]).round(4)
    array([[0.5  , 0.866],
           [1.   , 0.   ]])
    """
    return _map_and_warn("hyperspherical", X, zero_rows)


def projective_map(X: ArrayLike | Any, zero_rows: ZeroRule = "center") -> Rows:
    """Map samples to the sphere: x / ||x||, row by row.

    Parameters
    ----------
    X
        (n_samples, dim); dense or sparse.
    zero_rows
        What to do with rows that are all zero, see `hyperspherical_map`.

    Returns
    -------
    Rows
        Unit rows, (n_samples, dim), float64; CSR if `X` is sparse, where the centre has dim
        entries.

    Raises
    ------
    InputError
        If an entry is NaN or infinite, or a row is zero and `zero_rows` is "error"; the entry is
        named.

    Warns
    -----
    ZeroRowsWarning
        If rows are zero and `zero_rows` is "center".

    References
    ----------
    Zhao & Song (2017), "Exact heat kernel on a hypersphere and its applications in kernel SVM",
    section 2.3.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.projective_map([[3.0, -4.0], [0.0, 2.0]])
    array([[ 0.6, -0.8],
           [ 0. ,  1. ]])
    """
    return _map_and_warn("projective", X, zero_rows)


def clr_map(
    X: ArrayLike | Any, pseudo_count: float | str = "auto", zero_rows: ZeroRule = "center"
) -> Rows:
    """Map compositions to the sphere by centred log-ratios: z / ||z||, row by row.

    z_j is log(x_j + c) less its mean over the features. `sphere_map="clr"` and "clr:0.5" map sparse
    samples too, whose images keep their sparse part and the mean.

    Parameters
    ----------
    X
        (n_samples, dim), non-negative; dense or sparse.
    pseudo_count
        c, above 0, of the unit of `X`. "auto" is the smallest value above 0 of each sample, which
        is 1 where a count is 1: then a sample times a constant has the same image.
    zero_rows
        What to do with rows that are all zero, see `hyperspherical_map`. A sample whose values are
        all equal has no direction, and is mapped to the centre too.

    Returns
    -------
    Rows
        Unit rows, (n_samples, dim), float64; dense, as no entry is zero.

    Raises
    ------
    InputError
        If `pseudo_count` is no number above 0, an entry is negative, NaN or infinite, or a row is
        zero and `zero_rows` is "error"; the entry is named.

    Warns
    -----
    ZeroRowsWarning
        If rows are zero and `zero_rows` is "center".

    References
    ----------
    J. Aitchison, "The statistical analysis of compositional data" (1986).

    Examples
    --------
    >>> import dhsk
    >>> dhsk.clr_map([[1.0, 3.0, 0.0], [50.0, 0.0, 50.0]]).round(4)
    array([[ 0.    ,  0.7071, -0.7071],
           [ 0.4082, -0.8165,  0.4082]])
    """
    if isinstance(pseudo_count, str) and pseudo_count != "auto":
        raise InputError(f"pseudo_count must be 'auto' or a number, but it is {pseudo_count!r}")
    added = None if isinstance(pseudo_count, str) else _checked(float(pseudo_count))
    block, found = _rows(X), ZeroRows(zero_rows)
    check_rows("clr", block, 0, found)
    found.warn("X", block.shape[0])
    return log_ratios(block.toarray() if isinstance(block, csr_array) else block, added)


def multinomial_map(X: ArrayLike | Any, alpha: float) -> Rows:
    """Map counts to the sphere with Dirichlet smoothing: sqrt((x + alpha) / sum (x + alpha)).

    Parameters
    ----------
    X
        (n_samples, dim), non-negative; dense or sparse.
    alpha
        Count added to every feature, at least 0; 0 is `hyperspherical_map`. At any alpha, all-zero
        rows are mapped to the centre of the positive orthant.

    Returns
    -------
    Rows
        Unit rows, (n_samples, dim), float64; dense if `alpha` > 0, as no entry is zero.

    Raises
    ------
    InputError
        If `alpha` or an entry is negative, NaN or infinite.

    Warns
    -----
    ZeroRowsWarning
        If rows are zero and `alpha` is 0.

    References
    ----------
    Lafferty & Lebanon (2002), "Information diffusion kernels", section 2.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.multinomial_map([[1.0, 3.0], [4.0, 0.0]], alpha=0.5).round(4)
    array([[0.5477, 0.8367],
           [0.9487, 0.3162]])
    """
    if not 0 <= alpha < np.inf:
        raise InputError(f"alpha must be a finite number and at least 0, got {alpha}")
    if alpha == 0:
        return hyperspherical_map(X)
    block = _rows(X)
    refuse_nonfinite(block, 0)
    refuse_negative(block, 0)
    counts = block.toarray() if isinstance(block, csr_array) else block
    scale = exact_scale(np.maximum(counts.max(axis=1), alpha))[:, None]
    return sqrt_shares(counts * scale + alpha * scale, counts)


def apply_map(
    name: SphereMap,
    block: Rows,
    first_row: int = 0,
    zero_rows: ZeroRows | None = None,
) -> Rows:
    """Check a block of rows, dense or canonical CSR, and map it to unit rows, (rows, dim).

    `block` is not modified; "identity" returns the block itself. This takes the memory of two more
    blocks at most. `zero_rows` counts the all-zero rows; None maps them to the centre, one entry in
    a CSR row, as kernels take it (`dhsk.kernels.centre`). Raises `InputError`, which counts rows
    from `first_row`, if an entry or a row has no image.
    """
    zero_rows = ZeroRows() if zero_rows is None else zero_rows
    zero = check_rows(name, block, first_row, zero_rows)
    rows = map_of(name).image(block)
    return with_centres(rows, zero) if zero.size else rows


def check_rows(name: SphereMap, block: Rows, first_row: int, zero_rows: ZeroRows) -> Indices:
    """Refuse rows without an image (see `apply_map`); return the all-zero rows, ascending."""
    refuse_nonfinite(block, first_row)
    if name == "identity":
        return np.zeros(0, np.intp)
    counts = map_of(name).counts
    if counts:
        refuse_negative(block, first_row, name)
    zero = np.flatnonzero(peaks_of(block) == 0)
    if zero.size and zero_rows.rule == "error":
        total = "X" if counts else "abs(X)"
        raise InputError(
            f"row {first_row + zero[0]} (counted from 0) is all zero and has no image on the "
            f"sphere: drop it with X[{total}.sum(axis=1) > 0], and its label, or give "
            "zero_rows='center' (--zero-rows center)"
        )
    zero_rows.add(first_row + zero)
    return zero


def map_whole(name: SphereMap, X: ArrayLike | Any, zero_rows: ZeroRows) -> Rows:
    """Map samples in memory, the centre with all its entries, without a warning."""
    return with_all_entries(apply_map(name, _rows(X), 0, zero_rows))


def _map_and_warn(name: SphereMap, X: ArrayLike | Any, zero_rule: ZeroRule) -> Rows:
    zero_rows = ZeroRows(zero_rule)
    rows = map_whole(name, X, zero_rows)
    zero_rows.warn("X", rows.shape[0])
    return rows


def _rows(X: ArrayLike | Any) -> Rows:
    samples = from_memory(X)
    return next(samples.blocks(samples.shape[0]))
