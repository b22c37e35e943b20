"""Transformers that map samples to the sphere."""

from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Rows
from dhsk.estimators.base import in_scikit_words
from dhsk.estimators.saving import SavedEstimator
from dhsk.samples import SphereMap, ZeroRows, ZeroRule
from dhsk.samples.clipped import ClippedSamples
from dhsk.samples.maps import map_whole
from dhsk.samples.memory import from_memory
from dhsk.samples.weighted import inverse_frequencies, weigh


class _SphereMap(OneToOneFeatureMixin, TransformerMixin, SavedEstimator):  # type: ignore[misc]
    """A transformer to the sphere: `fit` checks the samples, and learns weights if it has any."""

    _name: SphereMap

    def __init__(self, zero_rows: ZeroRule = "center") -> None:
        self.zero_rows = zero_rows

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check samples.

        Returns
        -------
        Self
            The fitted transformer.
        """
        del y
        X = self._validated(X, ensure_min_features=2)  # one maps to one or two points
        with in_scikit_words(self):
            self._learn(X)
        self._map(X)
        return self

    def transform(self, X: Any) -> Rows:
        """Map samples to the sphere.

        Returns
        -------
        Rows
            Unit rows, (N, dim), float64; CSR if `X` is sparse.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if self._name == "hyperspherical":
            samples = ClippedSamples(from_memory(X))
            (X,) = samples.blocks(X.shape[0])
            samples.warn()
        rows, zero_rows = self._map(X)
        zero_rows.warn("X", rows.shape[0])
        return rows

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _map(self, X: Any) -> tuple[Rows, ZeroRows]:
        """Unit rows, and the count of all-zero samples."""
        zero_rows = ZeroRows(self.zero_rows)
        with in_scikit_words(self):
            return map_whole(self._name, self._weighted(X), zero_rows), zero_rows

    def _learn(self, X: Any) -> None:
        """Learn weights of the features; these maps have none."""

    def _weighted(self, X: Any) -> Any:
        """Samples times the weights of the features."""
        return X


class HypersphericalMap(_SphereMap):
    """Square roots of proportions, sqrt(x / sum x) row by row: `hyperspherical_map`.

    Parameters
    ----------
    zero_rows

    Attributes
    ----------
    n_features_in_, feature_names_in_

    References
    ----------
    Zhao & Song (2017), Definition 1.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> dhsk.HypersphericalMap().fit_transform(np.array([[1.0, 3.0], [4.0, 0.0]]))
    array([[0.5      , 0.8660254],
           [1.       , 0.       ]])
    """

    _name = "hyperspherical"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class ProjectiveMap(_SphereMap):
    """Division by the length, x / ||x|| row by row: `projective_map`.

    Parameters
    ----------
    zero_rows

    Attributes
    ----------
    n_features_in_, feature_names_in_

    References
    ----------
    Zhao & Song (2017), section 2.3.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> dhsk.ProjectiveMap().fit_transform(np.array([[3.0, -4.0], [0.0, 2.0]]))
    array([[ 0.6, -0.8],
           [ 0. ,  1. ]])
    """

    _name = "projective"


class TfidfMap(_SphereMap):
    """Counts times inverse document frequencies, divided by their length row by row.

    The weights log((1 + n) / (1 + df)) + 1 are those of scikit-learn's `TfidfTransformer` with its
    defaults: n samples were fitted, in df of which the feature is not zero. `HeatSVC` and
    `NystromSVC` with ``sphere_map="tfidf"`` learn and keep them themselves.

    Parameters
    ----------
    zero_rows

    Attributes
    ----------
    idf_
        Weights of the features, (dim,).
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> counts = np.array([[2.0, 1.0, 0.0], [3.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    >>> dhsk.TfidfMap().fit(counts).transform(counts).round(3)
    array([[0.763, 0.646, 0.   ],
           [0.871, 0.   , 0.492],
           [1.   , 0.   , 0.   ]])
    """

    _name = "projective"
    _learnt = ("idf_",)

    def _learn(self, X: Any) -> None:
        samples = from_memory(X)
        (self.idf_,) = inverse_frequencies(samples, np.ones((samples.shape[0], 1)))

    def _weighted(self, X: Any) -> Any:
        rows = next(from_memory(X).blocks(X.shape[0]))
        return weigh(rows, self.idf_)
