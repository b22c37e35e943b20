"""Gram stores keep the names of features, and take the same features in any order."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dhsk
from dhsk.errors import CorruptTileError, StoreMismatchError
from dhsk.gram.storage.names import NAMES_FILE
from dhsk.gram.storage.store import GramStore

DIM = 8
NAMES = [f"w{i}" for i in range(DIM)]
KERNEL = dhsk.HeatKernel.at_scale(DIM, 1.0)


@pytest.fixture
def frame(counts: Any) -> pd.DataFrame:
    """Counts of 30 samples with names of features."""
    return pd.DataFrame(counts(30, DIM), columns=NAMES)


def tiles_of(store: Path) -> dict[str, bytes]:
    """Every chunk of the matrix, as it lies on the disk."""
    return {str(f): f.read_bytes() for f in sorted((store / "gram" / "c").glob("*/*"))}


def test_a_store_keeps_names_and_takes_them_in_any_order(frame: Any, tmp_path: Path) -> None:
    """Interrupted, the same samples in another order of columns finish it to the same bits."""
    G = dhsk.compute_gram(frame, KERNEL, store=tmp_path / "g", tile=8)
    assert G.feature_names == tuple(NAMES)
    assert G.with_kernel(KERNEL).feature_names == tuple(NAMES)
    whole = tiles_of(tmp_path / "g")
    GramStore.open(tmp_path / "g").remove_tile(0, 1)
    other = frame[NAMES[::-1]]
    again = dhsk.compute_gram(other, KERNEL, store=tmp_path / "g", tile=8)
    assert tiles_of(tmp_path / "g") == whole
    assert again.feature_names == tuple(NAMES)


def test_without_a_store_names_are_there_too(frame: Any) -> None:
    """And none where there were none."""
    assert dhsk.compute_gram(frame, KERNEL).feature_names == tuple(NAMES)
    assert dhsk.compute_gram(frame.to_numpy(), KERNEL).feature_names is None


def test_other_names_are_refused(frame: Any, tmp_path: Path) -> None:
    """By name, even where the values are the same; samples without names go by their values."""
    dhsk.compute_gram(frame, KERNEL, store=tmp_path / "g")
    with pytest.raises(StoreMismatchError, match=r"lacks 1 of the 8 .*\(w3\) and has 1 .*\(z\)"):
        dhsk.compute_gram(frame.rename(columns={"w3": "z"}), KERNEL, store=tmp_path / "g")
    dhsk.compute_gram(frame.to_numpy(), KERNEL, store=tmp_path / "g")
    with pytest.raises(StoreMismatchError, match="other samples"):
        dhsk.compute_gram(frame.to_numpy()[:, ::-1], KERNEL, store=tmp_path / "g")


def test_a_store_without_names_is_as_before(frame: Any, tmp_path: Path) -> None:
    """Nothing is added to its description, and named samples of the same values go on with it."""
    dhsk.compute_gram(frame.to_numpy(), KERNEL, store=tmp_path / "g")
    attributes = json.loads((tmp_path / "g" / "zarr.json").read_text())["attributes"]
    assert "feature_names" not in attributes["dhsk"]
    assert not (tmp_path / "g" / NAMES_FILE).exists()
    assert dhsk.compute_gram(frame, KERNEL, store=tmp_path / "g").feature_names is None


def test_columns_of_the_other_side_follow_those_of_the_rows(frame: Any) -> None:
    """A rectangular matrix is between the same features."""
    other = frame[:7]
    right = np.asarray(dhsk.compute_gram(frame, KERNEL, other)[:, :])
    found = np.asarray(dhsk.compute_gram(frame, KERNEL, other[NAMES[::-1]])[:, :])
    np.testing.assert_array_equal(found, right)


def test_repair_puts_columns_in_order(frame: Any, tmp_path: Path) -> None:
    """Damaged tiles and samples are those of before; other names are another input."""
    dhsk.compute_gram(frame, KERNEL, store=tmp_path / "g", tile=8)
    whole = tiles_of(tmp_path / "g")
    GramStore.open(tmp_path / "g").remove_tile(1, 2)
    (tmp_path / "g" / "rows" / "dense" / "zarr.json").unlink()
    assert dhsk.repair_gram(tmp_path / "g", frame[NAMES[::-1]]) == [(1, 2)]
    assert tiles_of(tmp_path / "g") == whole
    with pytest.raises(StoreMismatchError, match="lacks 1 of the 8"):
        dhsk.repair_gram(tmp_path / "g", frame.rename(columns={"w0": "z"}))


@pytest.mark.parametrize("damage", [lambda f: f.unlink(), lambda f: f.write_text('["w1"]')])
def test_damaged_names_are_found_and_written_again(frame: Any, tmp_path: Path, damage: Any) -> None:
    """By verification; only the samples that they are of bring them back."""
    store = tmp_path / "g"
    G = dhsk.compute_gram(frame, KERNEL, store=store)
    damage(store / NAMES_FILE)
    with pytest.raises(CorruptTileError, match=r"names of the features .* are damaged"):
        _ = G.feature_names
    with pytest.raises(CorruptTileError, match=r"feature_names\.json is damaged; recompute"):
        GramStore.open(store).check_sound()
    with pytest.raises(CorruptTileError, match="with their names in the same order"):
        dhsk.repair_gram(store, frame.to_numpy())
    assert dhsk.repair_gram(store, frame) == []
    GramStore.open(store).check_sound()
    (store / NAMES_FILE).unlink()  # as of a run that was killed before it wrote them
    assert dhsk.compute_gram(frame, KERNEL, store=store).feature_names == tuple(NAMES)
