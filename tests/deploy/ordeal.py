"""Ordeal of the batch script: faults at random moments, and results equal to those of one worker.

Of each command and each fault, jobs on two Slurm nodes that this script starts:
    python tests/deploy/ordeal.py --moments 10
Prints a line a job and a table of counts; the exit code is 0 if every job found the local result.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import monotonic, sleep

import numpy as np
from conftest import Slurm, local, outcome_of

LABELS = ("--labels", "labels.txt")
GRID = ("--kernel", "heat,cosine", "--time-scale", "0.5,1", "--C", "1,10")
COMMANDS = {
    "gram": (4000, "gram.out", ("gram", "counts.npy", "--tile", "64")),
    "cv": (900, "cv.out", ("cv", "counts.npy", *LABELS, *GRID)),
    "rank": (4000, "model.npz", ("train", "counts.npy", *LABELS, "--rank", "200")),
}
FAULTS = ("worker", "node", "requeue")


def attempt(
    slurm: Slurm, command: str, fault: str, moment: float, rng: np.random.Generator
) -> tuple[str, dict[str, object]]:
    """Run a job with a fault so many seconds after it was submitted; what happened, the outcome."""
    n, out, words = COMMANDS[command]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        slurm.make_counts(folder, n)
        job = slurm.batch(*words, "--out", out, cwd=folder)
        sleep(moment)
        what = job.suffer(fault, rng) if fault else ""
        state = job.finish(300)
        left = [file.name for file in folder.glob(".dhsk-*")]
        if state != ("COMPLETED", 0) or left:
            print(state, left, job.log, sep="\n")
            return f"{what}, {state}", {}
        return f"{what}, {job.shown()['Restarts']} restarts", outcome_of(folder / out)


def expected_of(command: str) -> dict[str, object]:
    """Outcome on a worker of this machine."""
    n, out, words = COMMANDS[command]
    with tempfile.TemporaryDirectory() as name:
        Slurm.make_counts(Path(name), n)
        return local(*words, cwd=Path(name), out=out)


def main() -> int:
    """Run all attempts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=10)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--faults", default=",".join(FAULTS))
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    right: Counter[tuple[str, str]] = Counter()
    pairs = [(c, f) for c in asked.commands.split(",") for f in asked.faults.split(",")]
    with tempfile.TemporaryDirectory(prefix="dhsk-slurm-") as folder:
        slurm = Slurm(Path(folder))
        try:
            slurm.start()
            for command, fault in pairs:
                expected, begin = expected_of(command), monotonic()
                assert attempt(slurm, command, "", 0, rng)[1] == expected
                whole = monotonic() - begin
                for number in range(asked.moments):
                    moment, begin = rng.uniform(0, 0.9 * whole), monotonic()
                    what, found = attempt(slurm, command, fault, moment, rng)
                    right[command, fault] += found == expected
                    print(
                        f"{command} {fault} {number}: {what} after {moment:.1f} of {whole:.1f} s, "
                        f"done in {monotonic() - begin:.0f} s, "
                        f"{'equal' if found == expected else 'NOT EQUAL'}",
                        flush=True,
                    )
        finally:
            slurm.stop()
    for pair in pairs:
        print(*pair, f"{right[pair]} of {asked.moments} equal", sep="  ")
    return int(sum(right.values()) != asked.moments * len(pairs))


if __name__ == "__main__":
    sys.exit(main())
