"""The command `dhsk kernel`: values and bounds of a heat kernel, and a picture."""

from pathlib import Path
from typing import cast

import click
import numpy as np

from dhsk.commands.console import hint, print_pairs, print_table, say
from dhsk.commands.kernel_plot import plot_kernels
from dhsk.commands.options import make_kernel
from dhsk.commands.parameters import WHOLE_NUMBERS, PathParameter
from dhsk.kernels import HeatKernel, ParametrixKernel

COSINES = (1.0, 0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0, -0.5, -1.0)
"""Cosines of the table; samples on the positive orthant have those from 0 to 1."""


@click.command("kernel")
@click.option(
    "--dim",
    "dims",
    type=WHOLE_NUMBERS,
    multiple=True,
    required=True,
    help="Number of features; several with commas.",
)
@click.option("--time-scale", type=float, help="Time in units of log(dim)/dim. [default: 1]")
@click.option("--time", type=float, help="Absolute diffusion time.")
@click.option(
    "--plot",
    type=PathParameter(dir_okay=False),
    metavar="FILE",
    help="Draw the kernels against the angle: .png, .svg or .pdf.",
)
def kernel(
    dims: tuple[list[int], ...], time_scale: float | None, time: float | None, plot: Path | None
) -> None:
    """Print values of a heat kernel with proven error bounds.

    Figure 1B of Zhao & Song (2017) is --dim 100,200,300 --plot FILE.
    """
    pairs = []
    for dim in dict.fromkeys(dim for group in dims for dim in group):
        exact = cast("HeatKernel", make_kernel(dim, "heat", time_scale, time))
        pairs.append((exact, ParametrixKernel(exact.time)))
    for exact, parametrix in pairs:
        _print_kernel(exact, parametrix)
    if plot is not None:
        plot_kernels(plot, pairs)
        say(f"output: {plot}")
    last = pairs[-1][0]
    draw = "" if plot else "dhsk kernel ... --plot FILE, or "
    hint(f"next:   {draw}dhsk gram SAMPLES --time-scale {last.time_scale:.6g} --out STORE")


def _print_kernel(exact: HeatKernel, parametrix: ParametrixKernel) -> None:
    facts = [
        ("time", f"{exact.time:.6g}, time scale {exact.time_scale:.6g} (units of log(dim)/dim)"),
        (
            "proven",
            f"error below {exact.error_bound.absolute:.1e}, relative below "
            f"{exact.error_bound.relative:.1e} where the kernel is above 1e-290",
        ),
    ]
    print_pairs(f"Heat kernel on the sphere of dim {exact.dim:,}, K(1) = 1", facts)
    for line in exact.explain().splitlines()[1:]:
        say(f"  {line}")
    angles = np.arccos(COSINES)
    values = exact.of_cosine(COSINES), parametrix.of_cosine(COSINES)
    print_table(
        ["cosine", "angle", "degrees", "exact", "parametrix"],
        [
            (f"{c:g}", f"{theta:.4f}", f"{np.degrees(theta):.1f}", f"{K:.6g}", f"{P:.6g}")
            for c, theta, K, P in zip(COSINES, angles, *values, strict=True)
        ],
    )
    say()
