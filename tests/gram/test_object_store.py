"""Gram stores on a server with the interface of S3, here moto in memory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.execution import owner
from dhsk.execution.resources import Resources
from dhsk.gram.plan import make_plan
from dhsk.gram.sides import GramSides
from dhsk.objects.path import ObjectPath
from dhsk.samples import open_samples

DIM = 12
KERNELS = ["heat", "cosine"]


@pytest.fixture
def url(bucket: str, request: Any) -> str:
    """URL of a store of this test's own."""
    return f"s3://{bucket}/{request.node.name.replace('[', '-').rstrip(']')}/x.gram"


def assert_same_files(url: str, folder: Path) -> None:
    """A store on the server has the files of one on the disk, to the last bit."""
    place = ObjectPath.parse(url)
    files = {str(f.relative_to(folder)): f for f in folder.rglob("*") if f.is_file()}
    assert sorted(place.sizes()) == sorted(files)
    for name, file in files.items():
        assert place.joinpath(name).read_bytes() == file.read_bytes(), name


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("layout", ["triangle", "full"])
@pytest.mark.parametrize("sparse", [False, True])
def test_objects_are_the_files_of_a_store(
    url: str, counts: Any, tmp_path: Path, layout: str, sparse: bool
) -> None:
    """Tiles, samples, names and descriptions; matrices read the same."""
    from scipy.sparse import csr_array

    X = csr_array(counts(50, DIM)) if sparse else counts(50, DIM)
    options = {"tile": 16, "layout": layout, "dtype": "float32"}
    local = dhsk.compute_gram(X, KERNELS, store=tmp_path / "g", **options)
    remote = dhsk.compute_gram(X, KERNELS, store=url, **options)
    assert_same_files(url, tmp_path / "g")
    for here, there in zip(local, remote, strict=True):
        np.testing.assert_array_equal(there[:, :], here[:, :])
        np.testing.assert_array_equal(there @ np.ones(50), here @ np.ones(50))
    opened = dhsk.open_gram(url)
    assert opened.verify() == local[0].verify()
    ones = np.ones(DIM)
    np.testing.assert_array_equal(opened.samples() @ ones, local[0].samples() @ ones)


@pytest.mark.slow
def test_workers_need_no_shared_folder(url: str, counts: Any, tmp_path: Path) -> None:
    """They read samples from the server and write tiles to it."""
    X = counts(40, DIM)
    dhsk.compute_gram(X, "heat", store=tmp_path / "g", tile=16)
    with dhsk.connect("local", n_workers=1) as client:
        G = dhsk.compute_gram(X, "heat", store=url, tile=16, client=client)
    assert_same_files(url, tmp_path / "g")
    assert G.mean() == dhsk.open_gram(tmp_path / "g").mean()


@pytest.mark.slow
def test_a_worker_of_another_server_is_named(url: str, counts: Any) -> None:
    """It finds no owner where it looks for the store; nothing is left."""

    def mislead() -> None:
        from dhsk.execution import folder_check

        seen = folder_check.parse_place
        folder_check.parse_place = lambda name, value: seen(name, f"{value}-elsewhere")

    with dhsk.connect("local", n_workers=1) as client:
        client.run(mislead)
        with pytest.raises(dhsk.InputError, match=f"worker .* does not see {url}"):
            dhsk.compute_gram(counts(40, DIM), "heat", store=url, tile=16, client=client)
    assert not ObjectPath.parse(url).exists()


def test_an_interrupted_store_is_completed(url: str, counts: Any, tmp_path: Path) -> None:
    """Only missing tiles are computed; other samples are refused."""
    X = counts(40, DIM)
    dhsk.compute_gram(X, "heat", store=tmp_path / "g", tile=16)
    computed: list[int] = []

    def interrupt(event: dhsk.Progress) -> None:
        if event.stage == "tiles" and event.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dhsk.compute_gram(X, "heat", store=url, tile=16, progress=interrupt)
    with pytest.raises(dhsk.IncompleteStoreError, match=f"{url} lacks"):
        dhsk.open_gram(url)
    with pytest.raises(dhsk.StoreMismatchError, match="other samples"):
        dhsk.compute_gram(X + 1, "heat", store=url, tile=16)

    def count(event: dhsk.Progress) -> None:
        if event.stage == "tiles":
            computed.append(event.done)

    dhsk.compute_gram(X, "heat", store=url, tile=16, progress=count)
    assert computed[0] >= 2
    assert_same_files(url, tmp_path / "g")


@pytest.mark.slow
def test_damaged_and_missing_tiles_are_repaired(url: str, counts: Any, tmp_path: Path) -> None:
    """A wrong checksum, a wrong size, a missing object, and damaged samples."""
    X = counts(40, DIM)
    dhsk.compute_gram(X, "heat", store=tmp_path / "g", tile=16)
    G = dhsk.compute_gram(X, "heat", store=url, tile=16)
    chunks = G.path / "gram" / "c"
    (chunks / "0" / "1").write_bytes(bytes(16 * 16 * 8 + 4)[:-1] + b"1")
    (chunks / "0" / "2").write_bytes(b"short")
    (chunks / "1" / "1").unlink()
    (G.path / "rows" / "dense" / "c" / "0" / "0").write_bytes(b"")
    with pytest.raises(dhsk.CorruptTileError, match=r"damaged: \(0, 1\)"):
        G.verify()
    assert dhsk.repair_gram(url, X) == [(0, 1), (0, 2), (1, 1)]
    assert_same_files(url, tmp_path / "g")


def test_cross_validation_reads_the_server(url: str, counts: Any, tmp_path: Path) -> None:
    """The rows are those of a store on the disk."""
    X, y = counts(40, DIM), np.arange(40) % 2
    here = dhsk.compute_gram(X, "heat", store=tmp_path / "g", tile=16)
    there = dhsk.compute_gram(X, "heat", store=url, tile=16)
    scores = [
        [row["score"] for row in dhsk.cross_validate(G, y, C=[1.0], cv=2).results_]
        for G in (here, there)
    ]
    assert scores[0] == scores[1]


# One writer


def record(url: str) -> ObjectPath:
    """The owner record of a store."""
    return ObjectPath.parse(url) / ".lock" / "1"


def own_again(place: ObjectPath) -> None:
    """Become the writer of a store, and end."""
    with owner.sole_owner(place):
        pass


def test_a_second_writer_is_refused(url: str) -> None:
    """Within this process at once, with its number."""
    place = ObjectPath.parse(url)
    with owner.sole_owner(place):
        assert record(url).exists()
        with pytest.raises(dhsk.StoreError, match=f"is being written by process {os.getpid()} on"):
            own_again(place)
    assert not place.exists()


def test_a_killed_writer_is_replaced_at_once(url: str, bucket: str) -> None:
    """Its process of this machine is gone."""
    code = (
        "import os, signal; from dhsk.execution.owner import sole_owner\n"
        "from dhsk.objects.path import ObjectPath\n"
        f"with sole_owner(ObjectPath.parse({url!r})): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert record(url).exists()
    with owner.sole_owner(ObjectPath.parse(url)):
        assert sorted((ObjectPath.parse(url) / ".lock").sizes()) == ["2"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners are watched for a moment."""
    monkeypatch.setattr(owner, "LEASE_SECONDS", 0.6)
    monkeypatch.setattr(owner, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(owner, "BEAT_SECONDS", 0.1)


def of_another_machine(url: str) -> bytes:
    """Record of a process elsewhere."""
    who = {"host": "far", "boot": "b", "processes": "p", "pid": 7, "started": 0.0}
    return json.dumps(who | {"since": "2026-11-22", "id": "x", "beat": 0}).encode()


def test_a_silent_writer_elsewhere_is_replaced(url: str, quick: None) -> None:
    """After the lease, without comparing clocks."""
    record(url).write_bytes(of_another_machine(url))
    with owner.sole_owner(ObjectPath.parse(url)):
        assert sorted((ObjectPath.parse(url) / ".lock").sizes()) == ["2"]


def test_a_living_writer_elsewhere_is_kept(
    url: str, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record changes while it is watched."""
    place = ObjectPath.parse(url)
    with owner.sole_owner(place):
        monkeypatch.setattr(owner, "machine", lambda: {"host": "another", "boot": "b"})
        with pytest.raises(dhsk.StoreError, match="is being written by"):
            own_again(place)


@pytest.mark.slow
def test_a_writer_that_was_replaced_says_so(url: str, quick: None) -> None:
    """It was frozen, and another one has taken over."""
    place = ObjectPath.parse(url)
    context = owner.sole_owner(place)
    context.__enter__()
    (place / ".lock" / "2").write_bytes(of_another_machine(url))
    sleep(1.0)
    with pytest.raises(dhsk.StoreError, match="another process has taken"):
        context.__exit__(None, None, None)
    assert sorted((place / ".lock").sizes()) == ["2"]


def test_the_plan_counts_the_chunks_in_memory(counts: Any) -> None:
    """A chunk goes to a server as a whole."""
    sides = GramSides.of([open_samples(counts(64, DIM))])
    plans = [
        make_plan(sides, Resources(0, 2, 10**9, to_server=remote), tile=16)
        for remote in (False, True)
    ]
    assert plans[1].task_bytes - plans[0].task_bytes == 5 * 16 * 16 * 8
