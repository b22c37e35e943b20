"""Passes over a matrix go on where a killed run was."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.devices import device
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.kept_pass import KeptPass, KeptProducts, pass_of_call, passes_kept
from dhsk.models.gram_source import GramSource
from dhsk.models.sources import RowsSource
from dhsk.solvers.sources import Combination
from tests.devices.host import HostDevice

N = 120
RNG = np.random.default_rng(0)
X = RNG.poisson(3.0, (N, 6)) + 1.0
V = RNG.normal(size=(N, 3))
HEAT = dhsk.HeatKernel.at_scale(6, 0.7)


class _KilledError(BaseException):
    """Stands for the end of a process."""


@pytest.fixture(autouse=True)
def kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task is kept, and spans and blocks are small."""
    monkeypatch.setattr("dhsk.execution.kept_pass.UNKEPT_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    monkeypatch.setattr("dhsk.gram.passes.LARGEST_GROUP", 1)
    monkeypatch.setattr("dhsk.models.gram_source.SPAN_ROWS", 16)
    monkeypatch.setattr("dhsk.models.gram_source.SPAN_BYTES", 1)
    monkeypatch.setattr("dhsk.models.sources.rows_at_once", lambda _: 16)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the tasks of passes that are added up; 0 of them ends the process before that."""
    left, advance = [-1, 0], KeptPass.advance

    def counted(self: KeptPass) -> None:
        advance(self)
        left[0] -= 1
        left[1] += 1
        if not left[0]:
            raise _KilledError

    monkeypatch.setattr(KeptPass, "advance", counted)
    return left


def of_tiles() -> Any:
    """Product of a matrix in tiles."""
    return GramSource(dhsk.compute_gram(X, HEAT, tile=32)).product


def of_rows() -> Any:
    """Product of a matrix in blocks."""
    return RowsSource(np.sqrt(X / X.sum(axis=1, keepdims=True)), HEAT, edge=32).product


@pytest.mark.parametrize("made", [of_tiles, of_rows])
def test_a_killed_product_goes_on(made: Any, tmp_path: Path, tasks: list[int]) -> None:
    """At its third task: these are not done again, and the product has the same bits."""
    whole = made()(V)
    every, tasks[1] = tasks[1], 0
    tasks[0] = 3
    with pytest.raises(_KilledError):
        KeptProducts(Checkpoint(tmp_path), made(), "K")(V)
    again = KeptProducts(Checkpoint(tmp_path), made(), "K")
    assert again(V).tobytes() == whole.tobytes()
    assert tasks[1] == every
    assert [path.name for path in tmp_path.iterdir() if "pass" in path.name] == []
    assert again(V).tobytes() == whole.tobytes()
    assert tasks[1] == every  # the whole product is found


@pytest.mark.parametrize("computed", [True, False])
def test_killed_combinations_go_on(computed: bool, tmp_path: Path, tasks: list[int]) -> None:
    """As products do, and under a name of their own: others begin anew."""
    source: Any = of_rows().__self__ if computed else of_tiles().__self__
    parts = [Combination(np.arange(N), np.arange(0, N, 5), V[::5]) for _ in range(2)]
    whole = source.combine(parts)
    every, tasks[1], tasks[0] = tasks[1], 0, 5
    entries = Checkpoint(tmp_path)

    def combined(name: str) -> Any:
        with passes_kept(entries, name) as begun:
            found = source.combine(parts)
        entries.drop(*begun)
        return found

    with pytest.raises(_KilledError):
        combined("first")
    assert [one.tobytes() for one in combined("first")] == [one.tobytes() for one in whole]
    assert tasks[1] == every
    combined("other")
    assert tasks[1] == 2 * every
    assert not list(tmp_path.iterdir())


def test_several_passes_of_a_call_are_told_apart(tmp_path: Path) -> None:
    """By their number; one of another shape begins anew."""

    def half(name: str, size: int) -> int:
        sums = np.zeros(size)
        with passes_kept(Checkpoint(tmp_path), name):
            pass_of_call(np.zeros(1))
            kept = pass_of_call(sums)
        done = kept.done
        sums += 1.0
        kept.advance()
        assert (sums == done + 1).all()
        return done

    assert [half("a", 3), half("a", 3), half("a", 4), half("b", 3)] == [0, 1, 0, 0]


def test_sums_of_a_device_are_told_apart(tmp_path: Path) -> None:
    """Its tasks are others: neither goes on with what the other has left."""
    entries = Checkpoint(tmp_path / "kept")

    def done() -> int:
        with passes_kept(entries, "a"):
            kept = pass_of_call(np.zeros(2))
        before = kept.done
        kept.advance()
        return before

    found = [done()]
    with device(HostDevice(tmp_path)):
        found += [done(), done()]
    assert [*found, done()] == [0, 0, 1, 1]


def test_nothing_is_kept_without_a_place(tmp_path: Path, monkeypatch: Any) -> None:
    """Neither outside of `passes_kept`, nor where its checkpoint has no folder."""
    monkeypatch.chdir(tmp_path)
    write: Callable[[], None] = pass_of_call(np.zeros(2)).advance
    write()
    with passes_kept(Checkpoint(None), "a") as names:
        pass_of_call(np.zeros(2)).advance()
    assert names == []
    assert not list(tmp_path.iterdir())
