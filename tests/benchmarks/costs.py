"""The first line of a run beside what the run then takes: seconds, memory and disk (Linux).

Run as ``python tests/benchmarks/costs.py --data DIR``; DIR, or the environment variable DHSK_DATA,
holds the files that the READMEs of the examples name. Every run is a command in a process of its
own, and its prediction is read from what it prints. It prints ratios of predicted to measured: of
seconds, of processor seconds of the whole process tree spread over all cores (what the run would
take if nobody else computed and every core were busy), of its peak memory, of the most bytes of its
folders and of those that stay. "outside" names what is off by more than a factor of two in both of
the seconds, or by more than 1.3 and some megabytes in the others. ``--only digits,gram`` takes some
of the runs.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from defaults import line, mnist, newsgroups, of_scikit_learn, tumours
from memory import tree_bytes
from records import parsed, parser_of, record
from scipy.sparse import issparse, save_npz

from dhsk.costs import BRIEF_SECONDS
from dhsk.execution.limits import core_count
from dhsk.objects.places import bytes_below
from dhsk.units import parse_bytes

LOOK_SECONDS = 0.3

TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0}

SAID = re.compile(
    r": (?:(?:some seconds|about (?P<number>[\d,]+) (?P<unit>s|min|h|days)), )?"
    r"(?P<memory>[\d.,]+ \w+) of memory, (?P<disk>[\d.,]+ \w+) of disk while it runs, "
    r"(?P<stays>[\d.,]+ \w+) stay"
)
"""The line of a `dhsk.costs.Cost`."""

SLACK = {"memory": 5e7, "disk": 5e6, "stays": 2e6}
"""Bytes by which a prediction may be wrong whatever its ratio."""

FACTORS = {"seconds": 2.0, "memory": 1.3, "disk": 1.3, "stays": 1.3}

RUNS: Mapping[str, tuple[str, str]] = {
    "digits, cv": ("digits", "cv"),
    "MNIST 2,000, cv": ("MNIST 2000", "cv"),
    "MNIST 6,000, cv": ("MNIST 6000", "cv"),
    "MNIST 2,000, cv, s and C": ("MNIST 2000", "cv --time-scale 0.5,1 --C 1,10"),
    "MNIST 6,000, cv, s and C": ("MNIST 6000", "cv --time-scale 0.5,1 --C 1,10"),
    "MNIST 6,000, cv, rank": ("MNIST 6000", "cv --time-scale 0.5,1 --C 1,10 --rank 1000"),
    "MNIST 60,000, cv": ("MNIST 60000", "cv"),
    "posts 1,500, cv": ("posts 1500", "cv"),
    "posts 3,000, cv": ("posts 3000", "cv"),
    "posts 1,500, cv, both maps": ("posts 1500", "cv --map auto"),
    "posts 3,000, cv, both maps": ("posts 3000", "cv --map auto"),
    "tumours 1,000, cv": ("tumours 1000", "cv"),
    "MNIST 20,000, train": ("MNIST 20000", "train --C 10"),
    "MNIST 20,000, train, rank": ("MNIST 20000", "train --C 10 --rank 2000"),
    "MNIST 20,000, predict": ("MNIST 20000", "predict"),
    "MNIST 20,000, gram": ("MNIST 20000", "gram"),
    "posts 15,000, gram": ("posts 15000", "gram"),
}
"""Samples and words of each command. The model that predicts is fitted to a quarter of them."""


@dataclass(frozen=True)
class Costs:
    """Seconds and bytes of a run, predicted or measured."""

    seconds: float
    memory: float
    disk: float
    stays: float


@dataclass(frozen=True)
class Measured(Costs):
    """What a run took, and what it had said."""

    work: float
    """Processor seconds of all its processes, over the number of cores."""
    said: Costs

    def ratios(self) -> Iterator[tuple[str, float]]:
        """Predicted over measured, by name."""
        for name in ("seconds", "work", "memory", "disk", "stays"):
            said = getattr(self.said, "seconds" if name == "work" else name)
            yield name, said / max(getattr(self, name), 1e-9)

    @property
    def outside(self) -> list[str]:
        """Names of what was predicted too badly."""
        found, ratios = [], dict(self.ratios())
        brief = max(self.seconds, self.said.seconds) < 2 * BRIEF_SECONDS
        for name, factor in FACTORS.items():
            near = [ratios[name], *([ratios["work"]] if name == "seconds" else [])]
            slack = SLACK.get(name)
            close = abs(getattr(self.said, name) - getattr(self, name)) < (slack or 0.0)
            inside = any(1 / factor <= ratio <= factor for ratio in near)
            # The wall clock of a busy machine lies above what the run would take alone.
            between = name == "seconds" and ratios["seconds"] <= 1 <= ratios["work"]
            if not (inside or between or close or (name == "seconds" and brief)):
                found.append(name)
        return found


def said_in(text: str) -> Costs:
    """What a command said that it will cost; the last such line."""
    *_, found = SAID.finditer(" ".join(text.split()))
    seconds = BRIEF_SECONDS / 2
    if found["number"]:
        seconds = float(found["number"].replace(",", "")) * TIMES[found["unit"]]
    memory, disk, stays = (
        parse_bytes(found[name].replace(",", "")) for name in ("memory", "disk", "stays")
    )
    return Costs(seconds, memory, disk, stays)


def measure(words: Sequence[str], folders: Sequence[Path]) -> Measured:
    """Run a command of dhsk that writes into these folders, the last of them for what goes."""
    environment = os.environ | {"TMPDIR": str(folders[-1])}
    begin, before = time.perf_counter(), os.times()
    memory = disk = 0
    with tempfile.TemporaryFile("w+") as told:
        process = psutil.Popen(
            [sys.executable, "-m", "dhsk", *words],
            stdout=subprocess.DEVNULL, stderr=told, env=environment,
        )  # fmt: skip
        while process.poll() is None:
            memory = max(memory, tree_bytes(process))
            disk = max(disk, sum(map(bytes_below, folders)))
            time.sleep(LOOK_SECONDS)
        seconds, after = time.perf_counter() - begin, os.times()
        told.seek(0)
        text = told.read()
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode} from {' '.join(words)}: {text}")
    work = after.children_user + after.children_system
    work -= before.children_user + before.children_system
    stays = sum(map(bytes_below, folders))
    return Measured(seconds, memory, disk, stays, work / core_count(), said_in(text))


def samples(folder: Path | None) -> Mapping[str, Callable[[], tuple[Any, Any]]]:
    """Functions that read samples and labels, by name."""
    found = {"digits": partial(of_scikit_learn, "digits")}
    if folder is None:
        return found
    readers = {
        "MNIST": partial(mnist, folder / "mnist" / "mnist70k.npz"),
        "posts": partial(newsgroups, folder / "newsgroups" / "20news_bydate.tsv.gz"),
        "tumours": partial(tumours, folder / "tcga" / "tcga_mc3_counts.npz"),
    }
    for name in {name for name, _ in RUNS.values()} - set(found):
        kind, count = name.split()
        found[name] = partial(readers[kind], most=int(count))
    return found


def write_samples(X: Any, y: Any, folder: Path, name: str) -> tuple[str, str]:
    """Write samples and labels; their paths."""
    path = folder / f"{name}.npz" if issparse(X) else folder / f"{name}.npy"
    (save_npz if issparse(X) else np.save)(path, X)
    labels = folder / f"{name}.txt"
    labels.write_text("".join(f"{label}\n" for label in y))
    return str(path), str(labels)


def run(words: str, X: Any, y: Any, folder: Path) -> Measured:
    """One command on some samples."""
    command, *options = words.split()
    kept, gone = folder / "kept", folder / "gone"
    kept.mkdir()
    gone.mkdir()
    path, labels = write_samples(X, y, folder, "samples")
    out = ["--out", str(kept / "out")]
    if command == "predict":
        quarter = write_samples(X[::4], y[::4], folder, "quarter")
        train = ["train", quarter[0], "--labels", quarter[1], "--C", "10"]
        measure([*train, "--out", str(folder / "model.dhsk")], [gone])
        out = [str(folder / "model.dhsk"), path, *out]
        return measure([command, *out], [kept, gone])
    given = [path, *options, *out, *([] if command == "gram" else ["--labels", labels])]
    return measure([command, *given], [kept, gone])


def main() -> None:
    """Print a row a run."""
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--only", default="", help="runs whose names begin so, with semicolons")
    options = parsed(parser)
    known, outside = samples(options.data), 0
    names = ["seconds", "processors", "memory", "disk", "stays"]
    print(line(["run", "seconds", "MB of memory", "MB of disk", "MB stay", *names, "outside"]))
    print(line(["---"] * 11))
    for name, (data, words) in RUNS.items():
        if data not in known or not name.startswith(tuple(options.only.split(";"))):
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = run(words, *known[data](), Path(folder))
        seconds, *sizes = astuple(found)[:4]
        cells = [f"{seconds:.0f}", *(f"{size / 1e6:.1f}" for size in sizes)]
        ratios = [f"{ratio:.2f}" for _, ratio in found.ratios()]
        outside += bool(found.outside)
        print(line([name, *cells, *ratios, ", ".join(found.outside) or "-"]), flush=True)
        told = {"predicted": found.said.memory / 1e9}
        record("memory", f"{name}, as a command", found.memory / 1e9, "GB", told)
        if words.startswith("cv"):
            record(
                "search", f"{name}, as a command", seconds, "s", {"predicted": found.said.seconds}
            )
    print(f"{outside} runs outside; {core_count()} cores, load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
