"""Workers with other software, another processor or another disk, and who is told."""

import logging
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any
from unittest import mock

import numpy as np
import pytest
from distributed import Client, LocalCluster

import dhsk
from dhsk.execution.folder_check import shared_by_workers
from dhsk.execution.lock import sole_writer
from dhsk.execution.plugins import answers
from dhsk.execution.version_check import breaking, checked_versions, facts

SLOW = pytest.mark.slow


def two_workers() -> LocalCluster:
    """Worker processes named 0 and 1."""
    return LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )


@pytest.fixture
def two() -> Iterator[Client]:
    """Two workers of this test's own, to which others may come."""
    with two_workers() as cluster, Client(cluster) as client:
        client.run(facts)  # imports are not what is measured
        yield client


@pytest.fixture(scope="module")
def lasting() -> Iterator[LocalCluster]:
    """Two workers of all tests that leave them as they are."""
    with two_workers() as cluster:
        yield cluster


@pytest.fixture
def shared(lasting: LocalCluster) -> Iterator[Client]:
    """A client of these, whose patches end with the test."""
    with Client(lasting) as client:
        yield client
        client.run(mock.patch.stopall)


def change(client: Client, worker: int, **other: str) -> None:
    """Let a worker say other facts."""

    def patch() -> None:
        from dhsk.execution import version_check

        changed = {**version_check.facts(), **other}
        mock.patch.object(version_check, "facts", return_value=changed).start()

    client.run(patch, workers=[address_of(client, worker)])


def address_of(client: Client, worker: int) -> str:
    """Address of a worker by its name."""
    found = client.scheduler_info(n_workers=-1)["workers"]
    return next(str(address) for address, one in found.items() if one["name"] == worker)


def gram(client: Client) -> Any:
    """A computation on the workers."""
    return dhsk.compute_gram(np.eye(3), "cosine", client=client)


def test_which_differences_break() -> None:
    """Versions of dhsk in full, of others as far as results or pickles depend on them."""
    here = facts() | {"dhsk": "1.2.3", "Python": "3.11.7", "zarr": "3.1.6", "numpy": "2.4.6"}
    assert breaking(here | {"Python": "3.11.9", "numpy": "2.0.1", "BLAS": "x"}, here) == []
    assert breaking(here | {"dhsk": "1.2.4"}, here) == ["dhsk 1.2.4 (here 1.2.3)"]
    assert breaking(here | {"Python": "3.12.7", "numpy": "3.0.0"}, here) == [
        "Python 3.12.7 (here 3.11.7)", "numpy 3.0.0 (here 2.4.6)",
    ]  # fmt: skip


@SLOW
def test_other_software_is_an_error(shared: Client) -> None:
    """The worker is named, with what it has and what this process has."""
    change(shared, 1, dhsk="9.9.9")
    address = address_of(shared, 1)
    message = rf"worker 1 at {address} has dhsk 9\.9\.9 \(here .*\): start all workers from the env"
    with pytest.raises(dhsk.InputError, match=message):
        gram(shared)


@SLOW
def test_a_worker_without_dhsk_is_an_error(shared: Client) -> None:
    """A worker of another environment may not have it at all."""

    def hide() -> None:
        mock.patch.dict("sys.modules", {"dhsk.execution.version_check": None}).start()

    shared.run(hide, workers=[address_of(shared, 0)])
    with pytest.raises(dhsk.InputError, match=r"worker 0 at .* cannot import dhsk \(.*Module"):
        gram(shared)


@pytest.mark.slow
def test_a_worker_that_ends_is_not_compared(two: Client) -> None:
    """Another takes its place, and is compared when it joins."""

    def end_the_first(dask_worker: Any) -> str:
        import os

        if dask_worker.name == 0:
            os._exit(1)
        return "here"

    assert list(answers(two, end_the_first).values()) == ["here"]
    assert gram(two)[0, 0] == 1.0


def test_an_error_of_a_worker_is_its_answer(shared: Client) -> None:
    """Also one of the kind that lost connections have."""

    def fail() -> None:
        raise OSError("no such library")

    assert [str(answer) for answer in answers(shared, fail).values()] == ["no such library"] * 2


@SLOW
def test_another_processor_is_one_warning(shared: Client) -> None:
    """The last bits may differ, and the computation goes on; it is not said twice."""
    change(shared, 1, BLAS="openblas 0.3.31 Haswell", instructions="avx2 other")
    message = (
        r"workers differ in BLAS \(.*Haswell on 1 at .*instructions .* more, such as .* on 0 at"
    )
    with pytest.warns(dhsk.InputWarning, match=message):
        gram(shared)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gram(shared)


@SLOW
@pytest.mark.parametrize("own", [True, False])
def test_the_check_is_done_once(two: Client, own: bool) -> None:
    """Beside the start of a computation, on workers that have loaded their libraries."""
    with Client(two.cluster if own else two.scheduler.address, set_as_default=False) as client:
        times = [seconds_to_enter(client) for _ in range(2)]
        with checked_versions(client):
            inner = seconds_to_enter(client)
    if own:
        times.append(times.pop(0))  # its second computation asks nobody
        assert times[0] < times[1] / 5
    assert inner < times[1] / 5  # nor do nested ones


def seconds_to_enter(client: Client) -> float:
    """Time until a computation may begin."""
    begin = perf_counter()
    with checked_versions(client):
        return perf_counter() - begin


PRELOAD = """
from dhsk.execution import version_check
changed = {**version_check.facts(), "zarr": "2.18.0"}
version_check.facts = lambda: changed
"""


@SLOW
def test_a_worker_that_joins_later_is_compared_too(
    two: Client, tmp_path: Path, caplog: Any
) -> None:
    """It leaves again without a task, and the client says why."""
    preload = tmp_path / "other.py"
    preload.write_text(PRELOAD)
    with checked_versions(two), caplog.at_level(logging.WARNING, "dhsk.cluster"):
        two.cluster.new_spec["options"]["preload"] = [str(preload)]
        two.cluster.scale(3)
        deadline = monotonic() + 60
        while "is not used" not in caplog.text:
            assert monotonic() < deadline
            sleep(0.1)
        assert "worker 2 is not used: it has zarr 2.18.0 (here" in caplog.text
        while len(two.scheduler_info(n_workers=-1)["workers"]) != 2:
            assert monotonic() < deadline
            sleep(0.1)


@SLOW
def test_a_folder_of_one_machine_is_an_error(shared: Client, tmp_path: Path) -> None:
    """A worker whose disk has another folder at this path is named, and nothing is left."""
    other = tmp_path / "other"

    def hide(path: Path, other: Path) -> None:
        from dhsk.execution import folder_check

        whole = folder_check.holder_of
        seen = lambda folder: whole(other if folder == path else folder)  # noqa: E731
        mock.patch.object(folder_check, "holder_of", seen).start()

    store = tmp_path / "x.gram"
    shared.run(hide, store, other, workers=[address_of(shared, 1)])
    message = rf"worker 1 on .* does not see the folder {store} of this program: choose a folder"
    with pytest.raises(dhsk.InputError, match=message):
        dhsk.compute_gram(np.eye(3), "cosine", store=store, client=shared)
    assert list(tmp_path.iterdir()) == []
    assert shared.submit(pow, 2, 5).result() == 32
    # Workers that join later are not asked for a folder that has gone.
    assert not any(n.startswith("dhsk-place") for n in shared.run_on_scheduler(plugins_of_workers))


KILLED = """
import os, sys
from pathlib import Path
from distributed import Client
from dhsk.execution.folder_check import shared_by_workers
from dhsk.execution.lock import sole_writer

client, folder = Client(sys.argv[1]), Path(sys.argv[2])
with sole_writer(folder), shared_by_workers(client, folder):
    os._exit(9)
"""


@SLOW
def test_a_killed_client_keeps_no_worker_away(two: Client, tmp_path: Path, caplog: Any) -> None:
    """What it required is forgotten, also when its folder has gone."""
    folder = tmp_path / "x.gram"
    folder.mkdir()
    address = two.scheduler.address
    killed = subprocess.run([sys.executable, "-c", KILLED, address, str(folder)], check=False)
    assert killed.returncode == 9
    assert any(name.startswith("dhsk-place") for name in two.run_on_scheduler(plugins_of_workers))
    shutil.rmtree(folder)
    with caplog.at_level(logging.WARNING, "dhsk.cluster"), checked_versions(two):
        two.cluster.scale(3)
        two.wait_for_workers(3, timeout=60)
        assert two.submit(pow, 2, 5, workers=[address_of(two, 2)]).result() == 32
        sleep(2)  # one that is sent away stays for a second
        assert len(two.scheduler_info(n_workers=-1)["workers"]) == 3
    assert "is not used" not in caplog.text


def plugins_of_workers(dask_scheduler: Any) -> list[str]:
    """Names of what the scheduler hands to every worker that joins."""
    return list(dask_scheduler.worker_plugins)


@SLOW
def test_a_folder_that_cannot_be_written_is_an_error(shared: Client, tmp_path: Path) -> None:
    """A worker of another user, or of a read-only mount."""

    def deny() -> None:
        def refuse(dir: Any, **_: Any) -> None:
            raise PermissionError(13, "Permission denied", str(dir))

        mock.patch("tempfile.TemporaryFile", refuse).start()

    shared.run(deny, workers=[address_of(shared, 0)])
    with (
        sole_writer(tmp_path),
        pytest.raises(dhsk.InputError, match=r"worker 0 on .* cannot be written \(Permission"),
        shared_by_workers(shared, tmp_path),
    ):
        pass


@SLOW
def test_probes_are_removed(shared: Client, tmp_path: Path) -> None:
    """A finished store has no file of the check."""
    dhsk.compute_gram(np.eye(3), "cosine", store=tmp_path / "x.gram", client=shared)
    assert not list(tmp_path.rglob("*probe*"))
    shutil.rmtree(tmp_path / "x.gram")
