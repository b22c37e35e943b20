"""The maps to the sphere as scikit-learn transformers."""

from typing import Any, Self

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from dhsk.arrays import Rows
from dhsk.estimators.base import in_scikit_words
from dhsk.samples import hyperspherical_map, projective_map
from dhsk.samples.memory import refuse_anndata


class _SphereMap(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A map that learns nothing: `fit` only counts the features and checks the samples."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the samples.

        Parameters
        ----------
        X
            Samples by row, (N, dim), dense or sparse.
        y
            Not used.

        Returns
        -------
        Self
            This transformer.

        Raises
        ------
        InputError
            A row has no image; it is named.
        """
        del y
        self._map(self._checked(X, reset=True))
        return self

    def transform(self, X: Any) -> Rows:
        """Map samples to the sphere.

        Parameters
        ----------
        X
            Samples by row, (N, dim), dense or sparse.

        Returns
        -------
        Rows
            Unit rows, (N, dim), float64; CSR if `X` is sparse.

        Raises
        ------
        InputError
            A row has no image; it is named.
        """
        check_is_fitted(self)
        return self._map(self._checked(X, reset=False))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the number of features is known, which is all that is learned."""
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, X: Any, *, reset: bool) -> Any:
        refuse_anndata(X)
        least = 2 if reset else 1  # one feature maps to a point or two; later its number decides
        return validate_data(self, X, accept_sparse="csr", ensure_min_features=least, reset=reset)

    def _map(self, X: Any) -> Rows:
        raise NotImplementedError


class HypersphericalMap(_SphereMap):
    """Square roots of proportions, sqrt(x / sum x) row by row: `hyperspherical_map`.

    Attributes
    ----------
    n_features_in_
        Number of features.
    feature_names_in_
        Their names, if the samples had names.

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _map(self, X: Any) -> Rows:
        with in_scikit_words(self):
            return hyperspherical_map(X)


class ProjectiveMap(_SphereMap):
    """Division by the length, x / ||x|| row by row: `projective_map`.

    Attributes
    ----------
    n_features_in_
        Number of features.
    feature_names_in_
        Their names, if the samples had names.

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

    def _map(self, X: Any) -> Rows:
        return projective_map(X)
