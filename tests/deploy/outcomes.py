"""What a command has made, compared whatever computed it."""

import csv
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

from dhsk.__main__ import DONE, main


def outcome_of(path: Path) -> dict[str, Any]:
    """All of a store, a model, predictions or a cross-validation that must be the same anywhere."""
    if path.suffix == ".csv":
        return {"rows": path.read_bytes()}
    if path.is_file():
        with np.load(path) as archive:
            return {name: archive[name].tobytes() for name in archive.files}
    if (path / "results.csv").exists():
        with (path / "results.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert rows
        return {str(number): row | {"seconds": ""} for number, row in enumerate(rows)}
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def local(*words: str, cwd: Path, out: str, workers: int = 1) -> dict[str, Any]:
    """Outcome of a command on threads of this process, as many as it would have workers."""
    run_here(*words, "--out", out, cwd=cwd, workers=workers)
    return outcome_of(cwd / out)


def run_here(*words: str, cwd: Path, workers: int = 1) -> None:
    """Run a command in the same way."""
    cluster = Client(
        processes=False, n_workers=workers, threads_per_worker=1, set_as_default=False,
        protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0",
    )  # fmt: skip
    with cluster as client:
        run_on(client.scheduler.address, *words, cwd=cwd)


def run_on(cluster: str, *words: str, cwd: Path) -> None:
    """Run a command in this process, whose tasks a cluster computes."""
    with chdir(cwd), pytest.raises(SystemExit) as ended:
        main([*words, "--cluster", cluster])
    assert ended.value.code == DONE
