"""What a command has made, compared whatever computed it."""

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np


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
    """Outcome of a command on workers of this machine."""
    dhsk = [sys.executable, "-m", "dhsk", *words, "--out", out, "--workers", str(workers)]
    done = subprocess.run(dhsk, cwd=cwd, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return outcome_of(cwd / out)
