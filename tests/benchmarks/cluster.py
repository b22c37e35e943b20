"""Costs of a cluster, as ratios within one run.

Run as ``python tests/benchmarks/cluster.py [SECTION ...]``; without sections all run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
from distributed import Client
from records import parsed, parser_of, record

import dhsk
from dhsk.execution.resources import TASKS_PER_THREAD
from dhsk.execution.workers import executor_of

N, DIM, TILE = 10_000, 393, 1024

SMALL_TASKS, ROUNDS = 2_000, 5

LIGHT_TASKS, LIGHT_PROCESSES = {2: 2_000, 64: 10_000, 256: 10_000}, 4

MANY_WORKERS, MANY_TASKS, PLANNED = 1_000, (5_000, 20_000, 50_000), 300

IDLE = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "5s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "30s",
}
"""What a worker does of itself every few milliseconds: hundreds in one process do nothing else."""

LIGHT = """
import asyncio, sys
from distributed import Worker
async def main():
    limits = {"nthreads": 1, "memory_limit": 0, "dashboard": False}
    workers = [Worker(sys.argv[1], host="127.0.0.1", **limits) for _ in range(int(sys.argv[2]))]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))
asyncio.run(main())
"""
"""Program with many workers in one process: they compute nothing."""


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[str, int]]:
    """A scheduler in its own process, as recipes start it: its file and process id."""
    file = folder / "scheduler.json"
    place = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", "scheduler", *place, "--no-dashboard"],
        env=os.environ | {"DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not file.exists():
            time.sleep(0.1)
        yield str(file), process.pid
    finally:
        process.terminate()
        process.wait()


def tls(folder: Path) -> None:
    """Starts, small tasks and tiles of a local cluster over TLS, as it is, and over plain TCP."""
    X = np.random.default_rng(0).poisson(1.0, (N, DIM)) + 0.01
    np.save(folder / "X.npy", X)
    kinds: dict[str, dict[str, str]] = {"tls": {}, "tcp": {"protocol": "tcp"}}
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in kinds}
    for number in range(ROUNDS):
        for name, options in kinds.items():
            begin = time.perf_counter()
            with dhsk.connect("local", n_workers=2, **options) as client:
                started = time.perf_counter()
                client.gather(client.map(int, range(SMALL_TASKS), pure=False))
                called = time.perf_counter()
                store = folder / f"{name}{number}.gram"
                dhsk.compute_gram(folder / "X.npy", "heat", store=store, tile=TILE, client=client)
                ended = time.perf_counter()
            found[name].append((started - begin, called - started, ended - called))
            shutil.rmtree(store)
    least = {name: np.min(seconds, axis=0) for name, seconds in found.items()}
    for name, seconds in least.items():
        print(f"{name}: {report_of(seconds)}")
    print(f"tls / tcp: {report_of(least['tls'] / least['tcp'])}")
    tiles, plain = least["tls"][2], least["tcp"][2]
    record("gram", f"{N:,} samples, workers over TLS", tiles, "s", {"over TCP": plain}, runs=ROUNDS)


def report_of(values: np.ndarray) -> str:
    """Three figures with their names."""
    return "start {:.2f}, small tasks {:.2f}, Gram matrix {:.2f}".format(*values)


@contextmanager
def light_workers(address: str, count: int) -> Iterator[None]:
    """Workers that share a few processes: two cores could not run hundreds of their own."""
    processes = min(count, LIGHT_PROCESSES)
    command = [sys.executable, "-c", LIGHT, address, str(count // processes)]
    none, own = subprocess.DEVNULL, os.environ | IDLE
    started = [
        subprocess.Popen(command, env=own, stdout=none, stderr=none) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def light(folder: Path) -> None:
    """Tasks a second, and the scheduler's and client's processor time a task, with many workers."""
    for count, tasks in LIGHT_TASKS.items():
        place = folder / str(count)
        place.mkdir()
        with (
            scheduler(place) as (file, pid),
            Client(scheduler_file=file, set_as_default=False) as client,
            light_workers(client.scheduler.address, count),
        ):
            client.wait_for_workers(count)
            executor = executor_of(client, TASKS_PER_THREAD * count)
            list(executor.run(abs, ((number,) for number in range(count))))
            begin, own, clock = time.perf_counter(), time.process_time(), spent_by(pid)
            done = len(list(executor.run(abs, ((number,) for number in range(tasks)))))
            seconds, own = time.perf_counter() - begin, time.process_time() - own
            spent = spent_by(pid) - clock
            record("gram", f"Dask's scheduler, {count} workers", 1e3 * spent / done, "ms a task")
            print(
                f"  {done / seconds:,.0f} tasks a second, all on this machine; at most "
                f"{done / spent:,.0f} a second; {1e3 * own / done:.2f} ms of the client",
                flush=True,
            )


def thousand(folder: Path) -> None:
    """Share of their time that 1,000 workers wait, and the memory of scheduler and client.

    Tasks sleep as long as those do that are planned: so that the scheduler has `PLANNED` a second.
    """
    seconds = MANY_WORKERS / PLANNED
    with (
        scheduler(folder) as (file, pid),
        Client(scheduler_file=file, set_as_default=False) as client,
        light_workers(client.scheduler.address, MANY_WORKERS),
    ):
        client.wait_for_workers(MANY_WORKERS)
        executor = executor_of(client, TASKS_PER_THREAD * MANY_WORKERS)
        for tasks in MANY_TASKS:
            begin, clock, own = time.perf_counter(), spent_by(pid), time.process_time()
            done = sum(1 for _ in executor.run(time.sleep, ((seconds,) for _ in range(tasks))))
            taken = time.perf_counter() - begin
            spent, own = spent_by(pid) - clock, time.process_time() - own
            idle = 1 - done * seconds / (MANY_WORKERS * taken)
            peaks = [psutil.Process(one).memory_info().rss / 1e9 for one in (pid, os.getpid())]
            record("gram", f"{MANY_WORKERS:,} workers, {tasks:,} tasks, idle", 100 * idle, "%")
            print(
                f"  {done:,} tasks of {seconds:.1f} s in {taken:.0f} s, {idle:.1%} idle; scheduler "
                f"{peaks[0]:.2f} GB, {1e3 * spent / done:.2f} ms a task; client {peaks[1]:.2f} GB, "
                f"{1e3 * own / done:.2f} ms",
                flush=True,
            )


def spent_by(pid: int) -> float:
    """Processor seconds of a process."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


SECTIONS = {"tls": tls, "light": light, "thousand": thousand}

if __name__ == "__main__":
    for section in parsed(parser_of(__doc__, SECTIONS)).sections or SECTIONS:
        with tempfile.TemporaryDirectory() as name:
            SECTIONS[section](Path(name))
