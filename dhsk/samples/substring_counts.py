"""Counts of the substrings of strings, in memory."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.errors import InputError
from dhsk.samples.readers import open_samples
from dhsk.samples.sequences import Strings
from dhsk.samples.spectrum import LetterKind, Spectrum
from dhsk.samples.texts import TextSamples


def spectrum_counts(
    source: str | os.PathLike[str] | Iterable[str],
    length: int | tuple[int, int],
    *,
    letters: LetterKind = "any",
    canonical: bool = False,
    min_df: int = 1,
    vocabulary: Sequence[str] | None = None,
) -> tuple[Any, NDArray[Any]]:
    r"""Count the substrings of strings: the spectrum, whose linear kernel is the spectrum kernel.

    Files are read once, and in pieces. The memory is that of the distinct substrings and of the
    counts; these are also in a temporary file, of eight bytes each.

    Parameters
    ----------
    source
        Strings, or a path or ``s3://BUCKET/NAME``:

        - `.fasta`, `.fa`, `.fna`, `.ffn`, `.faa`, `.frn`, `.fas`: a record is a string;
        - `.fastq`, `.fq`: a record is a string;
        - `.txt`: a line is a string;
        - raw texts as `open_samples` reads them: `.jsonl`, a column of a table, a folder.

        Files may be compressed: `.fasta.gz`.
    length
        Number of letters of a substring; or the least and the largest, such as (0, 6) for the full
        spectrum up to 6. See `Spectrum` for this and the other parameters.
    letters
        What a letter is: "any" character, "dna" for A, C, G and T alone in upper or lower case, or
        "tokens" between blanks.
    canonical
        Whether a substring and its reverse complement are one feature; letters are then "dna".
    min_df
        Least number of strings with a substring: rarer ones are left out.
    vocabulary
        Substrings to count, such as those of a training set; None to count all.

    Returns
    -------
    counts : csr_array
        (n_strings, n_substrings), int64. A string that is too short has a row of zeros.
    substrings : ndarray
        (n_substrings,), of strings; with blanks between tokens.

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
    spectrum = Spectrum(length, letters, canonical, min_df, known)
    if isinstance(source, str | os.PathLike):
        samples = open_samples(source, vectorizer=spectrum)
        if not isinstance(samples, TextSamples):
            raise InputError(
                f"{source} holds numbers and no strings: name a column or field of strings as "
                f"{Path(source).name}:NAME"
            )
    else:
        from dhsk.samples.counted import open_spectrum  # numba is loaded when it is needed

        samples = open_spectrum(Strings(source), spectrum)
    return _whole(samples), np.array(samples.feature_names)


def _whole(samples: TextSamples) -> Any:
    """All counts."""
    index = np.int32 if max(samples.nnz, samples.shape[1]) < 2**31 else np.int64
    data, columns, done = np.empty(samples.nnz, np.int64), np.empty(samples.nnz, index), 0
    all_kept = bool((samples.columns >= 0).all())
    for pairs in samples.entries.parts():
        own, counts = samples.columns[pairs["term"]], pairs["count"]
        if not all_kept:
            kept = own >= 0
            own, counts = own[kept], counts[kept]
        data[done : done + len(own)], columns[done : done + len(own)] = counts, own
        done += len(own)
    parts: Any = data, columns, samples.indptr.astype(index)
    found: Any = csr_array(parts, shape=samples.shape)
    found.sort_indices()
    return found
