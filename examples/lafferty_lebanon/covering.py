"""Covering numbers of the heat kernel on a sphere, beside theorem 4 of Lafferty & Lebanon (2002).

How many functions are needed so that each of the kernel's unit ball is near one of them: proven
bounds from the eigenvalues, and what the theorem says of their growth. Needs no data. Run with
`--help` for the options.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import gammaln

sys.path.insert(0, str(Path(__file__).parents[1]))
from _shared import common_options, run_script

DIMENSIONS = {3: "#2f6f9f", 10: "#4d9a57", 375: "#c0392b"}
"""Features, with 375 for the words of WebKB; the sphere has one dimension less."""

TIME_SCALES = (0.3, 0.7, 1, 1.4, 3)
SHORT, NEAR = 0.01, 0.01
"""A short time, and a distance."""


def spectrum(n: int, time: float, least: float) -> tuple[Any, Any]:
    """Logarithms of the eigenvalues above `least`, and their multiplicities, level by level.

    Of the heat kernel with respect to the uniform distribution on the sphere in n dimensions, in
    units of its mean value: exp(-l(l + n - 2)t), for all spherical harmonics of the degree l.
    """
    top = 1
    while top * (top + n - 2) * time < -least:
        top += 1
    level = np.arange(top, dtype=float)
    logs = -level * (level + n - 2) * time
    count = gammaln(level + n - 2) - gammaln(level + 1) - gammaln(n - 1) + np.log(2 * level + n - 2)
    return logs, np.exp(count)


def bounds(n: int, time: float, distance: float) -> tuple[float, float]:
    """Lower and upper bound of the logarithm of the covering number in mean square.

    The unit ball is an ellipsoid with half axes a, the roots of the eigenvalues. Its volume over
    that of a ball bounds the number from below by the product of a/e over all a > e, as a
    projection needs no more. From above, axes below e/√2 are left out, and the rest is covered to
    e/√2: balls of half that about a packing are apart and in an ellipsoid with axes 2a, since
    e/√8 < a. So the number is at most the product of 2a/(e/√8) over all a > e/√2.
    """
    logs, count = spectrum(n, time, 2 * np.log(distance) - np.log(2))
    half, e = logs / 2, np.log(distance)
    over = half > e
    lower = float((count[over] * (half[over] - e)).sum())
    upper = float((count * (half - e + 2.5 * np.log(2))).sum())
    return lower, upper


def growth(n: int, time: float, distance: float) -> float:
    """Logarithm of the theorem's form V t^(-d/2) log^((d+2)/2)(1/e), d = n - 1, by Weyl's constant.

    The theorem leaves the constant open. By Weyl's law the degrees up to L have about 2 L^d/d!
    harmonics, of which those with L² < 2 log(1/e)/t count: the lower bound tends to
    2/d! (2/t)^(d/2) log(1/e)^((d+2)/2) 2/(d + 2).
    """
    d, log = n - 1, -np.log(distance)
    power = d / 2 * np.log(2 / time) + (d + 2) / 2 * np.log(log)
    return float(np.log(4 / (d + 2)) - gammaln(d + 1) + power)


def table() -> str:
    """Markdown: natural logarithms of covering numbers on two spheres."""
    lines = ["| n | time | e | lower bound | upper bound | the theorem's form |"]
    lines.append("|---:" * 6 + "|")
    cases = [(3, SHORT, e) for e in (0.1, 0.01, 1e-4, 1e-8)]
    cases += [(10, SHORT, e) for e in (0.1, 0.01, 1e-4)]
    unit = np.log(375) / 375
    cases += [(375, scale * unit, NEAR) for scale in TIME_SCALES]
    for n, time, distance in cases:
        low, high = bounds(n, time, distance)
        form = growth(n, time, distance)
        said = f"{np.exp(form):.4g}" if form > 0 else f"10^{form / np.log(10):.0f}"
        cells = f"{low:.4g} | {high:.4g} | {said}"
        lines.append(f"| {n} | {time:.4g} | {distance:g} | {cells} |")
    return "\n".join(lines) + "\n"


def band(ax: Any, n: int, colour: str, x: Any, cases: Sequence[tuple[float, float]]) -> None:
    """Bounds as a band, the form of the theorem as a dashed line where it is near."""
    low, high = np.array([bounds(n, *case) for case in cases]).T
    ax.fill_between(x, low, high, color=colour, alpha=0.3, lw=0, label=f"n = {n}, between bounds")
    if n < 100:  # else far below the picture
        form = np.exp([growth(n, *case) for case in cases])
        ax.plot(x, form, color=colour, ls="--", label=f"n = {n}, theorem's form")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylabel("log of the covering number")
    ax.grid(alpha=0.3)


def plot(path: Path) -> None:
    """Against the distance, against the time, and for many features against the time scale."""
    figure = Figure(figsize=(12.5, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    distances, times = np.logspace(-8, -0.3, 60), np.logspace(-3, 0, 60)
    scales = np.logspace(-1, 0.5, 60)
    for n, colour in DIMENSIONS.items():
        if n > 100:
            unit = np.log(n) / n
            band(right, n, colour, scales, [(scale * unit, NEAR) for scale in scales])
            right.set_title(f"n = {n}, e = {NEAR}", fontsize=9)
        else:
            band(left, n, colour, distances, [(SHORT, e) for e in distances])
            band(middle, n, colour, times, [(time, NEAR) for time in times])
    left.set_title(f"t = {SHORT}", fontsize=9)
    left.set_xlabel("distance e in mean square")
    middle.set_title(f"e = {NEAR}", fontsize=9)
    middle.set_xlabel("time t")
    right.set_xlabel("time in units of log(n)/n")
    for ax in (left, middle, right):
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def reproduce(options: argparse.Namespace) -> None:
    """Print the table and draw."""
    text = table()
    (options.out / "covering.md").write_text(text)
    print(f"Natural logarithms of covering numbers\n\n{text}")
    plot(options.out / "covering.png")
    print(f"Written to {options.out}: covering.md, covering.png")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    what = "Covering numbers, after theorem 4 of Lafferty & Lebanon (2002)."
    return run_script(common_options(what, "lafferty-lebanon-results", runs=1), argv, reproduce)


if __name__ == "__main__":
    sys.exit(main())
