"""Kernels say whether they are positive semi-definite, and the indefinite ones are."""

import numpy as np
import pytest

import dhsk
from dhsk.kernels import Kernel, SphericalKernel, StretchedGaussianKernel, StretchedKernel
from dhsk.kernels.base import check_semidefinite

HEAT = dhsk.HeatKernel(3, 0.1)
FACTOR = dhsk.ParametrixKernel(0.1)
EXPANSION = dhsk.ParametrixKernel(0.1, order=1, dim=3)

SAID: list[tuple[Kernel, bool | None]] = [
    (HEAT, True),
    (dhsk.CosineKernel(), True),
    (dhsk.LinearKernel(), True),
    (dhsk.GaussianKernel(2.0), True),
    (dhsk.PolynomialKernel(3, 1.0), True),
    (dhsk.HyperbolicHeatKernel(3, 0.5), True),
    (FACTOR, None),
    (EXPANSION, False),
    (dhsk.ParametrixKernel(0.1, order=2, dim=2), None),  # the factor itself
    (dhsk.SmoothedKernel(HEAT, 0.5), True),
    (dhsk.SmoothedKernel(EXPANSION, 0.5), False),
    (dhsk.AveragedKernel(HEAT, 0.5), True),
    (dhsk.AveragedKernel(EXPANSION, 0.5), False),
    (StretchedKernel(HEAT, 2.0), True),
    (StretchedKernel(HEAT, 0.5), None),
    (StretchedKernel(EXPANSION, 0.5), False),
    (StretchedGaussianKernel(2.0, 1.0), True),
    (StretchedGaussianKernel(2.0, 0.5), None),
]


def smallest_eigenvalue(kernel: SphericalKernel, angles: object) -> float:
    """Smallest eigenvalue of the matrix of points on a great circle."""
    angles = np.asarray(angles)
    cosines = np.cos(angles[:, None] - angles)
    return float(np.linalg.eigvalsh(kernel.of_cosine(cosines))[0])


@pytest.mark.parametrize(("kernel", "said"), SAID)
def test_each_family_says_it(kernel: Kernel, said: bool | None) -> None:
    """True where it is proven, False where it is known not to be, None where it depends."""
    assert kernel.positive_semidefinite is said


@pytest.mark.parametrize("time", [0.2, 0.5, 2.0])
def test_the_gaussian_factor_is_indefinite_on_the_sphere_alone(time: float) -> None:
    """Around a whole circle it has a negative eigenvalue; on a quarter it is a plain Gaussian."""
    kernel = dhsk.ParametrixKernel(time)
    assert smallest_eigenvalue(kernel, np.linspace(0, 2 * np.pi, 400, endpoint=False)) < -1e-8
    rounding = 400 * float(np.finfo(float).eps)
    assert smallest_eigenvalue(kernel, np.linspace(0, np.pi / 2, 400)) > -400 * rounding


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("dim", [3, 10, 100])
def test_two_rows_show_that_the_expansion_is_indefinite(order: int, dim: int) -> None:
    """At the antipode it is infinite: above 1, the root of the product of the diagonal."""
    kernel = dhsk.ParametrixKernel.at_scale(dim, 0.7, order)
    assert abs(float(kernel.of_cosine(-1.0))) > 1.0


def test_only_known_indefinite_kernels_are_refused() -> None:
    """The message names the kernel and the way out; "allow" takes it."""
    for kernel, said in SAID:
        if said is False:
            with pytest.raises(dhsk.InputError, match="or give indefinite='allow'") as error:
                check_semidefinite(kernel, "error")
            assert kernel.label in str(error.value)
        else:
            check_semidefinite(kernel, "error")
        check_semidefinite(kernel, "allow")
    with pytest.raises(dhsk.InputError, match="indefinite must be 'error' or 'allow', but it is 3"):
        check_semidefinite(HEAT, 3)
