"""Kernels: mathematics on arrays, without files or Dask."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from dhsk.errors import InputError
from dhsk.kernels.averaged import AveragedKernel
from dhsk.kernels.base import Kernel
from dhsk.kernels.euclidean import CosineKernel, LinearKernel, PolynomialKernel
from dhsk.kernels.gaussian import GaussianKernel
from dhsk.kernels.given import PrecomputedKernel, unit_vectors
from dhsk.kernels.heat import TIME_SCALES, HeatKernel, HeatTimeDerivative, time_at_scale
from dhsk.kernels.hyperbolic import HyperbolicHeatKernel
from dhsk.kernels.nodes import NodeKernel
from dhsk.kernels.parametrix import ParametrixKernel
from dhsk.kernels.rows import as_rows, inner_product, require_unit_rows, squared_norms
from dhsk.kernels.rowwise import RowKernel
from dhsk.kernels.scaled import ScaledPolynomialKernel, SigmoidKernel
from dhsk.kernels.smoothed import SmoothedKernel
from dhsk.kernels.spherical import SphericalKernel
from dhsk.kernels.stretched import (
    StretchedGaussianKernel,
    StretchedKernel,
    mean_difference,
    stretched,
    unit_of,
)

__all__ = [
    "NAMED",
    "TIME_SCALES",
    "AveragedKernel",
    "CosineKernel",
    "GaussianKernel",
    "HeatKernel",
    "HeatTimeDerivative",
    "HyperbolicHeatKernel",
    "Kernel",
    "LinearKernel",
    "NodeKernel",
    "ParametrixKernel",
    "PolynomialKernel",
    "PrecomputedKernel",
    "RowKernel",
    "ScaledPolynomialKernel",
    "SigmoidKernel",
    "SmoothedKernel",
    "SphericalKernel",
    "StretchedGaussianKernel",
    "StretchedKernel",
    "as_rows",
    "inner_product",
    "kernel_from_spec",
    "mean_difference",
    "named_family",
    "named_kernel",
    "one_or_several",
    "parameters_of",
    "parse_kernel",
    "require_unit_rows",
    "squared_norms",
    "stretched",
    "time_at_scale",
    "unit_of",
    "unit_vectors",
]

_BY_NAME: Final[tuple[type[Kernel], ...]] = (
    HeatKernel,
    ParametrixKernel,
    CosineKernel,
    LinearKernel,
    GaussianKernel,
    PolynomialKernel,
)
"""Kernels that can be given by name, with the defaults of their parameters."""

NAMED: Final = tuple(family.name for family in _BY_NAME)
"""Their names, as in the command line's --kernel."""

_OTHERS: Final[tuple[type[Kernel], ...]] = (
    HyperbolicHeatKernel,
    SmoothedKernel,
    AveragedKernel,
    StretchedKernel,
    StretchedGaussianKernel,
    HeatTimeDerivative,
    NodeKernel,
    ScaledPolynomialKernel,
    SigmoidKernel,
    PrecomputedKernel,
)

_FAMILIES: Final[Mapping[str, type[Kernel]]] = {
    family.name: family for family in (*_BY_NAME, *_OTHERS)
}


_NAMES_ELSEWHERE: Final = {"rbf": GaussianKernel.name, "poly": PolynomialKernel.name}
"""Names of scikit-learn, and those of the same kernels here."""


def known_elsewhere(name: object) -> str:
    """What to say of a name of scikit-learn for a kernel, begun with a colon; empty for others."""
    own = _NAMES_ELSEWHERE.get(str(name))
    return f": scikit-learn's {name!r} is {own!r} here" if own else ""


def named_family(name: object) -> type[Kernel]:
    """Kernel class of a name in `NAMED`; `InputError` for another name."""
    if not isinstance(name, str) or name not in NAMED:
        raise InputError(
            f"kernel must be a kernel of dhsk or one of {', '.join(NAMED)}, but it is "
            f"{name!r}{known_elsewhere(name)}"
        )
    return _FAMILIES[name]


def parse_kernel(
    kernel: Kernel | str,
    dim: int,
    time_scale: float = 1.0,
    width: Callable[[], float] | None = None,
) -> Kernel:
    """Return a kernel unchanged, or make the one of a name with the defaults of the command line.

    These are: "heat" and "parametrix" at `time_scale`, in units of log(dim)/dim, "gaussian" of a
    `width` by the samples, or 1 without any, "polynomial" with degree=2 and offset=1, "cosine",
    "linear". Raises `InputError` if `kernel` is neither, or `dim` or `time_scale` is invalid.
    """
    if isinstance(kernel, Kernel):
        return kernel
    return named_kernel(kernel, dim, time_scale, width)


def parameters_of(name: object) -> set[str]:
    """Parameters that the kernel of a name needs; `InputError` for another name."""
    family: Any = named_family(name)
    return {field.name for field in fields(family) if field.default is MISSING}


def named_kernel(
    name: str,
    dim: int,
    time_scale: float = 1.0,
    width: Callable[[], float] | None = None,
    **given: Any,
) -> Kernel:
    """Make the kernel of a name; of what is `given`, and not None, it takes what it needs.

    Other parameters have the kernel's `defaults`; its time is that of `time_scale`, and its
    `width_parameter` what `width` finds in the samples.
    """
    needed = parameters_of(name)
    known = {"dim": dim} | {key: value for key, value in given.items() if value is not None}
    if "time" in needed and "time" not in known:
        known["time"] = time_at_scale(dim, time_scale)
    of_samples = _FAMILIES[name].width_parameter
    if of_samples is not None and of_samples not in known and width is not None:
        known[of_samples] = width()
    known = {**_FAMILIES[name].defaults, **known}
    return _FAMILIES[name](**{key: known[key] for key in needed})


def one_or_several(kernels: Kernel | str | Iterable[Kernel | str]) -> list[Kernel | str]:
    """List of kernels, or names, from one or several; `InputError` for anything else."""
    if isinstance(kernels, Kernel | str):
        return [kernels]
    try:
        return list(kernels)
    except TypeError:
        named_family(kernels)  # raises, with the names of the kernels
        raise


def kernel_from_spec(spec: Mapping[str, Any]) -> Kernel:
    """Kernel that `Kernel.to_spec` described, also after a round trip through JSON.

    `spec` has the name of the family under "name", and its parameters. Raises `InputError` if the
    name is unknown, or the parameters are not those of the family.
    """
    parameters = dict(spec)
    name = parameters.pop("name", None)
    if not isinstance(name, str) or name not in _FAMILIES:
        raise InputError(f"unknown kernel {name!r}: choose one of {', '.join(_FAMILIES)}")
    inner = parameters.get("kernel")
    if isinstance(inner, Mapping):  # a wrapped kernel
        parameters["kernel"] = kernel_from_spec(inner)
    try:
        return _FAMILIES[name](**parameters)
    except TypeError as error:  # a missing or unknown parameter
        raise InputError(f"kernel {name!r} does not take {parameters}: {error}") from error
