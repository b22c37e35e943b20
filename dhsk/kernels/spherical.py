"""Kernels on the sphere: functions of the cosine of two unit rows."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.kernels.base import Kernel, strips
from dhsk.kernels.certified.evaluate import Reals
from dhsk.kernels.cuda import DevicePass, of_nothing
from dhsk.kernels.duplicates import set_cosines_of_equal_rows
from dhsk.kernels.rows import RowsLike, inner_product, require_unit_rows, squared_norms


class SphericalKernel(Kernel):
    """A function of the cosine of two unit rows; kernels have K(x, x) = 1."""

    spherical: ClassVar[bool] = True
    unit_diagonal: ClassVar[bool] = True
    default_map: ClassVar[str] = "hyperspherical"

    def _accept(self, X: RowsLike, what: str) -> Rows:
        rows = super()._accept(X, what)
        with np.errstate(over="ignore"):  # an infinite norm is off 1 too
            norms2 = squared_norms(rows)
        require_unit_rows(norms2, what)
        return rows

    def norms2(self, rows: Rows) -> Floats:
        """Ones, (a,): the rows are unit vectors."""
        return np.ones(rows.shape[0])

    def product(self, rows: Rows, columns: Rows, out: Reals | None = None) -> Floats:
        """Cosines of checked rows, (a, b), exactly 1 for equal rows; in `out` if given."""
        cosines = inner_product(rows, columns, out)
        set_cosines_of_equal_rows(cosines, rows, columns)
        if columns is rows and not self.unit_diagonal:  # a unit diagonal is set in the values
            np.fill_diagonal(cosines, 1.0)
        return cosines

    def cosines(self, rows: Rows, columns: Rows | None, out: Reals) -> Floats:
        """Cosines as of `product`, in `out`, by a device if that is worth it.

        They are symmetric with 1 on the diagonal if `columns` is None.
        """
        across = rows if columns is None else columns
        values = self._from_device(rows, across, out, partial(of_nothing, "cosine"))
        if values is None:
            values = self.product(rows, across, out)
        if columns is None:
            self.make_symmetric(values)
        return values

    @abstractmethod
    def _evaluate(self, cosines: Floats) -> None:
        """Replace a 1-D strip of cosines in [-1, 1] with kernel values, in place."""

    def _evaluate_less_one(self, cosines: Floats, scale: float, shift: float) -> None:
        """Replace a 1-D strip of cosines in [-1, 1] with scale (K - 1) + shift, in place.

        Kernels that may be near 1 everywhere compute K - 1 directly, without cancellation.
        """
        self._evaluate(cosines)
        cosines -= 1.0
        cosines *= scale
        cosines += shift

    def device_pass_less_one(self, scale: float, shift: float) -> DevicePass | None:
        """How a device makes scale (K - 1) + shift of cosines, in float64; None if it cannot."""
        del scale, shift
        return None

    def _apply(self, cosines: Reals, out: Reals) -> None:
        """Kernel values of 1-D cosines; `out` may be the same array. Both float64 or float32.

        Cosines outside [-1, 1] are clipped.
        """
        for part in strips(cosines.size):
            strip = np.clip(cosines[part], -1.0, 1.0, dtype=np.float64)
            self._evaluate(strip)
            out[part] = strip.astype(cosines.dtype, copy=False)

    def apply_less_one(self, cosines: Reals, out: Reals, scale: float, shift: float) -> None:
        """Write scale (K - 1) + shift at 1-D cosines, computed in float64, to `out`.

        The cosines are float64 or float32, without NaN, and clipped to [-1, 1]. `out` may be
        `cosines`; it is rounded if it is float32.
        """
        for part in strips(cosines.size):
            strip = np.clip(cosines[part], -1.0, 1.0, dtype=np.float64)
            self._evaluate_less_one(strip, scale, shift)
            out[part] = strip.astype(out.dtype, copy=False)

    def of_cosine_minus_one(self, c: ArrayLike) -> NDArray[Any]:
        """K - 1 at given cosines, without the cancellation of K(c) - 1 where K is nearly 1.

        For the heat kernel, the parametrix without an order and the cosine, the relative error is
        a few eps (2e-16), given the cosine; for other kernels the absolute error is.

        Parameters
        ----------
        c
            As for `of_cosine`.

        Returns
        -------
        NDArray
            K(c) - 1, of the shape and dtype of c (float64 unless c is float32).

        Raises
        ------
        InputError
            If c is not of real numbers or holds NaN.
        """
        out, flat = self._checked_cosines(c)
        self.apply_less_one(flat, flat, 1.0, 0.0)
        return np.asarray(out)

    def of_cosine(self, c: ArrayLike) -> NDArray[Any]:
        """Kernel values at given cosines.

        Parameters
        ----------
        c
            Cosines of any shape; values outside [-1, 1] are clipped to it.

        Returns
        -------
        NDArray
            K(c), of the shape and dtype of c (float64 unless c is float32).

        Raises
        ------
        InputError
            If c is not of real numbers or holds NaN.
        """
        out, flat = self._checked_cosines(c)
        self._apply(flat, flat)
        return np.asarray(out)

    @staticmethod
    def _checked_cosines(c: ArrayLike) -> tuple[Any, Any]:
        """Copy of cosines and a flat view of it; NaN is refused."""
        cosines = np.asarray(c)
        if cosines.dtype.kind not in "iuf":
            raise InputError(f"cosines must be real numbers, but their dtype is {cosines.dtype}")
        single = cosines.dtype == np.float32
        out: Any = np.array(cosines, dtype=np.float32 if single else np.float64, order="C")
        flat = out.reshape(-1)
        for part in strips(flat.size):
            if np.isnan(flat[part]).any():
                first = part.start + int(np.argmax(np.isnan(flat[part])))
                raise InputError(
                    f"cosine number {first} (counted from 0, in C order) is NaN:"
                    " look for zero rows or missing values in the samples"
                )
        return out, flat

    def evaluate(self, cosines: Reals, out: Reals) -> None:
        """Write the kernel values of the cosines of `product`, (a, b), to `out`, in one pass.

        Both are C-ordered, float64 or float32; they may be one array. Rounding beyond [-1, 1] is
        clipped. The accuracy is that of the dtype of `cosines`.
        """
        self._apply(cosines.reshape(-1), out.reshape(-1))

    def of_product(self, product: Reals, row_norms2: Floats, col_norms2: Floats) -> Any:
        """Kernel values, (a, b), from the cosines of unit rows, in one pass over `product`.

        Rounding moves the inner product of equal rows off 1. `product` sets it to 1, so that
        duplicates have K = 1 exactly if the kernel is called with rows. Rounding beyond [-1, 1] is
        clipped. The result is in place if `product` is C-ordered. The norms are not used: the rows
        are unit vectors.
        """
        del row_norms2, col_norms2
        single = product.dtype == np.float32
        number = np.float32 if single else np.float64
        values: Any = np.ascontiguousarray(product, dtype=number)
        self.evaluate(values, values)
        return values


@dataclass(frozen=True)
class WrappedKernel(Kernel):
    """Base of kernels made of a spherical kernel, with the same number of features."""

    kernel: SphericalKernel

    def __post_init__(self) -> None:
        # On the object, not the class: what is made of a derivative in time has no unit diagonal.
        object.__setattr__(self, "unit_diagonal", self.kernel.unit_diagonal)

    @property
    def dim(self) -> int | None:
        """Number of features, if the inner kernel has one."""
        return self.kernel.row_length

    @property
    def positive_semidefinite(self) -> bool | None:
        """Whether the inner kernel is."""
        return self.kernel.positive_semidefinite

    def prepare(self, dtype: str = "float64") -> None:
        """Prepare the inner kernel."""
        self.kernel.prepare(dtype)
