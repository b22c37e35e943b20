"""Commands in parts that are killed, beside one process: the same bits, and what it costs.

Run as ``python tests/benchmarks/parts.py [SECTION ...] [--parts 16] [--place DIR]``: without
sections training, prediction and comparison, each by that many processes of this machine at a time,
of which one every few seconds is killed and begun again. DIR may be a prefix on a server,
s3://BUCKET/PREFIX.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
from records import parsed, parser_of, record

from dhsk.objects.places import Place, parse_place

N, DIM, RANK = 2_000_000, 20, 100
COMPARED = (10_000, 20_000, 40_000)
"""Samples of both sets together: pairs, which grow with the square of it."""

KILL_SECONDS = 4.0
"""Mean time between two kills, of which there are as many as parts, at most."""


def started(words: list[str], folder: Path, log: Path) -> "subprocess.Popen[bytes]":
    """A command in a process group of its own."""
    command = [sys.executable, "-m", "dhsk", *words]
    with log.open("ab") as file:
        return subprocess.Popen(
            command, cwd=folder, stdout=file, stderr=file, start_new_session=True
        )


def whole(words: list[str], folder: Path) -> float:
    """Seconds of a command in one process."""
    begin = perf_counter()
    process = started(words, folder, folder / "whole.log")
    assert process.wait() == 0, (folder / "whole.log").read_text()
    return perf_counter() - begin


def in_parts(words: list[str], folder: Path, count: int) -> tuple[float, int]:
    """Seconds of a command in parts, and how many of them were killed."""
    rng, begin = np.random.default_rng(os.getpid()), perf_counter()
    parts = [[*words, "--part", f"{number}/{count}"] for number in range(1, count + 1)]
    logs = [folder / f"part-{number}.log" for number in range(count)]
    running = {k: started(parts[k], folder, logs[k]) for k in range(count)}
    kills, following = 0, begin + rng.exponential(KILL_SECONDS)
    while running:
        for k in [k for k, process in running.items() if process.poll() is not None]:
            assert running.pop(k).returncode == 0, logs[k].read_text()
        if running and kills < count and perf_counter() > following:
            k = int(rng.choice(list(running)))
            os.killpg(running[k].pid, signal.SIGKILL)
            running[k].wait()
            running[k] = started(parts[k], folder, logs[k])
            kills += 1
            following = perf_counter() + rng.exponential(KILL_SECONDS)
        sleep(0.05)
    return perf_counter() - begin, kills


def said(what: str, one: float, found: tuple[float, int], count: int, *, same: bool) -> None:
    """Print and record what a section found."""
    seconds, kills = found
    named = f"{what}, {count} processes on two cores, some killed"
    record("interruption", named, seconds, "s", {"one process": one}, runs=kills)
    print(
        f"  {what}: {count} processes {seconds:.0f} s, {kills} of them killed; one process "
        f"{one:.0f} s; {'the same bits' if same else 'OTHER BITS'}",
        flush=True,
    )


def make_samples(folder: Path) -> None:
    """Counts of two classes that overlap."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    X = rng.gamma(0.7, size=(N, DIM)).astype(np.float32)
    X[y == 1, : DIM // 2] *= 1.5
    np.save(folder / "x.npy", X)
    np.savetxt(folder / "y.txt", y, fmt="%d")
    for n in COMPARED:
        np.save(folder / f"a{n}.npy", X[: n // 2])
        np.save(folder / f"b{n}.npy", X[n // 2 : n])


def train(folder: Path, place: Place, count: int) -> None:
    """A model of low rank."""
    words = ["train", "x.npy", "--labels", "y.txt", "--rank", str(RANK), "--time-scale", "0.7"]
    one = whole([*words, "--out", "one.dhsk", "--part", "1/1"], folder)
    found = in_parts([*words, "--out", str(place / "m.dhsk")], folder, count)
    same = (place / "m.dhsk").read_bytes() == (folder / "one.dhsk").read_bytes()
    said(f"training on {N:,} samples, rank {RANK}", one, found, count, same=same)


def predict(folder: Path, place: Place, count: int) -> None:
    """Labels and decisions by that model."""
    if not (folder / "one.dhsk").exists():
        words = ["train", "x.npy", "--labels", "y.txt", "--rank", str(RANK), "--time-scale", "0.7"]
        whole([*words, "--out", "one.dhsk", "--part", "1/1"], folder)
    words = ["predict", "one.dhsk", "x.npy", "--decision", "--out"]
    one = whole([*words, "one.csv"], folder)
    found = in_parts([*words, str(place / "p.csv")], folder, count)
    same = (place / "p.csv").read_bytes() == (folder / "one.csv").read_bytes()
    said(f"predictions of {N:,} samples", one, found, count, same=same)


def compare(folder: Path, place: Place, count: int) -> None:
    """The test of two sets, by their witness: the sum of a row of each sample."""
    for n in COMPARED:
        words = ["compare", f"a{n}.npy", f"b{n}.npy", "--permutations", "199", "--out"]
        one = whole([*words, f"one{n}"], folder)
        found = in_parts([*words, str(place / f"c{n}")], folder, count)
        witness = [out / "witness.csv" for out in (folder / f"one{n}", place / f"c{n}")]
        same = witness[0].read_bytes() == witness[1].read_bytes()
        said(f"comparison of {n:,} samples", one, found, count, same=same)


SECTIONS: dict[str, Callable[[Path, Place, int], None]] = {
    "train": train,
    "predict": predict,
    "compare": compare,
}


def main() -> None:
    """Run the sections."""
    parser = parser_of(__doc__, SECTIONS)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--place", help="folder or s3://BUCKET/PREFIX")
    given = parsed(parser)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_samples(folder)
        place = parse_place("place", given.place or folder / "shared")
        if isinstance(place, Path):
            place.mkdir(parents=True, exist_ok=True)
        for section in given.sections or SECTIONS:
            SECTIONS[section](folder, place, given.parts)


if __name__ == "__main__":
    main()
