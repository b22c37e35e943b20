"""Kernels of plain inner products: linear, polynomial and cosine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dhsk.arrays import Floats
from dhsk.kernels.base import (
    Kernel,
    largest_of,
    real_parameter,
    strips,
    whole_parameter,
)
from dhsk.kernels.cuda import DevicePass, of_nothing
from dhsk.kernels.spherical import SphericalKernel


@dataclass(frozen=True)
class CosineKernel(SphericalKernel):
    """Cosine of the angle between two samples: the inner product of unit rows.

    Examples
    --------
    >>> import dhsk
    >>> X = dhsk.projective_map([[3.0, 4.0], [4.0, 3.0], [6.0, 8.0]])
    >>> dhsk.CosineKernel()(X).round(4)
    array([[1.  , 0.96, 1.  ],
           [0.96, 1.  , 0.96],
           [1.  , 0.96, 1.  ]])
    """

    name: ClassVar[str] = "cosine"
    bilinear: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """Short name."""
        return "cosine"

    def _evaluate(self, cosines: Floats) -> None:
        """Nothing to do: the clipped cosines are the values."""

    def device_pass(self, dtype: Any) -> DevicePass:
        """Clipped cosines."""
        return of_nothing("cosine", dtype)


@dataclass(frozen=True)
class LinearKernel(Kernel):
    """Inner product <x, y>.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.LinearKernel()([[1.0, 2.0], [3.0, 4.0]])
    array([[ 5., 11.],
           [11., 25.]])
    """

    name: ClassVar[str] = "linear"
    bilinear: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """Short name."""
        return "linear"

    def largest_norm2(self, dtype: str = "float64") -> float:
        """Largest value: no inner product is above the largest squared norm."""
        return largest_of(dtype)

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Return the inner products (a, b) as they are."""
        del row_norms2, col_norms2
        return product

    def device_pass(self, dtype: Any) -> DevicePass:
        """Products as they are."""
        return of_nothing("product", dtype)


@dataclass(frozen=True)
class PolynomialKernel(Kernel):
    """Power of a shifted inner product, (offset + <x, y>)^degree.

    Parameters
    ----------
    degree
        Exponent, a whole number of at least 1.
    offset
        Number added to the inner product, at least 0, as the kernel is indefinite below.

    Raises
    ------
    InputError
        If a parameter is not such a number.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.PolynomialKernel(degree=2, offset=1.0)([[1.0, 2.0], [3.0, 4.0]])
    array([[ 36., 144.],
           [144., 676.]])
    """

    name: ClassVar[str] = "polynomial"
    defaults: ClassVar[Mapping[str, float]] = {"degree": 2, "offset": 1.0}

    degree: int
    offset: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole_parameter("degree", self.degree, 1))
        object.__setattr__(self, "offset", real_parameter("offset", self.offset, 0))

    @property
    def label(self) -> str:
        """Short name with the parameters."""
        return f"polynomial degree={self.degree} offset={self.offset:.4g}"

    def largest_norm2(self, dtype: str = "float64") -> float:
        """Root of the largest value, less the offset."""
        return float(largest_of(dtype) ** (1.0 / self.degree)) - self.offset

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Powers of the inner products (a, b); overwrites `product` and returns it."""
        del row_norms2, col_norms2
        values = np.ascontiguousarray(product, dtype=np.float64)
        flat = values.reshape(-1)
        for part in strips(flat.size):
            flat[part] += self.offset
            # Samples whose powers overflow are refused by name; of trial values nothing is said.
            with np.errstate(over="ignore"):
                np.power(flat[part], self.degree, out=flat[part])
        return values
