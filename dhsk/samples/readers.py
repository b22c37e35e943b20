"""Samples from any source: an array, a sparse matrix or a file; and the table of formats."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NoReturn, cast

from numpy.typing import ArrayLike

from dhsk.errors import InputError
from dhsk.objects.places import Place
from dhsk.samples import (
    arrow,
    binary,
    csv_tables,
    h5ad,
    json_lines,
    market,
    sequences,
    svmlight,
    text_folder,
    zarr_folder,
)
from dhsk.samples.base import Samples
from dhsk.samples.chunked import open_chunked
from dhsk.samples.format import Asked, Documents, Format, SamplesFile
from dhsk.samples.memory import are_texts, from_anndata, from_table, is_anndata, refuse_gram
from dhsk.samples.paths import Origin, reading
from dhsk.samples.sequences import Strings
from dhsk.samples.spectrum import AnyVectorizer, Spectrum
from dhsk.samples.texts import TextSamples, open_texts
from dhsk.samples.vectorizer import Vectorizer

__all__ = ["FORMATS", "Samples", "format_of", "open_samples"]

_ZARR, _FOLDER = zarr_folder.FORMAT, text_folder.FORMAT

FORMATS: Final[tuple[Format, ...]] = (
    binary.NPY, binary.NPZ, _ZARR, h5ad.FORMAT, market.FORMAT, svmlight.FORMAT,
    csv_tables.FORMAT, arrow.FORMAT, json_lines.FORMAT, sequences.LINES, sequences.FORMAT, _FOLDER,
)  # fmt: skip
"""All formats of files and folders."""

_BY_SUFFIX: Final = {end: own for own in FORMATS for end in own.suffixes if own is not _ZARR}

_BY_OTHERS: Final = {
    ".xlsx": "pandas.read_excel", ".xls": "pandas.read_excel", ".ods": "pandas.read_excel",
    ".sav": "pandas.read_spss", ".dta": "pandas.read_stata", ".sas7bdat": "pandas.read_sas",
    ".json": "pandas.read_json",
}  # fmt: skip
"""What reads tables of other programs."""

_LOADED: Final = "save it as CSV, in R load(FILE); write.csv(OBJECT, 'STEM.csv')"

_OTHER_WAYS: Final = {
    ".rds": "save it as CSV, in R write.csv(readRDS(FILE), 'STEM.csv')",  # with the samples' names
    ".rdata": _LOADED, ".rda": _LOADED,
    ".biom": "write a table: biom convert -i FILE -o STEM.tsv --to-tsv",
    ".qza": "take out what is in it: qiime tools export --input-path FILE --output-path STEM, or "
    "unzip FILE; and of a .biom write a table: biom convert --to-tsv",
}  # fmt: skip
"""How other programs write what they have as tables."""

_SHOWN: Final = 4
"""Largest number of suffixes of a format in a message."""


def open_samples(
    source: ArrayLike | Samples | str | os.PathLike[str] | Any,
    *,
    drop_columns: Sequence[str] = (),
    header: bool | None = None,
    id_column: str | None = None,
    n_features: int | None = None,
    vectorizer: AnyVectorizer | None = None,
) -> Samples:
    """Open samples; those in files are not read into memory.

    Parameters
    ----------
    source
        An array, (n_samples, ...), whose trailing axes are flattened; a scipy sparse matrix; a
        table of pandas, polars or Arrow; a zarr or Dask array, (n_samples, n_features), read by
        chunks; `Samples`, returned unchanged; an AnnData object, whose `X` is read; texts, a list
        of strings; or a path or ``s3://BUCKET/NAME``, `FILE` or `FILE:KEY`:

        - `.npy`: an array;
        - `.npz`: the array `KEY` (by default the only one, or `X`), or a CSR matrix as
          `scipy.sparse.save_npz` writes it;
        - a zarr folder: the array at its root, or `KEY` in it (by default `X`), or a CSR group
          as AnnData writes it;
        - `.h5ad`: `X`, or `KEY` (`layers/NAME`, `raw/X`), dense or CSR; needs h5py;
        - `.svm`, `.svmlight`, `.libsvm`: svmlight text;
        - `.mtx`: a sparse matrix of Matrix Market; where barcodes.tsv and features.tsv or genes.tsv
          are beside it, as 10x Genomics writes them, its columns are the samples; or their folder;
        - `.parquet`, `.feather`: columns of numbers, or `KEY`, a column of lists of numbers; needs
          pyarrow;
        - `.csv`, `.tsv`, `.dat`, `.data`: numbers with or without a header, separated by commas,
          semicolons, tabs, `|` or blanks.

        or of raw texts, whose words are counted:

        - `.jsonl`: the field `KEY` (by default `text`) of an object a line;
        - `.csv:KEY`, `.tsv:KEY`, `.parquet:KEY`, `.feather:KEY`: the column `KEY`;
        - a folder: its `.txt` files and those of its subfolders, in the order of their names;

        or of strings, whose substrings are counted as a `Spectrum` says (that of raw texts too):

        - `.fasta`, `.fa`, `.fna`, `.ffn`, `.faa`, `.frn`, `.fas`, `.fastq`, `.fq`: the records;
        - `.txt`: the lines; the whole file is one text for a `Vectorizer` with a vocabulary, as in
          the folder that a model was trained on.

        The text formats may be compressed: `.csv.gz`.
    drop_columns
        Names of columns of a table that are not features; without a header, their
        numbers, counted from 0.
    header
        Whether the first row of a CSV or TSV file names its columns; None to detect it.
    id_column
        Name or number of a column with the names of the samples, which is not a feature. Texts have
        those of a column or field called `id`, if there is one; in a folder, their paths; records
        the first words of their headers.
    n_features
        Number of features of an svmlight file, which does not record it (a test set may lack the
        last features of its training set); other formats ignore it.
    vectorizer
        How words, or with a `Spectrum` substrings, of raw texts are counted; None for
        `Vectorizer()`. Formats of numbers ignore it.

    Returns
    -------
    Samples
        With `shape`, `is_sparse`, `nnz`, `feature_names`, `blocks(rows)` and `ids(rows)`. Feature
        names are those of the columns of a DataFrame or table, of AnnData's var, or of an array of
        strings in an archive that is called `feature_names`, `features`, `genes`, `words`,
        `vocabulary`, `columns` or `var_names`; ids are those of AnnData's obs, or of an array
        `sample_names`, `samples`, `ids`, `cells`, `documents`, `index` or `obs_names`.

    Raises
    ------
    InputError
        If the source does not exist, is of an unknown format, damaged, empty or not numeric.
    StoreError
        If the system or the server refuses to read it, or the server does not answer.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> np.save("counts.npy", np.eye(5))
    >>> samples = dhsk.open_samples("counts.npy")
    >>> samples.shape
    (5, 5)
    >>> [block.shape for block in samples.blocks(rows=2)]
    [(2, 5), (2, 5), (1, 5)]
    """
    asked = Asked(drop_columns, header, id_column, n_features, vectorizer)
    if isinstance(source, Samples):
        return source
    if isinstance(source, str | os.PathLike):
        return _open_file(Origin.of(source), asked)
    refuse_gram(source)
    if is_anndata(source):
        return from_anndata(source)
    if hasattr(source, "chunks") and hasattr(source, "shape"):
        return open_chunked("X", partial(_lent, source))
    if are_texts(source):
        return counted(Strings(cast("Iterable[str]", source)), vectorizer)
    return from_table(source, drop_columns, id_column)


def _open_file(origin: Origin, asked: Asked) -> Samples:
    if origin.is_text_folder:
        origin = market.matrix_of_folder(origin) or origin
    own = format_of(origin)
    if own is None:
        refuse_unknown(origin, "samples", FORMATS)
    if asked.named and not own.has_columns:
        known = [end for each in FORMATS if each.has_columns for end in each.suffixes]
        raise InputError(
            f"{origin.path} has no named columns ({', '.join(asked.named)}): only "
            f"{', '.join(known)} files have"
        )
    found = own.open(origin, asked)
    return counted(found, asked.vectorizer) if isinstance(found, Documents) else found


def format_of(origin: Origin) -> Format | None:
    """Format of a file or folder; None for an unknown suffix."""
    if origin.is_folder:
        return _ZARR
    return _FOLDER if origin.is_text_folder else _BY_SUFFIX.get(origin.suffix)


def is_name_of_file(path: Place) -> bool:
    """Whether a path, of which nothing need exist, has the suffix of a file of samples.

    The path may have a key, FILE:KEY.
    """
    known = {*_BY_SUFFIX, *_BY_OTHERS, *_OTHER_WAYS, ".gz"}
    return any(suffix.lower().partition(":")[0] in known for suffix in path.suffixes[-1:])


def describe(origin: Origin) -> SamplesFile | None:
    """Describe a file or a folder of samples; None if it is none. Few rows are read."""
    if origin.is_text_folder:
        origin = market.matrix_of_folder(origin) or origin
    own = format_of(origin)
    return None if own is None else own.describe(origin)


def refuse_unknown(origin: Origin, what: str, formats: Iterable[Format]) -> NoReturn:
    """Refuse a file of another format than some, which have what is read."""
    known = ", ".join(suffix for each in formats for suffix in each.suffixes[:_SHOWN])
    way, reader, stem = "", _BY_OTHERS.get(origin.suffix), origin.path.name.partition(".")[0]
    if reader is not None:
        excel = reader == "pandas.read_excel"
        sheets = "; sheet_name=NAME takes another sheet, skiprows=N leaves N lines above" * excel
        own = f"{reader}({str(origin.path)!r}).to_csv('{stem}.csv', index=False)"
        way = f"; save it as CSV{' UTF-8, in Excel or' * excel} with {own}{sheets}"
    elif origin.suffix in _OTHER_WAYS:
        way = f"; {_OTHER_WAYS[origin.suffix].replace('STEM', stem)}"
    raise InputError(
        f"{origin.path} is in an unknown format ({origin.suffix or 'no extension'}): {what} are "
        f"read from {known}, and folders of .txt{way}"
    )


def counted(documents: Documents, vectorizer: AnyVectorizer | None) -> TextSamples:
    """Count the words or substrings of raw texts."""
    if isinstance(vectorizer, Spectrum):
        from dhsk.samples.counted import open_spectrum  # numba is loaded when it is needed

        return open_spectrum(documents, vectorizer)
    return open_texts(documents, vectorizer or Vectorizer())


@contextmanager
def _lent(array: Any) -> Iterator[Any]:
    """Read an array that the caller keeps open."""
    with reading("X"):
        yield array
