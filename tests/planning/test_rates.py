"""Rates: measured once, kept for this machine and version, and never trusted when damaged."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from dhsk.kernels import HeatKernel
from dhsk.planning import rates
from dhsk.planning.overlap import measured_overlap
from dhsk.planning.rates import (
    ASSUMED_TASKS,
    ASSUMED_WRITE,
    Rates,
    cache_file,
    kernel_seconds,
    known_rates,
    load_rates,
    measure_rates,
    save_rates,
)
from dhsk.samples import open_samples


@pytest.fixture(scope="module")
def quick() -> Rates:
    """Rates without disk and scheduler, on one thread."""
    return measure_rates(None, repeats=1)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: Any) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


def test_every_rate_is_positive_and_assumptions_are_said(quick: Rates) -> None:
    """No line falls or stands still; what was not measured is the assumed figure."""
    for line in (quick.float64, quick.float32, quick.sparse):
        assert line.fixed >= 0
        assert line(1000) > line(100) > 0
    assert quick.stage > 0
    assert (quick.write, quick.tasks) == (ASSUMED_WRITE, ASSUMED_TASKS)
    assert "assumed" in quick.note


@pytest.mark.slow
def test_disk_and_scheduler_are_measured_and_the_place_left_clean(tmp_path: Path) -> None:
    """What is written for the measurement is removed, and progress ends at its total."""
    events = []
    rates = measure_rates(tmp_path, events.append, repeats=1)
    assert min(rates.write, rates.read, rates.write_work, rates.tasks) > 0
    assert rates.write != ASSUMED_WRITE
    assert str(tmp_path) in rates.note
    assert not list(tmp_path.iterdir())
    assert [event.done for event in events] == list(range(1, events[0].total + 1))


def test_the_pass_of_a_kernel_takes_time() -> None:
    """In either type of products."""
    kernel = HeatKernel.at_scale(50, 1.0)
    assert kernel_seconds(kernel, "float64") > 0
    assert kernel_seconds(kernel, "float32") > 0


def test_rates_are_kept(quick: Rates, own_cache: Path) -> None:
    """What is loaded is what was saved, number by number."""
    assert load_rates() is None
    save_rates(quick)
    assert cache_file() == own_cache / "dhsk" / "rates.json"
    assert load_rates() == quick


def test_a_process_measures_once_unless_rates_are_kept(quick: Rates, own_cache: Path) -> None:
    """A quarter of a second of all cores, of every run otherwise."""
    assert known_rates() is known_rates()
    save_rates(quick)
    assert known_rates() == quick


def test_other_machines_keep_theirs(quick: Rates, own_cache: Path, monkeypatch: Any) -> None:
    """A home shared by two machines holds both, and neither takes the other's."""
    save_rates(quick)
    monkeypatch.setattr(rates.platform, "node", lambda: "another")
    assert load_rates() is None
    other = replace(quick, tasks=7.0)
    save_rates(other)
    assert load_rates() == other
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache))
    assert load_rates() == quick


@pytest.mark.parametrize("text", ["", "[]", "{", '{"KEY": 1}', '{"KEY": {"float64": {}}}'])
def test_a_damaged_cache_is_no_cache(quick: Rates, own_cache: Path, text: str) -> None:
    """It is measured again and written anew."""
    save_rates(quick)
    (key,) = json.loads(cache_file().read_text())
    cache_file().write_text(text.replace("KEY", key))
    assert load_rates() is None
    save_rates(quick)
    assert load_rates() == quick


def test_relative_cache_variable_is_ignored(monkeypatch: Any, tmp_path: Path) -> None:
    """As the specification says, so that no cache appears in the current folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_file().is_relative_to(tmp_path)


def test_overlap_is_the_mean_of_all_pairs(rng: np.random.Generator) -> None:
    """Counted by columns, it is what the pairs of different rows share."""
    X = csr_array(random_array((60, 40), density=0.2, rng=rng))
    shared = (X != 0).astype(float) @ (X != 0).astype(float).T
    expected = (shared.sum() - shared.trace()) / (60 * 59)
    overlap, rows = measured_overlap(open_samples(X))
    assert rows == 60
    assert overlap == pytest.approx(expected)


def test_overlap_reads_only_so_many_entries(rng: np.random.Generator, monkeypatch: Any) -> None:
    """It stops after the block in which the limit is passed."""
    monkeypatch.setattr("dhsk.planning.overlap.SAMPLED_ENTRIES", 10)
    monkeypatch.setattr("dhsk.planning.overlap._BLOCK_ROWS", 7)
    X = csr_array(random_array((60, 40), density=0.2, rng=rng))
    assert measured_overlap(open_samples(X))[1] == 7
