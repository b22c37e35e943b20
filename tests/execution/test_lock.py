"""One writer at a time, and what is left of the lock of one that is gone."""

import threading
import time
from pathlib import Path

import pytest

import dhsk
from dhsk.execution.lock import LOCK_NAME, TURNS_NAME, one_of_several, sole_writer


@pytest.mark.slow
def test_never_two_at_a_time(tmp_path: Path) -> None:
    """The file comes and goes with its holders, and no two ever hold it."""
    inside, most, turns = 0, 0, 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal inside, most, turns
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            try:
                with sole_writer(tmp_path):
                    with guard:
                        inside, turns = inside + 1, turns + 1
                        most = max(most, inside)
                    time.sleep(0)
                    with guard:
                        inside -= 1
            except dhsk.StoreError:
                time.sleep(0)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert turns > 20
    assert most == 1
    assert list(tmp_path.iterdir()) == []


def test_lock_leaves_no_folder_behind(tmp_path: Path) -> None:
    """Folders that were made for the lock go with it if nothing came into them."""
    with sole_writer(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b" / LOCK_NAME).exists()
    assert list(tmp_path.iterdir()) == []


def test_several_exclude_one_and_not_each_other(tmp_path: Path) -> None:
    """The last of several writers removes the lock; until then nobody writes alone."""
    with one_of_several(tmp_path):
        with one_of_several(tmp_path), pytest.raises(dhsk.StoreError, match="being written"):
            sole_writer(tmp_path).__enter__()
        assert (tmp_path / LOCK_NAME).exists()
        with pytest.raises(dhsk.StoreError, match="being written"), sole_writer(tmp_path):
            pass
    assert not (tmp_path / LOCK_NAME).exists()
    with (
        sole_writer(tmp_path),
        pytest.raises(dhsk.StoreError, match="being written"),
        one_of_several(tmp_path),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_turns_are_taken_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several writers hold the folder at once, and one of them its turn."""
    monkeypatch.setattr("dhsk.execution.lock.TURN_SECONDS", 0.001)
    inside, most, waited = 0, 0, 0
    guard = threading.Lock()

    def waiting() -> None:
        nonlocal waited
        waited += 1

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with one_of_several(tmp_path) as turns, turns.alone(waiting):
                with guard:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.001)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert waited
    assert [entry.name for entry in tmp_path.iterdir()] == [TURNS_NAME]
