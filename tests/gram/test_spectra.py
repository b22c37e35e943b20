"""Eigenpairs of Gram matrices: numpy's, whatever memory, workers and kills."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dhsk
from dhsk.gram import tiled
from dhsk.gram.passes import grouped, multiply
from dhsk.gram.plan import LARGEST_GROUP
from dhsk.gram.tiles import HeldTiles
from dhsk.solvers import eigenpairs

pytestmark = pytest.mark.threads

N, DIM, TILE, K = 150, 12, 10, 4
EPS = float(np.finfo(np.float64).eps)

VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda G: G,
    "centred": lambda G: G.centered(),
    "normalised and centred": lambda G: G.normalized().centered(),
}


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of these tests are not small."""
    monkeypatch.setattr(eigenpairs, "SMALL", 20)


@pytest.fixture
def X(counts: Any) -> Any:
    """Samples of 120 tiles."""
    return counts(N, DIM)


def made(X: Any, kernel: Any = None, **options: Any) -> dhsk.GramMatrix:
    """A matrix of small tiles."""
    return dhsk.compute_gram(X, kernel or dhsk.HeatKernel(DIM, 0.1), tile=TILE, **options)


def bits(found: tuple[Any, Any, Any]) -> bytes:
    """All that was found."""
    return b"".join(part.tobytes() for part in found)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_eigenpairs_are_numpys(X: Any, name: str, dtype: str) -> None:
    """Of the matrix and of its views; of float32 matrices in float64."""
    G = VIEWS[name](made(X, dtype=dtype))
    values, vectors, residuals = G.eigh(K, tol=1e-10)
    full = VIEWS[name](made(X)).submatrix(slice(None), slice(None))
    entries = 4 * EPS if dtype == "float64" else 4 * float(np.finfo(np.float32).eps)
    bound = 1e-10 * values[0] + N * entries  # residual, and rounded entries by Weyl's theorem
    assert np.abs(values - np.linalg.eigvalsh(full)[::-1][:K]).max() <= bound
    lacking = np.linalg.norm(full @ vectors - vectors * values, axis=0)
    assert lacking.max() <= bound
    assert residuals.max() <= 1e-10
    assert vectors.dtype == np.float64


def test_stored_derived_and_recomputed_matrices_have_the_same_pairs(X: Any, tmp_path: Path) -> None:
    """To the accuracy asked for."""
    kernel = dhsk.HeatKernel(DIM, 0.1)
    cosines = made(X, dhsk.CosineKernel(), store=tmp_path / "cosines")
    matrices = made(X), made(X, store=tmp_path / "heat"), cosines.with_kernel(kernel)
    first, *others = [G.centered().eigh(K, tol=1e-11) for G in matrices]
    for values, vectors, _ in others:
        assert values == pytest.approx(first[0], rel=1e-12)
        assert np.abs(np.abs(vectors.T @ first[1]) - np.eye(K)).max() < 1e-8


@pytest.mark.slow
def test_memory_and_workers_do_not_change_a_bit(
    X: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tile in memory, some, all; threads, or workers of a client."""
    for place in ("limits", "memory"):  # whatever the tests before have left
        monkeypatch.setattr(f"dhsk.execution.{place}.held_bytes", lambda: 3 * 10**8)
    G = made(X, memory="4GB").centered()
    plain = bits(G.eigh(K, memory="1.5GB"))
    assert bits(G.eigh(K, memory="3GB")) == plain
    with client.as_current():
        assert bits(G.eigh(K, memory="1.5GB")) == plain


def test_tiles_in_memory_are_computed_once(X: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many groups as fit, with the same products."""
    G = made(X)
    groups = grouped(G.tiling.tiles(), LARGEST_GROUP)
    V = np.random.default_rng(0).standard_normal((N, 3))
    asked: list[Any] = []
    own = type(G.source).__call__

    def counted(self: Any, group: Any, *, in_strips: bool = False) -> Any:
        asked.append(group)
        return own(self, group, in_strips=in_strips)

    monkeypatch.setattr(type(G.source), "__call__", counted)
    whole = 8 * sum(TILE**2 for _ in G.tiling.tiles())
    for room, most in [(0, 0), (whole // 2, len(groups) - 1), (whole, len(groups))]:
        held = HeldTiles(G.source, G.tiling, 8, room)
        products = [multiply(held, G.tiling, V, G.dtype) for _ in range(3)]
        kept = len(held._groups)
        assert kept == most if room in (0, whole) else 0 < kept <= most
        assert len(asked) == kept + 3 * (len(groups) - kept)
        asked.clear()
        expected = multiply(G.source, G.tiling, V, G.dtype)
        assert all(product.tobytes() == expected.tobytes() for product in products)
        asked.clear()


def test_a_group_that_fails_is_not_kept(X: Any) -> None:
    """Its room is free again."""
    G = made(X)
    held = HeldTiles(G.source, G.tiling, 8, 10**9)
    group = grouped(G.tiling.tiles(), LARGEST_GROUP)[0]
    reading = held(group, in_strips=True)
    next(reading)
    reading.close()
    assert not held._groups
    assert held._room == 10**9


class KilledError(Exception):
    """Stands for a kill after a pass."""


@pytest.mark.slow
def test_killed_after_each_pass_and_resumed_to_the_same_bits(
    X: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No finished pass is made again; passes of other views are not taken."""
    made_passes, most = 0, 10**6

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal made_passes
        if made_passes == most:
            raise KilledError
        made_passes += 1
        return multiply(*args, **options)

    monkeypatch.setattr(tiled, "multiply", counted)
    G = made(X)
    C = G.centered()
    whole = bits(C.eigh(K))
    passes, made_passes = made_passes, 0
    for killed in range(passes):
        folder = tmp_path / str(killed)
        made_passes, most = 0, killed
        with pytest.raises(KilledError):
            C.eigh(K, journal=folder)
        made_passes, most = 0, 10**6
        assert bits(C.eigh(K, journal=folder)) == whole
        assert made_passes == passes - killed
    made_passes = 0
    G.eigh(K, journal=folder)
    assert made_passes > 0


def test_what_is_lacking_is_said_with_numbers(X: Any) -> None:
    """How many pairs, their residual, and what to do."""
    said = r"\d of 4 eigenpairs did not converge: relative residual \S+ after 2 passes, tol=1e-12"
    with pytest.warns(ConvergenceWarning, match=said):
        *_, residuals = made(X).eigh(K, tol=1e-12, max_passes=2)
    assert residuals.max() > 1e-12


def test_wrong_calls_are_refused(X: Any) -> None:
    """Before a pass."""
    G = made(X)
    with pytest.raises(dhsk.InputError, match="of 150 samples with 5 others: compute"):
        made(X, Y=X[:5]).eigh(1)
    with pytest.raises(dhsk.InputError, match="k must be from 1 to the number of rows, 150"):
        G.eigh(N + 1)
    with pytest.raises(dhsk.InputError, match="tol"):
        G.eigh(1, tol=0.0)
    with pytest.raises(dhsk.BudgetError, match="computing 4 eigenpairs of 150 samples needs"):
        G.eigh(K, memory="1MB")


PROGRAM = """
import sys, time
import numpy as np
import dhsk
from dhsk.gram import tiled
from dhsk.solvers import eigenpairs

eigenpairs.SMALL = 20
multiply = tiled.multiply

def slow(*args, **options):
    time.sleep(0.05)  # so that a kill falls into a pass
    return multiply(*args, **options)

tiled.multiply = slow
X = np.random.default_rng(5).poisson(1.0, (150, 12)) + 1.0
G = dhsk.compute_gram(X, dhsk.HeatKernel(12, 0.1), tile=10).centered()
found = G.eigh(4, tol=1e-10, journal=sys.argv[1])
np.savez(sys.argv[2], *found)
"""


@pytest.mark.slow
def test_a_process_that_is_killed_is_resumed_to_the_same_bits(tmp_path: Path) -> None:
    """By SIGKILL, in the middle of a pass."""
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run([*command, tmp_path / "whole", tmp_path / "whole.npz"], check=True)
    passes = len(list((tmp_path / "whole").iterdir()))
    folder = tmp_path / "killed"
    with subprocess.Popen([*command, folder, tmp_path / "killed.npz"]) as running:
        deadline = monotonic() + 120
        while len(list(folder.glob("product-*.npz"))) < passes // 2 and monotonic() < deadline:
            sleep(0.01)
        running.kill()
    assert not (tmp_path / "killed.npz").exists()
    subprocess.run([*command, folder, tmp_path / "killed.npz"], check=True)
    with np.load(tmp_path / "whole.npz") as whole, np.load(tmp_path / "killed.npz") as killed:
        assert all(whole[name].tobytes() == killed[name].tobytes() for name in whole.files)
    names = {path.name for path in folder.glob("product-*.npz")}
    assert names == {path.name for path in (tmp_path / "whole").iterdir()}
