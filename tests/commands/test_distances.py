"""Distances between samples, which were trained on as if they were features."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dhsk.__main__ import DONE
from dhsk.samples.distances import are_distances

pytestmark = pytest.mark.usefixtures("own_cache")

SAID = "distances between samples, not features: give the measurements"


def distances(n: int) -> Any:
    """Distances of points in a plane."""
    points = np.random.default_rng(0).random((n, 2))
    return np.linalg.norm(points[:, None] - points, axis=2)


def test_distances_are_told(run: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """By info, and once by a search and a training."""
    monkeypatch.chdir(tmp_path)
    names = [f"S{k}" for k in range(60)]
    pd.DataFrame(distances(60), names, names).to_csv("d.csv")
    Path("y.txt").write_text("u\nv\n" * 30)
    assert SAID in " ".join(run("info", "d.csv")[1].split())
    words = ("d.csv", "--labels", "y.txt", "--kernel", "linear", "--C", 1)
    for command in (
        ("cv", *words, "--folds", 2, "--out", "o"),
        ("train", *words, "--out", "m.dhsk"),
    ):
        code, _, err = run(*command)
        assert (code, " ".join(err.split()).count(SAID)) == (DONE, 1), err


def test_what_are_distances() -> None:
    """Whole or their lower triangle; not kernels, graphs, or other values."""
    D = distances(30)
    lower = np.where(np.tri(30, dtype=bool), D, np.nan)
    assert are_distances(D)
    assert are_distances(D[:12])
    assert are_distances(lower)
    assert are_distances(np.where(np.eye(30), np.nan, lower))
    graph = D * (D < 0.3)
    for other in (np.exp(-D), graph, D + np.tri(30, k=-1), np.triu(D), D[:5], -D, D[:, ::-1]):
        assert not are_distances(other)
