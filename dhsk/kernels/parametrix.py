"""The parametrix: the heat kernel's leading Gaussian factor in the angle."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dhsk.arrays import Floats
from dhsk.kernels.base import SphericalKernel, positive_parameter
from dhsk.kernels.heat import time_at_scale


@dataclass(frozen=True)
class ParametrixKernel(SphericalKernel):
    """Gaussian of the angle, exp(-arccos²(c)/(4t)): the kernel used before the exact one.

    Unlike the exact kernel it need not be positive semi-definite.

    Parameters
    ----------
    time
        Diffusion time t, above 0.

    Raises
    ------
    InputError
        If time is not a finite number above 0.

    References
    ----------
    Zhao & Song (2017), section 2.1; Lafferty & Lebanon (2002), equations 6 and 7, with the time
    4t on a sphere of radius 2.
    """

    name: ClassVar[str] = "parametrix"

    time: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", positive_parameter("time", self.time))

    @classmethod
    def at_scale(cls, dim: int, time_scale: float) -> Self:
        """Kernel at `time_scale` times the exact kernel's sweet spot log(dim)/dim."""
        return cls(time_at_scale(dim, time_scale))

    @property
    def label(self) -> str:
        """Short human name with the time."""
        return f"parametrix t={self.time:.4g}"

    def _evaluate(self, cosines: Floats) -> None:
        np.arccos(cosines, out=cosines)
        np.square(cosines, out=cosines)
        with np.errstate(over="ignore"):  # a tiny time: exp(-inf) = 0 is the limit
            cosines /= -4.0 * self.time
        np.exp(cosines, out=cosines)
