"""Eigenpairs from products: right, certified, the same bits again, also after a kill."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.kept_pass import KeptProducts
from dhsk.solvers import eigenpairs
from dhsk.solvers.eigenpairs import (
    FEWEST_BLOCKS,
    Eigenpairs,
    is_small,
    leading_eigenpairs,
    most_blocks,
)

N, K = 300, 6

EPS = float(np.finfo(np.float64).eps)

SPECTRA: dict[str, Floats] = {
    "decaying": 0.9 ** np.arange(N),
    "flat bulk": np.concatenate([[9.0, 8.0, 5.0, 5.0, 3.0, 2.0], np.linspace(1, 0, N - K)]),
    "equal values": np.concatenate([[7.0] * 4, [3.0] * 4, np.linspace(1, 0, N - 8)]),
    "indefinite": np.concatenate([[9.0, 8, 7, 6, 5, 4], np.linspace(0, -20, N - K)]),
    "rank three": np.concatenate([[4.0, 3.0, 2.0], np.zeros(N - 3)]),
    "zero": np.zeros(N),
    "identity": np.ones(N),
    "identity and one": np.concatenate([[2.0], np.ones(N - 1)]),
}


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of these tests are not small."""
    monkeypatch.setattr(eigenpairs, "SMALL", 100)


def matrix(values: Floats) -> Floats:
    """Symmetric matrix of these eigenvalues."""
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    A: Floats = (Q * values) @ Q.T
    return (A + A.T) / 2


def product_with(A: Floats) -> Callable[[Floats], Floats]:
    """Products with a matrix in memory."""
    return lambda V: A @ V


@pytest.mark.parametrize("blocks", [FEWEST_BLOCKS, 24], ids=["restarted", "in one space"])
@pytest.mark.parametrize("name", SPECTRA)
def test_eigenpairs_are_those_of_the_matrix(name: str, blocks: int) -> None:
    """Values, residuals and orthonormal vectors, whatever the spectrum."""
    values = np.sort(SPECTRA[name])[::-1]
    A, scale = matrix(values), max(abs(values).max(), EPS)
    found = leading_eigenpairs(product_with(A), N, K, tol=1e-9, blocks=blocks)
    assert found.converged
    # By Weyl's theorem an eigenvalue is within the residual of the Ritz value.
    assert np.abs(found.values - values[:K]).max() <= 1e-9 * scale + N * EPS * scale
    lacking = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0)
    assert lacking.max() <= 2e-9 * scale
    assert np.abs(found.vectors.T @ found.vectors - np.eye(K)).max() <= 64 * K * EPS
    assert (np.abs(found.vectors).max(axis=0) == found.vectors.max(axis=0)).all()


@pytest.mark.parametrize("n", [1, 2, 50, 100])
def test_small_matrices_are_decomposed_as_a_whole(n: int) -> None:
    """In two passes, to rounding."""
    values = np.linspace(2, 1, n)
    A = matrix(values)
    found = leading_eigenpairs(product_with(A), n, n, tol=1e-12)
    assert found.passes == 2
    assert np.abs(found.values - values).max() <= n * EPS
    assert found.converged


@pytest.mark.parametrize("k", [0, -1, 13])
def test_more_pairs_than_rows_are_refused(k: int) -> None:
    """And fewer than one."""
    with pytest.raises(InputError, match=rf"from 1 to the number of rows, 12, but it is {k}"):
        leading_eigenpairs(product_with(np.eye(12)), 12, k)


def test_too_few_passes_are_said() -> None:
    """The residuals are those that were reached, and no pass is added."""
    A = matrix(SPECTRA["flat bulk"])
    calls: list[int] = []

    def multiply(V: Floats) -> Floats:
        calls.append(V.shape[1])
        return A @ V

    found = leading_eigenpairs(multiply, N, K, tol=1e-12, max_passes=4)
    assert not found.converged
    assert found.passes == len(calls) == 4
    lacking = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0)
    assert found.residuals == pytest.approx(lacking / found.values[0], rel=1e-9, abs=N * EPS)


def test_residuals_come_from_a_new_product() -> None:
    """A matrix that changes after the space was built is found out."""
    A = matrix(SPECTRA["decaying"])
    passes = leading_eigenpairs(product_with(A), N, K, tol=1e-8).passes
    calls: list[int] = []

    def multiply(V: Floats) -> Floats:
        calls.append(0)
        return A @ V if len(calls) < passes else A @ V + 1e-3 * V

    found = leading_eigenpairs(multiply, N, K, tol=1e-8, max_passes=passes)
    assert found.residuals == pytest.approx(1e-3, rel=1e-3)
    assert not found.converged


@pytest.mark.parametrize("blocks", [FEWEST_BLOCKS, 24], ids=["restarted", "in one space"])
@pytest.mark.parametrize("name", ["decaying", "rank three", "identity", "identity and one"])
def test_a_tolerance_below_rounding_ends_the_passes(name: str, blocks: int) -> None:
    """When measured residuals no longer fall, also in a space that products no longer leave."""
    for A in (matrix(SPECTRA[name]), np.diag(SPECTRA[name])):
        found = leading_eigenpairs(product_with(A), N, K, tol=1e-17, blocks=blocks)
        assert found.residuals.max() <= N * EPS
        assert found.passes < 100  # of 200
        assert np.abs(found.vectors.T @ found.vectors - np.eye(K)).max() <= 64 * K * EPS


def test_a_wide_gap_takes_few_passes() -> None:
    """Four blocks of nine: powers of 1/4 reach the tolerance."""
    values = np.concatenate([np.linspace(9, 8, K), np.linspace(0.02, 0, N - K)])
    assert leading_eigenpairs(product_with(matrix(values)), N, K, tol=1e-6).passes <= 5


def test_blocks_fit_the_memory() -> None:
    """Between the fewest that can be restarted and the most that are of use."""
    assert most_blocks(10**5, 20) == 24
    assert most_blocks(10**6, 20) == 4 + FEWEST_BLOCKS - 4
    assert most_blocks(10**6, 20, 8 * 10**6 * 30 * 14) == 10
    assert most_blocks(10**6, 20, 0) == FEWEST_BLOCKS
    assert is_small(100, 1)
    assert not is_small(101, 1)
    assert is_small(101, 8)


GROWTH = """
import re
from pathlib import Path
import numpy as np
from dhsk.solvers.eigenpairs import eigenpairs_bytes, is_small, leading_eigenpairs

def resident(field):
    return 1024 * int(re.search(field + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

n, k = 1100, 110
assert is_small(n, k)
A = np.random.default_rng(0).random((n, n))
A += A.T
leading_eigenpairs(lambda V: A[:50, :50] @ V, 50, 3)
Path("/proc/self/clear_refs").write_text("5")
before = resident("VmRSS")
leading_eigenpairs(lambda V: A @ V, n, k)
print((resident("VmHWM") - before) / eigenpairs_bytes(n, k))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_whole_decomposition_takes_the_memory_that_is_counted() -> None:
    """LAPACK's work space, which no tracer sees, is half of it."""
    run = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    assert 0.7 < float(run.stdout) < 1.1


class KilledError(Exception):
    """Stands for a kill after a pass."""


def run(A: Floats, folder: Path, passes: int | None = None) -> tuple[Eigenpairs, int]:
    """Eigenpairs with a checkpoint, killed after so many passes; the passes of this run."""
    made = 0

    def multiply(V: Floats) -> Floats:
        nonlocal made
        if made == passes:
            raise KilledError
        made += 1
        return A @ V

    products = KeptProducts(Checkpoint(folder, "product-"), multiply, ["A"])
    return leading_eigenpairs(products, N, K, tol=1e-6, blocks=FEWEST_BLOCKS), made


def bits(found: Eigenpairs) -> bytes:
    """All that was found."""
    return b"".join(part.tobytes() for part in (found.values, found.vectors, found.residuals))


def test_killed_after_each_pass_and_resumed_to_the_same_bits(tmp_path: Path) -> None:
    """No finished pass is made again."""
    A = matrix(SPECTRA["flat bulk"])
    whole, passes = run(A, tmp_path / "whole")
    assert passes > FEWEST_BLOCKS + 2  # with a restart
    for killed in range(passes):
        folder = tmp_path / str(killed)
        with pytest.raises(KilledError):
            run(A, folder, killed)
        found, rest = run(A, folder)
        assert rest == passes - killed
        assert bits(found) == bits(whole)


def test_damaged_and_foreign_products_are_made_again(tmp_path: Path) -> None:
    """A cut file counts as absent, and that of another matrix or block is not looked at."""
    A = matrix(SPECTRA["decaying"])
    whole, passes = run(A, tmp_path)
    first = sorted(tmp_path.iterdir())[0]
    first.write_bytes(first.read_bytes()[:1000])
    found, made = run(A, tmp_path)
    assert made == 1
    assert bits(found) == bits(whole)
    other = KeptProducts(Checkpoint(tmp_path, "product-"), product_with(A), ["B"])
    leading_eigenpairs(other, N, K, tol=1e-6, blocks=FEWEST_BLOCKS)
    assert other.passes == passes
