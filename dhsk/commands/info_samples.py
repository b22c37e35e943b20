"""Part of `dhsk info` on files of samples: what they are, and the commands that read them."""

from itertools import islice
from shlex import quote
from typing import Any, Final

import numpy as np

from dhsk.commands.describing import LABELS, SamplesFile, listed, value_notes
from dhsk.commands.info_arrays import describe_arrays
from dhsk.samples.arrow import arrow_head
from dhsk.samples.dialect import is_number
from dhsk.samples.documents import (
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

_SPLITS: Final = frozenset({"train", "test", "val", "valid", "validation", "dev", "holdout"})
"""Words of a column that divides the samples, which has no labels."""

_ARRAYS: Final = {
    ".npy": "an array", ".npz": "arrays, or a sparse matrix", ".h5ad": "AnnData", ".zarr": "zarr",
}  # fmt: skip

_BINARY: Final = {
    **dict.fromkeys(MARKET, "a sparse matrix"),
    **dict.fromkeys(SVMLIGHT, "sparse samples and labels"),
    **dict.fromkeys((*FASTA, *FASTQ), "strings, counted with --spectrum"),
    **dict.fromkeys(TEXT_FILES, "lines of text; as samples, strings counted with --spectrum"),
}


def samples_file(origin: Origin) -> SamplesFile | None:
    """Describe a file or a folder of samples; None if it is none. Few rows are read."""
    name = quote(str(origin.path))
    if origin.is_text_folder:
        return _folder(origin, name)
    if origin.suffix in JSONL:
        records = [record for _, record in islice(json_records(origin), LOOKED_AT)]
        columns = {key: [record.get(key) for record in records] for key in records[0]}
        number = sum(1 for _ in json_records(origin))
        return _of_columns("lines of JSON", origin, columns, number)
    if origin.suffix in TABLES:
        found = read_columns(origin)
        rows = list(islice(read_records(origin, int(found.has_header)), LOOKED_AT))
        cells = zip(*(row for row in rows if len(row) == len(found.names)), strict=True)
        columns = dict(zip(found.names, map(list, cells), strict=False))
        number = sum(1 for _ in read_records(origin, int(found.has_header)))
        return _of_columns("a table", origin, columns, number)
    if origin.suffix in ARROW:
        columns, number = arrow_head(origin, LOOKED_AT)
        return _of_columns("a table", origin, columns, number)
    if origin.is_folder or origin.suffix in _ARRAYS:
        kind = ".zarr" if origin.is_folder else origin.suffix
        return describe_arrays(f"{_ARRAYS[kind]} ({kind})", origin)
    if origin.suffix not in _BINARY:
        return None
    labels = None if origin.suffix in SVMLIGHT else "LABELS"
    options = " --spectrum 6" if origin.suffix in (*FASTA, *FASTQ, *TEXT_FILES) else ""
    return SamplesFile(f"{_BINARY[origin.suffix]} ({origin.suffix})", (), name, labels, options)


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


def _of_columns(
    words: str, origin: Origin, columns: dict[str, list[Any]], number: int
) -> SamplesFile:
    """Tell columns of texts, labels, ids and numbers apart, by their names and first rows."""
    path = str(origin.path)
    vector = next((name for name, v in columns.items() if _are_vectors(origin, v)), None)
    own = [name for name, v in columns.items() if name != vector and not all(map(_is_numeric, v))]
    ids = usual_id(list(columns))
    texts = [name for name in own if name != ids and _mean_length(columns[name]) >= LONG]
    text = TEXT_FIELD if TEXT_FIELD in own else next(iter(texts), None)
    rest = [name for name in columns if name not in (text, ids)]
    label: str | None = next((name for name in LABELS if name in rest), None)
    if label is None:
        others = (name for name in rest if name in own and name not in texts)
        label = next((name for name in others if not _divides(columns[name])), None)
    rows = [("rows", f"{number:,}"), ("columns", f"{len(columns):,}: {listed(list(columns))}")]
    rows += [("texts", text)] if text else [("vectors", vector)] if vector else []
    rows += [("labels", f"perhaps {label}")] if label else []
    rows += [("ids", ids)] if ids else []
    text = text or vector
    if text is None:
        rows += _notes({name: v for name, v in columns.items() if name not in (*own, label, ids)})
    plain = text is None or (text == TEXT_FIELD and origin.suffix in JSONL)
    samples = quote(path if plain else f"{path}:{text}")
    labels = "LABELS" if label is None else quote(f"{path}:{label}")
    options = "" if ids is None or text else f" --id-column {quote(ids)}"
    if text is None:
        dropped = (name for name in own if name not in (label, ids))
        options += "".join(f" --drop-column {quote(name)}" for name in dropped)
    facts = {"rows": number, "columns": list(columns), "text": text, "label": label, "id": ids}
    return SamplesFile(words, rows, samples, labels, options, facts)


def _notes(columns: dict[str, list[Any]]) -> list[tuple[str, str]]:
    """What the numbers of the first rows seem to be."""
    if not columns:
        return []
    values = np.array(list(columns.values()), dtype=np.float64).T
    return value_notes(values, list(columns))


def _are_vectors(origin: Origin, values: list[Any]) -> bool:
    """Whether each value is a list of numbers, which Arrow's files may hold."""
    return origin.suffix in ARROW and bool(values) and isinstance(values[0], list)


def _divides(values: list[Any]) -> bool:
    """Whether values say to which part of the data a row belongs, such as train and test."""
    return all(str(value).strip().lower() in _SPLITS for value in values)


def _is_numeric(value: Any) -> bool:
    return is_number(value) if isinstance(value, str) else isinstance(value, int | float)


def _mean_length(values: list[Any]) -> float:
    return sum(len(str(value)) for value in values) / max(len(values), 1)
