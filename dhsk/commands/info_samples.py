"""Part of `dhsk info` on files of samples: what they are, and the commands that read them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from shlex import quote
from typing import Any, Final

import numpy as np

from dhsk.samples.dialect import is_number
from dhsk.samples.documents import (
    LABEL_FIELD,
    TEXT_FIELD,
    folder_labels,
    json_records,
    open_text_folder,
    usual_id,
)
from dhsk.samples.paths import (
    ARROW,
    FASTA,
    FASTQ,
    JSONL,
    MARKET,
    SVMLIGHT,
    TABLES,
    TEXT_FILES,
    Origin,
)
from dhsk.samples.table import read_columns, read_records

LOOKED_AT: Final = 50
"""Rows of a table, or lines of JSON, by which its columns are told apart."""

LONG: Final = 40
"""Mean number of characters from which a column is one of texts."""

LABELS: Final = (LABEL_FIELD, "labels", "class", "target", "category", "y")
"""Usual names of a column of labels."""

_BINARY: Final = {
    ".npy": "an array",
    ".npz": "arrays, or a sparse matrix",
    ".h5ad": "AnnData",
    **dict.fromkeys(ARROW, "a table"),
    **dict.fromkeys(MARKET, "a sparse matrix"),
    **dict.fromkeys(SVMLIGHT, "sparse samples and labels"),
    **dict.fromkeys((*FASTA, *FASTQ), "strings, counted with --spectrum"),
    **dict.fromkeys(TEXT_FILES, "lines of text; as samples, strings counted with --spectrum"),
}


@dataclass(frozen=True)
class SamplesFile:
    """What a file of samples seems to be, by its name and its first rows."""

    words: str
    rows: Sequence[tuple[str, str]] = ()
    """What and value, for people."""
    samples: str = ""
    """The samples on a command line: FILE or FILE:COLUMN."""
    labels: str | None = "LABELS"
    """The labels on a command line; None if they need no option."""
    options: str = ""
    """Options on reading, with a blank before each."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def following(self) -> list[str]:
        """Commands that come next."""
        labels = "" if self.labels is None else f" --labels {self.labels}"
        return [
            f"dhsk cv {self.samples}{labels}{self.options} --out found",
            f"dhsk plan {self.samples}{labels if self.labels != 'LABELS' else ''}{self.options}",
        ]


def samples_file(origin: Origin) -> SamplesFile | None:
    """Describe a file or a folder of samples; None if it is none. Few rows are read."""
    name = quote(str(origin.path))
    if origin.is_text_folder:
        return _folder(origin, name)
    if origin.suffix in JSONL:
        records = [record for _, record in islice(json_records(origin), LOOKED_AT)]
        columns = {key: [record.get(key) for record in records] for key in records[0]}
        return _of_columns("lines of JSON", origin, columns)
    if origin.suffix in TABLES:
        found = read_columns(origin)
        rows = list(islice(read_records(origin, int(found.has_header)), LOOKED_AT))
        cells = zip(*(row for row in rows if len(row) == len(found.names)), strict=True)
        columns = dict(zip(found.names, map(list, cells), strict=False))
        return _of_columns("a table", origin, columns)
    if origin.suffix not in _BINARY:
        return None
    labels = None if origin.suffix in SVMLIGHT else "LABELS"
    shape = [] if origin.suffix != ".npy" else [("array", _shape(origin))]
    options = " --spectrum 6" if origin.suffix in (*FASTA, *FASTQ, *TEXT_FILES) else ""
    return SamplesFile(f"{_BINARY[origin.suffix]} ({origin.suffix})", shape, name, labels, options)


def _shape(origin: Origin) -> str:
    with origin.reading(), origin.open_bytes() as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _header_2_0
        shape, _, dtype = read(file)
    return f"{' x '.join(f'{size:,}' for size in shape)} {dtype}"


_header_2_0 = np.lib.format.read_array_header_2_0


def _folder(origin: Origin, name: str) -> SamplesFile:
    """Text files, and the subfolders that are their labels."""
    files = open_text_folder(origin).files
    rows = [("texts", f"{len(files):,} files")]
    if any("/" not in file for file in files):
        return SamplesFile("a folder of texts", rows, name)
    classes = np.unique(folder_labels(origin)).tolist()
    shown = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
    rows.append(("labels", f"{len(classes):,} subfolders: {shown}"))
    return SamplesFile("a folder of texts, one folder for each class", rows, name, None)


def _of_columns(words: str, origin: Origin, columns: dict[str, list[Any]]) -> SamplesFile:
    """Tell columns of texts, labels, ids and numbers apart, by their names and first rows."""
    path = str(origin.path)
    own = [name for name, values in columns.items() if not all(map(_is_numeric, values))]
    ids = usual_id(list(columns))
    texts = [name for name in own if name != ids and _mean_length(columns[name]) >= LONG]
    text = TEXT_FIELD if TEXT_FIELD in own else next(iter(texts), None)
    rest = [name for name in columns if name not in (text, ids)]
    label: str | None = next((name for name in LABELS if name in rest), None)
    if label is None:
        label = next((name for name in rest if name in own and name not in texts), None)
    rows = [("columns", ", ".join(list(columns)[:8]) + (", ..." if len(columns) > 8 else ""))]
    rows += [("texts", text)] if text else []
    rows += [("labels", f"perhaps {label}")] if label else []
    rows += [("ids", ids)] if ids else []
    plain = text is None or (text == TEXT_FIELD and origin.suffix in JSONL)
    samples = quote(path if plain else f"{path}:{text}")
    labels = "LABELS" if label is None else quote(f"{path}:{label}")
    options = "" if ids is None or text else f" --id-column {quote(ids)}"
    if text is None:
        others = (name for name in own if name not in (label, ids))
        options += "".join(f" --drop-column {quote(name)}" for name in others)
    facts = {"columns": list(columns), "text": text, "label": label, "id": ids}
    return SamplesFile(words, rows, samples, labels, options, facts)


def _is_numeric(value: Any) -> bool:
    return is_number(value) if isinstance(value, str) else isinstance(value, int | float)


def _mean_length(values: list[Any]) -> float:
    return sum(len(str(value)) for value in values) / max(len(values), 1)
