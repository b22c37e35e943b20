"""What each way takes, by numbers that are added up by hand."""

from dataclasses import replace
from typing import Any

import pytest

from dhsk.execution.memory import MemoryNeed, Share
from dhsk.execution.resources import Resources
from dhsk.gram.plan import make_plan
from dhsk.gram.sides import GramSides
from dhsk.planning.fits import (
    COLUMNS_OF_SUPPORT,
    PASSES,
    PASSES_OF_ONE,
    ROUNDS,
    few_support_seconds,
)
from dhsk.planning.methods import READS, SPREAD, STREAMED, MethodCost, method_costs
from dhsk.planning.prediction import START_SECONDS, Prediction
from dhsk.planning.rates import TYPICAL
from dhsk.planning.training import ON_WORKERS, GridShape, Training
from dhsk.units import seconds_range

N, DIM = 2**20, 128
BYTES = N * DIM * 8  # 2^30
PART, CHUNK = 2**23, 2**24


def costs(ways: dict[int | None, str], free: int | None = None, **options: Any) -> list[MethodCost]:
    """Costs on one core, of ways with these words for what is in memory."""
    workers = options.pop("workers", 1)
    plan = make_plan(GramSides(N, DIM), Resources(workers, workers, 10**13), tile=8192)
    prediction = Prediction(plan, TYPICAL, 1e-9, free=free)
    trained = {
        rank: Training("", None if way == "" else shared(way), None) for rank, way in ways.items()
    }
    single = prediction.in_single(5e-10)
    shape = GridShape(options.pop("sizes", (N // 2, N // 2)))
    return list(method_costs(prediction, single, shape, trained, options.pop("passes", 1)))


def shared(way: str) -> Share:
    """Memory of a fit."""
    return Share(MemoryNeed("a fit", {}), 1, way, way == "features in memory")


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a machine of two cores."""
    monkeypatch.setattr("dhsk.planning.methods.core_count", lambda: 2)


def test_exact_fits_read_their_samples_three_times() -> None:
    """Where they fit; the support vectors are two numbers and a hundredth of the samples."""
    found = costs({None: "working sets"})[:3]
    assert [cost.name for cost in found] == [
        "exact, 1,000 support vectors",
        "exact, 10,000 support vectors",
        "exact, 10,486 support vectors",
    ]
    speeds = Prediction(make_plan(GramSides(N, DIM), Resources(1, 1, 10**13)), TYPICAL, 1e-9)
    fit = few_support_seconds((N // 2, N // 2), 1, speeds.of_core, "ovo", 1000)
    assert found[0].seconds == pytest.approx(START_SECONDS + fit)
    assert (found[0].read, found[0].written, found[0].puts) == (READS * BYTES, 0, 0)
    assert found[0].gets == READS * BYTES // PART


def test_exact_fits_on_workers_stage_their_samples() -> None:
    """Beside the three times, they are read for the columns of all support vectors."""
    found = costs({None: ON_WORKERS})[0]
    assert (found.read, found.written) == ((READS + COLUMNS_OF_SUPPORT) * BYTES, BYTES)
    assert (found.gets, found.puts) == (544, BYTES // CHUNK)


def test_low_ranks_that_do_not_fit_read_samples_in_every_pass() -> None:
    """Of single precision; three classes take more passes than two."""
    kept, mapped, streamed = (
        costs({None: "", 100: way})[3]
        for way in ("features in memory", "samples in memory", STREAMED)
    )
    assert kept.read == mapped.read == READS * BYTES / 2
    assert streamed.read == BYTES / 2 * (READS + ROUNDS + PASSES_OF_ONE)
    several = costs({None: "", 100: STREAMED}, sizes=(N // 2, N // 4, N // 4))[3]
    assert several.read == BYTES / 2 * (READS + ROUNDS + PASSES)
    assert 0 < kept.seconds < mapped.seconds < streamed.seconds


def test_more_workers_than_cores_compute_features_in_every_pass() -> None:
    """Whatever the memory; they read staged samples."""
    found = costs({None: "working sets", 100: "features in memory"}, workers=4)
    assert found[0].written == BYTES
    assert found[3].read == BYTES / 2 * (READS + ROUNDS + PASSES_OF_ONE)
    assert found[3].puts == BYTES // 2 // CHUNK


def test_a_matrix_is_stored_or_computed_in_every_pass() -> None:
    """128 x 128 tiles of 8,192 rows, the upper half, in groups of four."""
    stored, computed = costs({None: ""}, passes=3)[-2:]
    tiles, groups = 128 * 129 // 2, 32 * 33 // 2
    blocks = groups * 2 * 4 * 8192 * DIM * 8
    assert stored.name, computed.name == ("matrix stored, 3 passes", "matrix computed in 3 passes")
    assert stored.written == tiles * 2**29 + BYTES
    assert stored.read == 2 * BYTES + blocks + 3 * tiles * 2**29
    assert stored.puts == tiles + BYTES // CHUNK
    assert (computed.read, computed.written) == (2 * BYTES + 3 * blocks, BYTES)
    assert [cost.fits for cost in costs({None: ""}, free=BYTES)[-2:]] == [False, True]


def test_samples_are_staged_where_the_disk_has_room() -> None:
    """That of more workers than this machine has is not known."""
    own = costs({None: ON_WORKERS, 100: STREAMED}, free=BYTES - 1)
    assert [cost.name for cost in own if cost.fits] == ["rank 100"]
    others = costs({None: ON_WORKERS, 100: STREAMED}, free=BYTES - 1, workers=4)
    assert [cost.name for cost in others if not cost.fits] == ["matrix stored, 1 pass"]


def test_what_does_not_fit_is_marked() -> None:
    """It has the costs of a machine that it fits: samples that are staged, or read in passes."""
    found = costs({None: "", 100: ""})
    assert not any(cost.fits for cost in found[:4])
    staged = costs({None: ON_WORKERS, 100: STREAMED})
    assert [replace(cost, fits=True) for cost in found] == staged
    assert found[0].row(2)[0] == "exact, 1,000 support vectors *"
    assert found[3].facts(2)["fits"] is False


def test_several_classes_have_problems_of_their_own() -> None:
    """Whose support vectors are counted."""
    found = costs({None: "working sets"}, sizes=(N // 2, N // 4, N // 4))[0]
    assert found.name == "exact, 1,000 support vectors a problem"


def test_a_row_says_a_range() -> None:
    """An hour on 1,000 cores, of 2^30 bytes read and 2^30 written."""
    cost = MethodCost("way", True, 3600.0, 2.0**30, 2.0**30, 5)
    assert cost.row(1000) == ["way", "40 to 90 min", "1,000", "2.00 GiB", "128", "5"]
    assert replace(cost, puts=2 * 10**9).row(1)[-1] == "2.0e+09"
    facts = cost.facts(1000)
    assert facts["seconds"] == (3600 / SPREAD, 3600 * SPREAD)
    assert (facts["core_hours"], facts["get_requests"], facts["put_requests"]) == (1000, 128, 5)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.23, 2.77, "1.2 to 2.8 s"),
        (44, 99, "44 to 99 s"),
        (80, 180, "1.3 to 3.0 min"),
        (5000, 11250, "1.4 to 3.1 h"),
        (86400, 2 * 86400, "1.0 to 2.0 days"),
        (4e9, 9e9, "130 to 290 years"),
    ],
)
def test_a_range_is_in_one_unit(low: float, high: float, words: str) -> None:
    """That in which its end is two or more."""
    assert seconds_range(low, high) == words
