"""scikit-learn's names of kernels, with its gamma, degree and coef0."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dhsk.errors import InputError
from dhsk.kernels import (
    NAMED,
    GaussianKernel,
    Kernel,
    PrecomputedKernel,
    ScaledPolynomialKernel,
    SigmoidKernel,
    named_family,
)
from dhsk.kernels.base import positive_parameter, real_parameter, whole_parameter

PRECOMPUTED: Final = PrecomputedKernel.name

SCALES: Final = ("scale", "auto")
"""Values of gamma that depend on the samples."""


_ALIASES: Final = {GaussianKernel.name: "rbf", "polynomial": "poly"}
"""Names of dhsk that mean one of scikit-learn's here, with its parameters."""

_OF_SHAPE: Final[Mapping[str, tuple[type[Kernel], Callable[[float, int, float], Kernel]]]] = {
    "rbf": (GaussianKernel, lambda gamma, *_: GaussianKernel.at_gamma(gamma)),
    "poly": (
        ScaledPolynomialKernel,
        lambda gamma, degree, coef0: ScaledPolynomialKernel(degree, gamma, coef0),
    ),
    "sigmoid": (SigmoidKernel, lambda gamma, _, coef0: SigmoidKernel(gamma, coef0)),
    PRECOMPUTED: (PrecomputedKernel, lambda *_: PrecomputedKernel()),
}
"""Kernels that scikit-learn's parameters make; all other names are dhsk's."""

USES_GAMMA: Final = ("rbf", "poly", "sigmoid")


def parse_name(kernel: Any) -> str | None:
    """Name of a kernel as the tables here have it; None for a kernel of dhsk.

    A callable makes the matrix, and so counts as precomputed. Raises InputError for others.
    """
    if isinstance(kernel, Kernel):
        return None
    if callable(kernel):
        return PRECOMPUTED
    if isinstance(kernel, str) and kernel in (*NAMED, *_OF_SHAPE):
        return _ALIASES.get(kernel, kernel)
    known = sorted({_ALIASES.get(name, name) for name in (*NAMED, *_OF_SHAPE)})
    raise InputError(
        f"kernel must be one of {', '.join(known)}, a kernel of dhsk, or a function of two sets "
        f"of samples, but it is {kernel!r}"
    )


def family_of(name: str) -> type[Kernel]:
    """Class of a kernel's name."""
    return _OF_SHAPE[name][0] if name in _OF_SHAPE else named_family(name)


def made_of(name: str, gamma: float, degree: int, coef0: float) -> Kernel | None:
    """Kernel of a name with scikit-learn's parameters; None for one that has others."""
    return _OF_SHAPE[name][1](gamma, degree, coef0) if name in _OF_SHAPE else None


def check_shape(gamma: Any, degree: Any, coef0: Any) -> None:
    """Check scikit-learn's parameters."""
    if not isinstance(gamma, str):
        positive_parameter("gamma", gamma)
    elif gamma not in SCALES:
        raise InputError(f'gamma must be "scale", "auto" or a number, but it is {gamma!r}')
    whole_parameter("degree", degree, 0)
    real_parameter("coef0", coef0)
