"""What values seem to be, by some rows of them: logarithms of counts, z-scores, other units."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, numbered
from dhsk.errors import warn
from dhsk.samples.base import Samples
from dhsk.samples.images import EMBEDDED, values_of
from dhsk.samples.scan import rows_within
from dhsk.samples.vectorizer import Vectorizer
from dhsk.samples.weighted import SCALED, MapName, WeightedSamples
from dhsk.systems import quoted

LEAST_SHARE: Final = 0.03
"""Share of entries below which log-ratios of sparse samples are not tried: texts have fewer, tables
of microbes more."""

_ROWS: Final = 500
"""Most rows that are looked at."""

_BYTES: Final = 4 * 2**20
"""Most bytes of them, if there are two or more."""

_COLUMNS: Final = 1000
"""Most columns of tables in which a copy of the labels is looked for."""

_LEAST: Final = 20
"""Least samples that a column tells by more than chance."""

_CLOSE: Final = 1e-3
"""Relative difference from a whole number, or from the same total, that float32 explains."""

_MOST_OFF, _SINGLE = 0.05, 2e-6
"""Most that a whole number is off, or relative to itself by a logarithm in float32, up to e^30: an
income of some thousands with two decimals is none."""

_REPEATED, _FEWEST_REPEATED = 0.05, 10
"""Least share, and number, of samples that equal others of which is warned."""

_HEAVY: Final = 0.5
"""Least share of all values that a column has where its unit hides the others."""

_LARGEST: Final = 30.0
"""Largest logarithm: there are no counts of e^30."""

_DEPTHS: Final = 1.5
"""Totals of counts differ where the largest tenth is above this many times the smallest tenth:
1.3 for images of digits, 1.9 to 29 for seven sets of sequencing counts, 6.7 for words of posts."""

_OF_LOGARITHMS: Final = (
    "seem to be logarithms of counts (log1p), but the map to the sphere is for the counts "
    "themselves: try np.expm1 of them; of AnnData, layers/counts or raw/X may have counts"
)


def has_few_zeros(samples: Samples) -> bool:
    """Whether log-ratios may tell more than which features a sample has: those of words do not."""
    if isinstance(samples.vectorizer, Vectorizer):
        return False
    return samples.nnz is None or samples.nnz >= LEAST_SHARE * math.prod(samples.shape)


def first_rows(samples: Samples) -> Rows:
    """First rows of samples, at most 500 and about 4 MiB, to look at."""
    return next(samples.blocks(min(_ROWS, max(2, rows_within(samples, _BYTES)))))


def warn_of_looks(samples: Samples) -> None:
    """Warn, once for the same object, of samples that seem to be no counts where counts are meant.

    Values below 0 are not named: the map refuses them.
    """
    if vars(samples).get("_looked"):
        return
    vars(samples)["_looked"] = True  # not a field, as what was read is none
    rows = first_rows(samples)
    if seems(rows) == "logarithms":
        said = _OF_LOGARITHMS
    elif heavy := heavy_column(rows):
        column, share = heavy
        said = (
            f"have {share:.0%} of the sum of all values in {_named(samples, column)}, which hides "
            "the others: if columns have different units, take a Gaussian kernel on scaled ones "
            "(sphere_map='scaled'), or scale them first, as MinMaxScaler of scikit-learn does"
        )
    else:
        return
    _warn(samples, said)


def warn_of_heavy_direction(samples: Samples) -> None:
    """Warn, once for the same object, where one column nearly is the direction of all samples.

    Counts times weights are no measurements of different units: nothing is said of them.
    """
    if isinstance(samples, WeightedSamples) or vars(samples).get("_looked"):
        return
    vars(samples)["_looked"] = True
    with np.errstate(over="ignore", invalid="ignore"):  # the map scales what overflows
        heavy = heavy_column(first_rows(samples), squares=True)
    if heavy is None:
        return
    column, share = heavy
    _warn(
        samples,
        f"have {share:.0%} of the sum of all squares in {_named(samples, column)}, which hides the "
        "others: if columns have different units, scale them first, as StandardScaler of "
        "scikit-learn does, and leave out one that only numbers the samples",
    )


def warn_of_logarithms(samples: Samples) -> None:
    """Warn of new samples that seem to be logarithms of counts."""
    if samples.vectorizer is None and seems(first_rows(samples)) == "logarithms":
        _warn(samples, _OF_LOGARITHMS)


def _warn(samples: Samples, said: str) -> None:
    message = f"the values of {samples.source} {said}"
    warn(message)


def warn_of_spread(samples: Samples) -> None:
    """Warn where one column has most of what distances and inner products of samples depend on."""
    rows = first_rows(samples)
    if not isinstance(rows, np.ndarray) or rows.shape[1] < 3 or not np.isfinite(rows).all():
        return
    with np.errstate(over="ignore", invalid="ignore"):  # kernels refuse values that overflow
        variances = rows.var(axis=0, dtype=np.float64)
        column, total = int(variances.argmax()), variances.sum()
    if not 0 < total < np.inf or variances[column] < _HEAVY * total:
        return
    warn(
        f"{samples.source} has {variances[column] / total:.0%} of the variance of all columns in "
        f"{_named(samples, column)}, which hides the others from Gaussian, linear and polynomial "
        "kernels, and fits may take long: if columns have different units, scale them "
        "(sphere_map='scaled', --map scaled, StandardScaler of scikit-learn)",
    )


def warn_of_repeated(samples: Samples) -> None:
    """Warn of samples that equal others where that is no chance: folds may divide them."""
    count, n = samples.n_repeated, samples.shape[0]
    if count < max(_FEWEST_REPEATED, _REPEATED * n):
        return
    rows = first_rows(samples)
    if rows.shape[1] < EMBEDDED and not _is_continuous(rows):
        return
    dense = isinstance(rows, np.ndarray) and samples.vectorizer is None
    numbers = "=np.unique(X, axis=0, return_inverse=True)[1]" if dense else ""
    warn(
        f"{samples.source}: {count:,} of {n:,} samples equal others, and folds may divide them: "
        "scores are too high if new samples do not repeat them too. Leave repeats out, or keep "
        f"them in one fold (--groups, of texts their own column; groups{numbers} in Python)",
    )


def _is_continuous(rows: Rows) -> bool:
    """Whether a column has nearly a value for each row; of categories and few counts none has."""
    if rows.shape[1] < 2:  # it has as many values as rows differ
        return False
    dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
    distinct = len(np.unique(dense, axis=0))
    return any(2 * len(np.unique(column)) >= distinct for column in dense.T)


def warn_of_copied_labels(samples: Samples, y: Indices) -> None:
    """Warn where a column of a dense table has one value for each class, and another for each.

    `y` numbers the classes of the samples, (N,), where samples of none have -1. Reading ends with
    the first rows unless such a column is among them.
    """
    dim = samples.shape[1]
    if samples.is_sparse or dim > _COLUMNS or np.count_nonzero(y >= 0) < _LEAST or y.max() < 1:
        return
    values, left = np.full((int(y.max()) + 1, dim), np.nan), np.arange(dim)
    rows = min(_ROWS, max(2, rows_within(samples, _BYTES)))
    for first, block in numbered(samples.blocks(rows)):
        own = y[first : first + block.shape[0]]
        for one in np.unique(own[own >= 0]):
            of_class = np.asarray(block)[own == one][:, left]
            known = values[one, left]
            known = np.where(np.isnan(known), of_class[0], known)
            values[one, left] = known
            left = left[(of_class == known).all(axis=0)]
        ordered = np.sort(values[:, left], axis=0)  # NaN equals none
        left = left[(ordered[1:] != ordered[:-1]).all(axis=0)]
        if not left.size:
            return
    names, column = samples.feature_names, int(left[0])
    way = "" if names is None else f" with --drop-column {quoted(names[column])} (drop_columns)"
    warn(
        f"{samples.source}: {_named(samples, column)} alone tells every label: is it a copy of the "
        f"labels? Leave it out{way}",
    )


def _named(samples: Samples, column: int) -> str:
    names = samples.feature_names
    return f"column {column} (counted from 0)" if names is None else f"column {names[column]}"


def seems(rows: Rows) -> str | None:
    """What rows seem to be: "z-scores", "embeddings", "logarithms" or columns of other "units".

    Or rows with "gaps", if they are dense. None for none of these.
    """
    values = values_of(rows)
    if isinstance(rows, np.ndarray) and np.isnan(rows).any():
        return "gaps"
    if not values.size or not np.isfinite(values).all():
        return None
    if (values < 0).any():
        return "embeddings" if _in_most_columns(rows) else "z-scores"
    if _are_logarithms(rows):
        return "logarithms"
    return "units" if heavy_column(rows) is not None or _differ_in_spread(rows) else None


def _differ_in_spread(rows: Rows) -> bool:
    """Whether columns of a table that are no counts or proportions seem to have other units."""
    values = values_of(rows)
    if not isinstance(rows, np.ndarray) or not 3 <= rows.shape[1] < EMBEDDED:
        return False
    if _whole(values) or _same(_totals(rows)):
        return False
    spreads, means = rows.std(axis=0), rows.mean(axis=0)
    spreads, means = spreads[spreads > 0], means[spreads > 0]
    if spreads.size < 2 or np.median(spreads / means) > _STEADY:
        return False
    return bool(spreads.max() > _APART * spreads.min())


_APART: Final = 20.0
"""Least ratio of standard deviations of columns that tells other units: of iris it is 4, of breast
cancer and wine thousands."""

_STEADY: Final = 0.55
"""Most that measurements vary, as a median over columns of standard deviation over mean: wine 0.27,
breast cancer 0.48. Of counts, and of shares times any total, it is 0.7 and more."""


def map_by_looks(samples: Samples) -> MapName | None:
    """Map that suits gaps, a single column, columns of no one unit, or embeddings, with a warning.

    None for the maps of the kernels.
    """
    rows = first_rows(samples)
    found = "gaps" if samples.has_gaps else seems(rows)
    if samples.shape[1] == 1 and found != "gaps":
        found = "a column"
    if found == "z-scores" and not _are_signed(rows):
        found = "measured" if _has_measured_below(rows) else None
    if found not in _MAPS:
        return None
    name, said = _MAPS[found]
    other = "for proportions hyperspherical"
    if found == "measured":
        column = int(rows.min(axis=0).argmin())
        said = f"{said} (the least is {rows.min():g}, in {_named(samples, column)}): {_SCALED}"
        other = "mend them first if they are mistakes"
    elif found == "gaps":
        other = "fill them in, or leave these rows out, for others"
    _warn(samples, f"{said} (sphere_map={name!r}, --map {name}; {other})")
    return name


def _are_signed(rows: Any) -> bool:
    """Whether values below 0 are no single mistakes, nor stand for what is missing, such as -1."""
    below = np.asarray((rows < 0).sum(axis=0)).reshape(-1)
    values = values_of(rows)
    return bool(below.max() >= _SIGNED * rows.shape[0] and np.unique(values[values < 0]).size > 2)


def _has_measured_below(rows: Rows) -> bool:
    """Whether few values below 0 may be measured, as temperatures are, and are no code such as -1.

    Counts, and proportions, have none.
    """
    if not may_be_measured(rows) or _whole(np.abs(values_of(rows))):
        return False
    below = np.unique(values_of(rows)[values_of(rows) < 0])
    return below.size > 1 or bool(below[0] % 1)


_SIGNED: Final = 0.05
"""Least share of the values of a column below 0 that are no mistakes."""

_SCALED: Final = "columns are scaled, for Gaussian and linear kernels"

_MAPS: Final[Mapping[str | None, tuple[MapName, str]]] = {
    "gaps": (SCALED, f"have gaps, which are filled with means: {_SCALED}"),
    "a column": (SCALED, f"are of one column, which is no point on a sphere: {_SCALED}"),
    "z-scores": (SCALED, f"are below 0 too, as of z-scores: {_SCALED}"),
    "measured": (SCALED, "are measurements, it seems, of which few are below 0"),
    "units": (SCALED, f"seem to be of columns in different units: {_SCALED}"),
    "embeddings": ("projective", "are below 0 too, as of embeddings: directions are compared"),
}
"""Map of a default search, and why it is taken, by what samples seem to be."""


def _are_logarithms(rows: Rows) -> bool:
    """Whether rows seem to be log1p of counts."""
    values = values_of(rows)
    if rows.shape[0] < 2 or values.max() > _LARGEST:
        return False
    if _whole(values) or _same(_totals(rows)):  # counts, or proportions: small p is near expm1(p)
        return False
    counts: Any = np.expm1(rows)  # type: ignore[arg-type]  # sparse matrices have it too
    return _whole(values_of(counts)) or _same(_totals(counts))


def _in_most_columns(rows: Any) -> bool:
    """Whether there are many columns, and most of them have values below 0."""
    below = np.asarray((rows < 0).sum(axis=0)).reshape(-1) > 0
    return bool(below.size >= EMBEDDED and below.mean() > _HEAVY)


def heavy_column(rows: Rows, *, squares: bool = False) -> tuple[int, float] | None:
    """Column with most of all values, or of their squares, where columns seem to have other units.

    With its share. Counts, proportions and unit rows have one unit: all values are whole, or all
    rows have the same total.
    """
    values = values_of(rows)
    if rows.shape[1] < 3 or not values.size or not np.isfinite(values).all() or _whole(values):
        return None
    if not squares and values.min() < 0:
        return None
    summed: Any = rows * rows if squares else rows  # entry by entry
    totals = _totals(summed)
    if not totals.max() > 0 or _same(totals):
        return None
    sums = np.asarray(summed.sum(axis=0)).reshape(-1)
    column = int(sums.argmax())
    share = float(sums[column] / totals.sum())
    return (column, share) if share >= _HEAVY else None


def differ_in_depth(rows: Rows) -> bool:
    """Whether rows seem to be counts whose totals say how much was counted, as of sequencing."""
    values = values_of(rows)
    if not np.isfinite(values).all() or (values < 0).any() or not _whole(values):
        return False
    low, high = np.quantile(_totals(rows), (0.1, 0.9))
    return bool(high > _DEPTHS * low)


def may_be_measured(rows: Rows) -> bool:
    """Whether rows may be a table of measurements, in whole numbers too, as well as of counts."""
    if not isinstance(rows, np.ndarray) or rows.shape[1] >= EMBEDDED:
        return False
    return bool(np.isfinite(rows).all()) and not _same(_totals(rows))


def have_one_norm(rows: Rows) -> bool:
    """Whether rows seem to have one length, as unit vectors have."""
    squared: Any = rows * rows  # entry by entry
    return bool(np.isfinite(values_of(rows)).all()) and _same(_totals(squared))


def are_tfidf(rows: Any) -> bool:
    """Whether rows seem to be what TfidfVectorizer makes: sparse, of length 1, and no counts."""
    values = values_of(rows)
    if isinstance(rows, np.ndarray) or not values.size or not have_one_norm(rows):
        return False
    one = abs(_totals(rows * rows).max() - 1) <= _CLOSE
    return bool(one and values.min() >= 0 and not _whole(values))


def are_compositions(rows: Rows) -> bool:
    """Whether rows seem to be compositions: of one total, or counts whose totals differ."""
    values = values_of(rows)
    if not np.isfinite(values).all() or (values < 0).any():
        return False
    return _same(_totals(rows)) or differ_in_depth(rows)


def _totals(rows: Any) -> Floats:
    return np.asarray(rows.sum(axis=1)).reshape(-1)


def _same(totals: Floats) -> bool:
    """Whether all rows that are not zero have the same total."""
    some = totals[totals > 0]
    return bool(some.size and np.ptp(some) <= _CLOSE * some.max())


def _whole(values: NDArray[Any]) -> bool:
    """Whether all values are whole, but for few digits of a logarithm, and those of float32."""
    written = np.minimum(_CLOSE * np.maximum(values, 1), _MOST_OFF)
    far = np.abs(values - np.round(values)) > np.maximum(written, _SINGLE * values)
    return not far.any()
