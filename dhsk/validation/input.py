"""Input of a cross-validation: a Gram matrix, a precomputed array, or samples."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import blocks
from dhsk.errors import InputError, warn
from dhsk.execution.resources import Resources
from dhsk.gram.graph_plan import plan_of
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.operations import GramView
from dhsk.gram.storage.header import Header
from dhsk.kernels.rows import check_finite
from dhsk.results.parts import SamplesSummary
from dhsk.samples import Samples, open_samples
from dhsk.samples.maps import map_of

Square: TypeAlias = GramMatrix | NDArray[Any] | Samples
"""A symmetric matrix, or samples that will have one."""

ASYMMETRY: Final = 1e-5
"""Largest difference between K_ij and K_ji, in units of the largest entry: rounding of float32."""

_ROWS: Final = 1024

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


_NAMES_HERE: Final = {
    "kernel": 'give a list, kernels=["gaussian"]',
    "gamma": "give kernels=[dhsk.GaussianKernel.at_gamma(gamma)]",
    "X": "give the samples, or a matrix, first and without a name",
    "param_grid": "give kernels= and C=, or neither for a search",
    "random_state": "the folds are the same in every run; for others give cv= a splitter",
    "return_train_score": "scores are of held-out samples",
    "n_jobs": "all cores are used; client= takes the workers of a Dask cluster",
}
"""Parameters of scikit-learn, and what they are in functions that do not have them."""


def samples_first(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function of samples and labels that in scikit-learn takes an estimator first."""

    @wraps(function)
    def called(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        first: Any = args[0] if args else options.get("estimator")
        if callable(getattr(first, "fit", None)):
            raise InputError(_right_calls(function.__name__, first))
        for name in options.keys() & _NAMES_HERE.keys() - signature(function).parameters.keys():
            raise InputError(f"{function.__name__} has no {name}: {_NAMES_HERE[name]}")
        _warn_of_order(first, {"y": args[1] if len(args) > 1 else None} | options)
        return function(*args, **options)

    return called


def _warn_of_order(X: Any, given: Mapping[str, Any]) -> None:
    """Warn of labels, groups and weights with the index of the samples in another order."""
    X = given.get("G_or_X") if X is None else X
    own, called = _index_of(X), "obs_names" if hasattr(X, "obs_names") else "index"
    for name in ("y", "groups", "sample_weight"):
        other = _index_of(given.get(name))
        if own is None or other is None or len(own) != len(other) or own.equals(other):
            continue
        if own.is_unique and set(own) == set(other):
            warn(
                f"{name} has the index of the samples in another order, but rows are paired by "
                f"position: to pair them by the index give {name}.loc[X.{called}]",
            )


def _index_of(given: Any) -> Any:
    """Index of a table or a series of pandas, or names of AnnData's samples; else None."""
    index = getattr(given, "obs_names", getattr(given, "index", None))
    return index if hasattr(index, "equals") else None


def _right_calls(name: str, estimator: Any) -> str:
    """What to call in place of a function of scikit-learn, with the numbers of the estimator."""
    kind = estimator if isinstance(estimator, type) else type(estimator)
    ours = estimator is not kind and kind.__module__.startswith("dhsk.")
    given = {key: getattr(estimator, key, None) for key in ("time_scale", "C") if ours}
    numbers = [f", {key}={n!r}" for key, n in given.items() if isinstance(n, int | float)]
    return (
        f"{name} of dhsk takes samples and labels and fits SVMs itself, but it got an estimator, "
        f"{kind.__name__}: call dhsk.{name}(X, y{''.join(numbers)}); or, for the scores of any "
        f"estimator, sklearn.model_selection.{name}(estimator, X, y)"
    )


def open_square(G_or_X: Any, *, precomputed: bool) -> Square:
    """Open samples, or check a matrix to be square, finite and symmetric, with an InputError.

    `precomputed` says that an array is a matrix, not samples.
    """
    if isinstance(G_or_X, GramView):
        raise InputError(
            "a cross-validation derives kernels from stored products, so it cannot use a "
            f"{G_or_X.name} view: pass the matrix itself, or the view as an array, "
            'cross_validate(np.asarray(view), y, kernels="precomputed")'
        )
    if isinstance(G_or_X, GramMatrix):
        if not G_or_X.symmetric:
            raise InputError(f"cross-validation needs a square Gram matrix, got {G_or_X.shape}")
        return G_or_X
    return _checked_matrix(G_or_X) if precomputed else open_samples(G_or_X)


def has_samples(square: Square) -> bool:
    """Whether there are samples that a model could keep."""
    if isinstance(square, GramMatrix):
        return square.kernel.of_samples
    return not isinstance(square, np.ndarray)


def _checked_matrix(given: Any) -> NDArray[Any]:
    K = np.asarray(given)  # a memory-mapped file stays one
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise InputError(f"a precomputed matrix must be square, got {K.shape}")
    if K.dtype not in (np.float32, np.float64):
        K = K.astype(np.float64)
    largest = max((float(np.abs(K[part]).max()) for part in blocks(len(K), _ROWS)), default=0.0)
    for part in blocks(len(K), _ROWS):
        first, strip = part.start, K[part]
        check_finite(strip, "the precomputed matrix", first)
        off = np.abs(strip - K[:, part].T)
        if off.max() > ASYMMETRY * largest:
            row, column = np.unravel_index(off.argmax(), off.shape)
            raise InputError(
                f"the precomputed matrix is not symmetric: row {first + row}, column {column} "
                f"differs from its mirror by {off.max():.3g}"
            )
    return K


def gram_plan(square: Square, resources: Resources) -> Sequence[tuple[str, str]]:
    """Rows (what, value) of the plan of a matrix, for people."""
    if not isinstance(square, GramMatrix):
        n, m = square.shape
        return [("matrix", f"{n:,} x {m:,}, given")]
    return plan_of(square.header, resources).table()


def _entries_of(square: Square, header: Header) -> int | None:
    """Entries of the samples themselves: images of some maps have more."""
    if header.nnz[0] is None:
        return None
    if isinstance(square, Samples) and map_of(str(header.sphere_map)).most_entries is not None:
        return square.nnz
    return header.nnz[0] - (header.zero_rows[0] if header.zero_rows else 0)


def describe(square: Square, made: GramMatrix | None) -> SamplesSummary:
    """Source and size of the samples; `made` is their Gram matrix, None if precomputed."""
    if made is None:
        n, m = square.shape
        return SamplesSummary("a matrix in memory", n, m, "precomputed", "-")
    header = made.header
    zero_rows = header.zero_rows[0] if header.zero_rows else 0
    return SamplesSummary(
        source=square.source if isinstance(square, Samples) else str(made.path),
        n_samples=header.n_rows,
        dim=header.dim,
        nnz=_entries_of(square, header),
        zero_rows=zero_rows,
        sphere_map=str(header.sphere_map),
        fingerprint=header.fingerprints[0],
    )
