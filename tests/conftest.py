"""Shared fixtures: small samples, and an oracle for Gram matrices."""

import math
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from distributed import Client
from hypothesis import settings
from scipy.special import eval_gegenbauer

settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is slow beyond some cases, the first of them are not."""
    cases: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("slow")
        if mark is None or "beyond" not in mark.kwargs:
            continue
        name = item.nodeid.partition("[")[0]
        cases[name] += 1
        if cases[name] <= mark.kwargs["beyond"]:
            item.own_markers.remove(mark)


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in this process say nothing of progress, however busy the machine is."""
    monkeypatch.setattr("dhsk.commands.console.QUIET_SECONDS", math.inf)


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """Ctrl-C is heard here and by what is started here.

    A shell ignores it for what it runs in the background, and processes inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20260714)


@pytest.fixture
def counts(rng: np.random.Generator) -> Callable[[int, int], Any]:
    """Maker of count data, (n, dim), without an all-zero row."""

    def make(n: int, dim: int) -> Any:
        X = rng.poisson(0.7, size=(n, dim)).astype(np.float64)
        X[np.arange(n), rng.integers(0, dim, n)] += 1.0
        return X

    return make


@pytest.fixture
def heat_oracle() -> Callable[..., Any]:
    """Heat kernel of count data by scipy's Gegenbauer polynomials and 40-digit weights."""

    def gram(X: Any, dim: int, time: float, Y: Any = None) -> Any:
        unit = [np.sqrt(A / A.sum(axis=1, keepdims=True)) for A in (X, X if Y is None else Y)]
        # One dot product at a time, in extended precision: no BLAS, no common code.
        cosines = np.array(
            [[float((a.astype(np.longdouble) * b).sum()) for b in unit[1]] for a in unit[0]]
        )
        lam, total = (dim - 2) / 2, np.zeros_like(cosines)
        for level, weight in enumerate(_weights(dim, time)):
            total += (
                weight
                * eval_gegenbauer(level, lam, np.clip(cosines, -1, 1))
                / eval_gegenbauer(level, lam, 1.0)
            )
        return total

    return gram


def _weights(dim: int, time: float) -> list[float]:
    """Weights a_l of the normalised series (math of Zhao & Song 2017, Theorem 1), dim >= 3."""
    with mpmath.workdps(40):
        terms = []
        for level in range(1000):
            harmonics = mpmath.binomial(level + dim - 3, level) * (2 * level + dim - 2) / (dim - 2)
            decay = mpmath.exp(-level * (level + dim - 2) * mpmath.mpf(time))
            terms.append(harmonics * decay)
            if level > math.sqrt(dim) and terms[-1] < max(terms) * mpmath.mpf(10) ** -22:
                break
        total = mpmath.fsum(terms)
        return [float(term / total) for term in terms]


@pytest.fixture
def nystrom_oracle() -> Callable[..., Any]:
    """Nyström features of mapped rows by numpy, of full rank; what is left turns them only."""

    def features(kernel: Any, rows: Any, landmarks: Any) -> Any:
        rows, landmarks = (np.asarray(A, dtype=np.float64) for A in (rows, landmarks))
        values, vectors = np.linalg.eigh(kernel(landmarks))
        return kernel(rows, landmarks) @ (vectors / np.sqrt(values))

    return features


@pytest.fixture
def client() -> Any:
    """A cluster of two threads in this process."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as started:
        yield started


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Reader of every file in a folder."""
    return lambda path: {
        str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }


@pytest.fixture
def data_dir() -> Path:
    """Folder with the real data sets; tests that need it are skipped without it."""
    folder = os.environ.get("DHSK_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set DHSK_DATA to the folder that holds them")
    return Path(folder)
