"""Counts of the substrings of strings, in memory."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.bars import Show, passes_shown
from dhsk.errors import InputError
from dhsk.samples.readers import counted, open_samples
from dhsk.samples.sequences import Strings
from dhsk.samples.spectrum import LetterKind, Spectrum
from dhsk.samples.texts import TextSamples

_ENTRIES: Final = 2**14
"""Number of counts that are sorted together."""


def spectrum_counts(
    source: str | os.PathLike[str] | Iterable[str],
    length: int | tuple[int, int],
    *,
    letters: LetterKind = "any",
    canonical: bool = False,
    min_df: int = 1,
    vocabulary: Sequence[str] | None = None,
    n_features: int | None = None,
    progress: Show = None,
) -> tuple[Any, NDArray[Any]]:
    r"""Count the substrings of strings: the spectrum, whose linear kernel is the spectrum kernel.

    Files are read once, and in pieces. The memory is that of the distinct substrings, or of hashed
    columns, and of the counts; these are also in a temporary file, of eight bytes each.

    Parameters
    ----------
    source
        Strings, or a path or ``s3://BUCKET/NAME``:

        - `.fasta`, `.fa`, `.fna`, `.ffn`, `.faa`, `.frn`, `.fas`: a record is a string;
        - `.fastq`, `.fq`: a record is a string;
        - `.txt`: a line is a string;
        - raw texts as `open_samples` reads them: `.jsonl`, a column of a table, a folder.

        Files may be compressed: `.fasta.gz`.
    length, letters, canonical, min_df, vocabulary, n_features
        As for `Spectrum`; a vocabulary may be the substrings of a training set.
    progress
        Function that is called with `Progress` events of the letters that are read; True for bars.

    Returns
    -------
    counts : csr_array
        (n_strings, n_substrings), int64. A string that is too short has a row of zeros.
    substrings : ndarray
        (n_substrings,), of strings; with blanks between tokens. Of hashed columns "#0", "#1", ...

    Raises
    ------
    InputError
        If the source is damaged, holds no strings or mixes formats, a record of a file is empty, or
        no substring is left.

    References
    ----------
    Zaki and Meira, "Data Mining and Analysis", section 5.4, whose example this is:

    Examples
    --------
    >>> import dhsk
    >>> counts, substrings = dhsk.spectrum_counts(["ACAGCAGTA", "AGCAAGCGAG"], 3)
    >>> print(*substrings)
    AAG ACA AGC AGT CAA CAG CGA GAG GCA GCG GTA
    >>> (counts @ counts.T).toarray()
    array([[ 9,  3],
           [ 3, 10]])
    >>> dhsk.compute_gram(counts, dhsk.LinearKernel())[0, 1].item()
    3.0
    """
    known = None if vocabulary is None else tuple(map(str, vocabulary))
    spectrum = Spectrum(length, letters, canonical, min_df, known, n_features)
    with passes_shown(progress):
        samples = _counted(source, spectrum)
    return _whole(samples), np.array(samples.feature_names)


def _counted(source: str | os.PathLike[str] | Iterable[str], spectrum: Spectrum) -> TextSamples:
    if isinstance(source, str | os.PathLike):
        samples = open_samples(source, vectorizer=spectrum)
        if isinstance(samples, TextSamples):
            return samples
        raise InputError(
            f"{source} holds numbers and no strings: name a column or field of strings as "
            f"{Path(source).name}:NAME"
        )
    return counted(Strings(source), spectrum)


def _whole(samples: Any) -> Any:
    """All counts, with columns in order."""
    from dhsk.samples.tally import write_in_order  # numba is loaded when it is needed

    index = np.int32 if max(samples.nnz, samples.shape[1]) < 2**31 else np.int64
    data, indices, done = np.empty(samples.nnz, np.int64), np.empty(samples.nnz, index), 0
    starts = samples.counts.starts
    for part in _parts(starts):
        bounds = starts[part.start : part.stop + 1]
        pairs = samples.counts.entries.read(bounds[0], bounds[-1])
        own = pairs["term"], pairs["count"], bounds, samples.columns
        done += write_in_order(*own, indices[done:], data[done:])
    arrays: Any = data, indices, samples.indptr.astype(index)
    found: Any = csr_array(arrays, shape=samples.shape)
    found.has_sorted_indices = found.has_canonical_format = True
    return found


def _parts(starts: NDArray[np.int64]) -> Iterator[slice]:
    """Rows of about `_ENTRIES` entries; more if a row alone has more."""
    first, n = 0, len(starts) - 1
    while first < n:
        last = int(np.searchsorted(starts, starts[first] + _ENTRIES, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield slice(first, last)
        first = last
