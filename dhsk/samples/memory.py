"""Samples in memory: numpy arrays and scipy sparse matrices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError, optional_module
from dhsk.samples.base import Samples, check_real, csr_block, dense_block, flat_shape
from dhsk.samples.names import columns_of, is_it, listed, names_in, some_columns
from dhsk.units import counted


@dataclass(frozen=True, eq=False)
class DenseSamples(Samples):
    """A numpy array; each block is a float64 copy."""

    array: NDArray[Any] = field(repr=False)

    def _blocks(self, rows: int) -> Iterator[Rows]:
        for part in blocks(self.shape[0], rows):
            yield dense_block(self.array[part])


@dataclass(frozen=True, eq=False)
class CsrSamples(Samples):
    """A CSR array; each block is a float64 copy."""

    matrix: Any = field(repr=False)

    def _blocks(self, rows: int) -> Iterator[Rows]:
        for _, indptr in self.row_parts(rows):
            entries = slice(indptr[0], indptr[-1])
            data, indices = self.matrix.data[entries].copy(), self.matrix.indices[entries].copy()
            yield csr_block(data, indices, indptr, self.shape[1])


def is_anndata(X: Any) -> bool:
    """Whether an object is an AnnData, by its attributes: anndata need not be installed."""
    return all(hasattr(X, part) for part in ("X", "obs_names", "var_names"))


def refuse_anndata(X: Any) -> None:
    """Refuse an AnnData object, which scikit-learn's contract does not take."""
    if is_anndata(X):
        raise InputError(
            "X is an AnnData object, but scikit-learn's estimators take arrays and tables: give "
            "adata.to_df(), which has the names of the features, or adata.X where none were given"
        )


def are_texts(source: Any) -> bool:
    """Whether samples in memory are a sequence of strings; paths and tables are none."""
    if isinstance(source, str | Mapping) or not hasattr(source, "__len__"):
        return False
    if getattr(source, "ndim", 1) != 1 or not hasattr(source, "__iter__"):
        return False
    values = iter(source)
    first = next(values, None)
    if first is None or (isinstance(first, float) and first != first):  # as of an empty text
        first = next((value for value in values if isinstance(value, str)), None)
    return isinstance(first, str)


def refuse_texts(X: Any, name: str) -> None:
    """Refuse texts where an estimator takes numbers; scikit-learn would print all of them."""
    if are_texts(X):
        raise InputError(
            f"X is a sequence of texts, but {name} was given no vocabulary to count them by: "
            "dhsk.cross_validate takes texts, and so does make_pipeline(CountVectorizer(), "
            f"{name}()) of scikit-learn"
        )


def are_strings(X: Any) -> bool:
    """Whether samples in memory are an array of strings, or lists of them as csv.reader gives."""
    try:
        return not issparse(X) and np.asarray(X).dtype.kind in "US"
    except (TypeError, ValueError):  # lists of other lengths
        return False


def refuse_lists(X: Any) -> None:
    """Refuse a list in each row, as embeddings in one column of a table are."""
    if issparse(X) or isinstance(X, list | tuple | str | Mapping):
        return
    try:
        first = np.asarray(X[:1])
    except (TypeError, KeyError, IndexError, ValueError, NotImplementedError):  # none to look at
        return
    if first.dtype.kind != "O" or first.ndim not in (1, 2):
        return
    names = columns_of(X) if first.ndim == 2 else ()
    for place, value in enumerate(first.flat):
        if hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping):
            own = f"[{names[place]!r}]" if len(names) else ""
            raise InputError(
                f"X{own} holds a list of {len(value)} values in each row, and samples are rows of "
                f"numbers: give np.stack(X{own}.to_numpy())"
            )


def refuse_gram(X: Any) -> None:
    """Refuse a Gram matrix as samples: its rows would be taken for features."""
    if hasattr(X, "tiling") and hasattr(X, "description"):
        raise InputError(
            "X is a Gram matrix, and its values are not samples: give the samples it was made from,"
            " or take what works on the matrix itself, such as dhsk.cross_validate(G, y), G.eigh(k)"
            " and dhsk.diffusion_map(G, k)"
        )


def from_anndata(adata: Any) -> Samples:
    """Wrap the matrix `X` of an AnnData object, with the names of its features.

    Raises `InputError` if there is no `X`, and as `from_memory`.
    """
    values = adata.X
    if values is None:
        raise InputError("the AnnData object has no X: give one of its layers, adata.layers[NAME]")
    if hasattr(values, "to_memory"):  # backed by a file, and sparse
        values = values.to_memory()
    return _with_ids(
        from_memory(values, "adata.X", [str(name) for name in adata.var_names]), adata.obs_names
    )


def from_table(X: Any, drop_columns: Sequence[str] = (), id_column: str | None = None) -> Samples:
    """Wrap an array, a sparse matrix, or a table of pandas, polars, Arrow or what streams Arrow's.

    `drop_columns` and `id_column` are columns of the table that are not features. Without
    `id_column`, an index of text names the samples. A DataFrame of sparse columns stays sparse.
    Raises `InputError` as `from_memory`, or if there is no such column.
    """
    X = as_table(X)
    left_out = [*drop_columns, *([] if id_column is None else [id_column])]
    columns = columns_of(X)
    unknown = next((name for name in left_out if name not in columns), None)
    if unknown is not None:
        names = list(map(str, columns))
        known = listed(names, 10) or "none"
        raise InputError(
            f"X has no column {unknown!r}{is_it(str(unknown), names)}: its columns are {known}"
        )
    ids = getattr(X, "index", None) if id_column is None else list(map(str, X[id_column]))
    if left_out:
        X = some_columns(X, [name for name in columns if name not in left_out])
    refuse_lists(X)
    dtypes = getattr(X, "dtypes", ())
    if hasattr(X, "sparse") and len(dtypes) and all(hasattr(d, "fill_value") for d in dtypes):
        matrix = X.sparse.to_coo().tocsr()
        return _with_ids(from_memory(matrix, "X", names_in(X.columns) or ()), ids)
    return _with_ids(from_memory(X), ids)


def as_table(X: Any) -> Any:
    """A table that numpy reads of one that streams Arrow data alone, such as a query of DuckDB.

    Anything else is returned as it is. Raises InputError if pyarrow is not installed, or for a
    LazyFrame of polars.
    """
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise InputError(
            "X is a LazyFrame, whose query was not run, so that it has no values: give X.collect()"
        )
    if not hasattr(X, "__arrow_c_stream__") or hasattr(X, "__array__"):
        return X
    needed = "X is no DataFrame but a stream of Arrow data, which is read by pyarrow"
    return optional_module("pyarrow", "parquet", needed).table(X)


def _with_ids(samples: Any, ids: Any) -> Samples:
    """The same samples with names, if these are text or dates, one a sample."""
    dtype = getattr(ids, "dtype", None)
    dated = getattr(dtype, "kind", "") == "M" or str(dtype).startswith("period")
    ids = list(map(str, ids)) if dated else ids
    names = names_in(ids) if hasattr(ids, "__iter__") else None
    if names is None or len(names) != samples.shape[0]:
        return cast("Samples", samples)
    return cast("Samples", replace(samples, names=names))


def from_memory(
    X: ArrayLike | Any, source: str = "X", feature_names: Sequence[str] | None = None
) -> Samples:
    """Wrap an array, (n_samples, ...), or a scipy sparse matrix, without copying it.

    Trailing axes are flattened. A sparse matrix in another format than CSR is converted. Without
    `feature_names`, they are the columns of a table, if all are strings, as in scikit-learn. Raises
    `InputError` if `X` is empty, has fewer than two dimensions, is not real, or is an inconsistent
    CSR.
    """
    columns = columns_of(X)
    names = names_in(columns if feature_names is None else feature_names)
    if issparse(X):
        return _from_sparse(X, source, names)
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError(f"{source} is not an array: {' '.join(str(error).split())}") from error
    shape = flat_shape(source, array.shape)
    if array.dtype.kind == "O":
        array = _from_objects(array, source, X)
    check_real(source, array.dtype)
    if names is None:
        return DenseSamples(source, shape, array)
    has_gaps = bool(np.isnan(array).any())
    return DenseSamples(source, shape, array, feature_names=names, has_gaps=has_gaps)


def _from_objects(array: NDArray[Any], source: str, X: Any) -> NDArray[np.float64]:
    """Convert objects to numbers, as scikit-learn does, or refuse the columns that are not."""
    columns = columns_of(X)
    array = _without_na(array)
    try:
        return array.astype(np.float64)  # None becomes NaN
    except (ValueError, TypeError) as error:
        if array.ndim != 2 or not columns:
            raise InputError(
                f"{source} holds Python objects that are not numbers ({error}): leave columns of "
                "text out, and convert the rest with X.astype(float)"
            ) from error
        wrong = {
            name: values
            for name, values in zip(columns, array.T, strict=True)
            if not _all_numbers(values)
        }
        raise _words_refused(source, wrong, X) from error


def _without_na(array: NDArray[Any]) -> NDArray[Any]:
    """The same objects with None in place of pandas' NA, which numpy does not convert."""
    if not any(type(value).__name__ == "NAType" for value in array.flat):
        return array
    values = [None if type(value).__name__ == "NAType" else value for value in array.flat]
    return np.array(values, object).reshape(array.shape)


def refuse_words(X: Any) -> None:
    """Refuse columns of a table in memory that hold words or dates; others are no tables."""
    columns = {name: np.asarray(X[name]) for name in columns_of(X)}
    wrong = {name: values for name, values in columns.items() if not _all_numbers(values)}
    if wrong:
        raise _words_refused("X", wrong, X)


def _words_refused(source: str, wrong: Mapping[Any, NDArray[Any]], X: Any) -> InputError:
    """Refusal of columns of a table that are no numbers, with their values."""
    names = [str(name) for name in wrong]
    first = next(value for values in wrong.values() for value in values if not _is_number(value))
    if hasattr(X, "iloc"):
        words = [name for name, v in zip(names, wrong.values(), strict=True) if _are_kinds(v)]
        encoded = f", encode words with pandas.get_dummies(X, columns={words!r})" if words else ""
        encoded += " (but for the labels)" if words else ""
        ways = f"X.drop(columns={names!r}){encoded}"
        mostly = [n for n, v in zip(names, wrong.values(), strict=True) if _mostly_numbers(v)]
        if mostly:
            ways += f", read {mostly[0]} with pandas.to_numeric(X[{mostly[0]!r}], errors='coerce')"
    else:
        ways = f"dhsk.open_samples(X, drop_columns={names!r}), encode words as 0 and 1"
    lengths = {name: np.mean([len(str(one)) for one in values]) for name, values in wrong.items()}
    longest = max(lengths, key=lengths.__getitem__)
    texts = f"to count words give X[{longest!r}]; else " if lengths[longest] >= LONG else ""
    return InputError(
        f"{source} has {counted(len(names), 'column')} of values that are no numbers "
        f"({listed(names, 5)}), such as {str(first)[:40]!r}: {texts}leave out with {ways}, or make "
        "numbers of dates"
    )


LONG: Final = 40
"""Mean number of characters from which a column is one of texts."""

MOST_KINDS: Final = 30
"""Most different words of a column that are worth a column of 0 and 1 each."""


def _are_kinds(values: NDArray[Any]) -> bool:
    """Whether a column holds few words that come again."""
    if values.dtype.kind in "mM" or _mostly_numbers(values):
        return False
    if any(hasattr(value, "isoformat") for value in values):  # dates
        return False
    kinds = len(set(map(str, values)))
    return kinds <= MOST_KINDS and (2 * kinds <= len(values) or len(values) < MOST_KINDS)


def _mostly_numbers(values: NDArray[Any]) -> bool:
    """Whether most values of a column of words are numbers, so that the rest may be gaps."""
    return values.dtype.kind == "O" and 2 * sum(map(_is_number, values)) > len(values)


def _is_number(value: Any) -> bool:
    return _all_numbers(np.asarray(value))


def _all_numbers(values: NDArray[Any]) -> bool:
    try:
        (_without_na(values) if values.dtype.kind == "O" else values).astype(np.float64)
    except (ValueError, TypeError):
        return False
    return values.dtype.kind not in "mM"


def _from_sparse(X: Any, source: str, names: tuple[str, ...] | None) -> CsrSamples:
    shape = flat_shape(source, X.shape)
    check_real(source, X.dtype)
    matrix = csr_array(X)
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"{source} is an inconsistent CSR matrix: {error}") from error
    known: Any = {"nnz": int(matrix.nnz), "indptr": matrix.indptr, "feature_names": names}
    return CsrSamples(source, shape, matrix, **known)
