"""What calls that make passes over a matrix report, and that they say nothing unless asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.progress import Progress
from dhsk.run_progress import PassReport, passes_of_call, passes_reported
from dhsk.solvers import eigenpairs

N = 200

ONE_PASS: dict[str, Callable[..., Any]] = {
    "neighbors": lambda G, **p: G.neighbors(3, **p),
    "neighbors_graph": lambda G, **p: G.neighbors_graph(3, **p),
    "alignment": lambda G, **p: G.alignment(np.arange(N) % 2, **p),
    "mean": lambda G, **p: G.mean(**p),
    "mean of columns": lambda G, **p: G.mean(axis=0, **p),
    "mean_norm2": lambda G, **p: G.mean_norm2(**p),
    "total_variance": lambda G, **p: G.total_variance(**p),
    "discrepancy": lambda G, **p: dhsk.maximum_mean_discrepancy(G, np.arange(N) % 2, 7, **p),
}

MANY: dict[str, Callable[..., Any]] = {
    "eigh": lambda G, **p: G.eigh(2, **p),
    "eigh of a view": lambda G, **p: G.centered().eigh(2, **p),
    "diffusion_map": lambda G, **p: dhsk.diffusion_map(G, 2, **p),
    "mercer_map": lambda G, **p: dhsk.mercer_map(G, 2, **p),
}


OPERATORS: dict[str, Callable[[dhsk.GramMatrix], Any]] = {
    "G @ V": lambda G: G @ np.ones((N, 2)),
    "V @ G": lambda G: np.ones(N) @ G,
    "centered": lambda G: G.centered() @ np.ones(N),
    "normalized": lambda G: G.normalized() @ np.ones(N),
    "grams": lambda G: dhsk.GramMatrices([G, G]) @ np.ones(N),
    "linear operator": lambda G: G.as_linear_operator() @ np.ones(N),
    "array": np.asarray,
    "neighbors": lambda G: G.neighbors(3)[0],
}


@pytest.fixture
def G(counts: Any, monkeypatch: pytest.MonkeyPatch) -> dhsk.GramMatrix:
    """A matrix of many tiles, computed on demand."""
    monkeypatch.setattr(eigenpairs, "SMALL", 20)
    return dhsk.compute_gram(counts(N, 6), dhsk.HeatKernel.at_scale(6, 0.5), tile=16)


@pytest.mark.parametrize("name", ONE_PASS)
def test_calls_of_one_pass_report_their_tiles(
    name: str, G: dhsk.GramMatrix, capfd: pytest.CaptureFixture[str]
) -> None:
    """In ascending numbers up to all of them; the result is that of a silent call."""
    seen: list[Progress] = []
    np.testing.assert_equal(
        str(ONE_PASS[name](G, progress=seen.append)), str(ONE_PASS[name](fresh(G)))
    )
    assert {event.stage for event in seen} == {"tiles"}
    done = [event.done for event in seen]
    assert done == sorted(set(done))
    assert len(done) > 1
    assert done[-1] == seen[-1].total == G.tiling.n_tiles
    assert capfd.readouterr() == ("", "")


def fresh(G: dhsk.GramMatrix) -> dhsk.GramMatrix:
    """The same matrix without the means that it keeps."""
    return G.with_kernel(G.kernel)


@pytest.mark.parametrize("name", MANY)
def test_calls_of_many_passes_report_passes_and_residuals(
    name: str, G: dhsk.GramMatrix, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of about how many, and how much of the next one is done; the end is the number of passes."""
    seen: list[Progress] = []
    found = MANY[name](G, progress=seen.append)
    np.testing.assert_equal(found, MANY[name](G))
    passes = [event for event in seen if event.stage == "passes"]
    assert passes[0] == Progress("passes", 0, eigenpairs.MAX_PASSES)
    assert passes[-1].done == passes[-1].total > 2
    assert "of 1e-06" in passes[-1].detail
    assert any("residual" in event.detail and "% of the next" in event.detail for event in passes)
    assert all(event.done <= event.total for event in passes)
    assert capfd.readouterr() == ("", "")


def test_bars_or_lines_are_shown_if_asked(
    G: dhsk.GramMatrix, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Plain lines where there is no terminal."""
    monkeypatch.setattr("dhsk.bars.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.bars.QUIET_SHARE", 0.0)
    G.neighbors(3, progress=True)
    G.eigh(2, progress=True)
    lines = capfd.readouterr().err.splitlines()
    assert any(line.startswith("tiles ") for line in lines)
    assert any(line.startswith("passes ") and "residual" in line for line in lines)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("on_workers", [False, True])
def test_a_block_shows_the_tiles_of_operators(
    name: str, G: dhsk.GramMatrix, on_workers: bool, request: pytest.FixtureRequest
) -> None:
    """On threads and on a client, with the bits of a silent call; nothing is shown after it."""
    if on_workers:
        request.getfixturevalue("client")
    seen: list[Progress] = []
    with dhsk.show_progress(seen.append):
        found = OPERATORS[name](G)
    done = [event.done for event in seen]
    assert {(event.stage, event.total) for event in seen} == {("tiles", G.tiling.n_tiles)}
    assert done == sorted(set(done))
    assert len(done) > 1
    assert done[-1] == G.tiling.n_tiles
    np.testing.assert_array_equal(found, OPERATORS[name](fresh(G)))
    assert len(seen) == len(done)


def test_the_empirical_map_reports_its_decomposition(G: dhsk.GramMatrix) -> None:
    """As one step, after the tiles."""
    seen: list[Progress] = []
    told = dhsk.empirical_map(G, progress=seen.append)
    assert seen[-2:] == [Progress("decomposition", 0, 1), Progress("decomposition", 1, 1)]
    assert seen[-3] == Progress("tiles", G.tiling.n_tiles, G.tiling.n_tiles)
    np.testing.assert_array_equal(told, dhsk.empirical_map(G))


def test_a_submatrix_counts_the_tiles_that_it_needs(G: dhsk.GramMatrix) -> None:
    """Rows of two blocks, and columns of one."""
    seen: list[Progress] = []
    with dhsk.show_progress(seen.append):
        G[:20, :5]
    assert seen == [Progress("tiles", 1, 2), Progress("tiles", 2, 2)]


def test_tiles_of_a_store_are_counted_when_they_are_checked(counts: Any, tmp_path: Path) -> None:
    """By `verify`, and by `repair_gram` before what is missing is computed."""
    X = counts(40, 6)
    G = dhsk.compute_gram(X, "cosine", store=tmp_path / "gram", tile=16)
    checked = [Progress("checking", done, 6) for done in range(1, 7)]
    seen: list[Progress] = []
    assert G.verify(progress=seen.append) == 6
    assert seen == checked
    next((G.path / "gram").rglob("c/0/1")).unlink()
    seen.clear()
    assert dhsk.repair_gram(G.path, X, progress=seen.append) == [(0, 1)]
    assert [event for event in seen if event.stage == "checking"] == checked
    assert seen[-1] == Progress("tiles", 6, 6)


def test_an_expected_number_of_passes_follows_the_residuals() -> None:
    """A residual that falls tenfold a pass has as many left as digits, and one to recompute it."""
    seen: list[Progress] = []
    with passes_reported(seen.append) as told:
        assert passes_of_call() is told
        told.begin(100, 1e-8)
        for passes in range(1, 5):
            told.passed(passes, 10.0**-passes)
        told.passed(5, 1.0)
        told.end()
    assert [event.total for event in seen] == [100, 100, 9, 9, 9, 100, 5]
    assert passes_of_call() is not told


@pytest.mark.parametrize("residual", [np.nan, np.inf, 0.0])
def test_residuals_that_are_none_are_no_error(residual: float) -> None:
    """The bound is then what is known, or the end is near."""
    seen: list[Progress] = []
    told = PassReport(seen.append)
    told.begin(9, 1e-3)
    told.passed(1, residual)
    told.passed(2, residual)
    assert seen[-1].total == (3 if residual == 0 else 9)


def test_a_second_solve_continues_the_count() -> None:
    """And is named."""
    seen: list[Progress] = []
    told = PassReport(seen.append)
    for number in (1, 2):
        told.solve = f"likelihood {number}"
        told.begin(10, 1e-3)
        told.passed(4, 1e-4)
        told.end()
    assert (seen[-1].done, seen[-1].total) == (8, 8)
    assert seen[3] == Progress("passes", 4, 14, "likelihood 2")
