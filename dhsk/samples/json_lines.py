"""Raw texts and labels in lines of JSON."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NoReturn

from dhsk.errors import InputError
from dhsk.samples.format import LABEL_FIELD, Asked, Format, SamplesFile
from dhsk.samples.guesses import describe_table
from dhsk.samples.names import listed_names, shown
from dhsk.samples.paths import Origin, packed
from dhsk.samples.tables import HEAD, RUN, TEXT_FIELD, Table, TextColumn, in_runs, text_column

JSONL = packed(".jsonl", ".ndjson")


@dataclass(frozen=True)
class JsonTable(Table):
    """The fields of objects, one a line; its names are those of the first."""

    word = "field"

    def position(self, name: str) -> int:
        """Position of a field in the first line, or `InputError` with those that are there."""
        if name not in self.names:
            _refuse_field(self.origin, 0, name, self.names)
        return self.names.index(name)

    def values(self, name: str) -> Iterator[Any]:
        """Yield the values of a field; InputError for a line without it."""
        for row, record in enumerate(_records(self.origin)):
            if name not in record:
                _refuse_field(self.origin, row, name, tuple(record))
            yield record[name]

    def written(self, name: str) -> Iterator[str]:
        """Values of a field as text, which lines may lack, see `Table.written`."""
        return (str(record.get(name)) for record in _records(self.origin))

    def in_pandas(self, *options: str) -> str:
        """Call of pandas that reads the file, see `Table.in_pandas`."""
        path = repr(str(self.origin.path))
        return f"pandas.read_json({', '.join([path, 'lines=True', *options])})"

    def head(self, stride: int = RUN, most: int = HEAD) -> dict[str, list[Any]]:
        """Values of each field in some rows, see `Table.head`."""
        records = list(islice(in_runs(_records(self.origin), stride), most))
        return {name: [record.get(name) for record in records] for name in self.names}

    def label_column(self) -> str | None:
        """The usual field, if there is one."""
        return LABEL_FIELD if LABEL_FIELD in self.names else None


def read_fields(origin: Origin) -> JsonTable:
    """The fields of a file, by its first line."""
    first = next(_records(origin), None)
    if first is None:
        raise InputError(f"{origin.path} is empty: it has no lines")
    return JsonTable(origin, tuple(first))


def _records(origin: Origin) -> Iterator[dict[str, Any]]:
    """Yield the object of each line that is not blank."""
    with origin.reading(), origin.open_text() as text:
        lines = (line for line in text if not line.isspace())
        for row, line in enumerate(lines):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                raise InputError(
                    f"{origin.path}: row {row} (counted from 0) is not a JSON object on a line of "
                    f"its own ({reason}): write one as pandas' "
                    "to_json(FILE, orient='records', lines=True) does"
                ) from error
            if not isinstance(record, dict):
                raise InputError(
                    f"{origin.path}: row {row} (counted from 0) is {shown(line.strip())} and not "
                    'an object such as {"text": "..."}'
                )
            yield record


def _refuse_field(origin: Origin, row: int, name: str, names: tuple[str, ...]) -> NoReturn:
    raise InputError(
        f"{origin.path}: row {row} (counted from 0) has no field {shown(name)}: its fields are "
        f"{listed_names(names) or 'none'}; name one of them as {origin.path}:FIELD"
    )


def _open(origin: Origin, asked: Asked) -> TextColumn:
    if asked.drop_columns:
        asked.refuse_words(origin)
    return text_column(read_fields(origin), asked.id_column)


def _describe(origin: Origin) -> SamplesFile:
    number = sum(1 for _ in _records(origin))
    found = describe_table("lines of JSON", read_fields(origin), number, TEXT_FIELD)
    if found.facts["text"] is not None or found.python:
        return found
    path, stem = str(origin.path), origin.path.name.partition(".")[0]
    line = f"pandas.read_json({path!r}, lines=True).to_csv('{stem}.csv', index=False) in Python"
    return replace(found, python=[f"{line}, as texts alone are read from lines of JSON"])


FORMAT = Format(
    JSONL, _open, _describe, lambda origin, _: read_fields(origin).labels(), has_columns=True
)
