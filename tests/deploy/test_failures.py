"""Real schedulers, workers and networks that fail: the command goes on, or ends and says why."""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from network import DaskProcesses
from outcomes import local, outcome_of, run_on
from work import (
    CV,
    GRAM,
    HOPELESS_SECONDS,
    PREDICT,
    RANK,
    SHORT,
    begun,
    ended,
    make_model,
    make_samples,
    tiles_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.usefixtures("hears_interrupts")]


@pytest.fixture
def dask_processes(tmp_path: Path) -> Iterator[DaskProcesses]:
    """A scheduler and a worker on this host."""
    with DaskProcesses.running(tmp_path, workers=1) as started:
        yield started


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """A scheduler and two workers on this host, of all tests that at most stop them for a while."""
    with DaskProcesses.running(tmp_path_factory.mktemp("lasting")) as started:
        yield started


@pytest.fixture
def stoppable(lasting: DaskProcesses, tmp_path: Path) -> Iterator[DaskProcesses]:
    """The same in a folder of this test's own; what it stops goes on after it.

    With samples for half a minute of work.
    """
    make_samples(tmp_path, 6000)
    own = lasting.seen_from(tmp_path)
    yield own
    for process in (own.scheduler, *own.workers):
        assert process.poll() is None
        process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ("hanging", "number"), [("worker", signal.SIGINT), ("scheduler", signal.SIGTERM)]
)
def test_an_interrupt_ends_it_whatever_hangs(
    stoppable: DaskProcesses, tmp_path: Path, hanging: str, number: int
) -> None:
    """130, one sentence, within ten seconds."""
    process = stoppable.command(*GRAM, "--workers", "2")
    begun(process, tmp_path, GRAM)
    stopped = stoppable.workers[0] if hanging == "worker" else stoppable.scheduler
    stopped.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    process.send_signal(number)
    code, output = ended(process, 10)
    assert code == 130, output
    assert output.count("dhsk: interrupted; what is finished is kept") == 1


def test_a_stopped_scheduler_ends_it(stoppable: DaskProcesses, tmp_path: Path) -> None:
    """Exit code 4 and one sentence, soon after its timeout."""
    process = stoppable.command(*GRAM, "--workers", "2", settings=SHORT)
    begun(process, tmp_path, GRAM)
    stoppable.scheduler.send_signal(signal.SIGSTOP)
    code, output = ended(process, 60)
    assert code == 4, output
    assert "the connection to the scheduler is lost" in output
    assert 100 < tiles_of(tmp_path / "g") < 94 * 95 // 2


@pytest.mark.parametrize(
    ("words", "n"),
    [(GRAM, 3000), (RANK, 3000), (CV, 3000), (PREDICT, 30_000)],
    ids=["gram", "rank", "cv", "predict"],
)
def test_after_a_lost_scheduler_it_goes_on(
    dask_processes: DaskProcesses,
    lasting: DaskProcesses,
    tmp_path: Path,
    words: tuple[str, ...],
    n: int,
) -> None:
    """On another scheduler and its workers, to the same bits; finished tiles are not touched."""
    make_samples(tmp_path, n)
    if words is PREDICT:
        make_model(tmp_path, 3000)
    process = dask_processes.command(*words, "--workers", "1", settings=SHORT)
    begun(process, tmp_path, words)
    dask_processes.scheduler.kill()
    code, output = ended(process, HOPELESS_SECONDS)
    assert code == 4, output
    assert "the connection to the scheduler is lost" in output
    assert not (tmp_path / "p.csv").exists()
    finished = {tile: tile.stat().st_mtime_ns for tile in tmp_path.glob("g/gram/c/*/*")}
    run_on(str(lasting.address_file), *words, "--workers", "2", cwd=tmp_path)
    assert all(tile.stat().st_mtime_ns == when for tile, when in finished.items())
    out = f"local{Path(words[-1]).suffix}"
    assert outcome_of(tmp_path / words[-1]) == local(*words[:-2], cwd=tmp_path, out=out)


@pytest.mark.parametrize("words", [GRAM, RANK], ids=["gram", "rank"])
def test_a_stopped_worker_loses_its_tasks(
    stoppable: DaskProcesses, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The other one computes them; a line names the worker and what it held."""
    make_samples(tmp_path, 3000)
    process = stoppable.command(*words, "--workers", "2", settings=SHORT)
    begun(process, tmp_path, words)
    stoppable.workers[0].send_signal(signal.SIGSTOP)
    code, output = ended(process, HOPELESS_SECONDS)
    assert code == 0, output
    assert "has not been heard of for" in output
    assert ("holds tile" if words is GRAM else "holds the span of samples") in output


def test_no_worker_left_ends_it(stoppable: DaskProcesses, tmp_path: Path) -> None:
    """Exit code 4, and which worker held what."""
    process = stoppable.command(*GRAM, "--workers", "2", settings=SHORT)
    begun(process, tmp_path, GRAM)
    for worker in stoppable.workers:
        worker.send_signal(signal.SIGSTOP)
    code, output = ended(process, 60)
    assert code == 4, output
    assert "no worker makes progress: worker tcp://" in output
    assert "holds tile" in output
