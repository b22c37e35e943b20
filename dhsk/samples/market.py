"""Samples in Matrix Market files, also of genes by cells as 10x Genomics writes them.

The format: https://math.nist.gov/MatrixMarket/formats.html
"""

import gzip
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Rows
from dhsk.errors import InputError
from dhsk.samples.base import Samples, csr_block, flat_shape
from dhsk.samples.delimited import read_records
from dhsk.samples.format import Asked, Format, SamplesFile, described
from dhsk.samples.names import shown
from dhsk.samples.paths import Origin, packed
from dhsk.samples.spill import Spill

_ENTRY: Final = np.dtype([("sample", "i4"), ("feature", "i4"), ("value", "f8")])

_PLACE: Final = rb"[ \t]*+\d++[ \t]++\d++"
_REAL: Final = (
    _PLACE + rb"[ \t]++-?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d++)?+[ \t\r]*+",
    "'row column value'",
)
_INTEGER: Final = (_PLACE + rb"[ \t]++-?+\d++[ \t\r]*+", "'row column value' of a whole number")
_ENTRIES: Final = {
    **dict.fromkeys(("real", "double"), _REAL),
    **dict.fromkeys(("integer", "unsigned-integer"), _INTEGER),
    "pattern": (_PLACE + rb"[ \t\r]*+", "'row column'"),
}
"""Pattern of an entry, and words for it, by the type of the values."""

_TEXT_BYTES: Final = 2**20
"""Bytes of text that are parsed together."""

_MOST: Final = int(np.iinfo(_ENTRY["sample"]).max)
"""Most rows, and most columns."""

_SAMPLE_FILES: Final = ("barcodes.tsv", "barcodes.tsv.gz")
_FEATURE_FILES: Final = ("features.tsv", "features.tsv.gz", "genes.tsv", "genes.tsv.gz")
"""Names of samples and features beside a matrix, as 10x Genomics calls them."""

MATRIX_FILES: Final = ("matrix.mtx", "matrix.mtx.gz")


Stream: TypeAlias = io.BufferedReader | gzip.GzipFile
"""An opened file."""


@dataclass(frozen=True)
class _Head:
    """What a file says of itself."""

    shape: tuple[int, int]
    entries: int
    kind: str
    """Type of the values, one of `_ENTRIES`."""
    lines: int
    """Number of lines before the first entry."""


@dataclass(frozen=True, eq=False)
class MarketSamples(Samples):
    """A sparse matrix whose file was read once, when it was opened.

    Takes the memory of the row pointers and of three blocks. The entries are in a temporary file,
    of 16 bytes each, in the order of the samples.
    """

    entries: Spill = field(repr=False)

    def _blocks(self, rows: int) -> Iterator[Rows]:
        for _, indptr in self.row_parts(rows):
            found = self.entries.read(int(indptr[0]), int(indptr[-1]))
            yield csr_block(found["value"].copy(), found["feature"].copy(), indptr, self.shape[1])


def _open(origin: Origin, _: Asked) -> MarketSamples:
    """Open a matrix of samples by features; beside the files of 10x Genomics, of genes by cells.

    Those are barcodes.tsv and features.tsv or genes.tsv, compressed or not, with the same prefix as
    the matrix or none.
    """
    origin.refuse_key("a file is one matrix")
    source = str(origin)
    barcodes, genes = (_names(origin, names) for names in (_SAMPLE_FILES, _FEATURE_FILES))
    with origin.reading(), origin.open_bytes() as handle:
        head = _read_head(source, handle)
        by_columns = _is_transposed(source, head.shape, barcodes, genes)
        shape = flat_shape(source, head.shape[::-1] if by_columns else head.shape)
        entries, counts, is_sorted = _read_entries(source, handle, head, by_columns, shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    if not is_sorted:
        entries = _sorted(entries, indptr)
    known: Any = {"indptr": indptr, "feature_names": genes, "names": barcodes}
    return MarketSamples(source, shape, entries, nnz=entries.size, **known)


def _read_head(source: str, handle: Stream) -> _Head:
    words = handle.readline(1024).decode("latin-1").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket" or words[1] != "matrix":
        raise InputError(
            f"{source} does not begin with '%%MatrixMarket matrix': write it with "
            "scipy.io.mmwrite(FILE, X)"
        )
    layout, kind, symmetry = words[2:]
    if layout != "coordinate":
        raise InputError(f"{source} is a dense matrix ({layout}): save it with np.save(FILE, X)")
    if kind not in _ENTRIES or symmetry != "general":
        raise InputError(
            f"{source} is a {symmetry} matrix of {kind} numbers, but samples are general and real: "
            "write it with scipy.io.mmwrite(FILE, X, symmetry='general')"
        )
    lines, line = 2, handle.readline()
    while line.startswith(b"%") or (line and not line.strip()):
        lines, line = lines + 1, handle.readline()
    numbers = line.split()
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        raise InputError(f"{source}: line {lines} is not 'rows columns entries': is it complete?")
    rows, columns, entries = map(int, numbers)
    if max(rows, columns) > _MOST:
        raise InputError(
            f"{source} is {rows:,} x {columns:,}, and none may be above {_MOST:,}: is it damaged?"
        )
    return _Head((rows, columns), entries, kind, lines)


def _read_entries(
    source: str, handle: Stream, head: _Head, by_columns: bool, n_samples: int
) -> tuple[Spill, NDArray[np.int64], bool]:
    """Copy the entries to a temporary file; count those of each sample, and see if they ascend."""
    entries, counts = Spill(_ENTRY), np.zeros(n_samples, np.int64)
    ascending, last = True, 0
    while text := handle.read(_TEXT_BYTES):
        text += handle.readline()
        part = _parsed(source, text.rstrip(), head, head.lines + entries.size, by_columns)
        if not len(part):
            continue
        entries.append(part)
        samples = part["sample"]
        counts += np.bincount(samples, minlength=n_samples)
        ascending = ascending and last <= samples[0] and bool((np.diff(samples) >= 0).all())
        last = int(samples[-1])
    if entries.size != head.entries:
        raise InputError(
            f"{source} has {entries.size:,} entries and its header announces {head.entries:,}: is "
            "it complete?"
        )
    return entries, counts, ascending


def _parsed(source: str, text: bytes, head: _Head, before: int, by_columns: bool) -> NDArray[Any]:
    """Entries of some lines, which come after `before` others."""
    from scipy.io import mmread

    count = text.count(b"\n") + 1 if text else 0
    if not count:
        return np.empty(0, _ENTRY)
    _check_lines(source, text, head, before)
    rows, columns = head.shape
    begin = f"%%MatrixMarket matrix coordinate {head.kind} general\n{rows} {columns} {count}\n"
    try:
        found: Any = mmread(io.BytesIO(begin.encode() + text + b"\n"), spmatrix=False)
    except (ValueError, OverflowError) as error:
        # It counts its own two lines before the entries.
        reason = re.sub(r"Line (\d+)", lambda n: f"line {int(n[1]) - 2 + before}", str(error))
        raise InputError(f"{source} cannot be read, is it complete? ({reason})") from error
    part = np.empty(count, _ENTRY)
    part["sample"], part["feature"] = (
        (found.col, found.row) if by_columns else (found.row, found.col)
    )
    part["value"] = found.data
    return part


def _check_lines(source: str, text: bytes, head: _Head, before: int) -> None:
    """Refuse a line that is no entry: scipy takes an integer 3.5 for 3, and ignores the rest."""
    entry, words = _ENTRIES[head.kind]
    # Possessive, so that a match neither backtracks nor takes memory: half of the time of scipy.
    end = re.compile(rb"(?:" + entry + rb"(?:\n|\Z))*+").match(text)
    assert end is not None
    if end.end() < len(text):
        begin = text.rfind(b"\n", 0, end.end()) + 1  # Python 3.11.2 stops within the line
        number = before + text.count(b"\n", 0, begin) + 1
        line = text[begin:].split(b"\n", 1)[0].decode("latin-1").strip()
        raise InputError(f"{source}: line {number} is {shown(line)}, but an entry is {words}")


def _sorted(entries: Spill, indptr: NDArray[np.int64]) -> Spill:
    """The same entries in the order of the samples."""
    found, following = Spill(_ENTRY), indptr[:-1].copy()
    for part in entries.parts():
        own = part[np.argsort(part["sample"], kind="stable")]
        samples, starts, counts = np.unique(own["sample"], return_index=True, return_counts=True)
        for sample, start, count in zip(samples, starts, counts, strict=True):
            found.write(int(following[sample]), own[start : start + count])
        following[samples] += counts
    return found


# Names beside a matrix


def _names(origin: Origin, files: Sequence[str]) -> tuple[str, ...] | None:
    """First column of the first of some files that is there; None without one."""
    path = origin.path
    prefix = re.sub(r"matrix\.mtx(\.gz)?$", "", path.name, flags=re.IGNORECASE)
    prefixes = [""] if prefix == path.name else [prefix, ""]
    for name in (before + file for before in prefixes for file in files):
        if (path.parent / name).is_file():
            records = read_records(Origin.of(path.parent / name))
            return tuple(record[0].strip() for record in records)
    return None


def _is_transposed(
    source: str,
    shape: tuple[int, int],
    barcodes: Sequence[str] | None,
    genes: Sequence[str] | None,
) -> bool:
    """Whether a matrix is of features by samples, by the numbers of names beside it."""
    known = [None if names is None else len(names) for names in (barcodes, genes)]
    if known == [None, None]:
        return False
    for transposed, (samples, features) in ((True, shape[::-1]), (False, shape)):
        if known[0] in (None, samples) and known[1] in (None, features):
            return transposed
    raise InputError(
        f"{source} is {shape[0]:,} x {shape[1]:,}, but the files beside it name "
        f"{known[0] or 'no'} samples (barcodes.tsv) and {known[1] or 'no'} features "
        "(features.tsv, genes.tsv): move them away if they are of another matrix"
    )


def matrix_of_folder(origin: Origin) -> Origin | None:
    """The matrix in a folder of 10x Genomics; None if there is none."""
    for name in MATRIX_FILES:
        if (origin.path / name).is_file():
            return Origin.of(origin.path / name)
    return None


def _describe(origin: Origin) -> SamplesFile:
    """Shape and number of entries as the head announces them."""
    source = str(origin)
    with origin.reading(), origin.open_bytes() as handle:
        head = _read_head(source, handle)
    names = (_names(origin, files) for files in (_SAMPLE_FILES, _FEATURE_FILES))
    n, dim = head.shape[::-1] if _is_transposed(source, head.shape, *names) else head.shape
    rows = [("samples", f"{n:,} x {dim:,}, {head.entries:,} entries")]
    return replace(described("a sparse matrix")(origin), rows=rows, facts={"shape": [n, dim]})


FORMAT = Format(packed(".mtx"), _open, _describe)
