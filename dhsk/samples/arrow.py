"""Samples, texts and labels in Parquet and Feather files, read by pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError
from dhsk.samples.base import Samples, flat_shape
from dhsk.samples.documents import TEXT_FIELD, Documents, usual_id
from dhsk.samples.paths import ARROW, Origin
from dhsk.samples.table import listed_names, refuse_twice, shown

_BATCH: Final = 1024
"""Number of rows that are converted together."""


@dataclass(frozen=True)
class ArrowFile:
    """A file, its columns, and which of them are not features."""

    origin: Origin
    names: tuple[str, ...]
    types: tuple[str, ...]
    """Kind of each column: number, list, text or other."""
    n_rows: int
    index: str | None
    """Column with the index of a pandas DataFrame, if it was kept."""

    def position(self, name: str) -> int:
        """Place of a column; InputError if there is none."""
        if name in self.names:
            refuse_twice(self.origin.path, self.names, name)
            return self.names.index(name)
        raise InputError(
            f"{self.origin.path} has no column {shown(name)}: its columns are "
            f"{listed_names(self.names)}"
        )

    def batches(self, names: Sequence[str], rows: int = _BATCH) -> Iterator[Any]:
        """Record batches of some columns, of at most so many rows."""
        with _reader(self.origin) as reader:
            if self.origin.suffix == ".parquet":
                for group in range(reader.num_row_groups):
                    yield from reader.iter_batches(
                        rows, row_groups=[group], columns=list(names), use_threads=False
                    )
                    _give_back()
                return
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number).select(list(names))
                for part in blocks(batch.num_rows, rows):
                    yield batch.slice(part.start, part.stop - part.start)

    def values(self, name: str) -> Iterator[Any]:
        """Values of a column as Python objects."""
        for batch in self.batches([name]):
            yield from batch.column(0).to_pylist()


@contextmanager
def _reader(origin: Origin) -> Iterator[Any]:
    """Open a file by pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            f"{origin.path} cannot be read without pyarrow: pip install 'dhsk[parquet]'"
        ) from error
    # pyarrow's errors are subclasses of ValueError, OSError, KeyError and others.
    with origin.reading(), origin.path.open("rb") as handle:
        if origin.suffix == ".parquet":
            with pq.ParquetFile(handle) as file:
                yield file
        else:
            with pa.ipc.open_file(handle) as file:
                yield file


def _give_back() -> None:
    """Return freed memory, which pyarrow would keep, to the system."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _opened(origin: Origin) -> ArrowFile:
    with _reader(origin) as reader:
        if origin.suffix == ".parquet":
            schema, n_rows = reader.schema_arrow, reader.metadata.num_rows
        else:
            counts = (reader.get_batch(k).num_rows for k in range(reader.num_record_batches))
            schema, n_rows = reader.schema, sum(counts)
        described = schema.pandas_metadata or {}
    kept = [name for name in described.get("index_columns", []) if isinstance(name, str)]
    types = tuple(_kind(kind) for kind in schema.types)
    index = kept[0] if len(kept) == 1 else None
    return ArrowFile(origin, tuple(schema.names), types, n_rows, index)


def _kind(dtype: Any) -> str:
    """What a type of Arrow holds."""
    import pyarrow.types as kinds

    if kinds.is_dictionary(dtype):
        dtype = dtype.value_type
    if kinds.is_integer(dtype) or kinds.is_floating(dtype) or kinds.is_boolean(dtype):
        return "number"
    if kinds.is_string(dtype) or kinds.is_large_string(dtype):
        return "text"
    lists = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
    if any(is_list(dtype) for is_list in lists) and _kind(dtype.value_type) == "number":
        return "list"
    return str(dtype)


# Samples


@dataclass(frozen=True)
class ArrowSamples(Samples):
    """Columns of numbers, or a column of lists; takes the memory of a row group and two blocks."""

    source: str
    shape: tuple[int, int]
    file: ArrowFile = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    id_column: str | None = None
    is_sparse = False
    nnz = None

    def _blocks(self, rows: int) -> Iterator[Rows]:
        found = self._rows(min(rows, _BATCH))
        left = next(found, np.empty((0, self.shape[1])))
        for part in blocks(self.shape[0], rows):
            block, done = np.empty((part.stop - part.start, self.shape[1])), 0
            while done < len(block) and len(left):
                piece = left[: len(block) - done]
                block[done : done + len(piece)] = piece
                done, left = done + len(piece), left[len(piece) :]
                if not len(left):
                    left = next(found, left)
            yield block[:done]

    def _rows(self, rows: int) -> Iterator[NDArray[np.float64]]:
        """Samples of each batch, (rows, dim)."""
        first = 0
        for batch in self.file.batches(self.columns, rows):
            lists = self.feature_names is None
            made = self._of_lists(batch, first) if lists else self._of_columns(batch, first)
            if len(made):
                yield made
            first += batch.num_rows

    def _of_columns(self, batch: Any, first: int) -> NDArray[np.float64]:
        values = np.empty((batch.num_rows, self.shape[1]))
        for place, name in enumerate(self.columns):
            column = batch.column(name)
            if column.null_count:
                row = first + column.is_null().to_pylist().index(True)
                self._refuse_missing(row, name)
            values[:, place] = column.to_numpy(zero_copy_only=False)
        return values

    def _of_lists(self, batch: Any, first: int) -> NDArray[np.float64]:
        column, dim = batch.column(0), self.shape[1]
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(~(lengths == dim))
        if wrong.size:
            raise InputError(
                f"{self.source}: row {first + wrong[0]} (counted from 0) has "
                f"{lengths[wrong[0]]:g} numbers, but the first row has {dim}"
            )
        flat = column.flatten()
        if flat.null_count:
            row = first + flat.is_null().to_pylist().index(True) // dim
            self._refuse_missing(row, self.columns[0])
        numbers: NDArray[np.float64] = flat.to_numpy(zero_copy_only=False).astype(np.float64)
        return numbers.reshape(batch.num_rows, dim)

    def _refuse_missing(self, row: int, name: str) -> NoReturn:
        raise InputError(
            f"{self.source}: row {row} (counted from 0) has no value in column {shown(name)}: fill "
            "it in, drop the row and its label, or leave the column out with --drop-column "
            f"{name} (drop_columns)"
        )

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Names of the samples, see `Samples.ids`."""
        return None if self.id_column is None else self._ids(self.id_column, rows)

    def _ids(self, name: str, rows: int) -> Iterator[Sequence[str]]:
        names = map(str, self.file.values(name))
        while block := list(islice(names, rows)):
            yield block


def open_arrow(
    origin: Origin, drop_columns: Sequence[str] = (), id_column: str | None = None
) -> ArrowSamples | Documents:
    """Open columns of numbers, or the column of the key: of lists of numbers, or of texts.

    The index of a DataFrame that was kept is no feature; if it is text, it names the samples.
    Raises `InputError` if a column is not numeric, or does not exist.
    """
    file = _opened(origin)
    for name in (*drop_columns, *([] if id_column is None else [id_column])):
        file.position(name)
    if id_column is None and file.index is not None:
        is_text = file.types[file.position(file.index)] == "text"
        id_column = file.index if is_text else None
    if origin.key is not None:
        return _open_column(file, origin.key, id_column)
    left_out = {*drop_columns, id_column, file.index}
    columns = tuple(name for name in file.names if name not in left_out)
    for name in columns:
        if file.types[file.position(name)] != "number":
            _refuse_type(file, name)
    shape = flat_shape(str(origin), (file.n_rows, len(columns)))
    return ArrowSamples(str(origin), shape, file, columns, columns, id_column)


def _open_column(file: ArrowFile, name: str, id_column: str | None) -> ArrowSamples | Documents:
    """Open a column of texts, or of lists of numbers."""
    kind, source = file.types[file.position(name)], str(file.origin)
    if kind == "text":
        others = [own for own in file.names if own != name]
        return ArrowTexts(source, file, name, id_column or usual_id(others))
    if kind != "list":
        raise InputError(
            f"{source} holds a {kind} in each row, but samples are texts or lists of numbers: give "
            f"{file.origin.path} without ':{name}' if its columns are features"
        )
    first = next((value for value in file.values(name)), None) or []
    shape = flat_shape(source, (file.n_rows, len(first)))
    return ArrowSamples(source, shape, file, (name,), None, id_column)


def _refuse_type(file: ArrowFile, name: str) -> NoReturn:
    path, kind = file.origin.path, file.types[file.names.index(name)]
    part = f"its {'words' if kind == 'text' else 'numbers'} are the features"
    hint = f", if {part} give {path}:{name}" if kind in ("text", "list") else ""
    raise InputError(
        f"{path}: column {shown(name)} holds {kind} and not numbers: if it holds the labels name "
        f"it with --labels {path}:{name}, if the samples' ids with --id-column {name}{hint}, else "
        f"leave it out with --drop-column {name} (drop_columns=[{name!r}])"
    )


@dataclass(frozen=True)
class ArrowTexts(Documents):
    """A column of texts."""

    source: str
    file: ArrowFile
    column: str
    id_column: str | None

    def texts(self) -> Iterator[str]:
        """Yield the texts; InputError for one that is missing."""
        for row, value in enumerate(self.file.values(self.column)):
            if value is None:
                raise InputError(
                    f"{self.place(row)} has no text: fill it in, as '' if it is empty, or leave "
                    "out the row and its label"
                )
            yield value

    def ids(self) -> Iterator[str] | None:
        """Values of the column with the ids."""
        return None if self.id_column is None else map(str, self.file.values(self.id_column))


def holds_texts(origin: Origin, vocabulary: Sequence[str] | None) -> bool:
    """Whether a file without a key has texts for a known vocabulary, and not counts."""
    if vocabulary is None or origin.key is not None or origin.suffix not in ARROW:
        return False
    names = _opened(origin).names
    return TEXT_FIELD in names and not set(vocabulary) <= set(names)


def arrow_head(origin: Origin, rows: int) -> tuple[dict[str, list[Any]], int]:
    """The first values of each column, and the number of rows."""
    file = _opened(origin)
    batch = next(file.batches(file.names, rows), None)
    values = [[] for _ in file.names] if batch is None else [c.to_pylist() for c in batch.columns]
    return dict(zip(file.names, values, strict=True)), file.n_rows


def arrow_labels(origin: Origin) -> NDArray[Any]:
    """Labels in the column of the key, or the only one, as Python objects, (n_samples,)."""
    file = _opened(origin)
    columns = [name for name in file.names if name != file.index]
    name = origin.key or (columns[0] if len(columns) == 1 else None)
    if name is None:
        raise InputError(
            f"{origin.path} has {len(columns)} columns: name the one that holds the labels as "
            f"{origin.path}:NAME ({listed_names(columns)})"
        )
    file.position(name)
    labels = np.empty(file.n_rows, dtype=object)
    labels[:] = list(file.values(name))
    return labels
