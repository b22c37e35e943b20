"""Samples, texts and labels in Parquet and Feather files, read by pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError, optional_module
from dhsk.samples.base import ReadNames, Samples, flat_shape
from dhsk.samples.chunked import Stream
from dhsk.samples.format import Asked, Format, SamplesFile
from dhsk.samples.guesses import describe_table
from dhsk.samples.names import shown
from dhsk.samples.paths import Origin
from dhsk.samples.refusals import NoNumbersError
from dhsk.samples.roles import ids_in
from dhsk.samples.tables import (
    ENCODED,
    HEAD,
    RUN,
    TEXT_FIELD,
    Table,
    TextColumn,
    first_of,
    in_runs,
    left_out,
    text_column,
    way_of_one,
    way_of_several,
)
from dhsk.systems import quoted

ARROW = (".parquet", ".feather")

_BATCH: Final = 1024
"""Number of rows that are converted together."""


@dataclass(frozen=True)
class ArrowTable(Table):
    """The columns of a file, and which of them are no features."""

    types: tuple[str, ...]
    """Kind of each column: number, list, text or other."""
    n_rows: int

    def batches(self, names: Sequence[str], rows: int = _BATCH) -> Iterator[Any]:
        """Record batches of some columns, of at most so many rows."""
        with _reader(self.origin) as reader:
            if self.origin.suffix == ".parquet":
                import pyarrow as pa

                for group in range(reader.num_row_groups):
                    yield from reader.iter_batches(
                        rows, row_groups=[group], columns=list(names), use_threads=False
                    )
                    pa.default_memory_pool().release_unused()  # it would keep what was freed
                return
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number).select(list(names))
                for part in blocks(batch.num_rows, rows):
                    yield batch.slice(part.start, part.stop - part.start)

    def values(self, name: str) -> Iterator[Any]:
        """Values of a column, as Python objects."""
        for batch in self.batches([name]):
            yield from batch.column(0).to_pylist()

    def in_pandas(self, *options: str) -> str:
        """Call of pandas that reads the file, see `Table.in_pandas`."""
        path = repr(str(self.origin.path))
        return f"pandas.read_{self.origin.suffix[1:]}({', '.join([path, *options])})"

    def head(self, stride: int = RUN, most: int = HEAD) -> dict[str, list[Any]]:
        """Values of each column in some rows, see `Table.head`; the first of a large file."""
        stride = stride if self.n_rows * len(self.names) <= _MOST_VALUES else RUN
        found: dict[str, list[Any]] = {name: [] for name in self.names}
        wanted, first = list(islice(in_runs(range(self.n_rows), stride), most)), 0
        for batch in self.batches(self.names, _BATCH):
            last = first + batch.num_rows
            rows = [row - first for row in wanted if first <= row < last]
            for name, column in zip(self.names, batch.columns, strict=True):
                found[name] += [column[row].as_py() for row in rows]
            first = last
            if not wanted or first > wanted[-1]:
                break
        return found

    def kind(self, name: str) -> str:
        """What a column holds; InputError if there is none, or several."""
        return self.types[self.position(name)]


_MOST_VALUES: Final = 5_000_000
"""Most values of a file that is read to its end for a look at some rows."""


@contextmanager
def _reader(origin: Origin) -> Iterator[Any]:
    needed = f"{origin.path} cannot be read without pyarrow"
    pa, pq = (optional_module(name, "parquet", needed) for name in ("pyarrow", "pyarrow.parquet"))
    # pyarrow's errors are subclasses of ValueError, OSError, KeyError and others.
    with origin.reading(), origin.path.open("rb") as handle:
        if origin.suffix == ".parquet":
            with pq.ParquetFile(handle) as file:
                yield file
        else:
            with pa.ipc.open_file(handle) as file:
                yield file


def read_schema(origin: Origin) -> ArrowTable:
    """Read the names and types of the columns."""
    with _reader(origin) as reader:
        if origin.suffix == ".parquet":
            schema, n_rows = reader.schema_arrow, reader.metadata.num_rows
            gapped = _columns_with_gaps(reader.metadata)
        else:
            counts = (reader.get_batch(k).num_rows for k in range(reader.num_record_batches))
            schema, n_rows, gapped = reader.schema, sum(counts), frozenset[str]()
        described = schema.pandas_metadata or {}
    kept = [name for name in described.get("index_columns", []) if isinstance(name, str)]
    types = tuple(_kind(kind) for kind in schema.types)
    index = kept[0] if len(kept) == 1 else None
    return ArrowTable(origin, tuple(schema.names), types, n_rows, index=index, gapped=gapped)


def _columns_with_gaps(metadata: Any) -> frozenset[str]:
    """Columns of a Parquet file of whose nulls its statistics tell."""
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    columns = (group.column(k) for group in groups for k in range(group.num_columns))
    told = (one for one in columns if one.statistics is not None)
    return frozenset(one.path_in_schema for one in told if one.statistics.null_count)


def _kind(dtype: Any) -> str:
    """What a type of Arrow holds."""
    import pyarrow.types as kinds

    if kinds.is_dictionary(dtype):
        dtype = dtype.value_type
    if kinds.is_integer(dtype) or kinds.is_floating(dtype) or kinds.is_boolean(dtype):
        return "number"
    if kinds.is_string(dtype) or kinds.is_large_string(dtype) or str(dtype) == "string_view":
        return "text"
    lists = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
    if any(is_list(dtype) for is_list in lists) and _kind(dtype.value_type) == "number":
        return "list"
    return str(dtype)


# Samples


@dataclass(frozen=True, eq=False)
class ArrowSamples(Samples):
    """Columns of numbers, or a column of lists; takes the memory of a row group and two blocks."""

    table: ArrowTable = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)

    def _blocks(self, rows: int) -> Iterator[Rows]:
        found = Stream(self._rows(min(rows, _BATCH)), self.shape[1:], np.float64)
        for part in blocks(self.shape[0], rows):
            yield found.next_rows(part.stop - part.start, np.float64)

    def _rows(self, rows: int) -> Iterator[NDArray[np.float64]]:
        """Samples of each batch, (rows, dim)."""
        first = 0
        for batch in self.table.batches(self.columns, rows):
            lists = self.feature_names is None
            made = self._of_lists(batch, first) if lists else self._of_columns(batch)
            if len(made):
                yield made
            first += batch.num_rows

    def _of_columns(self, batch: Any) -> NDArray[np.float64]:
        values = np.empty((batch.num_rows, self.shape[1]))
        for place, name in enumerate(self.columns):
            values[:, place] = batch.column(name).to_numpy(zero_copy_only=False)
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
        numbers: NDArray[np.float64] = flat.to_numpy(zero_copy_only=False).astype(np.float64)
        return numbers.reshape(batch.num_rows, dim)


def _open(origin: Origin, asked: Asked) -> ArrowSamples | TextColumn:
    """Open columns of numbers, or the column of the key: of lists of numbers, or of texts.

    The index of a DataFrame that was kept is no feature; if it is text, it names the samples.
    """
    table, ids = read_schema(origin), asked.id_column
    for name in asked.named:
        table.position(name)
    if ids is None and table.index is not None and table.kind(table.index) == "text":
        ids = table.index
    if table.holds_texts(asked) and table.kind(origin.key or TEXT_FIELD) == "text":
        return text_column(table, ids)
    names = None if ids is None else partial(table.values, ids)
    if origin.key is not None:
        return _open_lists(table, origin.key, names)
    columns = tuple(name for name in table.names if name not in (*asked.named, ids, table.index))
    others = [name for name in columns if table.kind(name) != "number"]
    if others:
        _refuse_types(table, others)
    shape = flat_shape(str(origin), (table.n_rows, len(columns)))
    made = ArrowSamples(str(origin), shape, table, columns, feature_names=columns, names=names)
    return replace(made, has_gaps=bool(table.gapped.intersection(columns)) or None)


def _open_lists(table: ArrowTable, name: str, names: ReadNames | None) -> ArrowSamples:
    kind, source = table.kind(name), str(table.origin)
    if kind != "list":
        raise InputError(
            f"{source} holds a {kind} in each row, but samples are texts or lists of numbers: give "
            f"{table.origin.path} without ':{name}' if its columns are features"
        )
    first = next((value for value in table.values(name)), None) or []
    shape = flat_shape(source, (table.n_rows, len(first)))
    return ArrowSamples(source, shape, table, (name,), names=names)


def _refuse_types(table: ArrowTable, names: Sequence[str]) -> NoReturn:
    path, name, ids = table.origin.path, names[0], ids_in(table, names)
    if len(names) > 1:
        kinds = [f"{shown(name)} ({table.kind(name)})" for name in names]
        place = quoted(f"{path}:NAME")
        raise NoNumbersError.at(
            f"{path} has {len(names):,} columns that hold no numbers: {first_of(kinds)}",
            f"{way_of_several(path, ids)}; if one is all features, as texts or lists of numbers, "
            f"give {place}; {ENCODED}; or leave them out with "
            f"{left_out([name for name in names if name != ids])}",
        )
    kind = table.kind(name)
    part = f"its {'words' if kind == 'text' else 'numbers'} are the features"
    hint = f", if {part} give {path}:{name}" if kind in ("text", "list") else ""
    raise NoNumbersError.at(
        f"{path}: column {shown(name)} holds {kind} and not numbers",
        f"{way_of_one(path, name, ids)}{hint}; else {ENCODED}, or leave it out with "
        f"{left_out(names)}",
    )


def _describe(origin: Origin) -> SamplesFile:
    table = read_schema(origin)
    return describe_table("a table", table, table.n_rows)


FORMAT = Format(
    ARROW, _open, _describe, lambda origin, _: read_schema(origin).labels(), has_columns=True
)
