"""Kernels that tell no samples apart, or relate none to another: what a fit with them says.

And maps that forget the totals of rows where these tell the classes apart.
"""

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Rows, stacked
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel, mean_difference
from dhsk.models.exact import SvcModel
from dhsk.models.low_rank import LowRankModel
from dhsk.samples import Samples
from dhsk.samples.looks import first_rows, may_be_measured
from dhsk.samples.maps import of_counts
from dhsk.samples.taken import rows_taken

APART: Final = 1e-6
"""Kernel value below which samples are unrelated: they move decisions less than the intercept, by a
thousandth of the usual tolerance."""

ALIKE: Final = 1e-12
"""Mean of 1 - K that rounding in float64 hides: landmarks are chosen by what some thousand sums
have left of it."""

_SEEN: Final = 1e-3
"""Mean squared length of features, 1 if exact, below which samples are unrelated to landmarks."""

_ALL: Final = 0.9
"""Share of samples that are support vectors if they are unrelated: of equal ones only one is."""

_FEW: Final = 16
"""Support vectors whose kernel values with all others are looked at."""

_SOME: Final = 256
"""Landmarks whose kernel values are looked at."""

_NEAREST: Final = 1e-30
"""Mean of 1 - K below which no C that is chosen is large enough, as it is at most the inverse."""

_WEAK: Final = 1e-2
"""C times that mean below which an exact fit makes nothing of it; one that is chosen has 3."""

_ROUNDINGS: Final = 8
"""Relative errors of its type by which equal images of samples may differ."""


_SAMPLED, _AMONG = 512, 10_000
"""Samples whose neighbours are looked at, and the first ones that they are chosen among."""

_NEIGHBOURS: Final = 5
"""Neighbours of a sample that vote for its class."""

_ERRORS: Final = 4.0
"""Standard errors by which totals must be ahead: of 300 sets of random labels at most 3.7; 10 of
sizes alone, and -3 or less of iris, wine and breast cancer."""


def _take(kernel: Kernel, size: Literal["larger", "smaller"]) -> str:
    """What to change of a kernel, in words."""
    if kernel.spherical:
        return f"a {size} time (time_scale): dhsk.cross_validate(time_scale='auto') looks for one"
    gamma = "smaller" if size == "larger" else "larger"
    return f"a {size} width, which is a {gamma} gamma, or scale the columns, as StandardScaler does"


def doubt_of_exact(model: SvcModel, n: int) -> str | None:
    """Say that the n training samples are unrelated, in which case each is a support vector.

    Or that they are equal to the kernel, in which case all support vectors are, or so nearly that
    no C tells them apart. None otherwise: samples that are nearly alike are no trouble to exact
    fits, see `dhsk.models.rescaling`.
    """
    rows = model.rows
    if not model.kernel.unit_diagonal or not rows.shape[0]:
        return None
    if model.kernel.spherical and _are_equal(rows):
        return (
            f"all support vectors are equal to the kernel {model.kernel.label}, which cannot tell "
            "the classes apart: do samples differ in their totals alone, which proportions forget? "
            "dhsk.SVC on scaled columns sees totals"
        )
    differ = mean_difference(model.kernel, rows[:_SOME]) if model.kernel.spherical else None
    if differ is not None and differ < _NEAREST and differ * model.certificates.C < _WEAK:
        return (
            f"values of the kernel {model.kernel.label} between samples differ from 1 by "
            f"{differ:.1g} on average, too little for a fit at C = {model.certificates.C:.3g}: "
            f"take {_take(model.kernel, 'smaller')}"
        )
    if rows.shape[0] < max(_ALL * n, 2):
        return None
    few = np.unique(np.linspace(0, rows.shape[0] - 1, _FEW).astype(np.intp))
    values = np.abs(model.kernel.of_rows(rows[few], rows))
    values[np.arange(len(few)), few] = 0
    largest = float(np.median(values.max(axis=1)))  # some may have an equal
    if largest >= APART:
        return None
    return (
        f"values of the kernel {model.kernel.label} between samples are nearly 0, {largest:.1g} "
        "for the nearest ones: nearly all are support vectors, and none tells about another. "
        f"Take {_take(model.kernel, 'larger')}"
    )


def _are_equal(rows: Rows) -> bool:
    """Whether all rows, one or more, are the same to rounding."""
    values: Any = rows  # dense or sparse
    spread = (values.max(axis=0) - values.min(axis=0)).max()
    return bool(spread <= _ROUNDINGS * np.finfo(values.dtype).eps * abs(values).max())


def doubt_of_low_rank(model: LowRankModel, n: int, rank: int) -> str | None:
    """Say that features, of which `rank` were wanted, are of no use for n samples; or None."""
    found, kernel, m = model.certificates, model.kernel, model.rows.shape[0]
    if not kernel.unit_diagonal or n < 2:
        return None
    alike = found.width == 1 < rank
    if not alike and found.trace_error < ALIKE:
        differ = mean_difference(kernel, model.rows[:_SOME])
        alike = differ is not None and differ < ALIKE
    if alike:
        return (
            f"values of the kernel {kernel.label} between samples differ from 1 by "
            f"{found.trace_error:.1g} on average, which is lost to rounding or landmark_tol: "
            "features hardly tell samples apart. Unless all are equal, take "
            f"{_take(kernel, 'smaller')}; or take HeatSVC"
        )
    seen = (n * (1 - found.trace_error) - found.width) / (n - m) if n > m else 1.0
    if seen >= _SEEN:
        return None
    return (
        f"values of the kernel {kernel.label} between samples are nearly 0: features of samples "
        f"that are no landmarks have a mean squared length of {max(seen, 0.0):.1g}, 1 if exact. "
        f"Take more landmarks, or {_take(kernel, 'larger')}"
    )


def doubt_of_totals(
    samples: Samples, row_map: RowMap, y: NDArray[Any], weights: Floats
) -> str | None:
    """Say that totals of rows tell classes better than proportions, which forget them; or None.

    Only of dense tables of few columns. Both are judged by the nearest neighbours of some samples.
    Rejected: the area under the ROC curve of totals, which is 1.0 for
    iris and 0.96 for breast cancer, where proportions tell as much.
    """
    measured = samples.vectorizer is None and may_be_measured(first_rows(samples))
    used = np.flatnonzero(weights[:_AMONG])
    if not measured or not of_counts(row_map.sphere_map) or len(used) <= _NEIGHBOURS:
        return None
    size = min(len(used), _SAMPLED)
    chosen = np.sort(np.random.default_rng(0).choice(used, size, replace=False))
    parts: list[Rows] = []
    for first, block, inside in rows_taken(samples, chosen):
        parts.append(block[inside])
        if first + block.shape[0] > chosen[-1]:
            break
    rows, (_, codes) = stacked(parts), np.unique(y[chosen], return_inverse=True)
    totals, images = np.asarray(rows).sum(axis=1), np.asarray(row_map.anew()(rows))
    by_totals = _told(np.abs(totals[:, None] - totals), codes)
    by_images = _told(-(images @ images.T), codes)
    ahead = by_totals.astype(np.float64) - by_images
    if ahead.mean() <= _ERRORS * ahead.std() / np.sqrt(size):
        return None
    return (
        f"the sums of rows, which the {row_map.sphere_map} map forgets, predict the classes better "
        f"than what it keeps: {_NEIGHBOURS} nearest neighbours by sums are right for "
        f"{by_totals.mean():.2f} of {size} samples, by mapped samples for {by_images.mean():.2f}. "
        "Take a Gaussian kernel on scaled columns (sphere_map='scaled', --map scaled), or compare "
        "both by dhsk.cross_validate (dhsk cv)"
    )


def _told(distances: Floats, codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether the most frequent class of the neighbours of each sample is its own."""
    np.fill_diagonal(distances, np.inf)
    nearest = np.argpartition(distances, _NEIGHBOURS - 1, axis=1)[:, :_NEIGHBOURS]
    votes = np.eye(codes.max() + 1)[codes[nearest]].sum(axis=1)
    told: NDArray[np.bool_] = votes.argmax(axis=1) == codes
    return told
