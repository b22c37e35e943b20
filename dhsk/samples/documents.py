"""Raw texts: lines of JSON, a column of a table, or a folder of text files."""

import csv
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError
from dhsk.samples.dialect import is_number
from dhsk.samples.paths import JSONL, TABLES, TEXT_FILES, Origin, what_it_is
from dhsk.samples.table import listed_names, read_columns, read_records, shown

LABEL_FIELD: Final = "label"
"""Field of the labels in lines of JSON if none is named."""

TEXT_FIELD: Final = "text"
"""Field or column of the texts if none is named."""


class Documents(ABC):
    """Texts in their order, which can be read several times; one is in memory."""

    source: str
    """Where they come from, for messages."""

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Yield the texts."""

    @abstractmethod
    def ids(self) -> Iterator[str] | None:
        """Names of the texts; None if they have none."""

    def place(self, row: int) -> str:
        """Words for a text, in messages."""
        return f"{self.source}: row {row} (counted from 0)"


def is_text(origin: Origin, vocabulary: Collection[str] | None, header: bool | None) -> bool:
    """Whether samples of an origin are raw texts.

    With a known vocabulary, a table is texts unless its columns are the counts of the words.
    """
    if origin.suffix not in TABLES or origin.is_folder:
        return origin.suffix in JSONL or origin.is_text_folder
    if origin.key is not None or vocabulary is None:
        return origin.key is not None
    names = read_columns(origin, header).names
    return TEXT_FIELD in names and not set(vocabulary) <= set(names)


# Lines of JSON


@dataclass(frozen=True)
class JsonLines(Documents):
    """A field of the objects in a JSON Lines file, one a line."""

    source: str
    origin: Origin
    field: str
    id_field: str | None

    def texts(self) -> Iterator[str]:
        """Yield the texts; InputError for one that is missing, or no text."""
        for row, value in enumerate(json_values(self.origin, self.field)):
            if value is None:
                raise InputError(
                    f"{self.place(row)} has no text in the field {shown(self.field)}: fill it in, "
                    'as "" if it is empty, or leave out the line and its label'
                )
            if not isinstance(value, str):
                raise InputError(
                    f"{self.place(row)} holds {shown(json.dumps(value))} in the field "
                    f"{shown(self.field)}, which is no text: name a field of texts as "
                    f"{self.origin.path}:FIELD"
                )
            yield value

    def ids(self) -> Iterator[str] | None:
        """Values of the field with the ids."""
        if self.id_field is None:
            return None
        return map(str, json_values(self.origin, self.id_field))


def open_json_lines(origin: Origin, id_field: str | None) -> JsonLines:
    """Texts of a JSON Lines file: the field of the key, by default "text"."""
    first = next((record for _, record in json_records(origin)), None)
    if first is None:
        raise InputError(f"{origin.path} is empty: it has no lines")
    for name in (origin.key or TEXT_FIELD, id_field):
        if name is not None and name not in first:
            _refuse_field(origin, 0, name, first)
    field = origin.key or TEXT_FIELD
    if id_field is None:
        id_field = usual_id([name for name in first if name != field])
    return JsonLines(f"{origin.path}:{field}", origin, field, id_field)


def usual_id(names: Sequence[str]) -> str | None:
    """The first of some names that is "id", whatever its case; None if there is none."""
    return next((name for name in names if name.lower() == "id"), None)


def json_values(origin: Origin, field: str) -> Iterator[Any]:
    """Yield the values of a field; InputError for a line without it."""
    for row, record in json_records(origin):
        if field not in record:
            _refuse_field(origin, row, field, record)
        yield record[field]


def json_labels(origin: Origin) -> NDArray[Any]:
    """Labels in the field of the key, by default "label", as Python objects, (n_samples,)."""
    if origin.key is None:
        first = next((record for _, record in json_records(origin)), {})
        if LABEL_FIELD not in first:
            raise InputError(
                f"{origin.path} has several fields: name the one that holds the labels as "
                f"--labels {origin.path}:FIELD ({listed_names(list(first))})"
            )
    values = list(json_values(origin, origin.key or LABEL_FIELD))
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    return labels


def json_records(origin: Origin) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of each line that is not blank."""
    with origin.reading(), origin.open_text() as text:
        lines = (line for line in text if not line.isspace())
        for row, line in enumerate(lines):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{origin.path}: row {row} (counted from 0) is not a JSON object on a line of "
                    f"its own ({_reason(error)}): write one as pandas' "
                    "to_json(FILE, orient='records', lines=True) does"
                ) from error
            if not isinstance(record, dict):
                raise InputError(
                    f"{origin.path}: row {row} (counted from 0) is {shown(line.strip())} and not "
                    'an object such as {"text": "..."}'
                )
            yield row, record


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _refuse_field(origin: Origin, row: int, name: str, record: dict[str, Any]) -> None:
    raise InputError(
        f"{origin.path}: row {row} (counted from 0) has no field {shown(name)}: its fields are "
        f"{listed_names(list(record)) or 'none'}; name one of them as {origin.path}:FIELD"
    )


# Tables


@dataclass(frozen=True)
class TextColumn(Documents):
    """A column of a CSV or TSV file."""

    source: str
    origin: Origin
    width: int
    position: int
    id_position: int | None
    skip: int
    """Number of header rows."""

    def texts(self) -> Iterator[str]:
        """Yield the texts; InputError if all are numbers."""
        only_numbers, row = True, -1
        for row, text in enumerate(self._column(self.position)):  # noqa: B007
            only_numbers = only_numbers and is_number(text)
            yield text
        if only_numbers and row >= 0:
            raise InputError(
                f"{self.source} holds numbers and no text: give {self.origin.path} without "
                f"':{self.origin.key}' if its columns are features, or name the column of the texts"
            )

    def ids(self) -> Iterator[str] | None:
        """Values of the column with the ids."""
        if self.id_position is None:
            return None
        return (name.strip() for name in self._column(self.id_position))

    def _column(self, position: int) -> Iterator[str]:
        following = 0
        try:
            for row, record in enumerate(read_records(self.origin, self.skip, strict=True)):
                if len(record) != self.width:
                    raise InputError(
                        f"{self.place(row)} has {len(record)} fields, but the first row has "
                        f"{self.width}: quote texts that contain the delimiter, as pandas' "
                        "to_csv does, or give the texts as .jsonl"
                    )
                yield record[position]
                following = row + 1
        except InputError as error:
            if isinstance(error.__cause__, csv.Error):
                raise InputError(
                    f"{self.place(following)} has a quotation mark that does not enclose a "
                    f"whole field ({error.__cause__}): quote such texts, as pandas' to_csv "
                    "does, or give the texts as .jsonl"
                ) from error
            raise


def open_text_column(origin: Origin, header: bool | None, id_column: str | None) -> TextColumn:
    """Texts of a table: the column of the key, by default "text"."""
    name = origin.key or TEXT_FIELD
    columns = read_columns(origin, header)
    position = columns.position(name, origin.path)
    if id_column is None and columns.has_header:
        id_column = usual_id([own for own in columns.names if own != name])
    named = None if id_column is None else columns.position(id_column, origin.path)
    width, skip = len(columns.names), int(columns.has_header)
    return TextColumn(f"{origin.path}:{name}", origin, width, position, named, skip)


# Folders


@dataclass(frozen=True)
class TextFolder(Documents):
    """The text files of a folder and its subfolders, in the order of their names."""

    source: str
    folder: Path
    files: tuple[str, ...]
    """Paths relative to the folder, with slashes."""

    def texts(self) -> Iterator[str]:
        """Yield the content of each file."""
        for name in self.files:
            origin = Origin.of(self.folder / name)
            with origin.reading(), origin.open_text() as text:
                content = text.read()
            yield content

    def ids(self) -> Iterator[str]:
        """Paths of the files."""
        return map(_readable, self.files)

    def place(self, row: int) -> str:
        """Path of a file."""
        return _readable(str(self.folder / self.files[row]))


def open_text_folder(origin: Origin) -> TextFolder:
    """Texts of a folder: one a file, `.txt` or `.txt.gz`; hidden files and folders do not count."""
    assert isinstance(origin.path, Path)
    folder = origin.path
    with origin.reading():
        named = [path for path in folder.rglob("*") if path.name.lower().endswith(TEXT_FILES)]
        found = (path.relative_to(folder) for path in named if not path.is_dir())
        names = [path.as_posix() for path in found if not any(p[0] == "." for p in path.parts)]
    if not names:
        raise InputError(
            f"{folder} is a folder, but a file or a zarr folder is needed, or a folder of .txt "
            "files, and it has none"
        )
    odd = next((folder / name for name in names if not (folder / name).is_file()), None)
    if odd is not None:
        raise InputError(
            f"{_readable(str(odd))} {what_it_is(odd)}, but each text is a file: move it away"
        )
    return TextFolder(str(folder), folder, tuple(sorted(names)))


def one_text(origin: Origin) -> TextFolder:
    """A text file as the only one of a folder."""
    assert isinstance(origin.path, Path)
    origin.refuse_key("it is one text")
    return TextFolder(str(origin.path), origin.path.parent, (origin.path.name,))


def folder_labels(origin: Origin) -> NDArray[np.str_]:
    """Subfolder of each text file of a folder, (n_samples,), as in sklearn's `load_files`."""
    files = open_text_folder(origin).files
    alone = next((name for name in files if "/" not in name), None)
    if alone is not None:
        raise InputError(
            f"{origin.path}: {alone} is in no subfolder, but the labels are the names of "
            "subfolders: move it into one, or give a file of labels"
        )
    return np.array([_readable(name.partition("/")[0]) for name in files], dtype=np.str_)


def _readable(name: str) -> str:
    r"""Name of a file as text that can be written: bytes that are not UTF-8 become like \xe9."""
    return os.fsencode(name).decode(errors="backslashreplace")
