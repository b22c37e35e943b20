"""Samples from any source: an array, a sparse matrix or a file."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

from numpy.typing import ArrayLike

from dhsk.errors import InputError
from dhsk.samples.arrow import holds_texts, open_arrow
from dhsk.samples.base import Samples
from dhsk.samples.binary import open_npy, open_npz
from dhsk.samples.chunked import open_chunked
from dhsk.samples.documents import (
    TEXT_FIELD,
    Documents,
    is_text,
    one_text,
    open_json_lines,
    open_text_column,
    open_text_folder,
)
from dhsk.samples.h5ad import open_h5ad
from dhsk.samples.market import matrix_of_folder, open_market
from dhsk.samples.memory import are_texts, from_anndata, from_table, is_anndata, refuse_gram
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
    reading,
)
from dhsk.samples.sequences import Strings, open_sequences
from dhsk.samples.spectrum import AnyVectorizer, Spectrum, known_features
from dhsk.samples.svmlight import open_svmlight
from dhsk.samples.table import open_table
from dhsk.samples.texts import open_texts
from dhsk.samples.vectorizer import Vectorizer
from dhsk.samples.zarr_folder import open_zarr

__all__ = ["Samples", "open_samples"]

_BINARY: Final = {".npy": open_npy, ".npz": open_npz, ".h5ad": open_h5ad}


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
        zarr or Dask array, (n_samples, n_features), read by chunks; `Samples`, returned unchanged;
        an AnnData object, whose `X` is read; texts, a list of strings; or a path or
        ``s3://BUCKET/NAME``, `FILE` or `FILE:KEY`:

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
        - `.csv`, `.tsv`: numbers with or without a header, separated by commas, semicolons or tabs.

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
    if isinstance(source, Samples):
        return source
    if not isinstance(source, str | os.PathLike):
        refuse_gram(source)
        if is_anndata(source):
            return from_anndata(source)
        if hasattr(source, "chunks") and hasattr(source, "shape"):
            return open_chunked("X", partial(_lent, source))
        if are_texts(source):
            return _counted(Strings(cast("Iterable[str]", source)), vectorizer)
        return from_table(source, drop_columns, id_column)
    origin = Origin.of(source)
    if not origin.is_folder and origin.suffix in (*FASTA, *FASTQ, *TEXT_FILES):
        return _open_strings(
            origin, vectorizer, (*drop_columns, *([id_column] if id_column else ()))
        )
    if origin.is_text_folder:
        origin = matrix_of_folder(origin) or origin
    names = known_features(vectorizer)
    if is_text(origin, names, header):
        return _open_text(origin, vectorizer, drop_columns, header, id_column)
    if origin.suffix in ARROW:
        if holds_texts(origin, names):
            origin = replace(origin, key=TEXT_FIELD)
        found = open_arrow(origin, drop_columns, id_column)
        if isinstance(found, Documents):
            return _counted(found, vectorizer)
        return found
    named = [*drop_columns, *([] if id_column is None else [id_column])]
    if named and origin.suffix not in TABLES:
        raise InputError(
            f"{origin.path} has no named columns ({', '.join(named)}): "
            f"only {', '.join(TABLES)} files have"
        )
    if origin.is_folder:
        return open_zarr(origin)
    suffix = origin.suffix
    if suffix in _BINARY:
        return _BINARY[suffix](origin)
    if suffix in MARKET:
        return open_market(origin)
    if suffix in SVMLIGHT:
        return open_svmlight(origin, n_features)
    if suffix in TABLES:
        return open_table(origin, drop_columns, header, id_column)
    known = ", ".join(
        (
            *(".npy", ".npz", ".zarr", ".h5ad", *ARROW, *MARKET, *SVMLIGHT, *TABLES, *JSONL),
            *(FASTA[0], FASTQ[0], TEXT_FILES[0]),
        )
    )
    raise InputError(
        f"{origin.path} is in an unknown format ({suffix or 'no extension'}): "
        f"samples are read from {known}, and folders of .txt"
    )


def _open_strings(
    origin: Origin, vectorizer: AnyVectorizer | None, named: Sequence[str]
) -> Samples:
    """Open a file of strings; of a known vocabulary of words it is one text."""
    if isinstance(vectorizer, Vectorizer) and vectorizer.vocabulary and origin.suffix in TEXT_FILES:
        return open_texts(one_text(origin), vectorizer)
    if not isinstance(vectorizer, Spectrum):
        raise InputError(
            f"{origin.path} holds strings: say how long the substrings are that are counted, as "
            "--spectrum 6 (vectorizer=dhsk.Spectrum(6))"
        )
    if named:
        raise InputError(f"{origin.path} has no named columns: leave out {', '.join(named)}")
    return _counted(open_sequences(origin), vectorizer)


def _counted(documents: Documents, vectorizer: AnyVectorizer | None) -> Samples:
    """Count the words or substrings of raw texts."""
    if isinstance(vectorizer, Spectrum):
        from dhsk.samples.counted import open_spectrum  # numba is loaded when it is needed

        return open_spectrum(documents, vectorizer)
    return open_texts(documents, vectorizer or Vectorizer())


def _open_text(
    origin: Origin,
    vectorizer: AnyVectorizer | None,
    drop_columns: Sequence[str],
    header: bool | None,
    id_column: str | None,
) -> Samples:
    """Open raw texts."""
    if drop_columns and origin.suffix not in TABLES:  # of a table one column is read anyway
        raise InputError(
            f"{origin} is text, and its features are words: leave out --drop-column "
            f"{drop_columns[0]} (drop_columns)"
        )
    documents: Documents
    if origin.suffix in TABLES:
        documents = open_text_column(origin, header, id_column)
    elif origin.suffix in JSONL:
        documents = open_json_lines(origin, id_column)
    elif id_column is None:
        documents = open_text_folder(origin)
    else:
        raise InputError(
            f"{origin.path} is a folder of texts, whose ids are their paths: leave out --id-column "
            f"{id_column}"
        )
    return _counted(documents, vectorizer)


@contextmanager
def _lent(array: Any) -> Iterator[Any]:
    """Read an array that the caller keeps open."""
    with reading("X"):
        yield array
