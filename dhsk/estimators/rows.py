"""What the estimators of a kernel on rows in memory share: input, kernel, map, predictions."""

from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, validate_data

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.gram.prepare import check_kernels
from dhsk.gram.sizes import parse_bytes
from dhsk.kernels import HeatKernel, Kernel, RowKernel, require_unit_rows, squared_norms
from dhsk.samples import Samples, SphereMap, apply_map, open_samples
from dhsk.svm.runners import free_memory

_EDGE: Final = 2048
"""Edge of the blocks in which kernels are computed."""


class RowsEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of estimators with these parameters; fitting sets `kernel_` and the rows it keeps."""

    kernel: Kernel | None
    time_scale: float
    sphere_map: SphereMap | None
    dtype: str
    memory: int | str | None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.sphere_map == "hyperspherical"
        return tags

    def _room(self) -> int:
        """Check dtype and memory; bytes that a matrix may take."""
        if self.dtype not in ("float32", "float64"):
            raise InputError(f"dtype must be float32 or float64, got {self.dtype!r}")
        return free_memory() if self.memory is None else parse_bytes(self.memory)

    def _validated_for_fit(self, X: Any, **options: Any) -> Any:
        """X, or X and y, to be fitted to: the heat kernel's sphere needs two columns."""
        return self._validated(X, ensure_min_features=2 if self.kernel is None else 1, **options)

    def _validated(self, X: Any, **options: Any) -> Any:
        """X, or X and y, as scikit-learn takes them; values are left to the map."""
        return validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite=False,
            **options,
        )

    def _make_kernel(self, dim: int) -> Kernel:
        return self.kernel or HeatKernel.at_scale(dim, self.time_scale)

    def _open(self, X: Any, kernel: Kernel) -> tuple[Samples, SphereMap]:
        """Rows to read and the map to use, if they go together with the kernel."""
        samples = open_samples(X)
        return samples, check_kernels([kernel], [samples], self.sphere_map, self.dtype)

    def _mapped(self, X: Any, kernel: Kernel) -> Rows:
        """Rows checked, mapped, and in the type of the products."""
        samples, name = self._open(X, kernel)
        block = next(samples.blocks(samples.shape[0]))
        return self._typed(_map_block(block, kernel, name))

    def _typed(self, rows: Any) -> Rows:
        typed: Rows = rows.astype(self.dtype, copy=False)
        return typed

    def _scores(self, X: Any, fitted: Rows, coef: Floats) -> Floats:
        """Kernel between new rows and fitted ones times coefficients, (rows, k)."""
        X = self._validated(X, reset=False)
        samples, name = self._open(X, self.kernel_)
        scores, first = np.zeros((samples.shape[0], coef.shape[1])), 0
        for block in samples.blocks(_EDGE):
            rows = self._typed(_map_block(block, self.kernel_, name, first))
            for start in range(0, fitted.shape[0], _EDGE):
                part = slice(start, start + _EDGE)
                values = self.kernel_.of_rows(rows, fitted[part])
                scores[first : first + rows.shape[0]] += values @ coef[part]
            first += rows.shape[0]
        return scores


def checked_weights(sample_weight: Any, X: Any) -> Floats:
    """Sample weights, (N,), 1 by default; none negative and not all 0."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    weights: Floats = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (X.shape[0],):
        raise InputError(f"sample_weight has shape {weights.shape}, but it must be ({X.shape[0]},)")
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        raise InputError(
            f"the sample weight of row {negative[0]} (counted from 0) is {weights[negative[0]]}, "
            "but none may be negative"
        )
    if not weights.any():
        raise InputError(
            "all sample weights are zero: leave out sample_weight, or give some above 0"
        )
    return weights


def _map_block(block: Rows, kernel: Kernel, name: SphereMap, first_row: int = 0) -> Rows:
    """Map rows, or say which of them has no image."""
    try:
        rows = apply_map(name, block, first_row)
        if kernel.spherical and name == "identity":
            require_unit_rows(squared_norms(rows), first_row=first_row)
        if isinstance(kernel, RowKernel):
            kernel.check_rows(rows, first_row)
    except InputError as error:
        raise InputError(f"{_heading(block)}: {error}") from None
    return rows


def _heading(block: Rows) -> str:
    """What scikit-learn calls rows that cannot be used: its checks look for these words."""
    values = block.data if isinstance(block, csr_array) else block
    if not np.isfinite(values).all():
        return "X contains NaN or infinity"
    if (values < 0).any():
        return "Negative values in data passed to X"
    return "sparse X" if isinstance(block, csr_array) else "X"
