"""Kernels of scaled inner products, as LIBSVM has them: polynomial and sigmoid."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dhsk.arrays import Floats
from dhsk.kernels.base import (
    Kernel,
    largest_of,
    positive_parameter,
    real_parameter,
    strips,
    whole_parameter,
)


@dataclass(frozen=True)
class ScaledPolynomialKernel(Kernel):
    """Power of a scaled and shifted inner product, (scale <x, y> + offset)^degree.

    Parameters
    ----------
    degree
        Exponent, a whole number, at least 0.
    scale
        Factor of the inner product, above 0; scikit-learn's gamma.
    offset
        Number added to it; scikit-learn's coef0. The kernel is indefinite below 0.

    Raises
    ------
    InputError
        If a parameter is not such a number.
    """

    name: ClassVar[str] = "scaled polynomial"

    degree: int
    scale: float
    offset: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole_parameter("degree", self.degree, 0))
        object.__setattr__(self, "scale", positive_parameter("scale", self.scale))
        object.__setattr__(self, "offset", real_parameter("offset", self.offset))

    @property
    def positive_semidefinite(self) -> bool | None:
        """True but for an offset below 0."""
        return None if self.offset < 0 else True

    @property
    def label(self) -> str:
        """Short name with the parameters."""
        return f"polynomial degree={self.degree} scale={self.scale:.4g} offset={self.offset:.4g}"

    def largest_norm2(self, dtype: str = "float64") -> float:
        """Root of the largest value, less the offset, over the scale."""
        largest = float(largest_of(dtype) ** (1.0 / max(self.degree, 1)))
        return (largest - abs(self.offset)) / max(self.scale, 1.0)

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Powers of the inner products (a, b); overwrites `product` and returns it."""
        del row_norms2, col_norms2
        values = np.ascontiguousarray(product, dtype=np.float64)
        flat = values.reshape(-1)
        for part in strips(flat.size):
            own = flat[part]
            own *= self.scale
            own += self.offset
            # As for `PolynomialKernel`: samples whose powers overflow are refused by name.
            with np.errstate(over="ignore"):
                np.power(own, self.degree, out=own)
        return values


@dataclass(frozen=True)
class SigmoidKernel(Kernel):
    """Hyperbolic tangent of a scaled and shifted inner product, tanh(scale <x, y> + offset).

    It is not positive semi-definite in general, so that a fit may end at a point that is no
    optimum, as LIBSVM's may.

    Parameters
    ----------
    scale
        Factor of the inner product, above 0; scikit-learn's gamma.
    offset
        Number added to it; scikit-learn's coef0.

    Raises
    ------
    InputError
        If a parameter is not such a number.
    """

    name: ClassVar[str] = "sigmoid"

    scale: float
    offset: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_parameter("scale", self.scale))
        object.__setattr__(self, "offset", real_parameter("offset", self.offset))

    @property
    def positive_semidefinite(self) -> bool | None:
        """None: it depends on the samples."""
        return None

    @property
    def label(self) -> str:
        """Short name with the parameters."""
        return f"sigmoid scale={self.scale:.4g} offset={self.offset:.4g}"

    def largest_norm2(self, dtype: str = "float64") -> float:
        """Largest inner product whose multiple is in the range."""
        return largest_of(dtype) / max(self.scale, 1.0)

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Tangents of the inner products (a, b); overwrites `product` and returns it."""
        del row_norms2, col_norms2
        values = np.ascontiguousarray(product, dtype=np.float64)
        flat: Any = values.reshape(-1)
        for part in strips(flat.size):
            own = flat[part]
            own *= self.scale
            own += self.offset
            np.tanh(own, out=own)
        return values
