"""Landmarks that are k-means centres of samples."""

from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array, vstack

from dhsk.arrays import Rows
from dhsk.kernels import squared_norms
from dhsk.kernels.centre import centres_of, marked_rows, without_marks
from dhsk.nystrom.placed import Placed

MOST_ROWS: Final = 20_000
"""Samples that are clustered, at most, unless `_EACH` asks for more."""

_EACH: Final = 10
"""Samples that are clustered for each centre, at least."""

_BATCH: Final = 4096


def kmeans(placed: Placed, k: int, seed: int) -> Rows:
    """Centres of at most k clusters by mini-batch k-means, mapped rows, (centres, dim).

    Clustered are 20,000 random samples, or ten a centre if those are more. For a spherical kernel
    the centres are normalised, as in spherical k-means [1]_. Equal centres count once.

    References
    ----------
    .. [1] I. Dhillon and D. Modha, "Concept decompositions for large sparse text data using
       clustering", Machine Learning 42 (2001).
    """
    count = min(placed.n, max(MOST_ROWS, _EACH * k))
    drawn = np.random.default_rng(seed).choice(placed.n, count, replace=False)
    rows: Any = placed.take(np.sort(drawn))
    if k >= count:
        return rows  # type: ignore[no-any-return]
    marks = marked_rows(rows)
    if marks is None:
        return _centres_of_groups(rows, k, seed, placed)
    # Sparse samples of zeros are mapped to one point, whose entries are not stored: no averages.
    inner: Any = without_marks(rows, marks)
    at_centre = centres_of(inner, marks)
    others, point = inner[~at_centre], rows[at_centre][:1]
    k = min(k - point.shape[0], others.shape[0])
    centred = bool((marks & ~at_centre).any())
    groups: list[Any] = [_centres_of_groups(others, k, seed, placed, centred)] if k else []
    return csr_array(vstack([*groups, point], format="csr"))


def _centres_of_groups(rows: Any, k: int, seed: int, placed: Placed, centred: bool = False) -> Rows:
    """Means of groups; less their own means if they are those of sparse parts of `centred` rows.

    Those are grouped by their sparse parts, whose distances are a little larger.
    """
    from sklearn.cluster import MiniBatchKMeans

    model = MiniBatchKMeans(k, batch_size=_BATCH, n_init=1, random_state=seed)
    centres = np.unique(model.fit(rows).cluster_centers_.astype(placed.dtype), axis=0)
    if centred:
        centres -= centres.mean(axis=1, keepdims=True)
    if placed.kernel.spherical:
        lengths = np.sqrt(squared_norms(centres))
        centres = centres[lengths > 0] / lengths[lengths > 0, None]
    return csr_array(centres) if isinstance(rows, csr_array) else np.ascontiguousarray(centres)
