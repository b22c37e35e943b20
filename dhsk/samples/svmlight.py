"""Samples in svmlight (LIBSVM) text files, compressed or not."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Rows, blocks
from dhsk.errors import InputError, warn
from dhsk.samples.base import Samples, csr_block, flat_shape
from dhsk.samples.format import Asked, Format, SamplesFile, described
from dhsk.samples.paths import Origin, packed

SVMLIGHT = packed(".svm", ".svmlight", ".libsvm")

_LINES_BYTES = 4 * 2**20  # text parsed at a time in the first pass over a file


@dataclass(frozen=True, eq=False)
class SvmlightSamples(Samples):
    """An svmlight file; takes the memory of one block as text and three parsed blocks."""

    origin: Origin
    base: int
    """Index of the first feature in the file: 0 or 1."""

    def _blocks(self, rows: int) -> Iterator[Rows]:
        with self.origin.reading(), self.origin.open_bytes() as handle:
            lines = (line for line in handle if _is_sample(line))
            for part in blocks(self.shape[0], rows):
                some = list(islice(lines, part.stop - part.start))
                X, _ = _parse(self.source, some, part.start)
                yield csr_block(X.data, X.indices - self.base, X.indptr, self.shape[1])


def _open(origin: Origin, asked: Asked) -> SvmlightSamples:
    """Open an svmlight file, and read it once for its shape.

    `n_features` is None for the largest index, as the file does not record it. Indices count from
    1, unless an index 0 occurs: of new samples that is told, where it could be otherwise.
    """
    origin.refuse_key("the labels stand in the file itself")
    source, n_features = str(origin), asked.n_features
    nnz = highest = 0
    lowest = np.inf
    lengths = [np.zeros(1, np.int64)]
    for X, _ in _parsed(origin):
        lengths.append(np.diff(X.indptr).astype(np.int64))
        nnz += X.nnz
        if X.nnz:
            lowest, highest = min(lowest, X.indices.min()), max(highest, int(X.indices.max()))
    base = 1 if 0 < lowest < np.inf else 0
    dim = highest + 1 - base if nnz else 0
    if n_features is not None and n_features < dim:
        raise InputError(f"{source} has {dim} features, but only {n_features} are expected")
    if base and n_features is not None and highest < n_features:
        warn(
            f"{source} has indices from {lowest} to {highest}: they are taken to count from 1. If "
            "those of the training samples count from 0, write 0:0 after the label of a row"
        )
    indptr = np.cumsum(np.concatenate(lengths))
    shape = flat_shape(source, (len(indptr) - 1, n_features or dim))
    return SvmlightSamples(source, shape, origin, base, nnz=nnz, indptr=indptr)


def _labels(origin: Origin, _: Asked) -> Floats:
    origin.refuse_key("the labels begin its lines")
    labels = [y for _, y in _parsed(origin)]
    return np.concatenate(labels) if labels else np.empty(0)


def _parsed(origin: Origin) -> Iterator[tuple[Any, Floats]]:
    """Yield the matrix and the labels of consecutive pieces of a file."""
    rows = 0
    with origin.reading(), origin.open_bytes() as handle:
        while lines := handle.readlines(_LINES_BYTES):
            samples = [line for line in lines if _is_sample(line)]
            if samples:
                yield _parse(str(origin), samples, rows)
            rows += len(samples)


def _parse(source: str, lines: Sequence[bytes], first_row: int) -> tuple[Any, NDArray[Any]]:
    """Parse lines with scikit-learn; indices are those in the file."""
    try:
        return _load(lines)
    except (ValueError, OverflowError):
        for row, line in enumerate(lines, first_row):
            try:
                _load([line])
            except (ValueError, OverflowError) as error:
                raise InputError(
                    f"{source}: row {row} (counted from 0) is not 'label index:value ...' with "
                    f"increasing indices ({' '.join(str(error).split())})"
                ) from error
        raise


def _load(lines: Sequence[bytes]) -> tuple[Any, NDArray[Any]]:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(b"".join(lines)), zero_based=True)
    return X, y


def _is_sample(line: bytes) -> bool:
    return bool(line.split(b"#", 1)[0].strip())


def _describe(origin: Origin) -> SamplesFile:
    """What the first lines have: all of a small file."""
    found = described("sparse samples and labels", labels=None)(origin)
    pieces = _parsed(origin)
    X, y = next(pieces, (None, np.empty(0)))
    if X is None:
        return found
    n, most = X.shape[0], next(pieces, None)
    classes = np.unique(y)
    rows = [
        ("samples", f"{n:,}{' in the first lines' if most else ''}, {X.nnz / n:,.0f} entries each"),
        ("features", f"the largest index is {X.indices.max() if X.nnz else 0:,}"),
        ("labels", f"{len(classes):,} values, from {classes[0]:g} to {classes[-1]:g}"),
    ]
    if not (classes % 1).any():
        return replace(found, rows=rows)
    read = f"X, y = sklearn.datasets.load_svmlight_file({str(origin.path)!r})"
    folds = "cv=sklearn.model_selection.KFold(5, shuffle=True, random_state=0)"
    score = f"cross_val_score(dhsk.HeatKernelRidge(alpha=0.1), X, y, {folds}).mean()"
    fit = f"{read}; print('R2', sklearn.model_selection.{score}) in Python"
    return replace(found, rows=rows, python=[fit])


FORMAT = Format(SVMLIGHT, _open, _describe, _labels)
