"""Representatives: the samples of each class that stand for the rest of it."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, stacked
from dhsk.bars import Show, shown
from dhsk.errors import InputError
from dhsk.execution.limits import core_count
from dhsk.execution.threads import Threads
from dhsk.kernels.base import whole_parameter
from dhsk.kernels.centre import with_all_entries
from dhsk.progress import counter
from dhsk.results.low_rank import check_seed
from dhsk.samples import SphereMap, apply_map, check_labels, open_samples, parse_sphere_map
from dhsk.samples.scan import in_blocks
from dhsk.solvers.kmeans import nearest_to_centroids

_MOST_PRODUCTS: Final = 8192
"""Samples of a class whose matrix of inner products is made, 512 MiB; of more, K-means works on the
samples. A constant, as both ways draw other seeds: results must not depend on the machine."""


def representatives(
    X: Any,
    y: Any,
    m: int,
    *,
    repeats: int = 50,
    sphere_map: SphereMap = "identity",
    random_state: int = 0,
    progress: Show = None,
) -> Indices:
    """Choose m samples of each class that stand for the rest of it.

    The samples of a class are clustered by K-means into m clusters, from k-means++ seeds, and the
    sample nearest to each centroid is taken. This is repeated with other seeds, and the m samples
    that were taken most often are chosen [1]_; of samples that were taken as often, random ones.

    Parameters
    ----------
    X
        Samples as for `compute_gram`, (N, dim). They are held in memory, and with them the matrix
        of inner products of the largest class, if that has at most 8,192 samples.
    y
        Labels, (N,), integers or strings.
    m
        Number of samples of each class, at most the size of the smallest class.
    repeats
        Number of clusterings of each class.
    sphere_map
        Map of the samples before they are clustered: "identity", or "hyperspherical",
        "projective" or "clr" to cluster the points that a spherical kernel sees.
    random_state
        Seed of all clusterings.
    progress
        Function that is called with a `Progress` after each clustering; True for a bar.

    Returns
    -------
    Indices
        Indices of the chosen samples, ascending, (classes * m,).

    Raises
    ------
    InputError
        Samples, labels or parameters are invalid, or a class has fewer than m samples.

    References
    ----------
    .. [1] C. Zhao and J. S. Song, "Exact heat kernel on a hypersphere and its applications in
       kernel SVM", 2017, section 3.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> chosen = dhsk.representatives(X, y, m=20, repeats=10)
    >>> chosen.shape
    (200,)
    >>> result = dhsk.cross_validate(X[chosen], y[chosen], time_scale=0.5, C=10)
    >>> round(result.best_score_, 1)
    0.9
    """
    m, repeats = whole_parameter("m", m, 1), whole_parameter("repeats", repeats, 1)
    check_seed(random_state)
    chosen_map = parse_sphere_map(sphere_map)
    samples = open_samples(X)
    labels = check_labels(y, samples.shape[0], min_classes=1)
    names, codes = np.unique(labels, return_inverse=True)
    _check_sizes(names, np.bincount(codes), m)
    rows = _mapped(samples, chosen_map)
    chosen = []
    with shown(progress) as report:
        advance = counter(report, "clusterings", repeats * len(names))
        for number in range(len(names)):
            members = np.flatnonzero(codes == number)
            seeds = [np.random.default_rng([random_state, number, r]) for r in range(repeats)]
            taken = np.zeros(len(members), np.intp)
            for nearest in _clusterings(rows[members], m, seeds):
                taken[nearest] += 1
                advance(1)
            rng = np.random.default_rng([random_state, number, repeats])
            order = np.lexsort([rng.random(len(members)), -taken])
            chosen.append(members[order[:m]])
    return np.sort(np.concatenate(chosen))


def _check_sizes(names: NDArray[Any], counts: Indices, m: int) -> None:
    """Refuse classes of fewer than m samples."""
    smallest = int(counts.argmin())
    if counts[smallest] < m:
        raise InputError(
            f"class {names[smallest]} has {counts[smallest]:,} samples, fewer than m = {m:,}: "
            f"choose m of at most {counts[smallest]:,}, or leave the class out"
        )


def _mapped(samples: Any, sphere_map: SphereMap) -> Rows:
    """All samples, checked and mapped, (N, dim)."""
    parts = in_blocks(samples)
    return stacked([with_all_entries(apply_map(sphere_map, part, first)) for first, part in parts])


def _clusterings(rows: Rows, m: int, seeds: list[np.random.Generator]) -> Iterator[Indices]:
    """Samples nearest to the centroids of each clustering, in any order."""
    if rows.shape[0] > _MOST_PRODUCTS:
        yield from (_nearest_by_scikit_learn(rows, m, rng) for rng in seeds)
        return
    products: Any = rows @ rows.T
    inner: Floats = products if isinstance(products, np.ndarray) else products.toarray()
    tasks = ((inner, m, rng) for rng in seeds)
    yield from Threads(core_count()).run(nearest_to_centroids, tasks)


def _nearest_by_scikit_learn(rows: Rows, m: int, rng: np.random.Generator) -> Indices:
    """The same for a class whose inner products would take too much memory."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import pairwise_distances_argmin

    model = KMeans(m, n_init=1, random_state=int(rng.integers(2**31))).fit(rows)
    return np.unique(pairwise_distances_argmin(model.cluster_centers_, rows))
