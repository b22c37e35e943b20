"""Approximations: the same ones wherever they are made, with the error that they have."""

import re
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy.sparse import csr_array

import dhsk
from dhsk.errors import BudgetError, InputError
from dhsk.execution.memory import MemoryNeed, Share
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.linear.passes import sums
from dhsk.nystrom import approximation
from dhsk.nystrom.approximation import Approximation, approximate
from dhsk.nystrom.components import squared_length, write_features
from dhsk.nystrom.landmarks import searched
from dhsk.nystrom.placed import in_memory
from dhsk.nystrom.room import ApproximationNeed, plan_here
from dhsk.results.low_rank import SELECTIONS, LowRank
from dhsk.samples import ZeroRows, open_samples
from tests.killed import KilledError, kill_after

SAME = 1e-9
"""What landmarks with pivots of a thousandth of the diagonal cost: eps of sums, times a thousand,
and room."""

TIERS: tuple[Any, ...] = ("features in memory", "samples in memory", "samples read in every pass")


@pytest.fixture
def X(rng: np.random.Generator) -> Any:
    """Counts of a few kinds, 1200 of them: two spans."""
    kinds = rng.gamma(0.5, size=(8, 12)) * 4
    return rng.poisson(kinds[rng.integers(0, 8, 1200)]) + rng.integers(0, 2, (1200, 12)) + 0.5


@pytest.fixture
def tier(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets where approximations are made."""

    def put(name: Any, threads: int = 2) -> None:
        need, whole = MemoryNeed("as told", {"all": 10**9}), name == "features in memory"
        plan = Share(need, threads, name, whole)
        monkeypatch.setattr(approximation, "plan_here", lambda *_: plan)

    return put


@pytest.fixture(params=["all", "a part"])
def among(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The samples that are searched for landmarks."""
    if request.param == "a part":
        monkeypatch.setattr("dhsk.nystrom.landmarks._SEARCHED", 200)
        monkeypatch.setattr("dhsk.nystrom.landmarks._EACH", 1)
    return str(request.param)


def row_map(X: Any, dtype: str = "float64", scale: float = 1.0) -> RowMap:
    """Heat kernel of counts."""
    kernel = dhsk.HeatKernel.at_scale(X.shape[1], scale)
    return RowMap(kernel, "hyperspherical", dtype, ZeroRows("error"))


def made(X: Any, k: int = 60, dtype: str = "float64", **options: Any) -> Approximation:
    """Approximation of an array."""
    run = Run(**{n: options.pop(n) for n in ("client", "journal", "report") if n in options})
    seed, how = options.pop("seed", 0), LowRank(k, **options)
    return approximate(open_samples(X), row_map(X, dtype), how, run, seed=seed)


def whole(found: Approximation) -> Any:
    """All features, as passes see them."""
    return found.features.take(np.arange(found.features.n))


def oracle(X: Any, found: Approximation, scale: float = 1.0) -> tuple[Any, Any]:
    """Kernel matrix, and its Nyström approximation from the same landmarks by numpy."""
    kernel = dhsk.HeatKernel.at_scale(X.shape[1], scale)
    rows = dhsk.hyperspherical_map(X)
    C, W = kernel(rows, rows[found.indices]), kernel(rows[found.indices])
    return kernel(rows), C @ np.linalg.solve(W, C.T)


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["rpcholesky", "uniform", np.arange(7, 1100, 20)])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", TIERS)
def test_features_and_error_are_those_of_nystrom(
    X: Any, tier: Any, among: str, name: Any, sparse: bool, selection: Any
) -> None:
    """In every way of making them, and of new samples by the root."""
    tier(name)
    found = made(csr_array(X) if sparse else X, selection=selection)
    K, nystrom = oracle(X, found)
    Z = whole(found)
    assert found.tier == name
    assert (found.features.values is not None) == (name == "features in memory")
    np.testing.assert_allclose(Z @ Z.T, nystrom, atol=SAME)
    assert found.trace_error == pytest.approx(np.trace(K - nystrom) / len(K), abs=SAME)
    again = found.kernel(dhsk.hyperspherical_map(X), found.landmarks) @ found.root
    np.testing.assert_allclose(again, Z, atol=SAME)


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["rpcholesky", "uniform"])
@pytest.mark.parametrize("name", TIERS)
def test_of_more_landmarks_the_leading_components_are_kept(
    X: Any, tier: Any, name: Any, selection: Any
) -> None:
    """Features are the best of their number of those from all landmarks, with their error."""
    tier(name)
    found = made(X, 40, selection=selection, oversampling=2.5)
    K, nystrom = oracle(X, found)
    Z = whole(found)
    values, vectors = np.linalg.eigh(nystrom)
    best = (vectors[:, -40:] * values[-40:]) @ vectors[:, -40:].T
    assert found.landmarks.shape[0] == 100
    assert Z.shape == (1200, 40)
    assert (np.diff(np.linalg.norm(Z, axis=0)) < 0).all()
    np.testing.assert_allclose(Z @ Z.T, best, atol=1e-7)  # eigenvalues apart by some 1e-2
    assert found.trace_error == pytest.approx(np.trace(K - best) / len(K), abs=SAME)
    again = found.kernel(dhsk.hyperspherical_map(X), found.landmarks) @ found.root
    np.testing.assert_allclose(again, Z, atol=SAME)


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", TIERS)
def test_centres_of_groups_are_landmarks(X: Any, tier: Any, name: Any, sparse: bool) -> None:
    """Unit rows, none of them a sample; features and error are those of any landmarks."""
    tier(name)
    found = made(csr_array(X) if sparse else X, 40, selection="kmeans", seed=2)
    rows = dhsk.hyperspherical_map(X)
    L: Any = found.landmarks.toarray() if sparse else found.landmarks
    C, W = found.kernel(rows, L), found.kernel(L)
    nystrom = C @ np.linalg.solve(W, C.T)
    Z = whole(found)
    assert found.indices is None
    assert isinstance(found.landmarks, csr_array) == sparse
    np.testing.assert_allclose(np.linalg.norm(L, axis=1), 1)
    np.testing.assert_allclose(Z @ Z.T, nystrom, atol=SAME)
    norm = 1 - np.trace(nystrom) / len(rows)
    assert found.trace_error == pytest.approx(norm, abs=SAME)
    blind = np.mean([made(X, 40, selection="uniform", seed=s).trace_error for s in range(3)])
    assert found.trace_error < blind
    again = made(csr_array(X) if sparse else X, 40, selection="kmeans", seed=2)
    assert np.array_equal(again.root, found.root)


@pytest.mark.parametrize("oversampling", [1, 2])
@pytest.mark.parametrize("name", TIERS)
def test_single_precision_is_right_to_its_rounding(X: Any, name: Any, oversampling: int) -> None:
    """Features are float32, and the error is that of the float64 kernel."""
    found = made(X, 60, "float32", oversampling=oversampling)
    Z = whole(found)
    K, _ = oracle(X, found)
    assert Z.dtype == np.float32
    assert found.root.dtype == np.float64
    norm = 1 - float((Z.astype(np.float64) ** 2).sum()) / np.trace(K)
    assert found.trace_error == pytest.approx(norm, abs=1e-5)
    again = found.kernel(dhsk.hyperspherical_map(X), found.landmarks) @ found.root
    # Each kernel value is right to a few eps of float32, and R adds them up.
    rounding = 8 * np.finfo(np.float32).eps * np.abs(found.root).sum(axis=0).max()
    np.testing.assert_allclose(again, Z, rtol=0, atol=rounding)


@pytest.mark.parametrize("oversampling", [1, 2])
@pytest.mark.parametrize("name", TIERS)
def test_the_number_of_threads_changes_no_bit(
    X: Any, tier: Any, among: str, name: Any, oversampling: int
) -> None:
    """Sums over spans are in their order."""
    found = []
    for threads in (1, 2):
        tier(name, threads)
        found.append(made(X, dtype="float32", oversampling=oversampling))
    one, two = found
    assert np.array_equal(one.indices, two.indices)
    assert np.array_equal(one.root, two.root)
    assert one.trace_error == two.trace_error
    assert one.features.values is None or np.array_equal(one.features.values, two.features.values)


def test_all_ways_choose_the_same(X: Any, tier: Any, among: str) -> None:
    """Landmarks and error of a seed, to rounding, at a tolerance too."""
    for tol in (0.0, 0.05):
        found = []
        for name in TIERS:
            tier(name)
            found.append(made(X, landmark_tol=tol, seed=3))
        for other in found[1:]:
            assert np.array_equal(other.indices, found[0].indices)
            assert other.trace_error == pytest.approx(found[0].trace_error, abs=SAME)


@pytest.mark.slow
def test_workers_give_what_this_process_gives(
    X: Any, among: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To rounding; and the same bits again, after an interruption too."""
    monkeypatch.setattr("dhsk.nystrom.landmarks._LEAST_BLOCK", 40)

    def end(progress: Any) -> None:
        if progress.stage == "landmarks" and progress.done > 40:
            raise KilledError

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        one = made(X, oversampling=2, client=client)
        with pytest.raises(KilledError):
            made(X, oversampling=2, client=client, journal=tmp_path, report=end)
        assert len(list(tmp_path.iterdir())) == 1
        two = made(X, oversampling=2, client=client, journal=tmp_path)
        Z = whole(one)
        total = sum(one.features.map(sums, ()))
    here = made(X, oversampling=2)
    assert one.tier == "on workers"
    assert np.array_equal(one.indices, here.indices)
    assert one.trace_error == pytest.approx(here.trace_error, abs=SAME)
    np.testing.assert_allclose(np.abs(Z), np.abs(whole(here)), atol=1e-7)
    np.testing.assert_allclose(total @ one.root, Z.sum(axis=0), atol=SAME)
    assert np.array_equal(one.root, two.root)
    assert one.trace_error == two.trace_error


@pytest.mark.parametrize("name", TIERS)
def test_a_tolerance_takes_as_few_landmarks_as_reach_it(X: Any, tier: Any, name: Any) -> None:
    """One less leaves more."""
    tier(name)
    found = made(X, 300, landmark_tol=0.003)
    assert found.trace_error <= 0.003
    assert len(found.indices) == found.landmarks.shape[0] == found.width < 300
    assert whole(found).shape == (1200, found.width)
    assert made(X, selection=found.indices[:-1]).trace_error > 0.003


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", TIERS)
def test_few_different_samples_take_few_features(
    X: Any, tier: Any, name: Any, selection: Any
) -> None:
    """More wanted than samples, than rank, or than different samples, or samples nearly equal."""
    tier(name)
    rank = 12
    few = np.repeat(X[:rank], 100, axis=0)
    for given in (few[: 2 * 100], few, X[:1].repeat(30, axis=0)):
        found = made(given, 400, selection=selection)
        distinct = len(np.unique(given, axis=0))
        assert found.width == distinct
        assert found.trace_error < 1e-7
        Z = whole(found)
        kernel = row_map(X).kernel(dhsk.hyperspherical_map(given))
        np.testing.assert_allclose(Z @ Z.T, kernel, atol=1e-7)
    near = few * (1 + 1e-9 * np.random.default_rng(0).random(few.shape))
    found = made(near, 400, selection=selection)
    assert found.width < 400
    assert found.trace_error < 1e-6
    assert made(X[:50], 400, selection=selection).trace_error < 1e-6


@pytest.mark.parametrize("selection", ["rpcholesky", "uniform", [4, 8, 1100]])
@pytest.mark.parametrize("name", TIERS)
@pytest.mark.parametrize(
    ("value", "match"), [(np.nan, "row 1100, column 5"), (0, "row 1100 .*zero")]
)
def test_a_bad_row_deep_in_a_stream_is_named(
    X: Any,
    tier: Any,
    name: Any,
    selection: Any,
    value: float,
    match: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever the samples are, and whether or not it is drawn."""
    for module in ("dhsk.gram.row_map", "dhsk.samples.scan"):
        monkeypatch.setattr(sys.modules[module], "BLOCK_BYTES", 2**15)
    tier(name)
    X[1100, slice(None) if value == 0 else 5] = value
    chosen = np.array(selection) if isinstance(selection, list) else selection
    with pytest.raises(InputError, match=match):
        made(X, selection=chosen)


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("name", TIERS)
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_choice_goes_on_where_it_was(
    X: Any,
    tier: Any,
    among: str,
    name: Any,
    rounds: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same bits as without the interruption; only the rounds that are missing are made."""
    tier(name)
    keep_at_once(monkeypatch)
    monkeypatch.setattr("dhsk.nystrom.landmarks._LEAST_BLOCK", 16)
    seen: list[int] = []

    def report(progress: Any, until: int | None = None) -> None:
        if progress.stage == "landmarks":
            if until is not None and len(seen) == until:
                raise KilledError
            seen.append(progress.done)

    straight = made(X, 120, oversampling=1.2, report=report)
    whole_run = len(seen)
    seen.clear()
    options = {"oversampling": 1.2, "journal": tmp_path}
    until = rounds + (among == "a part")  # which is taken before the first round
    with pytest.raises(KilledError):
        made(X, 120, report=lambda p: report(p, until), **options)
    seen.clear()
    resumed = made(X, 120, report=report, **options)
    assert len(seen) == whole_run - rounds
    for one, two in ((straight, resumed), (straight, made(X, 120, **options))):
        assert np.array_equal(one.indices, two.indices)
        assert np.array_equal(one.root, two.root)
        assert one.trace_error == two.trace_error
        assert np.array_equal(whole(one), whole(two))
    other = made(X, 120, seed=1, **options)
    assert not np.array_equal(other.indices, straight.indices)


def keep_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep entries from the first second on, all of them, in several parts."""
    monkeypatch.setattr("dhsk.nystrom.kept_values.UNKEPT_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.nystrom.kept_values._PART_BYTES", 2**16)
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)


def bits(found: Approximation) -> Any:
    """All that an approximation has found."""
    values = b"" if found.features.values is None else found.features.values.tobytes()
    return found.root.tobytes(), found.trace_error, values, whole(found).tobytes()


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("selection", ["rpcholesky", "uniform"])
@pytest.mark.parametrize("name", TIERS)
def test_killed_after_any_entry_it_does_no_part_again(
    X: Any,
    tier: Any,
    among: str,
    name: Any,
    selection: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same bits, and only the entries that were missing are written."""
    tier(name)
    keep_at_once(monkeypatch)
    options: dict[str, Any] = {"k": 50, "oversampling": 1.5, "selection": selection}
    straight = bits(made(X, **options))
    with monkeypatch.context() as patched:
        every = kill_after(patched, 0)
        assert bits(made(X, journal=tmp_path / "whole", **options)) == straight
    assert len(every) > 3
    for last in np.unique(np.linspace(1, len(every), 7, dtype=int)).tolist():
        journal = tmp_path / str(last)
        with monkeypatch.context() as patched:
            kill_after(patched, last)
            with pytest.raises(KilledError):
                made(X, journal=journal, **options)
        with monkeypatch.context() as patched:
            rest = kill_after(patched, 0)
            assert bits(made(X, journal=journal, **options)) == straight
        assert not [file for file in journal.iterdir() if "-round-" in file.name]
        # Parts are found again once the entry is written that lists them.
        unlisted = len(list(takewhile(re.compile(r"-\d+-\d+$").search, every[:last][::-1])))
        assert len(rest) == len(every) - last + unlisted
        assert rest == every[len(every) - len(rest) :]


def test_a_part_that_is_damaged_is_computed_again(
    X: Any, tier: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all that came after it."""
    tier("features in memory")
    keep_at_once(monkeypatch)
    straight = bits(made(X, journal=tmp_path))
    for file in sorted(tmp_path.iterdir()):
        sound = file.read_bytes()
        file.write_bytes(sound[:-100])
        assert bits(made(X, journal=tmp_path)) == straight
    assert bits(made(X, journal=tmp_path)) == straight


def test_features_are_kept_only_where_the_disk_has_room(
    X: Any, tier: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice their bytes; what an earlier run has kept counts as room."""
    tier("features in memory")
    keep_at_once(monkeypatch)
    held = 2 * 1200 * 60 * 8
    for free, kept in ((held - 1, False), (held, True), (held // 2, True)):
        monkeypatch.setattr(approximation, "free_bytes", lambda _, free=free: free)
        made(X, journal=tmp_path / "journal")
        assert (tmp_path / "journal").exists() == kept


def test_landmarks_that_are_given_need_no_checkpoint(X: Any, tier: Any, tmp_path: Path) -> None:
    """A choice of samples, as an array, writes nothing where "rpcholesky" would."""
    tier("samples in memory")
    found = made(X, selection=np.arange(7, 1100, 20), journal=tmp_path)
    assert (len(found.landmarks), list(tmp_path.iterdir())) == (55, [])


def test_a_damaged_journal_is_begun_again(X: Any, tier: Any, tmp_path: Path) -> None:
    """What is no whole round counts for nothing."""
    tier("samples in memory")
    one = made(X, journal=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:1000])
    assert np.array_equal(one.root, made(X, journal=tmp_path).root)


def test_many_samples_are_searched_in_part() -> None:
    """Enough for each landmark, in little memory, and all where that would not be a part."""
    for n, row_bytes, k, count in (
        (262_144, 400, 1000, 262_144),
        (262_145, 400, 1000, 65_536),
        (10**9, 400, 1000, 65_536),
        (10**9, 400, 10_000, 160_000),
        (10**6, 3136, 2000, 42_799),  # 128 MiB
        (10**6, 80_000, 1000, 10**6),  # 128 MiB are too few
    ):
        assert searched(n, row_bytes, k) == count


@pytest.mark.parametrize("kernel", [dhsk.LinearKernel(), dhsk.HeatKernel.at_scale(12, 1.0)])
def test_the_trace_is_that_of_the_diagonal(X: Any, kernel: Any) -> None:
    """Also where the diagonal is not 1."""
    rows = dhsk.hyperspherical_map(X)
    if not kernel.spherical:
        rows = rows * np.linspace(1, 2, len(X))[:, None]
    found = in_memory(rows, kernel, 2).trace()
    assert found == pytest.approx(np.trace(kernel(rows)), rel=1e-12)


def test_a_triangular_root_is_multiplied_in_strips(rng: np.random.Generator) -> None:
    """Features and squares are those of the product with all of it, and with any other root."""
    K, root = rng.normal(size=(50, 41)), rng.normal(size=(41, 41))
    for own in (root, np.triu(root), np.triu(root)[:, :3], root[:, :7]):
        Z = np.full((50, own.shape[1]), np.nan)
        parts = [(slice(0, 30), K[:30]), (slice(30, 50), K[30:])]
        gained = write_features(parts, Z, own)
        np.testing.assert_allclose(Z, K @ own, atol=1e-12)
        assert gained == pytest.approx(float((Z**2).sum()), rel=1e-12)
        assert squared_length(parts, own) == gained


def test_as_much_is_held_as_fits() -> None:
    """Features, else samples, else neither; then fewer threads, and then it is refused."""
    need = ApproximationNeed.of(2_000_000, 4 * 2_000_000 * 500, 4, 1000)
    assert need.samples == 4 * 2_000_000 * 500
    assert need.factor == 4 * 2_000_000 * 1000
    for name in TIERS:
        for threads in (2, 1):
            room = need.within(name, threads).total
            found = plan_here(need, room, 2)
            assert (found.way, found.at_once, found.need.total) == (name, threads, room)
    with pytest.raises(
        BudgetError,
        match=r"^1000 landmarks of 2000000 samples take .* but .* left: allow more, or",
    ):
        plan_here(need, room - 1, 2)
