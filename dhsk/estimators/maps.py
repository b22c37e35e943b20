"""Transformers that map samples to the sphere."""

from typing import Any, Self

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from dhsk.arrays import Rows
from dhsk.estimators.base import in_scikit_words
from dhsk.samples import SphereMap, ZeroRows, ZeroRule
from dhsk.samples.maps import map_whole
from dhsk.samples.memory import refuse_anndata


class _SphereMap(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer without parameters to learn: `fit` only checks the samples."""

    _name: SphereMap

    def __init__(self, zero_rows: ZeroRule = "center") -> None:
        self.zero_rows = zero_rows

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check samples.

        Parameters
        ----------
        X
            Samples by row, (N, dim), dense or sparse.
        y
            Ignored.

        Returns
        -------
        Self
            The fitted transformer.

        Raises
        ------
        InputError
            A row has no image on the sphere; the message names it.
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
            A row has no image on the sphere; the message names it.
        """
        check_is_fitted(self)
        rows, zero_rows = self._map(self._checked(X, reset=False))
        zero_rows.warn("X", rows.shape[0])
        return rows

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, X: Any, *, reset: bool) -> Any:
        refuse_anndata(X)
        least = 2 if reset else 1  # one feature maps to one or two points
        return validate_data(self, X, accept_sparse="csr", ensure_min_features=least, reset=reset)

    def _map(self, X: Any) -> tuple[Rows, ZeroRows]:
        """Unit rows, and the count of all-zero samples."""
        zero_rows = ZeroRows(self.zero_rows)
        with in_scikit_words(self):
            return map_whole(self._name, X, zero_rows), zero_rows


class HypersphericalMap(_SphereMap):
    """Square roots of proportions, sqrt(x / sum x) row by row: `hyperspherical_map`.

    Parameters
    ----------
    zero_rows
        What to do with rows that are all zero. "center" maps them to the centre of the positive
        orthant, and warns of their number. "error" raises an error that names the first.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        As in scikit-learn.

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
        What to do with rows that are all zero. "center" maps them to the centre of the positive
        orthant, and warns of their number. "error" raises an error that names the first.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        As in scikit-learn.

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
