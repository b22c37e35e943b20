"""Everything of many passes, killed at random moments and resumed: the same bits?

Run as ``python tests/benchmarks/killed_passes.py [CASE ...] [--kills 20] [--seed 0]``. Each case is
computed by processes that are killed (SIGKILL) at a random moment after the first entry of their
checkpoint, and started again until one of them ends, on threads and on a client of two worker
processes. There, every third time a worker is killed with it. Printed: kills, those that left a
checkpoint, and runs whose result differs in a bit from that of a run that nobody killed.
Results of one, two and three threads are compared too, and those of workers, which may differ
where they have other blocks: in regressions whose matrix is in memory, or computed by rows.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from records import parsed, parser_of, record
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import dhsk
from dhsk.estimators import posterior
from dhsk.execution.run import Run
from dhsk.solvers import eigenpairs

Arrays = dict[str, NDArray[Any]]
Case = Callable[[Path, Path, Client | None], Arrays]
"""Computes arrays in a folder that stays, with a journal, on a client's workers or on threads."""

PLACES = ("threads", "workers")
FORK = multiprocessing.get_context("fork")
N, DIM = 1300, 60
MEMORY = "3GB"  # given, as what is free is not the same after a kill


def counts(n: int) -> NDArray[np.float64]:
    """Counts of three topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(DIM, 0.1), 3)
    shares = rng.dirichlet(np.full(3, 0.5), n)
    return np.asarray(rng.poisson(60 * shares @ topics) + 1.0, np.float64)


def targets(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two smooth functions of the shares of features, with noise."""
    shares = X / X.sum(axis=1, keepdims=True)
    y = np.stack([np.sin(30 * shares[:, 0]), 5 * shares[:, 1]], axis=1)
    return y + 0.2 * np.random.default_rng(1).normal(size=y.shape)


def gram(n: int, **options: Any) -> dhsk.GramMatrix:
    """Matrix that is computed anew in each pass, of many groups of tiles."""
    kernel = dhsk.HeatKernel.at_scale(DIM, 0.5)
    return dhsk.compute_gram(counts(n), kernel, tile=100, memory=MEMORY, **options)


def named(*arrays: Any) -> Arrays:
    """Arrays by their numbers."""
    return {str(number): np.asarray(array) for number, array in enumerate(arrays)}


def files_of(folder: Path) -> Arrays:
    """All files of a store."""
    return {
        str(file.relative_to(folder)): np.frombuffer(file.read_bytes(), np.uint8)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


# Cases


def to_eigenpairs(view: Callable[[dhsk.GramMatrix], Any]) -> Case:
    """`G.eigh` of a view."""

    def run(_folder: Path, journal: Path, _client: Client | None) -> Arrays:
        return named(*view(gram(N)).eigh(6, tol=1e-9, memory=MEMORY, journal=journal))

    return run


def to_stored_eigenpairs(folder: Path, journal: Path, _client: Client | None) -> Arrays:
    """`G.eigh` of a matrix derived from stored cosines, whose store is written first."""
    cosines = dhsk.compute_gram(counts(N), "cosine", tile=100, store=folder / "cosines")
    G = cosines.with_kernel(dhsk.HeatKernel.at_scale(DIM, 0.5)).centered()
    return named(*G.eigh(6, tol=1e-9, memory=MEMORY, journal=journal))


def to_kernel_pca(_folder: Path, journal: Path, client: Client | None) -> Arrays:
    """`HeatKernelPCA`, with scores of new samples."""
    X = counts(N + 100)
    model = dhsk.HeatKernelPCA(4, 0.5, tol=1e-9, memory=MEMORY, journal=journal)
    model.client = client
    model.fit(X[:N])
    return named(model.eigenvalues_, model.eigenvectors_, model.transform(X[N:]))


def to_clustering(_folder: Path, journal: Path, client: Client | None) -> Arrays:
    """`HeatSpectralClustering`."""
    model = dhsk.HeatSpectralClustering(3, 0.5, tol=1e-9, memory=MEMORY, journal=journal)
    model.client = client
    model.fit(counts(N))
    return named(model.eigenvalues_, model.embedding_, model.labels_)


def to_diffusion_map(_folder: Path, journal: Path, _client: Client | None) -> Arrays:
    """`diffusion_map`."""
    return named(dhsk.diffusion_map(gram(N), 4, tol=1e-9, memory=MEMORY, journal=journal))


def to_mercer_map(_folder: Path, journal: Path, _client: Client | None) -> Arrays:
    """`mercer_map` of the centred view."""
    G = gram(N).centered()
    return named(dhsk.mercer_map(G, 5, tol=1e-9, memory=MEMORY, journal=journal))


def no_room(recomputed: bool) -> None:
    """Have regressions compute the matrix in each pass, on the workers if there are any."""
    if recomputed:
        Run.room = 1 << 20  # type: ignore[assignment,method-assign]


def to_ridge(*, recomputed: bool = False, stored: bool = False) -> Case:
    """`HeatKernelRidge` of two targets with sample weights."""

    def run(folder: Path, journal: Path, client: Client | None) -> Arrays:
        X = counts(N)
        no_room(recomputed or client is not None)
        model = dhsk.HeatKernelRidge(
            1.0,
            0.5,
            tol=1e-6,
            preconditioner_rank=20,
            store=folder / "gram" if stored else None,
            memory=MEMORY,
            client=client,
            journal=journal,
        )
        model.fit(X, targets(X), np.random.default_rng(2).uniform(0.1, 3.0, len(X)))
        return named(model.dual_coef_, model.residual_, model.n_iter_, model.predict(X[:50]))

    return run


def to_process(*, fitted: bool, recomputed: bool = False) -> Case:
    """`HeatGaussianProcessRegressor`, time and noise given or fitted."""

    def run(_folder: Path, journal: Path, client: Client | None) -> Arrays:
        n = 200 if fitted else N
        no_room(recomputed or client is not None)
        X = counts(n + 40)
        model = dhsk.HeatGaussianProcessRegressor(
            *(("auto", "auto") if fitted else (0.5, 0.2)),
            normalize_y=True,
            solver="iterative",
            n_probes=8,
            preconditioner_rank=60,
            tol=1e-6,
            memory=MEMORY,
            client=client,
            journal=journal,
        )
        model.fit(X[:n], targets(X[:n]))
        return named(
            model.dual_coef_,
            model.time_scale_,
            model.noise_,
            model.log_marginal_likelihood_value_,
            model.gradient_,
            model.gradient_error_,
            model.n_iter_,
            *model.predict(X[n:], return_std=True),
        )

    return run


def to_deviations(_folder: Path, journal: Path, client: Client | None) -> Arrays:
    """Standard deviations of a fitted process, in several blocks of samples."""
    no_room(client is not None)
    vars(posterior)["_AT_ONCE"] = 100
    X = counts(N + 400)
    model = dhsk.HeatGaussianProcessRegressor(
        0.5, 0.2, solver="iterative", preconditioner_rank=20, memory=MEMORY, client=client
    )
    model.fit(X[:N], targets(X[:N]))
    model.journal = journal
    return named(*model.predict(X[N:], return_std=True))


def to_graph(kind: Any, beta: float) -> Case:
    """`graph_gram`: the store is its own checkpoint."""

    def run(folder: Path, _journal: Path, client: Client | None) -> Arrays:
        near = np.triu(np.random.default_rng(9).random((900, 900)) < 0.01)
        S = csr_array((near | near.T).astype(float))
        dhsk.graph_gram(S, kind, beta=beta, tile=90, store=folder / "graph", client=client)
        return files_of(folder / "graph")

    return run


def to_strings(folder: Path, _journal: Path, client: Client | None) -> Arrays:
    """The kernel of substrings of a FASTA file, stored."""
    letters = np.array(list("ACGT"))[np.random.default_rng(3).integers(0, 4, (1500, 120))]
    reads = folder / "reads.fasta"
    if not reads.exists():
        text = "".join(f">{number}\n{''.join(row)}\n" for number, row in enumerate(letters))
        reads.with_suffix(".part").write_text(text)
        reads.with_suffix(".part").replace(reads)
    found, _ = dhsk.spectrum_counts(reads, 6)
    dhsk.compute_gram(found, "heat", tile=75, store=folder / "spectrum", client=client)
    return files_of(folder / "spectrum")


CASES: dict[str, Case] = {
    "eigh": to_eigenpairs(lambda G: G),
    "eigh-centred": to_eigenpairs(lambda G: G.centered()),
    "eigh-normalised": to_eigenpairs(lambda G: G.centered().normalized()),
    "eigh-stored": to_stored_eigenpairs,
    "kernel-pca": to_kernel_pca,
    "clustering": to_clustering,
    "diffusion-map": to_diffusion_map,
    "mercer-map": to_mercer_map,
    "ridge": to_ridge(),
    "ridge-recomputed": to_ridge(recomputed=True),
    "ridge-stored": to_ridge(stored=True),
    "process": to_process(fitted=False),
    "process-recomputed": to_process(fitted=False, recomputed=True),
    "process-fitted": to_process(fitted=True),
    "process-deviations": to_deviations,
    "graph-exponential": to_graph("exponential", 2.0),
    "graph-von-neumann": to_graph("von_neumann", 0.08),
    "strings": to_strings,
}


# Processes


def child(name: str, folder: Path, address: str | None, cores: int, pipe: Connection) -> None:
    """Compute a case in this process, and write what was found; tells when it begins."""
    vars(eigenpairs)["SMALL"] = 100
    cut_cores(cores)
    client = None if address is None else Client(address, set_as_default=True)
    if client is not None:
        client.wait_for_workers(1, timeout=120)
    pipe.send("begun")
    found = CASES[name](folder, folder / "journal", client)
    np.savez(folder / "part.npz", **found)  # type: ignore[arg-type]  # of allow_pickle
    (folder / "part.npz").replace(folder / "found.npz")
    if client is not None:
        client.close()
    os._exit(0)


def cut_cores(cores: int) -> None:
    """Have all passes, and BLAS, use so many threads."""
    threadpool_limits(cores)
    for module in [m for name, m in sys.modules.items() if name.startswith("dhsk.")]:
        if hasattr(module, "core_count"):
            vars(module)["core_count"] = lambda: cores


def attempt(
    name: str, folder: Path, address: str | None, killed_after: float | None, cores: int = 2
) -> tuple[float, float] | None:
    """Seconds of a case, and those from its first checkpoint on; None if it was killed.

    It is killed so many seconds after there is a checkpoint, also one of an earlier process.
    """
    here, there = FORK.Pipe()
    process = FORK.Process(target=child, args=(name, folder, address, cores, there))
    process.start()
    while not here.poll(0.1):
        if not process.is_alive():
            raise SystemExit(f"{name} did not begin")
    begin, first = time.perf_counter(), None
    while process.is_alive():
        now = time.perf_counter()
        if first is None and has_checkpoint(folder):
            first = now
        if None not in (first, killed_after) and now - (first or 0.0) >= (killed_after or 0.0):
            with suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
        process.join(0.005)
    if process.exitcode == -signal.SIGKILL:
        return None
    if process.exitcode:
        raise SystemExit(f"{name} ended with code {process.exitcode}")
    end = time.perf_counter()
    return end - begin, end - (first or end)


def has_checkpoint(folder: Path) -> bool:
    """Whether there is an entry of a journal, or a tile of a store."""
    return any(folder.glob("journal/*.npz")) or any(folder.glob("*/gram/c/*/*"))


def found_in(folder: Path) -> Arrays:
    """What a process has written."""
    with np.load(folder / "found.npz") as file:
        return {name: file[name] for name in file.files}


def same(first: Arrays, second: Arrays) -> bool:
    """Whether all arrays have the same bits."""
    return first.keys() == second.keys() and all(
        value.dtype == second[name].dtype
        and value.shape == second[name].shape
        and value.tobytes() == second[name].tobytes()
        for name, value in first.items()
    )


class Workers:
    """Two worker processes, which are started here: a nanny gives up some that are killed often."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._processes = [self._started(), self._started()]

    def replace_first(self) -> None:
        """Kill the worker that has been there for longer, and start another one."""
        self._processes.pop(0).kill()
        self._processes.append(self._started())

    def end(self) -> None:
        """Kill both."""
        for process in self._processes:
            process.kill()

    def _started(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
        return subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)


@contextmanager
def workers(used: bool) -> Iterator[Workers | None]:
    """Two workers, whose scheduler is in a process of its own; None for threads."""
    if not used:
        yield None
        return
    here, there = FORK.Pipe()
    process = FORK.Process(target=serve, args=(there,))
    process.start()
    found = Workers(here.recv())
    try:
        yield found
    finally:
        found.end()
        here.send("end")
        process.join(20)
        if process.is_alive():
            process.kill()


def serve(pipe: Connection) -> None:
    """Run a scheduler until told to end."""
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster:
        pipe.send(cluster.scheduler_address)
        pipe.recv()


def kill_often(
    name: str, place: Path, cluster: Workers | None, kills: int, rng: np.random.Generator
) -> tuple[int, int, int, int, float]:
    """Kills, those that left a checkpoint, results, those that differ, seconds of a whole."""
    address = None if cluster is None else cluster.address
    for folder in (place / "first", place / "whole"):  # the first loads what others find loaded
        folder.mkdir(parents=True)
        whole, rest = attempt(name, folder, address, None) or (0.0, 0.0)
    expected = found_in(place / "whole")
    killed, midway, ended = 0, 0, 0
    wrong = int(not same(expected, found_in(place / "first")))
    while killed < kills:
        folder = place / str(ended)
        folder.mkdir()
        time_left = rest
        while attempt(name, folder, address, rng.random() * time_left) is None:
            killed += 1
            time_left = max(2 * whole, 1.3 * time_left)  # the next one is to end some time
            midway += has_checkpoint(folder)
            if cluster is not None and killed % 3 == 0:
                cluster.replace_first()
        ended += 1
        wrong += not same(expected, found_in(folder))
    return killed, midway, ended, wrong, whole


def main() -> None:
    """Kill each case, and print a line for each place."""
    parser = parser_of(__doc__, CASES)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--on", choices=PLACES, help="only there, without other numbers of threads")
    parser.add_argument("--seed", type=int, default=0)
    options = parsed(parser)
    rng, failures = np.random.default_rng(options.seed), 0
    for name in options.sections or CASES:
        with tempfile.TemporaryDirectory() as temporary:
            results: dict[str, Arrays] = {}
            for where in [options.on] if options.on else PLACES:
                place = Path(temporary, where)
                with workers(where == "workers") as cluster:
                    found = kill_often(name, place, cluster, options.kills, rng)
                results[where] = found_in(place / "whole")
                failures += found[3]
                print(
                    "{:18} {:8} killed {} times, {} with a checkpoint; {} results, {} differ; "
                    "whole {:.1f} s".format(name, where, *found),
                    flush=True,
                )
            for cores in () if options.on else (1, 3):
                folder = Path(temporary, f"{cores} threads")
                folder.mkdir()
                attempt(name, folder, None, None, cores)
                results[f"{cores} threads"] = found_in(folder)
            if options.on:
                continue
            whole = results.pop("threads")
            alike = {where: same(whole, other) for where, other in results.items()}
            failures += not (alike["1 threads"] and alike["3 threads"])
            print(f"{name:18} the same bits as of two threads: {alike}", flush=True)
    cases = len(options.sections or CASES)
    what = f"{cases} methods of many passes, each killed {options.kills} times and more"
    record("interruption", what, failures, "results with another bit")
    if failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
