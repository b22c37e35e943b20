"""Ridge systems by conjugate gradients: right, in few passes, and honest when they fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.errors import InputError
from dhsk.execution.checkpoint import Checkpoint
from dhsk.progress import Progress
from dhsk.run_progress import passes_reported
from dhsk.solvers.ridge import Means, solve_ridge
from dhsk.solvers.sources import ArraySource

ROUNDING = 1e-13
"""Of sums over some hundred float64 numbers near 1."""


class Recorder(ArraySource):
    """A matrix that counts the columns of every product, and can be wrong once."""

    def __init__(self, K: Any, wrong: int = -1) -> None:
        super().__init__(K)
        self.columns: list[int] = []
        self.wrong = wrong

    def product(self, V: Any) -> Any:
        """Product with V."""
        self.columns.append(V.shape[1])
        error = 1e-3 if len(self.columns) - 1 == self.wrong else 0.0
        return super().product(V) * (1 + error)


@pytest.fixture
def K(counts: Callable[[int, int], Any]) -> Any:
    """A heat kernel matrix whose eigenvalues span four orders of magnitude."""
    return dhsk.HeatKernel.at_scale(12, 1.0)(dhsk.hyperspherical_map(counts(150, 12)))


def residuals(K: Any, Y: Any, alpha: Any, B: Any) -> Any:
    """Relative residual of each column by the definition."""
    return np.linalg.norm(Y - K @ B - alpha * B, axis=0) / np.linalg.norm(Y, axis=0)


@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_solution_and_certificate(
    K: Any, rng: np.random.Generator, tol: float, block: bool
) -> None:
    """Coefficients are those of a direct solver, and the residual is what it is said to be."""
    Y, alpha = rng.normal(size=(150, 3)), 0.1
    found = solve_ridge(ArraySource(K), Y, alpha, tol=tol, max_passes=1000, block=block)
    exact = np.linalg.solve(K + alpha * np.eye(150), Y)
    error = np.linalg.norm(found.coef - exact, axis=0)
    assert (error <= tol / alpha * np.linalg.norm(Y, axis=0)).all()  # |inverse| <= 1 / alpha
    np.testing.assert_allclose(found.residual, residuals(K, Y, alpha, found.coef), atol=ROUNDING)
    assert found.converged.all()
    assert (found.residual <= tol).all()
    assert not found.indefinite.any()


def test_each_pass_serves_all_open_columns(K: Any, rng: np.random.Generator) -> None:
    """Easy columns leave the passes early, the last pass certifies all, and none is for one."""
    _, vectors = np.linalg.eigh(K)
    Y = np.column_stack([vectors[:, 0], vectors[:, -1] + vectors[:, -2], rng.normal(size=150)])
    source = Recorder(K)
    found = solve_ridge(source, Y, 0.1, tol=1e-8, max_passes=1000, block=False)
    assert found.passes == len(source.columns)
    # So many steps as there are eigenvectors in a column.
    assert source.columns[:3] == [3, 2, 1]
    assert source.columns[-1] == 3
    assert found.converged.all()


def test_columns_do_not_touch_one_another(K: Any, rng: np.random.Generator) -> None:
    """Unless they are a block, a column has the same solution alone and among others."""
    Y = rng.normal(size=(150, 4)) * [1.0, 10.0, 0.0, 1e-3]
    how: dict[str, Any] = {"tol": 1e-6, "max_passes": 1000, "block": False}
    together = solve_ridge(ArraySource(K), Y, 0.5, **how)
    for k in range(4):
        alone = solve_ridge(ArraySource(K), Y[:, [k]], 0.5, **how)
        size = np.abs(alone.coef).max()
        np.testing.assert_allclose(together.coef[:, [k]], alone.coef, atol=1e-9 * size)
    assert together.residual[2] == 0


def test_a_block_takes_fewer_passes(K: Any, rng: np.random.Generator) -> None:
    """Than its columns do alone; of one column as many."""
    Y = rng.normal(size=(150, 10))
    how: dict[str, Any] = {"tol": 1e-8, "max_passes": 1000}
    block, columns = (solve_ridge(ArraySource(K), Y, 0.01, **how, block=b) for b in (True, False))
    assert block.converged.all()
    assert block.passes < 0.5 * columns.passes
    one, alone = (
        solve_ridge(ArraySource(K), Y[:, :1], 0.01, **how, block=b) for b in (True, False)
    )
    # Directions lose their orthogonality long before pass 113, so rounding decides the last ones.
    assert one.passes == pytest.approx(alone.passes, rel=0.05)


@pytest.mark.parametrize("near", [0.0, 1e-9, 1e-4])
def test_columns_of_a_block_may_depend_on_each_other(
    K: Any, rng: np.random.Generator, near: float
) -> None:
    """Equal columns, a sum of others, zero, and columns that are nearly so; of any size."""
    Y = rng.normal(size=(150, 3))
    Y = np.concatenate([Y, Y[:, :1], Y.sum(axis=1, keepdims=True), np.zeros((150, 1))], axis=1)
    Y += near * rng.normal(size=Y.shape)
    Y *= [1.0, 1e-8, 1e8, 1.0, 3.0, 1.0]
    found = solve_ridge(ArraySource(K), Y, 0.01, tol=1e-8, max_passes=1000)
    alone = solve_ridge(ArraySource(K), Y, 0.01, tol=1e-8, max_passes=1000, block=False)
    assert found.converged.all()
    assert found.passes < alone.passes
    np.testing.assert_allclose(found.coef, np.linalg.solve(K + 0.01 * np.eye(150), Y), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_scale_of_the_right_side_does_not_matter(
    K: Any, rng: np.random.Generator, scale: float
) -> None:
    """Squares neither overflow nor vanish."""
    Y = rng.normal(size=(150, 1))
    one = solve_ridge(ArraySource(K), Y, 1.0, tol=1e-6, max_passes=100)
    other = solve_ridge(ArraySource(K), Y * scale, 1.0, tol=1e-6, max_passes=100)
    assert other.passes == one.passes
    np.testing.assert_allclose(other.coef / scale, one.coef, atol=ROUNDING)


def test_weights_cost_what_repeats_would(K: Any, rng: np.random.Generator) -> None:
    """Samples that count w times take the passes, and have the coefficients, of w samples."""
    Y, weights = rng.normal(size=(150, 2)), rng.integers(1, 20, 150)
    copies = np.repeat(np.arange(150), weights)
    alpha = 50.0  # so few passes that rounding cannot part them
    weighted = solve_ridge(ArraySource(K), Y, alpha / weights, tol=1e-4, max_passes=1000)
    repeated_K = K[np.ix_(copies, copies)]
    repeated = solve_ridge(ArraySource(repeated_K), Y[copies], alpha, tol=1e-4, max_passes=1000)
    assert weighted.passes == repeated.passes > 3
    np.testing.assert_allclose(weighted.residual, repeated.residual, rtol=1e-6)
    summed = np.add.reduceat(repeated.coef, np.cumsum(weights) - weights)
    np.testing.assert_allclose(weighted.coef, summed, atol=1e-9)


def test_a_drifted_solution_goes_on(K: Any, rng: np.random.Generator) -> None:
    """What the steps believe is not believed: the residual anew shows an error and is repaired."""
    source = Recorder(K, wrong=3)
    found = solve_ridge(source, rng.normal(size=(150, 2)), 0.1, tol=1e-8, max_passes=1000)
    assert found.converged.all()
    clean = Recorder(K)
    solve_ridge(clean, rng.normal(size=(150, 2)), 0.1, tol=1e-8, max_passes=1000)
    assert len(clean.columns) < len(source.columns) < 3 * len(clean.columns)


def test_what_rounding_forbids_ends(K: Any, rng: np.random.Generator) -> None:
    """A tolerance below rounding is not met, said, and not tried for ever."""
    Y = rng.normal(size=(150, 1))
    found = solve_ridge(ArraySource(K), Y, 1e-3, tol=1e-17, max_passes=10_000)
    assert not found.converged.any()
    assert found.residual[0] < np.finfo(float).eps * 150 / 1e-3  # eps |K| |inverse|
    assert found.passes < 10_000


@pytest.mark.parametrize("max_passes", [2, 7])
def test_the_last_pass_is_for_the_certificate(
    K: Any, rng: np.random.Generator, max_passes: int
) -> None:
    """No more passes than allowed, and the residual is still exact."""
    Y, source = rng.normal(size=(150, 2)), Recorder(K)
    found = solve_ridge(source, Y, 1e-3, tol=1e-10, max_passes=max_passes)
    assert len(source.columns) == found.passes == max_passes
    assert not found.converged.any()
    np.testing.assert_allclose(found.residual, residuals(K, Y, 1e-3, found.coef), rtol=1e-9)


def test_an_indefinite_matrix_is_said(rng: np.random.Generator) -> None:
    """Negative curvature ends a block, or a column: one that never meets it is solved."""
    K = np.diag(np.r_[-2.0, np.linspace(0.1, 1.0, 99)])
    Y = rng.normal(size=(100, 2))
    Y[0, 1] = 0.0
    found = solve_ridge(ArraySource(K), Y, 0.1, tol=1e-8, max_passes=500, block=False)
    assert found.indefinite.tolist() == [True, False]
    assert found.converged.tolist() == [False, True]
    assert found.residual[0] > 1e-8
    found = solve_ridge(ArraySource(K), Y, 0.1, tol=1e-8, max_passes=500)
    assert found.indefinite.all()
    assert not found.converged.any()


def test_a_broken_matrix_is_not_converged(K: Any, rng: np.random.Generator) -> None:
    """NaN in the matrix leads to no solution that counts."""
    K[3, 4] = K[4, 3] = np.nan
    found = solve_ridge(ArraySource(K), rng.normal(size=(150, 1)), 1.0, tol=1e-3, max_passes=50)
    assert not found.converged.any()
    assert found.passes == 2


def test_progress_ends(K: Any, rng: np.random.Generator) -> None:
    """Every pass is reported with its residual, and in the end all are done."""
    seen: list[Progress] = []
    Y = rng.normal(size=(150, 1))
    with passes_reported(seen.append):
        found = solve_ridge(ArraySource(K), Y, 1.0, tol=1e-3, max_passes=50)
    assert [event.done for event in seen[:-1]] == list(range(found.passes + 1))
    assert seen[0] == Progress("passes", 0, 50)
    residual = f"residual {found.residual[0]:.1e} of 1e-03"
    assert seen[-1] == Progress("passes", found.passes, found.passes, residual)


def test_progress_says_about_how_many_passes_there_are(K: Any, rng: np.random.Generator) -> None:
    """From the second pass on, from how fast residuals have fallen."""
    seen: list[Progress] = []
    with passes_reported(seen.append):
        found = solve_ridge(ArraySource(K), rng.normal(size=(150, 1)), 0.5, tol=1e-9, max_passes=99)
    assert found.passes < 60
    middle = seen[len(seen) // 2]
    assert found.passes / 2 < middle.total < 2 * found.passes


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"tol": 0.0}, "tol must be above 0"),
        ({"max_passes": 1}, "max_passes must be a whole number, at least 2"),
        ({"alpha": 0.0}, "alpha must be finite and above 0, but it is 0.0"),
        ({"alpha": np.full(150, np.nan)}, "but it is nan"),
        ({"alpha": np.ones(3)}, r"alpha has shape \(3,\)"),
        ({"Y": np.ones(150)}, r"Y has shape \(150,\)"),
        ({"Y": np.ones((149, 1))}, r"needs \(150, k\)"),
    ],
)
def test_bad_input_is_refused(K: Any, options: dict[str, Any], match: str) -> None:
    """No pass is made with parameters that make no sense."""
    source = Recorder(K)
    good = {"Y": np.ones((150, 1)), "alpha": 1.0, "tol": 1e-3, "max_passes": 10}
    with pytest.raises(InputError, match=match):
        solve_ridge(source, **(good | options))
    assert not source.columns


class Exact:
    """A matrix and its inverse."""

    rank = 150

    def __init__(self, P: Any) -> None:
        self.inverse = np.linalg.inv(P)

    def solve(self, R: Any) -> Any:
        """Apply the inverse."""
        return self.inverse @ R


def test_a_preconditioner_saves_passes(K: Any, rng: np.random.Generator) -> None:
    """The exact inverse needs one step, and every certificate is that of the system itself."""
    Y, A = rng.normal(size=(150, 2)), K + 0.01 * np.eye(150)
    means = Means(Exact(A))
    found = solve_ridge(ArraySource(K), Y, 0.01, tol=1e-8, max_passes=100, means=means)
    assert found.passes == 2
    assert found.converged.all()
    np.testing.assert_allclose(found.coef, np.linalg.solve(A, Y), rtol=1e-8)
    np.testing.assert_allclose(found.residual, residuals(K, Y, 0.01, found.coef), atol=ROUNDING)
    few = Recorder(K)
    rough = Means(Exact(A + 0.01 * np.diag(rng.uniform(size=150))))  # eigenvalues 0.5 to 1
    found = solve_ridge(few, Y, 0.01, tol=1e-8, max_passes=100, means=rough)
    assert found.converged.all()
    assert 5 < found.passes == len(few.columns) < 20


class Killed(Recorder):
    """A matrix whose products end after some."""

    def __init__(self, K: Any, after: int, wrong: int = -1) -> None:
        super().__init__(K, wrong)
        self.after = after

    def product(self, V: Any) -> Any:
        """Product with V."""
        if len(self.columns) == self.after:
            raise KeyboardInterrupt
        return super().product(V)


@pytest.mark.slow
@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_a_killed_solve_resumes_to_the_same_bits(
    K: Any,
    rng: np.random.Generator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    preconditioned: bool,
    block: bool,
) -> None:
    """After any product, even in later descents; only the product that was lost is repeated."""
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    Y, A = rng.normal(size=(150, 3)), K + np.eye(150)
    preconditioner = Exact(A + np.diag(rng.uniform(size=150))) if preconditioned else None

    def solve(source: Any, folder: Path | None) -> Any:
        means = Means(preconditioner, Checkpoint(folder), "one")
        return solve_ridge(source, Y, 1.0, tol=1e-5, max_passes=1000, means=means, block=block)

    clean = Recorder(K, wrong=3)  # so that there is a second descent
    whole = solve(clean, None)
    assert whole.converged.all()
    for after in range(len(clean.columns)):
        folder = tmp_path / str(after)
        with pytest.raises(KeyboardInterrupt):
            solve(Killed(K, after, wrong=3), folder)
        rest = Recorder(K, wrong=3 - after)
        resumed = solve(rest, folder)
        assert len(rest.columns) == len(clean.columns) - after
        assert resumed.passes == whole.passes
        assert np.array_equal(resumed.coef, whole.coef)
        assert not list(folder.glob("*"))


def test_a_resumed_solve_knows_what_was_indefinite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that met a negative direction is not tried again."""
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    K = np.diag(np.r_[-2.0, np.linspace(0.1, 1.0, 99)])
    Y = np.ones((100, 2))
    Y[0, 1] = 0.0
    means = Means(checkpoint=Checkpoint(tmp_path), name="one")
    how: dict[str, Any] = {"tol": 1e-8, "max_passes": 500, "block": False}
    with pytest.raises(KeyboardInterrupt):
        solve_ridge(Killed(K, 8), Y, 0.1, **how, means=means)
    found = solve_ridge(ArraySource(K), Y, 0.1, **how, means=means)
    clean = solve_ridge(ArraySource(K), Y, 0.1, **how)
    assert found.indefinite.tolist() == clean.indefinite.tolist() == [True, False]
    assert found.passes == clean.passes
    assert np.array_equal(found.coef, clean.coef)


def test_another_system_is_not_resumed(K: Any, rng: np.random.Generator, tmp_path: Path) -> None:
    """A state of other shapes is passed over."""
    means = Means(checkpoint=Checkpoint(tmp_path), name="one")
    with pytest.raises(KeyboardInterrupt):
        solve_ridge(Killed(K, 4), np.ones((150, 1)), 0.1, tol=1e-9, max_passes=99, means=means)
    assert list(tmp_path.glob("one.npz"))
    Y = rng.normal(size=(150, 2))
    found = solve_ridge(ArraySource(K), Y, 0.1, tol=1e-9, max_passes=1000, means=means)
    assert found.converged.all()
