"""Samples of two classes of which few are support vectors, made with a seed, of any number."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dhsk

Matrix = NDArray[np.float64]

WORDS = 100
COUNTS = 100
NEAR = 0.005
"""Share of samples near the border."""
OWN = (0.85, 1.0)
"""Share of a sample's own topics in its words: a margin of 0.7 between the classes."""
BORDER = (0.53, 0.65)
"""The same of samples near the border, which become most of the support vectors."""
STEP = 50_000


def draw(
    n: int, seed: int = 0, near: float = NEAR, rare: float | None = None
) -> Iterator[tuple[Matrix, NDArray[np.int64]]]:
    """Counts of words and labels, block by block.

    Each of two classes has two topics, each a Dirichlet(0.2) profile. A sample has 100 words of its
    own class's topics, in proportions drawn at random, and of the other's; no label is wrong.
    `rare` is the share of the second class, None for a half.
    """
    topics = np.random.default_rng(seed).dirichlet(np.full(WORDS, 0.2), (2, 2))
    rng = np.random.default_rng([seed, n])
    for start in range(0, n, STEP):
        size = min(STEP, n - start)
        y = rng.integers(0, 2, size) if rare is None else (rng.random(size) < rare).astype(int)
        at_border = rng.random(size) < near
        own = np.where(at_border, rng.uniform(*BORDER, size), rng.uniform(*OWN, size))
        of_first = np.where(y == 0, own, 1.0 - own)[:, None]
        first, second = (rng.dirichlet(np.ones(2), size) @ topic for topic in topics)
        profiles = of_first * first + (1.0 - of_first) * second
        yield rng.multinomial(COUNTS, profiles).astype(np.float64), y


def write_samples(folder: Path, n: int) -> None:
    """Mapped rows and labels of `n` samples, as `rows.npy` and `labels.npy`."""
    _write(folder, n, np.float64, ((dhsk.hyperspherical_map(X), y) for X, y in draw(n)))


def write_counts(folder: Path, n: int, rare: float | None = None, times: float = 1.0) -> None:
    """Counts in float32 and labels likewise, with `times` as many near the border as of a million.

    Where a class is rare, `NEAR` of all samples are: few of them meet one of the other class.
    """
    near = times * NEAR * (min(1.0, 1e6 / n) if rare is None else 1.0)
    _write(folder, n, np.float32, draw(n, near=near, rare=rare))


def _write(folder: Path, n: int, dtype: Any, parts: Iterable[tuple[Any, Any]]) -> None:
    rows: Any = np.lib.format.open_memmap(
        folder / "rows.npy", mode="w+", dtype=dtype, shape=(n, WORDS)
    )
    labels = np.empty(n, np.int64)
    start = 0
    for X, y in parts:
        part = slice(start, start + len(y))
        rows[part], labels[part] = X, y
        start = part.stop
    np.save(folder / "labels.npy", labels)
