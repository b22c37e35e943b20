"""Class labels from arrays and files, checked against the samples."""

import os
import re
from collections import Counter
from collections.abc import Sequence, Set
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.errors import InputError, warn
from dhsk.samples.delimited import TABLES, read_columns
from dhsk.samples.dialect import (
    has_decimal_comma,
    is_missing,
    is_no_label,
    is_number,
    with_point,
)
from dhsk.samples.format import Asked
from dhsk.samples.paths import Origin
from dhsk.samples.readers import FORMATS, format_of, refuse_unknown
from dhsk.units import counted

_MANY: Final = 12
"""Least number of classes that may be counts: digits are ten."""

_RARE: Final = 5
"""Classes with fewer samples are rare."""

_NUMBERS: Final = (
    "name another column if these are no classes; numbers are predicted in Python by dhsk.SVR or "
    "dhsk.HeatKernelRidge(kernel='gaussian'), behind a StandardScaler if columns are "
    "measurements, with a search of C or alpha"
)

Labels = NDArray[np.int64] | NDArray[np.str_]


def read_labels(
    source: ArrayLike | str | os.PathLike[str],
    n_samples: int,
    *,
    min_classes: int = 2,
    header: bool | None = None,
) -> Labels:
    """Read class labels, one per sample, and check them (see `check_labels`).

    Parameters
    ----------
    source
        An array, (n_samples,), or a path or ``s3://BUCKET/NAME``, `FILE` or `FILE:PART`:

        - `.npy`: an array;
        - `.npz`: the array `PART` (by default the only one, or `y`, or `labels`);
        - `.txt`: one label per line;
        - `.h5ad` and zarr folders: the array `PART`, of AnnData `obs/COLUMN`;
        - `.csv`, `.tsv`, `.parquet`, `.feather`: the column `PART` (by default the only one);
        - `.jsonl`: the field `PART` (by default `label`);
        - a folder of text files: the subfolder of each, as in scikit-learn's `load_files`;
        - `.svm`, `.svmlight`, `.libsvm`: the labels that begin its lines;
        - `.fasta`, `.fastq` and their like: the description in each header, all after its first
          word; or what follows ``PART=`` in it, up to a blank or semicolon, or in ``[PART=...]``.

        The text formats may be compressed: `.txt.gz`. Labels in text that are all numbers are
        read as numbers, but codes such as 007 stay text.
    n_samples
        Number of samples.
    min_classes
        Least number of classes: 2 to train, 1 to compare with predictions.
    header
        Whether the first row of a table names its columns; None to detect it.

    Returns
    -------
    Labels
        (n_samples,), int64 or str.

    Raises
    ------
    InputError
        If the file does not exist or cannot be read, or the labels fail `check_labels`.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> np.savez("labels.npz", species=["cat", "dog"], colour=["grey", "brown"])
    >>> dhsk.read_labels("labels.npz:species", n_samples=2)
    array(['cat', 'dog'], dtype='<U3')
    """
    if not isinstance(source, str | os.PathLike):
        return check_labels(source, n_samples, min_classes=min_classes)
    labels = _read(source, n_samples, header)
    name = str(Origin.of(source))
    if isinstance(labels, list):
        labels = _numbers_or_text(labels, name)
    return check_labels(labels, n_samples, name, min_classes=min_classes)


def labels_of_rows(
    source: str, rows: Sequence[int], *, min_classes: int = 2, header: bool | None = None
) -> Labels:
    """Labels as `read_labels` reads them, of some rows of a table, in any order."""
    labels, name = _read(source, len(rows), header), str(Origin.of(source))
    if isinstance(labels, list):
        labels = _numbers_or_text([labels[row] for row in rows], name)
    else:
        labels = np.asarray(labels)[rows]
    return check_labels(labels, len(rows), name, min_classes=min_classes)


def _read(source: str | os.PathLike[str], n_samples: int, header: bool | None) -> Any:
    """Labels of all rows of a file, unchecked."""
    origin = Origin.of(source)
    own = format_of(origin)
    if own is None or own.labels is None:
        refuse_unknown(origin, "labels", (each for each in FORMATS if each.labels is not None))
    return own.labels(origin, Asked(header=header, n_samples=n_samples))


def check_labels(
    y: ArrayLike,
    n_samples: int,
    source: str = "the labels",
    *,
    min_classes: int = 2,
    numbers: str = _NUMBERS,
) -> Labels:
    """Check labels of whole numbers or strings, (n_samples,); return them as int64 or str.

    Raises `InputError` if there is not one label per sample, a label is missing or not a class, or
    there are fewer classes than `min_classes` (1 or 2). Warns of whole numbers that look like
    counts, and says with `numbers` where numbers go.
    """
    # As objects: numpy would turn the NaN of ["a", nan] into the class "nan".
    array = np.asarray(y) if hasattr(y, "dtype") else np.asarray(y, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if isinstance(y, str):
        raise InputError(
            f"{source}: {y!r} is a text, dhsk.read_labels reads those of a file; else give labels "
            f"as table[{y!r}] of a DataFrame, without them in X, or adata.obs[{y!r}]"
        )
    if array.ndim != 1:
        raise InputError(
            f"{source}: shape {array.shape} is not one label per sample, (n_samples,): if these "
            "are the samples, give the labels by --labels, or as y"
        )
    if array.size != n_samples:
        raise InputError(
            f"{source}: {array.size} labels for {n_samples} samples, but one per sample is needed"
        )
    labels = _as_classes(array, source)
    if np.unique(labels).size < min_classes:
        raise InputError(
            f"{source}: all {n_samples} labels are {labels[0]}, but at least two classes are needed"
        )
    if min_classes > 1:
        _warn_of_counts(labels, source, numbers)
        _warn_of_missing(labels, source)
        _warn_of_spellings(labels, source)
    return labels


def _warn_of_counts(labels: Labels, source: str, numbers: str) -> None:
    """Warn of many different whole numbers of which some are rare, as those of counts are."""
    if labels.dtype.kind != "i":
        return
    found, sizes = np.unique(labels, return_counts=True)
    rare = int((sizes < _RARE).sum())
    if len(found) >= _MANY and rare:
        warn(
            f"{source}: {len(found)} different whole numbers from {found[0]} to {found[-1]} are "
            f"taken for classes, and {rare} of them have fewer than {_RARE} samples, like counts "
            f"or measurements: {numbers}",
        )


def _warn_of_missing(labels: Labels, source: str) -> None:
    """Warn of text that stands for an absent value in tables, but is a class here."""
    if labels.dtype.kind != "U":
        return
    for name, count in zip(*np.unique(labels, return_counts=True), strict=True):
        if is_missing(name) and name != "none":  # as people call a class
            warn(
                f"{source}: {counted(int(count), 'label')} {str(name)!r}, taken for a class of "
                "that name: if these samples have no label, leave them out",
            )


def _warn_of_spellings(labels: Labels, source: str) -> None:
    """Warn of words that differ by capitals, blanks, _ and - alone; single letters are names."""
    if labels.dtype.kind != "U":
        return
    alike: dict[str, list[str]] = {}
    for name in map(str, np.unique(labels)):
        alike.setdefault(re.sub(r"[\s_-]+", "", name.casefold()), []).append(name)
    words = {plain: names for plain, names in alike.items() if re.search(r"[^\W\d]", plain)}
    several = [names for plain, names in words.items() if len(names) > 1 and len(plain) > 1]
    if several:
        pairs = "; ".join(" and ".join(map(repr, names)) for names in several[:3])
        warn(
            f"{source}: {pairs} are classes of their own: write them alike if they are one",
        )


def _as_classes(array: NDArray[Any], source: str) -> Labels:
    """Return whole numbers as int64 and text as str; refuse other types."""
    if array.dtype.kind == "O":
        array = _from_objects(array, source)
    match array.dtype.kind:
        case "b" | "i" | "u" | "f":
            return _whole(array, source)
        case "S" | "U" | "T":
            text = _decoded(array, source) if array.dtype.kind == "S" else array.astype(np.str_)
            empty = np.flatnonzero(np.char.str_len(np.char.strip(text)) == 0)
            if empty.size:
                _refuse_missing(source, int(empty[0]), empty.size)
            return text
    raise InputError(
        f"{source}: dtype {array.dtype} is not of classes, which are whole numbers or strings"
    )


def _decoded(array: NDArray[Any], source: str) -> NDArray[np.str_]:
    texts = []
    for row, label in enumerate(array.tolist()):
        try:
            texts.append(label.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source}: row {row} (counted from 0) holds the bytes {label!r}, which are not "
                "UTF-8 text: decode the labels with their own encoding, "
                "np.char.decode(y, 'latin-1'), and give them as text"
            ) from error
    return np.array(texts, dtype=np.str_)


def is_absent(label: Any) -> bool:
    """Whether a label stands for none, as None, NaN, NaT and pandas' NA do."""
    # NaN and NaT are not equal to themselves; pandas' NA refuses to be compared.
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def _from_objects(array: NDArray[Any], source: str) -> NDArray[Any]:
    """Find the common type of objects, such as those of a pandas column."""
    absent = [row for row, label in enumerate(array) if is_absent(label)]
    if absent:
        _refuse_missing(source, absent[0], len(absent))
    if all(isinstance(label, str) for label in array):
        return array.astype(np.str_)
    if all(isinstance(label, int | float | np.number | np.bool_) for label in array):
        found = np.array(array.tolist())
        if found.dtype.kind == "O":  # beyond 64 bits
            largest = max(array.tolist(), key=abs)
            raise InputError(f"{source}: {largest} has more than 64 bits: give labels as text")
        return found
    kinds = sorted({type(label).__name__ for label in array})
    held = f"{', '.join(kinds)} are mixed" if len(kinds) > 1 else f"each is a {kinds[0]}"
    raise InputError(f"{source}: {held}, but classes are all whole numbers or all strings")


def _whole(array: NDArray[Any], source: str) -> NDArray[np.int64]:
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
        missing = np.isnan(array)
        whole = (np.trunc(array) == array) & (np.abs(array) < 2.0**63)
        wrong = np.flatnonzero(~(whole | missing))
        if not wrong.size and missing.any():
            _refuse_missing(source, int(missing.argmax()), int(missing.sum()))
    else:
        wrong = np.flatnonzero(array > np.iinfo(np.int64).max)
    if wrong.size:
        raise InputError(
            f"{source}: row {wrong[0]} (counted from 0) holds {array[wrong[0]]}, but classes are "
            "expected, whole numbers of 64 bits or strings: divide them into classes, or "
            f"{_NUMBERS}"
        )
    return array.astype(np.int64)


def _refuse_missing(source: str, row: int, number: int, spelt: str = "") -> NoReturn:
    others = f", nor have {counted(number - 1, 'other')}" if number > 1 else ""
    as_class = f" (if {spelt} is a class, call it otherwise)" if spelt else ""
    raise InputError(
        f"{source}: row {row} (counted from 0) has no label{others}{as_class}: fill it in, or drop "
        f"it and its sample, as {_without(source, spelt)}"
    )


def _without(source: str, spelt: str) -> str:
    """What leaves rows without a label out, of a column of a table or of arrays."""
    origin = Origin.of(source) if ":" in source else None
    if origin is None or origin.key is None or not origin.path.name.lower().endswith(TABLES):
        return "X[y.notna()], y[y.notna()] of pandas, adata[adata.obs[NAME].notna()] do"
    table = read_columns(origin)
    read = table.in_pandas(*([f"na_values=[{spelt!r}]"] if spelt else []))
    written = f"{origin.path.name.partition('.')[0]}_labelled.csv"
    index = "" if table.index else ", index=False"
    return f"{read}.dropna(subset=[{origin.key!r}]).to_csv({written!r}{index}) does"


def _has_wells(labels: Set[str]) -> bool:
    """Whether a name of a well, as 1E1, would be the same number as another label."""
    times = Counter(map(float, labels))
    return any(times[float(label)] > 1 for label in labels if "e" in label.lower())


def _is_code(label: str) -> bool:
    """Whether a label begins with a zero that a number would lose, such as 007."""
    return len(label) > 1 and label[0] == "0" and label.isdigit()


def _are_measured(labels: Sequence[str]) -> bool:
    """Whether labels are many numbers, some with a decimal comma; a few may be pairs, as 1,2."""
    return (
        len(set(labels)) > max(_MANY, len(labels) // 2)
        and any(map(has_decimal_comma, labels))
        and all(is_number(with_point(label)) for label in labels)
    )


def _numbers_or_text(labels: list[str], source: str) -> NDArray[Any]:
    """Return labels as float64 where all are numbers, else as text without outer blanks.

    NaN stands for numbers that are absent; InputError if others are.
    """
    stripped = [label.strip() for label in labels]
    absent = [row for row, label in enumerate(stripped) if is_no_label(label)]
    if absent:
        others = [label for label in stripped if not is_no_label(label)]
        if not others or any(map(_is_code, others)) or not all(map(is_number, others)):
            _refuse_missing(source, absent[0], len(absent), stripped[absent[0]])
        return np.array([float("nan" if is_no_label(label) else label) for label in stripped])
    if _are_measured(stripped):  # which are refused, as fractions are no classes
        return np.array([float(with_point(label)) for label in stripped])
    if not stripped or any(map(_is_code, stripped)) or not all(map(is_number, stripped)):
        return np.array(stripped, dtype=np.str_)
    numbers = np.array(stripped, dtype=np.float64)
    # Neighbours of 16 digits and more are one float64, and would be one class.
    merges = np.isfinite(numbers).all() and np.abs(numbers).max() >= 2.0**53
    merges = merges or _has_wells(set(stripped))
    return np.array(stripped, dtype=np.str_) if merges else numbers
