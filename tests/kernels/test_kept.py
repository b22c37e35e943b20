"""Profiles that an earlier process has proven are those that would be proven now."""

import json
import os
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pytest

import dhsk
from dhsk.kernels.certified.derivative import heat_derivative_profile
from dhsk.kernels.certified.kept import MOST_KEPT, kept_profile
from dhsk.kernels.certified.profile import HeatProfile, heat_profile, single_form

KERNELS = [(2, 0.5), (20, 0.15), (375, 0.0158), (3, 1e-3), (784, 40.0)]
"""With factors and without, held constant below a cosine, and a kernel of almost 1 everywhere."""


def numbers(profile: HeatProfile) -> str:
    """All numbers of a profile, to the bit, with the types of its arrays."""
    own = [getattr(profile, each.name) for each in fields(HeatProfile) if each.name != "double"]
    return repr(own + [asdict(form) for form in (profile.double, profile.single)]) + "".join(
        f"{array.dtype}{array.tobytes()!r}"
        for form in (profile.double, profile.single)
        for array in (form.numerator, form.denominator, form.slopes, form.starts)
    )


def proofs() -> int:
    """Forms that this process has asked a proof for, or its result."""
    found = [prove.cache_info() for prove in (heat_profile, single_form)]
    return sum(each.hits + each.misses for each in found)


@pytest.mark.parametrize(("dim", "time"), KERNELS)
def test_a_kept_profile_has_the_bits_of_the_proven_one(
    tmp_path: Path, dim: int, time: float
) -> None:
    """Bounds too; and nothing is proven where there is a file."""
    proven = kept_profile(dim, time, tmp_path)
    expected_numbers = numbers(proven)
    before = proofs()
    kept = kept_profile(dim, time, tmp_path)
    assert numbers(kept) == expected_numbers
    assert proofs() == before
    assert expected_numbers == numbers(heat_profile(dim, time))
    assert len(list(tmp_path.glob("*.json"))) == 2  # one for each type
    cosines = np.linspace(-1.0, 1.0, 101)
    found, expected = np.empty((2, 101))
    kept.double.apply(cosines, found)
    proven.double.apply(cosines, expected)
    np.testing.assert_array_equal(found, expected)


def test_float32_is_proven_where_it_is_used(tmp_path: Path) -> None:
    """Its proof takes as long as that of float64, which most computations have alone."""
    dim, time = 11, 0.2345678
    before = single_form.cache_info().misses
    profile = kept_profile(dim, time, tmp_path)
    profile.double.apply(*np.zeros((2, 5)))
    heat_derivative_profile(dim, time).double.apply(*np.zeros((2, 5)))
    assert single_form.cache_info().misses == before
    assert profile.single.numerator.dtype == np.float32
    assert single_form.cache_info().misses == before + 1


def test_kernels_look_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder of the user's caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    dhsk.HeatKernel(9, 0.25).prepare()
    (file,) = (tmp_path / "dhsk" / "kernels").iterdir()
    assert file.suffix == ".json"
    before = proofs()
    dhsk.HeatKernel(9, 0.25).prepare()
    assert proofs() == before
    dhsk.HeatKernel(9, float(np.nextafter(0.25, 1.0))).prepare()
    assert proofs() == before + 1


def other_digit(text: str) -> str:
    """A number is another one."""
    found = json.loads(text)
    found["proven"]["double"]["numerator"][0] *= 1.0 + 2.0**-52
    return json.dumps(found)


def without_a_form(text: str) -> str:
    """Something is lacking, and its checksum too."""
    found = json.loads(text)
    del found["proven"]["double"]
    return json.dumps(found)


@pytest.mark.parametrize(
    "harm",
    [other_digit, without_a_form, lambda text: text[:100], lambda _: "", lambda _: "[" * 100_000],
)
def test_a_damaged_file_counts_for_nothing(tmp_path: Path, harm: object) -> None:
    """The profile is proven again, and kept in its place."""
    assert callable(harm)
    right = kept_profile(4, 0.5, tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_text()
    file.write_text(harm(whole))
    assert numbers(kept_profile(4, 0.5, tmp_path)) == numbers(right)
    assert file.read_text() == whole


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    """As on machines without a home."""
    (tmp_path / "file").write_text("")
    assert kept_profile(4, 0.5, tmp_path / "file" / "folder").dim == 4


def test_what_cannot_be_proven_is_refused_each_time(tmp_path: Path) -> None:
    """And not kept."""
    for _ in range(2):
        with pytest.raises(dhsk.AccuracyError, match="levels"):
            kept_profile(2, 1e-8, tmp_path)
    assert not list(tmp_path.iterdir())


def test_old_files_go_where_there_are_many(tmp_path: Path) -> None:
    """The older half; what was kept now stays."""
    for number in range(MOST_KEPT):
        file = tmp_path / f"{number}.json"
        file.write_text("")
        os.utime(file, (number, number))
    kept_profile(4, 0.5, tmp_path)
    left = {file.name for file in tmp_path.iterdir()}
    assert len(left) == MOST_KEPT + 1 - (MOST_KEPT + 1) // 2
    assert "0.json" not in left
    assert f"{MOST_KEPT - 1}.json" in left
    before = proofs()
    kept_profile(4, 0.5, tmp_path)
    assert proofs() == before
