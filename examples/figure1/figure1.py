"""Figure 1 of Zhao & Song (2017): what the exact heat kernel on a sphere is.

Left, random walks on the sphere in three dimensions, over a map of the exact kernel. Middle, where
many walks end, against the kernel. Right, exact kernel and parametrix in 100, 200 and 300
dimensions. Needs no data. Run with `--help` for the options.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

import dhsk

sys.path.insert(0, str(Path(__file__).parents[1]))
from _shared import common_options, run_script

TIME = 0.15
"""Diffusion time of the walks, in which they go about 38 degrees."""

DIMENSIONS = {100: "#2f6f9f", 200: "#4d9a57", 300: "#c0392b"}
WARM = LinearSegmentedColormap.from_list("warm", ["#f4f4f4", "#f2b28a", "#b2182b"])


def walk(count: int, steps: int, seed: int) -> Any:
    """Random walks on the unit sphere from the north pole, (steps + 1, count, 3).

    The heat equation dK/dt = Laplacian K is that of walks whose steps have the variance 2 dt in
    each direction of the tangent plane.
    """
    rng = np.random.default_rng(seed)
    places = np.empty((steps + 1, count, 3))
    places[0] = [0, 0, 1]
    for step in range(steps):
        here = places[step]
        move = rng.normal(scale=np.sqrt(2 * TIME / steps), size=here.shape)
        move -= (move * here).sum(axis=1, keepdims=True) * here
        length = np.linalg.norm(move, axis=1, keepdims=True)
        places[step + 1] = np.cos(length) * here + np.sin(length) * move / length
    return places


def density(angles: Any) -> Any:
    """Density of the angle that a walk has gone, by the exact kernel on S^2."""
    fine = np.linspace(0, np.pi, 20_001)
    kernel = dhsk.HeatKernel(dim=3, time=TIME)
    total = np.trapezoid(kernel.of_cosine(np.cos(fine)) * np.sin(fine), fine)
    return kernel.of_cosine(np.cos(angles)) * np.sin(angles) / total


def greatest_difference(angles: Any) -> float:
    """Kolmogorov and Smirnov's distance of walked angles from the exact distribution."""
    fine = np.linspace(0, np.pi, 20_001)
    exact = np.concatenate([[0], np.cumsum((density(fine)[1:] + density(fine)[:-1]) / 2)])
    exact *= fine[1]
    walked = np.searchsorted(np.sort(angles), fine, side="right") / len(angles)
    return float(np.abs(walked - exact).max())


def draw_sphere(ax: Any, places: Any) -> None:
    """Some walks on the sphere, which is coloured by the kernel."""
    polar, around = np.mgrid[0 : np.pi : 61j, 0 : 2 * np.pi : 121j]
    x, y, z = np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)
    heat = dhsk.HeatKernel(dim=3, time=TIME).of_cosine(np.clip(z, -1, 1))
    ax.plot_surface(x, y, z, facecolors=WARM(heat), rstride=1, cstride=1, shade=False, zorder=0)
    eye = np.array([np.cos(np.radians(-60)), np.sin(np.radians(-60)), 1.4])
    for number in range(6):
        path = 1.01 * places[:, number]
        path = np.where((path @ eye)[:, None] > 0, path, np.nan)
        ax.plot(*path.T, lw=0.9, zorder=5)
    ax.view_init(elev=55, azim=-60)
    ax.set_box_aspect((1, 1, 1), zoom=1.2)
    ax.set_axis_off()
    ax.set_title(f"six walks on $S^2$, t = {TIME}; the redder, the larger the kernel", fontsize=9)


def draw_angles(ax: Any, angles: Any) -> None:
    """Angles at which the walks end, beside the exact density."""
    fine = np.linspace(0, np.pi, 400)
    ax.hist(np.degrees(angles), bins=60, density=True, color="#d9c3b5", label="random walks")
    ax.plot(np.degrees(fine), density(fine) * np.pi / 180, color="#b2182b", label="exact kernel")
    ax.set_xlabel("angle from the start (degrees)")
    ax.set_ylabel("density (1/degree)")
    ax.set_title(f"where {len(angles):,} walks end", fontsize=9)
    ax.legend(fontsize=8)


def draw_kernels(ax: Any) -> None:
    """Exact kernel and parametrix against the angle, at t = log(n)/n."""
    theta = np.linspace(0, np.pi / 2, 400)
    for n, colour in DIMENSIONS.items():
        time = np.log(n) / n
        exact = dhsk.HeatKernel(dim=n, time=time).of_cosine(np.cos(theta))
        near = dhsk.ParametrixKernel(time).of_cosine(np.cos(theta))
        ax.plot(np.degrees(theta), exact, color=colour, label=f"exact, n = {n}")
        ax.plot(np.degrees(theta), near, color=colour, ls=":", label=f"parametrix, n = {n}")
    ax.set_xlabel("angle between two samples (degrees)")
    ax.set_ylabel("kernel value, 1 at angle 0")
    ax.set_title("t = log(n)/n: the exact curves nearly coincide", fontsize=9)
    ax.legend(fontsize=8)


def reproduce(options: argparse.Namespace) -> None:
    """Walk, compare, draw."""
    out, quick = options.out, options.quick
    places = walk(2_000 if quick else 20_000, 50 if quick else 200, seed=0)
    angles = np.arccos(np.clip(places[-1, :, 2], -1, 1))
    lines = ["| n | exact at 60° | parametrix at 60° | exact at 90° | parametrix at 90° |"]
    lines.append("|---:" * 5 + "|")
    for n in DIMENSIONS:
        time = np.log(n) / n
        pair = dhsk.HeatKernel(dim=n, time=time), dhsk.ParametrixKernel(time)
        values = [k.of_cosine(np.array([c]))[0] for c in (0.5, 0.0) for k in pair]
        lines.append(f"| {n} | " + " | ".join(f"{value:.4g}" for value in values) + " |")
    text = "\n".join(lines) + "\n"
    (out / "figure1.md").write_text(text)
    print(f"{len(angles):,} walks, mean angle {np.degrees(angles.mean()):.1f} degrees; greatest")
    print(f"difference of their distribution from the exact one: {greatest_difference(angles):.4f}")
    print(f"\nKernel values at t = log(n)/n\n\n{text}")
    figure = Figure(figsize=(12.5, 4.2), layout="constrained")
    draw_sphere(figure.add_subplot(1, 3, 1, projection="3d"), places)
    draw_angles(figure.add_subplot(1, 3, 2), angles)
    draw_kernels(figure.add_subplot(1, 3, 3))
    figure.savefig(out / "figure1.png", dpi=110)
    print(f"Written to {out}: figure1.md, figure1.png")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    parser = common_options("Figure 1 of Zhao & Song (2017).", "figure1-results", runs=1)
    return run_script(parser, argv, reproduce)


if __name__ == "__main__":
    sys.exit(main())
