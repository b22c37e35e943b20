"""Costs of a cluster, as ratios within one run.

Run as ``python tests/benchmarks/cluster.py [SECTION ...]``; without sections all run.
"""

import argparse
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
from distributed.security import Security

import dhsk
from dhsk.execution.resources import TASKS_PER_THREAD
from dhsk.execution.workers import executor_of

N, DIM, TILE = 10_000, 393, 1024

LIGHT_TASKS, LIGHT_PROCESSES = {2: 2_000, 64: 10_000, 256: 10_000}, 4

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


def security_in(folder: Path) -> Security:
    """A certificate that is its own authority, as deploy/slurm makes one."""
    kind = "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=dhsk"
    pair = {"cert": str(folder / "certificate.pem"), "key": str(folder / "key.pem")}
    files = "-keyout", pair["key"], "-out", pair["cert"]
    command = ["openssl", "req", "-x509", "-nodes", *kind, *files]
    subprocess.run(command, check=True, capture_output=True)
    roles = {
        f"tls_{role}_{what}": path
        for role in ("scheduler", "worker", "client")
        for what, path in pair.items()
    }
    return Security(tls_ca_file=pair["cert"], require_encryption=True, **roles)


@contextmanager
def scheduler(
    folder: Path, security: Security | None = None
) -> Iterator[tuple[str, list[str], int]]:
    """A scheduler in its own process: its file, options for others, and process id."""
    file, options = folder / "scheduler.json", ["--no-dashboard"]
    if security is not None:
        options += ["--protocol", "tls", "--tls-ca-file", security.tls_ca_file]
        options += ["--tls-cert", security.tls_worker_cert, "--tls-key", security.tls_worker_key]
    place = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", "scheduler", *place, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not file.exists():
            time.sleep(0.1)
        yield str(file), options, process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def over_tls(folder: Path) -> Iterator[Client]:
    """Two worker processes with one thread each, over TLS."""
    security = security_in(folder)
    with scheduler(folder, security) as (file, options, _):
        command = ["dask", "worker", "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1"]
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", *command, "--scheduler-file", file, *options],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for _ in range(2)
        ]
        try:
            with Client(scheduler_file=file, security=security, set_as_default=False) as client:
                client.wait_for_workers(2)
                yield client
        finally:
            for worker in workers:
                worker.terminate()
                worker.wait()


def tls(folder: Path) -> None:
    """Tile rate of two workers over TLS against two of a local cluster, in turn."""
    X = np.random.default_rng(0).poisson(1.0, (N, DIM)) + 0.01
    np.save(folder / "X.npy", X)
    found: dict[str, list[float]] = {"local": [], "tls": []}
    with dhsk.connect("local", n_workers=2) as local, over_tls(folder) as encrypted:
        for number in range(8):
            name, client = (("local", local), ("tls", encrypted))[number % 2]
            begin, store = time.perf_counter(), folder / f"{number}.gram"
            G = dhsk.compute_gram(folder / "X.npy", "heat", store=store, tile=TILE, client=client)
            found[name].append(time.perf_counter() - begin)
            subprocess.run(["rm", "-r", store], check=True)
    rates = {name: G.tiling.n_tiles / min(seconds[1:]) for name, seconds in found.items()}
    print(
        f"{rates['local']:.1f} tiles/s on a local cluster, {rates['tls']:.1f} over TLS: "
        f"ratio {rates['tls'] / rates['local']:.2f}, floor 0.9"
    )


@contextmanager
def light_workers(address: str, count: int) -> Iterator[None]:
    """Workers that share a few processes: two cores could not run hundreds of their own."""
    processes = min(count, LIGHT_PROCESSES)
    command = [sys.executable, "-c", LIGHT, address, str(count // processes)]
    started = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(processes)
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
            scheduler(place) as (file, _, pid),
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
            print(
                f"{count} workers: {done / seconds:,.0f} tasks a second, all on this machine; "
                f"{1e3 * spent / done:.2f} ms of the scheduler a task, so at most "
                f"{done / spent:,.0f} a second; {1e3 * own / done:.2f} ms of the client",
                flush=True,
            )


def spent_by(pid: int) -> float:
    """Processor seconds of a process."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


SECTIONS = {"tls": tls, "light": light}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION")
    for section in parser.parse_args().sections or SECTIONS:
        with tempfile.TemporaryDirectory() as name:
            SECTIONS[section](Path(name))
