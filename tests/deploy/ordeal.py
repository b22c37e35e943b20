"""Ordeal of the Slurm recipes: faults at random moments, and results equal to those of one worker.

Each recipe, command and fault, so many times, on two Slurm nodes that this script starts:
    python tests/deploy/ordeal.py --moments 10 --data DIR
`DIR` has the WebKB pages (see examples/webkb); without it the samples are counts drawn at random.
A moment at which nothing is at work does not count, and another one is drawn in its place. Prints a
line an attempt and a table of counts; the exit code is 0 if every attempt found the local result.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
from ordeal_runs import RECIPES
from outcomes import local, outcome_of
from slurm_nodes import Slurm, await_that

PREPARE = Path(__file__).parents[2] / "examples" / "webkb" / "prepare.py"
OUTS = {"gram": "gram.out", "cv": "cv.out", "rank": "model.npz"}
GRID = ("--kernel", "heat,cosine", "--C", "1,10")


@dataclass(frozen=True)
class Inputs:
    """A folder of samples and labels, and the commands that suit them."""

    folder: Path
    commands: dict[str, tuple[str, ...]]

    @classmethod
    def drawn(cls, folder: Path) -> "Inputs":
        """Counts at random."""
        Slurm.make_counts(folder, 2000)
        return cls(folder, commands_of("counts.npy", scales="0.5,1"))

    @classmethod
    def webkb(cls, folder: Path, data: Path) -> "Inputs":
        """Words of the WebKB pages."""
        prepare = [sys.executable, PREPARE, "--data", data, "--out", folder]
        subprocess.run(prepare, check=True, capture_output=True)
        return cls(folder, commands_of("counts.npz", scales="1,1.4"))

    def expected(self, command: str) -> dict[str, Any]:
        """Outcome of a command on a worker of this machine."""
        with tempfile.TemporaryDirectory() as name:
            shutil.copytree(self.folder, name, dirs_exist_ok=True)
            return local(*self.commands[command], cwd=Path(name), out=OUTS[command])


def commands_of(samples: str, scales: str) -> dict[str, tuple[str, ...]]:
    """A Gram matrix, a cross-validation and a training of low rank."""
    labels = ("--labels", "labels.txt")
    return {
        "gram": ("gram", samples, "--tile", "64"),
        "cv": ("cv", samples, *labels, *GRID, "--time-scale", scales),
        "rank": ("train", samples, *labels, "--rank", "500"),
    }


@dataclass(frozen=True)
class Attempt:
    """One run of a command."""

    hit: str
    """What the fault hit; empty if nothing was at work any more."""
    end: str
    worked: float
    """Seconds of work until the fault, or the end."""
    outcome: dict[str, Any]


@dataclass(frozen=True)
class Ordeal:
    """A command by a recipe."""

    slurm: Slurm
    inputs: Inputs
    recipe: str
    command: str

    def attempt(self, fault: str, moment: float, rng: np.random.Generator) -> Attempt:
        """Run the command, with a fault so many seconds after it began to work."""
        with tempfile.TemporaryDirectory(prefix="dhsk-ordeal-") as name:
            folder = Path(name)
            shutil.copytree(self.inputs.folder, folder, dirs_exist_ok=True)
            words = self.inputs.commands[self.command]
            run = RECIPES[self.recipe](self.slurm, folder, words, OUTS[self.command])
            run.start()
            await_that(lambda: run.is_at_work() or run.has_ended(), "work", 120)
            begin, hit = monotonic(), ""
            while run.is_at_work() and monotonic() < begin + moment:
                sleep(0.05)
            worked = monotonic() - begin
            if run.is_at_work():
                files = run.files
                hit = f"{run.suffer(fault, rng)}, {files} files written"
            try:
                end = run.finish()
                assert not run.left(), f"left: {run.left()}"
            except AssertionError as error:
                return Attempt(hit, str(error), worked, {})
            return Attempt(hit, end, worked, outcome_of(folder / run.out))

    def attempts(
        self, faults: Sequence[str], count: int, rng: np.random.Generator
    ) -> Iterator[tuple[str, str, bool]]:
        """So many attempts of each fault that hit something: the fault, a line, whether right."""
        expected, undisturbed = self.inputs.expected(self.command), self.attempt("", np.inf, rng)
        assert undisturbed.outcome == expected, undisturbed.end
        for fault in [fault for fault in faults for _ in range(count)]:
            begin, one = monotonic(), undisturbed
            while not one.hit:
                assert one.outcome == expected, one.end
                moment = rng.uniform(0, undisturbed.worked)
                one = self.attempt(fault, moment, rng)
            when = f"after {moment:.1f} of {undisturbed.worked:.1f} s of work"
            what = f"{when}: {one.hit}; {one.end}, {monotonic() - begin:.0f} s in all"
            yield fault, what, one.outcome == expected


def main() -> int:
    """Run all attempts."""
    asked = words_given()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Slurm is stopped then too
    rng, right = np.random.default_rng(asked.seed), Counter[tuple[str, str, str]]()
    with (
        tempfile.TemporaryDirectory(prefix="dhsk-slurm-") as folder,
        tempfile.TemporaryDirectory(prefix="dhsk-inputs-") as place,
    ):
        slurm, where = Slurm(Path(folder)), Path(place)
        inputs = Inputs.webkb(where, asked.data) if asked.data else Inputs.drawn(where)
        try:
            slurm.start()
            for recipe, command in product(asked.recipes.split(","), asked.commands.split(",")):
                if recipe == "array" and command != "gram":
                    continue  # only that has parts
                faults = asked.faults.split(",") if asked.faults else RECIPES[recipe].faults
                ordeal = Ordeal(slurm, inputs, recipe, command)
                for fault, what, equal in ordeal.attempts(faults, asked.moments, rng):
                    right[recipe, command, fault] += equal
                    said = "equal" if equal else "NOT EQUAL"
                    print(recipe, command, fault, what, said, sep="  ", flush=True)
        finally:
            slurm.stop()
    for kind, count in right.items():
        print(*kind, f"{count} of {asked.moments} equal", sep="  ")
    return int(any(count < asked.moments for count in right.values()))


def words_given() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=10)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--data", type=Path, default=os.environ.get("DHSK_DATA"))
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--commands", default=",".join(OUTS))
    parser.add_argument("--faults", help="all those of a recipe by default")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
