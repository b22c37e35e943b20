"""What a format of files is: how its samples are opened, its labels read, its files described.

A format is a module with a `Format`, and its line in the table `readers.FORMATS`.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from dhsk.arrays import Rows
from dhsk.errors import InputError, warn
from dhsk.samples.base import Samples
from dhsk.samples.dialect import is_number
from dhsk.samples.looks import first_rows, heavy_column, seems
from dhsk.samples.names import shown
from dhsk.samples.paths import Origin
from dhsk.samples.spectrum import AnyVectorizer
from dhsk.systems import quoted

LABEL_FIELD: Final = "label"
"""Field of the labels in lines of JSON if none is named."""

LABELS: Final = (LABEL_FIELD, "labels", "class", "target", "category", "outcome", "y")
"""Usual names of a column of labels."""

SHOWN: Final = 8
"""Largest number of columns, or arrays, in a description."""

_NUMBERS: Final = re.compile(r"\s*[\[(](\s*[-+]?\d*\.?\d+(e[-+]?\d+)?[,;\s]+){3}")
"""How vectors begin that were written as text, as pandas does."""

FILLED: Final = "with --map scaled means of the training samples stand there"
"""What becomes of gaps."""

WAYS: Final = {
    "z-scores": (" --map scaled", " --kernel gaussian"),
    "embeddings": (" --map projective", " --map projective"),
    "units": (" --map scaled", ""),
    "gaps": (" --map scaled", ""),
}
"""Options of a grid and of one matrix by what values seem to be, see `looks.seems`."""


class Documents(ABC):
    """Texts in their order, which can be read several times; one is in memory."""

    source: str
    """Where they come from, for messages."""

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Yield the texts."""

    def ids(self) -> Iterator[str] | None:
        """Names of the texts; None if they have none."""
        return None

    def place(self, row: int) -> str:
        """Words for a text, in messages."""
        return f"{self.source}: row {row} (counted from 0)"

    def sound_texts(self) -> Iterator[str]:
        """Yield the texts; InputError for one of a binary file, and for lists of numbers."""
        for row, text in enumerate(self.texts()):
            if "\0" in text:
                self.refuse_nul(row)
            if row == 0 and _NUMBERS.match(text):
                begin = " ".join(text[:30].split())
                raise InputError(
                    f"{self.place(row)} is a list of numbers written as text, {begin}…: write "
                    "them as columns of numbers, or as a list column of Parquet"
                )
            yield text

    def refuse_nul(self, row: int) -> NoReturn:
        """Refuse a text with NUL characters."""
        raise InputError(
            f"{self.place(row)} holds NUL characters, as binary files do: leave it out, or save it "
            "as text"
        )


_MODULES: Final = re.compile(r"(?<![\w.])(?:pandas|dhsk|sklearn\.\w+)(?=\.)")


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
    seems: str | None = None
    """What values seem to be, see `looks.seems`."""
    grouped: str = ""
    """Option of a grid and of a plan, if samples are in groups."""
    folds: str = ""
    """Option of a grid on its folds."""
    python: Sequence[str] = ()
    """Lines of Python that come next in place of commands."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def following(self) -> list[str]:
        """Commands that come next."""
        if self.python:
            return list(map(_with_imports, self.python))
        labels = "" if self.labels is None else f" --labels {self.labels}"
        known = labels if self.labels != "LABELS" else ""
        grid, one = WAYS.get(self.seems or "", ("", ""))
        one = grid if "scaled" in grid else one  # as of the grid
        how = f"{labels}{self.grouped}{self.folds}{self.options}{grid}"
        return [
            f"dhsk cv {self.samples}{how} --out found",
            f"dhsk plan {self.samples}{known}{self.grouped}{self.options}{one}",
        ]


def _with_imports(line: str) -> str:
    """A line of Python with the imports of the modules that it names."""
    found = dict.fromkeys(_MODULES.findall(line)) if " in Python" in line else {}
    return f"import {', '.join(found)}; {line}" if found else line


def value_notes(
    rows: Rows, names: Sequence[str] | None, counts: str | None = None
) -> list[tuple[str, str]]:
    """What values seem to be where others would be better; `counts` is where the file has those."""
    there = f": {counts} may have counts" if counts else ""
    match seems(rows):
        case "embeddings" if not there:
            way = "directions matter, so divide rows by their lengths (--map projective)"
            return [("values", f"below 0 too, as embeddings are: {way}")]
        case "z-scores" | "embeddings":
            way = there or ": kernels of scaled columns take them (--map scaled)"
            return [("values", f"below 0 too, as z-scores are{way}")]
        case "logarithms":
            return [("values", f"log1p of counts, it seems{there or ': np.expm1 has counts'}")]
        case "gaps":
            return [("gaps", f"some values are NaN: {FILLED}")]
        case None:
            return []
    heavy = heavy_column(rows)
    if heavy is None:
        return [("values", "columns of different units, it seems: scale them (--map scaled)")]
    column, share = heavy
    name = column if names is None else names[column]
    said = f"column {name} has {share:.0%} of all: scale columns of other units (--map scaled)"
    return [("values", said)]


@dataclass(frozen=True)
class Asked:
    """What a caller says of the samples, or of the labels, in a file; see `open_samples`."""

    drop_columns: Sequence[str] = ()
    header: bool | None = None
    id_column: str | None = None
    n_features: int | None = None
    vectorizer: AnyVectorizer | None = None
    n_samples: int = 0
    """Number of labels that are needed."""

    @property
    def named(self) -> tuple[str, ...]:
        """Columns that are no features."""
        return (*self.drop_columns, *(() if self.id_column is None else (self.id_column,)))

    def refuse_words(self, origin: Origin) -> NoReturn:
        """Refuse to leave out columns of texts."""
        raise InputError(
            f"{origin} is text, and its features are words: leave out --drop-column "
            f"{self.drop_columns[0]} (drop_columns)"
        )


@dataclass(frozen=True)
class Format:
    """A format of files, which tells them by their suffixes."""

    suffixes: tuple[str, ...]
    open: Callable[[Origin, Asked], Samples | Documents]
    """Opens samples, or raw texts that are then counted."""
    describe: Callable[[Origin], SamplesFile]
    labels: Callable[[Origin, Asked], Any] | None = None
    """Reads labels, (n_samples,); a list is of text, which may be numbers. None if it has none."""
    has_columns: bool = False
    """Whether columns have names, so that some can be left out."""


def described(
    words: str, labels: str | None = "LABELS", options: str = ""
) -> Callable[[Origin], SamplesFile]:
    """Description of any file of a format, by its suffix alone."""

    def describe(origin: Origin) -> SamplesFile:
        name = quoted(str(origin.path))
        return SamplesFile(f"{words} ({origin.suffix})", (), name, labels, options)

    return describe


def describe_arrays(
    words: str,
    origin: Origin,
    opened: Callable[[Origin, Asked], Samples],
    rows: Sequence[tuple[str, str]] = (),
    labels: str = "LABELS",
    counts: str | None = None,
) -> SamplesFile:
    """Describe samples in arrays; `counts` names others in the same file, `labels` their labels."""
    name = quoted(str(origin.path))
    try:
        samples = opened(origin, Asked())
    except InputError as error:
        if origin.key is not None or origin.path.name.endswith(".npy"):  # it is the one meant
            raise
        rows = [*rows, ("samples", f"none that are read without a name: {error}")]
        return SamplesFile(words, rows, f"{name}:NAME", labels)
    kept = f"{name}:{origin.key}" if origin.key else name
    (n, dim), header = samples.shape, getattr(samples, "header", None)
    entries = "" if samples.nnz is None else f", {samples.nnz:,} entries"
    shape = f"{n:,} x {dim:,}{entries}{'' if header is None else f' {header.dtype}'}"
    first = first_rows(samples)
    notes = value_notes(first, samples.feature_names, counts)
    facts = {"shape": [n, dim]}
    said = [("samples", shape), *rows, *notes]
    return SamplesFile(words, said, kept, labels, facts=facts, seems=seems(first))


def refuse_header(origin: Origin, lines: Sequence[str], asked: Asked) -> None:
    """Refuse labels, one a line, whose first line seems to be a header; `asked` says if it is.

    A first line that is not called as labels are, but occurs once, unlike all others, is warned of.
    """
    if not lines or asked.header is not None or len(lines) != asked.n_samples:
        return
    first, *below = lines
    if first.strip().lower() in LABELS and first not in below:
        raise InputError(
            f"{origin}: its first line, {shown(first)}, seems to be a header, and then there are "
            f"{len(below):,} labels, not {asked.n_samples:,}: add what is missing, leave the "
            "header out, or give --no-header (header=False) if it is a class"
        )
    counts = Counter(line.strip() for line in lines)
    if not is_number(first) and counts.pop(first.strip()) == 1 < min(counts.values(), default=0):
        warn(
            f"{origin}: its first line, {shown(first)}, is taken for a label, but occurs nowhere "
            "else, unlike every other class: if it is a header, a label is missing below it; if it "
            "is a class, --no-header (header=False) says so"
        )
