"""Entries on disk that are there whole or not at all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.execution.checkpoint import Checkpoint

ARRAYS = {"a": np.arange(6).reshape(2, 3), "empty": np.empty(0)}
VALUES = {"words": {"x": [1, None, "y"]}, "none": None}


def test_what_is_put_is_found(tmp_path: Path) -> None:
    """Arrays, numbers and JSON values, of this name and prefix only."""
    checkpoint = Checkpoint(tmp_path / "new", "p-")
    assert checkpoint.get("n", dict) is None
    checkpoint.put("n", {**ARRAYS, "room": 7, "error": 0.1}, VALUES)
    found: Any = checkpoint.get("n", dict)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found.pop(name), array, strict=True)
    assert found == {"room": 7, "error": 0.1, **VALUES}
    assert checkpoint.get("m", dict) is None
    assert Checkpoint(tmp_path / "new", "q-").get("n", dict) is None


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_as_if_they_had_been_computed(order: Any, tmp_path: Path) -> None:
    """Of the same layout, and in memory of their own, which numpy may reuse: else sums differ."""
    computed = np.ones((300, 200), order=order)
    Checkpoint(tmp_path).put("n", {"a": computed})
    found: Any = Checkpoint(tmp_path).get("n", lambda kept: kept["a"])
    assert found.strides == computed.strides
    for name in ("OWNDATA", "WRITEABLE", "ALIGNED"):
        assert found.flags[name] == computed.flags[name]


@pytest.mark.parametrize("error", [KeyError, TypeError, ValueError])
def test_what_cannot_be_made_of_an_entry_is_damage(tmp_path: Path, error: type) -> None:
    """As bytes that cannot be read are: no entry."""

    def made(_: dict[str, Any]) -> Any:
        raise error

    checkpoint = Checkpoint(tmp_path)
    checkpoint.put("n", ARRAYS)
    assert checkpoint.get("n", made) is None
    (tmp_path / "n.npz").write_bytes(b"PK and no more")
    assert checkpoint.get("n", dict) is None


def test_only_own_entries_go(tmp_path: Path) -> None:
    """The folder goes with the last file in it, and without a folder there is nothing to do."""
    ours, others = Checkpoint(tmp_path / "f", "p-"), Checkpoint(tmp_path / "f", "q-")
    for checkpoint in (ours, others):
        checkpoint.put("n", ARRAYS)
        checkpoint.put("m", ARRAYS)
    (tmp_path / "f" / ".p-n.npz.4f3a.part").touch()
    ours.drop("m", "never put")
    assert ours.get("m", dict) is None
    assert ours.get("n", dict) is not None
    ours.remove()
    assert sorted(file.name for file in (tmp_path / "f").iterdir()) == ["q-m.npz", "q-n.npz"]
    others.remove()
    assert not (tmp_path / "f").exists()
    nowhere = Checkpoint(None)
    nowhere.put("n", ARRAYS)
    nowhere.drop("n")
    nowhere.remove()
    assert nowhere.get("n", dict) is None
