"""What the drop-ins of a single problem share: coefficients of support vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Indices
from dhsk.estimators.drop_in import DropIn
from dhsk.samples import SphereMap


@dataclass(eq=False, repr=False, kw_only=True)
class SingleDropIn(DropIn):
    """Base of the drop-ins whose fit has one problem, with one coefficient for each sample."""

    sphere_map: SphereMap | None = None

    def _keep(self, support: Indices, coef: Floats) -> None:
        """Set the support vectors, and their coefficients in the kernel's own unit."""
        self.support_, self._dual_coef = support.astype(np.int32), coef

    @property
    def dual_coef_(self) -> Any:
        """Coefficients of the support vectors, (1, n_sv)."""
        check_is_fitted(self)
        return self._as_samples_are(self._dual_coef[None])

    @property
    def n_support_(self) -> Any:
        """Number of support vectors, (1,)."""
        check_is_fitted(self)
        return np.array([len(self.support_)], np.int32)

    @property
    def coef_(self) -> Any:
        """Weights of the features for a linear kernel, (1, n_features)."""
        check_is_fitted(self)
        return self._weights_of(self._dual_coef[None])
