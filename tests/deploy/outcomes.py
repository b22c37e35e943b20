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
    cluster = Client(
        processes=False, n_workers=workers, threads_per_worker=1, set_as_default=False,
        protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0",
    )  # fmt: skip
    with chdir(cwd), cluster as client, pytest.raises(SystemExit) as ended:
        main([*words, "--out", out, "--cluster", client.scheduler.address])
    assert ended.value.code == DONE
    return outcome_of(cwd / out)
