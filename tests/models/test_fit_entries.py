"""What is kept is found again, bit by bit, or not at all."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.models.fit_entries import entry_of_fits, fits_of_entry
from dhsk.solvers.dual import Fit

AWKWARD = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, np.nextafter(1, 2), 1e22, -0.0]

REST = {"rows": [{"score": 2 / 3, "margin": None, "label": "π"}], "predicted": [[0, 1], []]}


def fits() -> list[Fit]:
    """With every awkward number, and without support vectors."""
    some = Fit(
        support=np.array([0, 3, 9]),
        coef=np.array([1 / 3, -5e-324, 1e300]),
        intercept=np.pi,
        objective=1 / 7,
        norm2=0.1 + 0.2,
        violation=1e-17,
        gap=0.0,
        steps=10**12,
        seconds=1e-6 / 3,
        converged=True,
    )
    none = replace(some, support=np.empty(0, np.intp), coef=np.empty(0), converged=False)
    return [some, none, *(replace(some, intercept=number) for number in AWKWARD)]


def put(entries: Checkpoint, name: str, fits: list[Fit], rest: Any) -> None:
    """Write an entry of fits."""
    entries.put(name, *entry_of_fits(fits, rest))


def get(entries: Checkpoint, name: str) -> Any:
    """Fits and the value of an entry; None without a complete one."""
    return entries.get(name, fits_of_entry)


def assert_equal(found: Any, expected: list[Fit]) -> None:
    """All fields, types too."""
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        for key, value in asdict(b).items():
            own = getattr(a, key)
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(own, value)
                assert own.dtype == value.dtype
            else:
                assert repr(own) == repr(value if not isinstance(value, np.floating) else +value)
                assert type(own) in (bool, int, float, type(None))


@pytest.mark.parametrize("others", [False, True])
def test_round_trip(others: bool, tmp_path: Path) -> None:
    """Exactly what was put, from another journal on the same folder."""
    plain = [replace(fit, intercept=float(fit.intercept)) for fit in fits()]
    if others:
        sizes = range(len(plain))
        plain = [replace(fit, outside=np.full(n, 0.1)) for n, fit in zip(sizes, plain, strict=True)]
    put(Checkpoint(tmp_path / "new" / "folder"), "a", plain, REST)
    found = get(Checkpoint(tmp_path / "new" / "folder"), "a")
    assert found is not None
    assert_equal(found[0], plain)
    assert found[1] == REST


@pytest.mark.parametrize("kept", [[], None])
def test_entries_without_fits(tmp_path: Path, kept: Any) -> None:
    """Rows alone, or nothing at all."""
    journal = Checkpoint(tmp_path)
    put(journal, "a", [], kept)
    assert get(journal, "a") == ([], kept)


def test_entries_are_replaced_and_dropped(tmp_path: Path) -> None:
    """The last one counts; what was dropped is gone, what never was may be dropped."""
    journal = Checkpoint(tmp_path)
    put(journal, "a", fits(), 1)
    put(journal, "a", [], 2)
    put(journal, "b", [], 3)
    assert get(journal, "a") == ([], 2)
    journal.drop("a", "never")
    assert get(journal, "a") is None
    assert get(journal, "b") == ([], 3)
    assert [path.name for path in tmp_path.iterdir()] == ["b.npz"]


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor written anywhere."""
    monkeypatch.chdir(tmp_path)
    journal = Checkpoint(None)
    put(journal, "a", fits(), 1)
    assert get(journal, "a") is None
    journal.drop("a")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry appears whole: until it has its name there is none."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt("killed")

    journal = Checkpoint(tmp_path)
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt, match="killed"):
        put(journal, "a", fits(), REST)
    monkeypatch.undo()
    assert get(journal, "a") is None
    put(journal, "a", fits(), REST)
    assert get(journal, "a") is not None


@pytest.mark.slow
def test_damage_is_no_entry_or_harmless(tmp_path: Path) -> None:
    """Cut anywhere, or with one bit turned anywhere: nothing, or what was put; never an error."""
    journal = Checkpoint(tmp_path)
    plain = [replace(fit, intercept=float(fit.intercept)) for fit in fits()[:2]]
    put(journal, "a", plain, REST)
    path = tmp_path / "a.npz"
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [whole[:size] for size in range(0, len(whole), 11)]
    for place in range(0, len(whole), 3):
        turned = bytearray(whole)
        turned[place] ^= 1 << rng.integers(8)
        damaged.append(bytes(turned))
    lost = 0
    for content in damaged:
        path.write_bytes(content)
        found = get(journal, "a")
        lost += found is None
        if found is not None:
            assert_equal(found[0], plain)
            assert found[1] == REST
    assert lost > 0.7 * len(damaged)
    path.write_bytes(b"something else")
    assert get(journal, "a") is None


def test_damage_does_not_hide_what_the_disk_says(tmp_path: Path) -> None:
    """An entry that cannot be read for other reasons is an error, not fitted again."""
    (tmp_path / "a.npz").mkdir()
    with pytest.raises(IsADirectoryError, match=r"a\.npz"):
        get(Checkpoint(tmp_path), "a")


def test_digest_tells_everything_apart() -> None:
    """Values, types, shapes, order and how they are grouped."""
    x = np.arange(6.0)
    parts: list[tuple[Any, ...]] = [
        (x,), (x.astype(np.float32),), (x.reshape(2, 3),), (x.reshape(3, 2),), (-x,), (x, x), (),
        (1, [2]), ([1], 2), ([1, 2],), ("1", [2]), (1.5,), ({"a": 1},), ({"b": 1},), (None,),
    ]  # fmt: skip
    names = {digest_of(*part) for part in parts}
    assert len(names) == len(parts)
    assert digest_of(x[::2]) == digest_of(x[::2].copy())
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    changed = x.copy()
    changed[3] = np.nextafter(changed[3], 9)
    assert digest_of(changed) != digest_of(x)
