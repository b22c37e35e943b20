"""K-means on a matrix of inner products: Lloyd's algorithm without centroids.

The inner product of a sample with a centroid is the mean of its products with the members of the
cluster. So a step adds n^2 numbers where the products with m centroids take n m dim: for 1,641
samples, 400 clusters and 1,312 features 2.7 million instead of 860 million.
"""

from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Indices

MOST_STEPS: Final = 300
"""Steps after which Lloyd's algorithm is stopped, as in scikit-learn."""


def nearest_to_centroids(products: Floats, m: int, rng: np.random.Generator) -> Indices:
    """Cluster some samples, and return the sample nearest to each centroid.

    Parameters
    ----------
    products
        Inner products of the samples, (n, n).
    m
        Number of clusters, at most n.
    rng
        Draws the samples at which the clusters start, by k-means++.

    Returns
    -------
    Indices
        Distinct samples, ascending: m, or fewer if two centroids share their nearest sample or
        fewer than m samples differ.
    """
    _, distances = lloyd(products, spread_seeds(products, m, rng))
    return np.unique(distances.argmin(axis=1))


def spread_seeds(products: Floats, m: int, rng: np.random.Generator) -> Indices:
    """Draw m distinct samples by k-means++ [1]_: the farther from those drawn, the more likely.

    References
    ----------
    .. [1] D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    """
    diagonal = products.diagonal()
    chosen = np.empty(m, np.intp)
    chosen[0] = rng.integers(len(products))
    nearest = np.full(len(products), np.inf)
    for k in range(m):
        if k:
            sums = np.cumsum(nearest)
            if not sums[-1] > 0:  # every other sample equals one that was drawn
                rest = np.setdiff1d(np.arange(len(products)), chosen[:k])
                chosen[k:] = rng.choice(rest, m - k, replace=False)
                break
            chosen[k] = np.searchsorted(sums, rng.random() * sums[-1], side="right")
        c = chosen[k]
        np.minimum(nearest, diagonal + diagonal[c] - 2 * products[c], out=nearest)
        np.maximum(nearest, 0, out=nearest)  # rounding
        nearest[c] = 0
    return chosen


def lloyd(products: Floats, seeds: Indices) -> tuple[Indices, Floats]:
    """Lloyd's algorithm from clusters around some samples.

    Returns
    -------
    labels
        Cluster of each sample, (n,).
    distances
        Squared distances of the samples to each centroid, (m, n); infinite for a cluster without
        members.
    """
    diagonal = products.diagonal()
    partial = diagonal[seeds, None] - 2 * products[seeds]  # without the norm of the sample
    labels = partial.argmin(axis=0)
    changed = np.arange(len(seeds))
    for _ in range(MOST_STEPS):
        labels, moved = _without_empty(labels, partial, diagonal)
        changed = np.union1d(changed, moved)
        partial[changed] = _to_centroids(products, labels, changed)
        found = partial.argmin(axis=0)
        differ = np.flatnonzero(found != labels)
        if not len(differ):
            break
        changed = np.unique(np.concatenate([found[differ], labels[differ]]))
        labels = found
    return labels, partial + diagonal


def _to_centroids(products: Floats, labels: Indices, clusters: Indices) -> Floats:
    """Squared distances to some centroids, less the sample's squared norm, (clusters, n)."""
    place = np.full(labels.max() + 2, -1)
    place[clusters[clusters < len(place)]] = np.flatnonzero(clusters < len(place))
    members = np.flatnonzero(place[labels] >= 0)
    rows = place[labels[members]]
    sizes = np.bincount(rows, minlength=len(clusters))
    each = 1 / np.maximum(sizes, 1)
    shape = (len(clusters), len(labels))
    mean: Any = csr_array((each[rows], (rows, members)), shape=shape)
    inner = mean @ products
    norms = np.bincount(rows, inner[rows, members] * each[rows], len(clusters))
    norms[sizes == 0] = np.inf
    return np.asarray(norms[:, None] - 2 * inner)


def _without_empty(labels: Indices, partial: Floats, diagonal: Floats) -> tuple[Indices, Indices]:
    """Give empty clusters the samples farthest from their centroids, as scikit-learn does.

    Return the labels, and the clusters that changed. Samples that lie on their centroid stay, so
    that clusters stay empty if fewer samples differ than there are clusters.
    """
    empty = np.flatnonzero(np.bincount(labels, minlength=len(partial)) == 0)
    if not len(empty):
        return labels, empty
    own = partial[labels, np.arange(len(labels))] + diagonal
    far = np.argsort(-own, kind="stable")[: len(empty)]
    far = far[own[far] > 1e-12 * diagonal.max()]
    moved = np.unique(np.concatenate([empty[: len(far)], labels[far]]))
    labels = labels.copy()
    labels[far] = empty[: len(far)]
    return labels, moved
