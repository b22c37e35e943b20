"""Model files that would fill the memory: refused by their headers."""

import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.errors import BudgetError, InputError
from dhsk.models import archive

BIG = 256 * 10**6
"""Bytes of zeros, a quarter of a megabyte in an archive."""

SMALL = 10**6
"""Bytes that refusing takes at most."""


@pytest.fixture
def model(tmp_path: Path, counts: Any) -> Path:
    """A file of a trained model."""
    X = counts(60, 12)
    dhsk.HeatSVC().fit(X, X[:, 0] > 1).save(tmp_path / "m")
    return tmp_path / "m"


def header_of(count: int) -> bytes:
    """What numpy writes before so many numbers."""
    head = BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    )
    return head.getvalue()


def with_zeros(model: Path, member: str, head: bytes, size: int) -> None:
    """Put a compressed member of zeros in the place of another, or beside all."""
    with zipfile.ZipFile(model) as old:
        parts = {name: old.read(name) for name in old.namelist() if name != member}
    with zipfile.ZipFile(model, "w") as new:
        for name, content in parts.items():
            new.writestr(name, content)
        zipped = zipfile.ZipInfo(member)
        zipped.compress_type = zipfile.ZIP_DEFLATED
        with new.open(zipped, "w") as file:
            file.write(head)
            for _ in range(0, size, SMALL):
                file.write(bytes(min(SMALL, size)))


def refused(model: Path, error: type[Exception], match: str) -> None:
    """Loading it is refused, in little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=match):
            dhsk.HeatSVC.load(model)
        assert tracemalloc.get_traced_memory()[1] < SMALL
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("member", ["dual_coef.npy", "beside.npy", "header.npy"])
def test_more_than_the_memory_is_not_read(
    model: Path, monkeypatch: pytest.MonkeyPatch, member: str
) -> None:
    """An array of the model, one that it does not need, its header: the sentence has the sizes."""
    monkeypatch.setattr(archive, "own_room", lambda _: 10 * SMALL)
    with_zeros(model, member, header_of(BIG // 8), BIG)
    refused(model, BudgetError, r"m take 244\.1\d MiB but 9\.54 MiB of memory are left")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "size", "match"),
    [
        (3, BIG, "dual_coef.npy has 256000128 bytes where its header says 152"),
        (1 << 50, SMALL, "dual_coef.npy has 1000128 bytes where its header says 9007199254741120"),
    ],
    ids=["more than it says", "less than it says"],
)
def test_sizes_that_contradict_each_other_are_damage(
    model: Path, count: int, size: int, match: str
) -> None:
    """Of the archive and of the array in it; neither decides alone how much is read."""
    with_zeros(model, "dual_coef.npy", header_of(count), size)
    refused(model, InputError, match)


@pytest.mark.slow
def test_a_header_without_end_is_damage(model: Path) -> None:
    """Numpy reads as many bytes of a header as it says, and looks at their number afterwards."""
    head = b"\x93NUMPY\x02\x00" + np.array([BIG], "<u4").tobytes()
    with_zeros(model, "dual_coef.npy", head, BIG)
    refused(model, InputError, "cannot be read, is it complete")
