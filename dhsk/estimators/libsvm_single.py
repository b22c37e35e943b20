"""What the drop-ins of a single problem share: parameters, and coefficients of support vectors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Indices, Rows
from dhsk.estimators.automatic import Auto
from dhsk.estimators.drop_in import DropIn
from dhsk.kernels import Kernel
from dhsk.kernels.base import Indefinite
from dhsk.samples import SphereMap, ZeroRule


@dataclass(eq=False, repr=False, kw_only=True)
class SingleDropIn(DropIn):
    """Base of the drop-ins whose fit has one problem, with one coefficient for each sample."""

    kernel: Kernel | str | Callable[[Any, Any], Any] = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    tol: float = 1e-3
    shrinking: bool = True
    cache_size: float = 200
    verbose: bool = False
    max_iter: int = -1
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    zero_rows: ZeroRule = "center"
    dtype: str = "float64"
    memory: int | str | None = None
    indefinite: Indefinite = "error"

    def _keep(self, support: Indices, coef: Floats) -> None:
        """Set the support vectors, and their coefficients in the kernel's own unit."""
        self.support_, self._dual_coef = support.astype(np.int32), coef

    @property
    def _support(self) -> Rows:
        rows: Rows = self._support_rows
        return rows

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
