"""How far a run says that it is, beside how far it was: the share of all, and the time left.

Run as ``python tests/benchmarks/progress.py --data DIR``; see `costs.py` for DIR. After a quarter,
a half and three quarters of the time of each run it prints the share that was said, and the seconds
that the run was then said to take in all, as a multiple of those that it took. Last is the
longest time without a word, in seconds. A run on few samples compiles first.
"""

import argparse
import os
import warnings
from bisect import bisect
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from costs import samples
from defaults import line

import dhsk
from dhsk.progress import Progress

QUARTERS = (0.25, 0.5, 0.75)

Call = Callable[..., Any]

RUNS: dict[str, tuple[str, Call]] = {
    "digits, search": ("digits", dhsk.cross_validate),
    "MNIST 2,000, search": ("MNIST 2000", dhsk.cross_validate),
    "MNIST 6,000, two times": (
        "MNIST 6000",
        lambda X, y, **how: dhsk.cross_validate(X, y, time_scale=[0.5, 1], C=[1, 10], **how),
    ),
    "posts 1,500, both maps": (
        "posts 1500",
        lambda X, y, **how: dhsk.cross_validate(X, y, sphere_map="auto", **how),
    ),
    "MNIST 6,000, low rank": (
        "MNIST 6000",
        lambda X, y, **how: dhsk.cross_validate(
            X, y, time_scale=[0.5, 1], C=[1, 10], low_rank=dhsk.LowRank(500), **how
        ),
    ),
    "MNIST 20,000, HeatSVC": ("MNIST 20000", lambda X, y, **how: dhsk.HeatSVC().fit(X, y, **how)),
}


def said(call: Call, X: Any, y: Any) -> list[str]:
    """Cells of a run."""
    heard: list[tuple[float, Progress]] = []
    begin = perf_counter()
    call(X, y, progress=lambda event: heard.append((perf_counter() - begin, event)))
    total = perf_counter() - begin
    moments = [moment for moment, _ in heard]
    cells = [f"{total:.0f}"]
    for quarter in QUARTERS:
        moment, event = heard[max(0, bisect(moments, quarter * total) - 1)]
        whole = "-" if event.left is None else f"{(moment + event.left) / total:.2f}"
        cells += [f"{event.of_all:.2f}", whole]
    silences = [b - a for a, b in zip([0.0, *moments], [*moments, total], strict=True)]
    return [*cells, f"{max(silences):.1f}"]


def main() -> None:
    """Print a row a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("DHSK_DATA"))
    parser.add_argument("--only", default="", help="runs whose names begin so, with semicolons")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    known = samples(options.data)
    X, y = known["digits"]()
    for _, call in RUNS.values():
        call(X[:300], y[:300])
    names = [f"{word} at {quarter}" for quarter in QUARTERS for word in ("share", "whole time")]
    print(line(["run", "seconds", *names, "silence"]))
    print(line(["---"] * 9))
    for name, (data, call) in RUNS.items():
        if data in known and name.startswith(tuple(options.only.split(";"))):
            print(line([name, *said(call, *known[data]())]), flush=True)


if __name__ == "__main__":
    main()
