"""Kernels: mathematics on arrays, without files or clusters."""

from collections.abc import Mapping
from typing import Any, Final

from dhsk.errors import InputError
from dhsk.kernels.base import Kernel, SphericalKernel
from dhsk.kernels.euclidean import CosineKernel, GaussianKernel, LinearKernel, PolynomialKernel
from dhsk.kernels.heat import TIME_SCALES, HeatKernel, time_at_scale
from dhsk.kernels.hyperbolic import HyperbolicHeatKernel
from dhsk.kernels.parametrix import ParametrixKernel
from dhsk.kernels.rows import (
    UNIT_NORM_TOLERANCE,
    RowsLike,
    as_rows,
    inner_product,
    require_unit_rows,
    squared_norms,
)
from dhsk.kernels.rowwise import RowKernel
from dhsk.kernels.smoothed import SmoothedKernel
from dhsk.kernels.stretched import (
    StretchedGaussianKernel,
    StretchedKernel,
    mean_difference,
    stretched,
    unit_of,
)

__all__ = [
    "TIME_SCALES",
    "UNIT_NORM_TOLERANCE",
    "CosineKernel",
    "GaussianKernel",
    "HeatKernel",
    "HyperbolicHeatKernel",
    "Kernel",
    "LinearKernel",
    "ParametrixKernel",
    "PolynomialKernel",
    "RowKernel",
    "RowsLike",
    "SmoothedKernel",
    "SphericalKernel",
    "StretchedGaussianKernel",
    "StretchedKernel",
    "as_rows",
    "inner_product",
    "kernel_from_spec",
    "mean_difference",
    "require_unit_rows",
    "squared_norms",
    "stretched",
    "time_at_scale",
    "unit_of",
]

_FAMILIES: Final[Mapping[str, type[Kernel]]] = {
    family.name: family
    for family in (
        HeatKernel,
        ParametrixKernel,
        CosineKernel,
        LinearKernel,
        GaussianKernel,
        PolynomialKernel,
        HyperbolicHeatKernel,
        SmoothedKernel,
        StretchedKernel,
        StretchedGaussianKernel,
    )
}


def kernel_from_spec(spec: Mapping[str, Any]) -> Kernel:
    """Kernel that `Kernel.to_spec` described, also after a round trip through JSON.

    Parameters
    ----------
    spec
        The name of the family under "name", and its parameters.

    Returns
    -------
    Kernel
        A kernel equal to the one described.

    Raises
    ------
    InputError
        If the name is unknown, or the parameters are not those of the family.
    """
    parameters = dict(spec)
    name = parameters.pop("name", None)
    if not isinstance(name, str) or name not in _FAMILIES:
        raise InputError(f"unknown kernel {name!r}: choose one of {', '.join(_FAMILIES)}")
    inner = parameters.get("kernel")
    if isinstance(inner, Mapping):  # of a kernel made of another
        parameters["kernel"] = kernel_from_spec(inner)
    try:
        return _FAMILIES[name](**parameters)
    except TypeError as error:  # a missing or unknown parameter
        raise InputError(f"kernel {name!r} does not take {parameters}: {error}") from error
