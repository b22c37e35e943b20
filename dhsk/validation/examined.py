"""Summary of single samples for the report: errors, ROC curves, a map by kernel PCA."""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.gram.matrix import GramMatrix
from dhsk.results.examined import Examined, RocCurve, SampleMap, WrongSample
from dhsk.samples import Samples
from dhsk.solvers.eigenvalues import largest_pairs
from dhsk.validation.input import Square
from dhsk.validation.out_of_fold import OutOfFold

MOST_WRONG: Final = 200
"""Mistakes that are listed one by one."""

MOST_POINTS: Final = 100
"""Points of a curve."""

MOST_MAPPED: Final = 800
"""Samples of a map: a tenth of a second for its eigenvectors."""

MOST_CURVES: Final = 30
"""Classes up to which each one has a curve."""

MAPPED_BYTES: Final = 1 << 26
"""Largest size of the samples of a map, if they are dense."""

SPREAD_OUT: Final = 20 * MOST_MAPPED
"""Samples from which on those of a map are runs of neighbours, so that few parts are read."""

RUN: Final = 25
"""Samples of a run."""

Values = Callable[[Indices], NDArray[Any]]
"""Takes some samples, ascending; returns their kernel values, (n, n)."""


def examine(found: OutOfFold, values: Values, source: Square) -> Examined:
    """Summarise what a cell predicted, as numbers of classes; of several repeats the first.

    `values` gives kernel values; `source` are the samples, of which the ids are read if they have
    any and there are mistakes.
    """
    first = _last_of_each(found.samples, np.flatnonzero(found.repeat == 0))
    samples, decisions = found.samples[first], found.decisions
    true, guess = found.true[first], found.predicted[first]
    sides = None if decisions is None else _sides(decisions[first].astype(np.float64))
    wrong = list(_wrong(true, guess, sides))
    names = _ids(source, {int(samples[k]) for k, _ in wrong}) if wrong else {}
    labels = found.classes.tolist()
    return Examined(
        n_wrong=int(np.count_nonzero(true != guess)),
        wrong=tuple(
            WrongSample(
                sample=int(samples[k]),
                name=names.get(int(samples[k]), ""),
                true=labels[true[k]],
                predicted=labels[guess[k]],
                margin=margin,
            )
            for k, margin in wrong
        ),
        curves=() if sides is None else _curves(true, sides, labels),
        map=_map((samples, true, guess), values, _most_mapped(source)),
    )


def _last_of_each(samples: Indices, places: Indices) -> Indices:
    """Places of different samples: splitters may hold one out several times; the last counts."""
    back = np.unique(samples[places][::-1], return_index=True)[1]
    return places[len(places) - 1 - back]


def _sides(decisions: Floats) -> Floats:
    """Decisions for each class, (n, k): those of two classes have both signs."""
    return np.column_stack([-decisions, decisions]) if decisions.ndim == 1 else decisions


def _wrong(
    true: Indices, guess: Indices, sides: Floats | None
) -> Iterator[tuple[int, float | None]]:
    """Places of mistakes and their margins, the surest first."""
    places = np.flatnonzero(true != guess)
    if sides is None:
        return ((int(k), None) for k in places[:MOST_WRONG])
    margins = sides[places, guess[places]] - sides[places, true[places]]
    margins = np.where(np.isfinite(margins), margins, 0.0)  # a class that a fold lacked
    order = np.argsort(-margins, kind="stable")[:MOST_WRONG]
    return ((int(places[k]), float(f"{margins[k]:.4g}")) for k in order)


def _curves(true: Indices, sides: Floats, labels: Sequence[Any]) -> tuple[RocCurve, ...]:
    """Curve of each class against the rest; of two classes that of the second."""
    from sklearn.metrics import auc, roc_curve

    found = []
    for k, label in enumerate(labels):
        known = np.isfinite(sides[:, k])
        positive = true[known] == k
        if (k == 0 and len(labels) == 2) or positive.all() or not positive.any():
            continue
        false, right, _ = roc_curve(positive, sides[known, k])
        area = float(auc(false, right))
        kept = np.unique(np.linspace(0, len(false) - 1, MOST_POINTS).round().astype(int))
        rates = (tuple(np.round(part[kept], 5).tolist()) for part in (false, right))
        found.append(RocCurve(label, round(area, 6), *rates))
    if len(found) > MOST_CURVES:
        found = sorted(found, key=lambda curve: curve.area)[:MOST_CURVES]
    return tuple(found)


def _map(seen: tuple[Indices, Indices, Indices], values: Values, most: int) -> SampleMap | None:
    """Two leading components of kernel PCA on some of the samples; None for fewer than three.

    `seen` are those that were held out, and numbers of their true and predicted classes.
    """
    samples, true, guess = seen
    order = np.unique(samples, return_index=True)[1]  # ascending, each once
    order = order[_chosen(len(order), most)]
    if len(order) < 3:
        return None
    members = samples[order]
    points, shares = components(values(members))
    return SampleMap(
        samples=tuple(members.tolist()),
        x=tuple(points[:, 0].tolist()),
        y=tuple(points[:, 1].tolist()),
        true=tuple(true[order].tolist()),
        predicted=tuple(guess[order].tolist()),
        shares=shares,
    )


def components(K: NDArray[Any]) -> tuple[Floats, tuple[float, float]]:
    """Coordinates along two leading components, (n, 2), and their shares of the variance.

    They are scaled to a largest coordinate of 1, and signed so that it is positive.
    """
    K = np.asarray(K, dtype=np.float64)
    means = K.mean(axis=0)
    centred = K - means - means[:, None] + means.mean()
    total = float(np.trace(centred))
    found, vectors = largest_pairs(centred, 2)
    found = np.maximum(found[::-1], 0.0)
    points = vectors[:, ::-1] * np.sqrt(found)
    largest = np.abs(points).max(axis=0)
    signs = np.sign(points[np.abs(points).argmax(axis=0), [0, 1]])
    points = points * np.where(largest > 0, signs, 1.0) / (largest.max() or 1.0)
    shares = found / total if total > 0 else found
    return np.round(points, 4) + 0.0, (round(float(shares[0]), 6), round(float(shares[1]), 6))


def _chosen(n: int, most: int) -> Indices:
    """Some of n samples, ascending: all, a random part, or of very many some runs."""
    if n <= most:
        return np.arange(n)
    if n <= SPREAD_OUT:
        return np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    starts = np.linspace(0, n - RUN, max(1, most // RUN)).round().astype(np.intp)
    return (starts[:, None] + np.arange(RUN)).ravel()


def _most_mapped(source: Square) -> int:
    """Samples of a map: fewer if they are dense and have very many features."""
    if isinstance(source, np.ndarray):
        return MOST_MAPPED
    if isinstance(source, GramMatrix):
        dim, sparse = source.dim, source.header.nnz[0] is not None
    else:
        dim, sparse = source.shape[1], source.is_sparse
    return MOST_MAPPED if sparse else max(RUN, min(MOST_MAPPED, MAPPED_BYTES // (8 * dim)))


def check_ids(source: Square) -> None:
    """Read the first ids of samples: a file where they cannot be read is refused before any work.

    Raises `InputError`.
    """
    next(_each_id(source), None)


def _ids(source: Square, wanted: Set[int]) -> dict[int, str]:
    """Ids of some samples; none if they have none, or are no longer at hand."""
    return {number: name for number, name in enumerate(_each_id(source)) if number in wanted}


def _each_id(source: Square) -> Iterator[str]:
    return (source.each_id() if isinstance(source, Samples) else None) or iter(())
