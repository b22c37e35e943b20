"""Kernels on the sphere: functions of the cosine of two unit rows."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.kernels.base import Kernel, strips
from dhsk.kernels.certified.evaluate import Reals
from dhsk.kernels.duplicates import set_cosines_of_equal_rows
from dhsk.kernels.rows import RowsLike, inner_product, require_unit_rows, squared_norms


class SphericalKernel(Kernel):
    """A kernel of the cosine of two unit rows, with K(x, x) = 1."""

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
        return cosines

    @abstractmethod
    def _evaluate(self, cosines: Floats) -> None:
        """Replace a 1-D strip of cosines in [-1, 1] with kernel values, in place."""

    def _evaluate_less_one(self, cosines: Floats, scale: float, shift: float) -> None:
        """Replace a 1-D strip of cosines in [-1, 1] with scale (K - 1) + shift, in place.

        Families whose values come near 1 everywhere compute K - 1 itself.
        """
        self._evaluate(cosines)
        cosines -= 1.0
        cosines *= scale
        cosines += shift

    def _apply(self, cosines: Reals, out: Reals) -> None:
        """Kernel values of 1-D cosines; `out` may be the same array. Both float64 or float32.

        Cosines outside [-1, 1] are clipped.
        """
        for part in strips(cosines.size):
            strip = np.clip(cosines[part], -1.0, 1.0, dtype=np.float64)
            self._evaluate(strip)
            out[part] = strip.astype(cosines.dtype, copy=False)

    def apply_less_one(self, cosines: Reals, out: Reals, scale: float, shift: float) -> None:
        """Values of scale (K - 1) + shift at 1-D cosines, computed in float64.

        Parameters
        ----------
        cosines
            (size,), float64 or float32, without NaN; clipped to [-1, 1].
        out
            Where the values go, (size,), rounded if it is float32; may be `cosines`.
        scale, shift
            What K - 1 is multiplied by, and what is added to that.
        """
        for part in strips(cosines.size):
            strip = np.clip(cosines[part], -1.0, 1.0, dtype=np.float64)
            self._evaluate_less_one(strip, scale, shift)
            out[part] = strip.astype(out.dtype, copy=False)

    def of_cosine_minus_one(self, c: ArrayLike) -> NDArray[Any]:
        """K - 1 at given cosines, with the digits that K itself loses where it is nearly 1.

        Of the heat kernel, the parametrix without an order and the cosine, the relative error is
        some eps (2e-16), given the cosine; of other kernels the absolute error.

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
        """Cosines in a new array, and the same memory as one strip; NaN is refused."""
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
        """Kernel values of cosines that `product` gave, in one pass over them.

        Parameters
        ----------
        cosines
            (a, b), C-ordered, float64 or float32; rounding beyond [-1, 1] is clipped.
        out
            Where the values go, (a, b), C-ordered, float64 or float32; `cosines` are kept unless
            it is the same array. Values have the accuracy of the type of `cosines`.
        """
        self._apply(cosines.reshape(-1), out.reshape(-1))

    def of_product(self, product: Reals, row_norms2: Floats, col_norms2: Floats) -> Any:
        """Kernel values from the cosines of unit rows, in one pass over `product`.

        The computed product of equal rows is not exactly 1: `product` sets it, so that duplicates
        have K = 1 to the bit wherever kernels are called with rows.

        Parameters
        ----------
        product
            Cosines <x_i, y_j>, (a, b), float64 or float32; rounding beyond [-1, 1] is clipped.
        row_norms2
            Not used: the rows are unit vectors.
        col_norms2
            Not used: the rows are unit vectors.

        Returns
        -------
        NDArray
            K(x_i, y_j), (a, b), of the dtype of `product`; in its memory if it is C-ordered.
        """
        del row_norms2, col_norms2
        single = product.dtype == np.float32
        number = np.float32 if single else np.float64
        values: Any = np.ascontiguousarray(product, dtype=number)
        self.evaluate(values, values)
        return values


@dataclass(frozen=True)
class WrappedKernel(Kernel):
    """A kernel made of a spherical one, which says what rows it takes.

    Parameters
    ----------
    kernel
        The inner kernel.
    """

    kernel: SphericalKernel

    @property
    def dim(self) -> int | None:
        """Number of features, if the inner kernel fixes it."""
        return self.kernel.row_length

    @property
    def row_length(self) -> int | None:
        """Number of columns that rows must have; None if any."""
        return self.kernel.row_length

    def prepare(self) -> None:
        """Prepare the inner kernel."""
        self.kernel.prepare()
