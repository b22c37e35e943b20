"""Exact SVMs with few support vectors, beside LIBSVM and scikit-learn-intelex, in one run.

Run as ``python tests/benchmarks/support_vectors.py [SECTION ...] [--data DIR]``; without sections
all run. `mnist` needs `DIR/mnist/mnist70k.npz`. Every fit is in a process of its own, on two cores.
scikit-learn-intelex is installed with pip into a virtual environment that is deleted at the end,
unless `--intelex` names an interpreter that has it. Samples, of a million 0.8 GB, go through a
temporary folder.

`few` prints seconds, memory and support vectors of all three, their ratios, and the exponents with
which our time grows. `mnist` is ten classes, with and without noise. `killed` kills `dhsk train` at
random moments, runs it again and compares the models. `client` is two workers beside one process.
"""

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from mixtures import write_samples
from numpy.typing import NDArray
from records import parsed, parser_of, record
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from svm import mnist

import dhsk
from dhsk.commands.outcome import TreeMemory

PEER = "scikit-learn-intelex==2026.2.0"
CORES = 2
MEMORY = "4GB"
"""What dhsk is allowed; measured is the memory of the whole process tree of any solver."""
GAMMA = 2.0
PENALTY = 10.0
TOL = 1e-3
SIZES = {"few": (30_000, 100_000, 300_000, 1_000_000), "killed": (100_000,), "client": (10**6,)}
SHORT = 100_000
"""Fits of fewer samples are repeated: the best of `REPEATS` is printed."""
REPEATS = 3
KILLS = 20
NOISE = (0.0, 0.1)
PEERS = {"libsvm": "LIBSVM", "intelex": PEER}
SOLVERS = (*PEERS, "dhsk")

Found = dict[str, Any]
Matrix = NDArray[np.float64]


# Fits, each in a process of its own


def model_of(solver: str, **options: Any) -> Any:
    """Estimator of a solver, all at the same C, tolerance and, but for MNIST, kernel."""
    if solver == "dhsk":
        kernel = dhsk.GaussianKernel(sigma=(2.0 * GAMMA) ** -0.5)
        own: dict[str, Any] = {"kernel": kernel, "sphere_map": "identity"}
        own |= {"memory": MEMORY, **options}
        return dhsk.HeatSVC(C=PENALTY, tol=TOL, **own)
    kind = SVC if solver == "libsvm" else importlib.import_module("sklearnex.svm").SVC
    return kind(kernel="rbf", gamma=GAMMA, C=PENALTY, tol=TOL, cache_size=1000)


def warm_up(model: Any, X: Any, y: Any) -> None:
    """Fit to a few samples of each class, so that no solver's loading or compiling is timed."""
    few = np.concatenate([np.flatnonzero(y == label)[:100] for label in np.unique(y)])
    model.fit(X[few], y[few])


def objective(model: Any, X: Matrix) -> float:
    """Dual objective of a classifier of two classes, in the exact matrix."""
    b = model.dual_coef_[0]
    rows = X[model.support_]
    return float(np.abs(b).sum() - b @ rbf_kernel(rows, gamma=GAMMA) @ b / 2)


def fit_few(solver: str, folder: Path) -> Found:
    """Fit to the samples of a folder."""
    X, y = np.load(folder / "rows.npy"), np.load(folder / "labels.npy")
    model = model_of(solver)
    warm_up(model, X, y)
    times = []
    with TreeMemory() as tree:
        for _ in range(REPEATS if len(y) < SHORT else 1):
            begin = time.perf_counter()
            model.fit(X, y)
            times.append(time.perf_counter() - begin)
    return {
        "seconds": min(times),
        "bytes": tree.peak,
        "support": len(model.support_),
        "objective": objective(model, X),
    }


def fit_mnist(solver: str, data: Path, noise: float) -> Found:
    """Fit to MNIST with a share of the labels drawn at random, as in `svm.py`; score."""
    X, y, test, truth = mnist(data)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(y)) < noise, rng.integers(0, 10, len(y)), y)
    if solver == "dhsk":
        own = {"kernel": None, "sphere_map": None, "time_scale": 0.7, "dtype": "float32"}
        model = model_of(solver, **own)
    else:
        model = model_of(solver)
        mapped: Any = (dhsk.hyperspherical_map(Z).astype(np.float32) for Z in (X, test))
        X, test = mapped
    warm_up(model, X, labels)
    with TreeMemory() as tree:
        begin = time.perf_counter()
        model.fit(X, labels)
        taken = time.perf_counter() - begin
    return {
        "seconds": taken,
        "bytes": tree.peak,
        "support": len(model.support_),
        "accuracy": float(model.score(test, truth)),
    }


def fit_client(solver: str, folder: Path) -> Found:
    """Fit to samples in a file, on two workers with one thread each or in this process."""
    X, y = dhsk.open_samples(str(folder / "rows.npy")), np.load(folder / "labels.npy")
    connection: Any = nullcontext()
    if solver == "client":
        connection = dhsk.connect("local", n_workers=CORES, threads_per_worker=1)
    with TreeMemory() as tree, connection as client:
        model = model_of("dhsk", client=client)
        warm_up(model, np.load(folder / "rows.npy", mmap_mode="r"), y)
        begin = time.perf_counter()
        model.fit_samples(X, y)
        taken = time.perf_counter() - begin
    return {"seconds": taken, "bytes": tree.peak, "support": len(model.support_)}


def fit_apart(options: argparse.Namespace, section: str, solver: str, *words: Any) -> Found | None:
    """Fit in a process of its own; None if that takes longer than the limit."""
    python = options.intelex if solver == "intelex" else sys.executable
    given = [python, __file__, section, "--fit", solver, *map(str, words)]
    with subprocess.Popen(given, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            lines, _ = process.communicate(timeout=options.limit)
        except subprocess.TimeoutExpired:
            process.kill()
            return None
    if process.returncode:
        raise SystemExit(f"{solver} ended with code {process.returncode}")
    found: Found = json.loads(lines.splitlines()[-1])
    return found


def fit_here(section: str, solver: str, words: list[str]) -> None:
    """Fit as `fit_apart` asks, and print what was found as JSON."""
    folder = Path(words[0])
    if section == "mnist":
        found = fit_mnist(solver, folder, float(words[1]))
    else:
        found = (fit_client if section == "client" else fit_few)(solver, folder)
    print(json.dumps(found))


def environment() -> dict[str, str]:
    """Environment of other interpreters: they import what this one does."""
    places = [str(Path(dhsk.__file__).parents[1]), *filter(None, sys.path)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(CORES))
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(places)}


@contextmanager
def intelex_installed() -> Iterator[str]:
    """Interpreter of a temporary environment with scikit-learn-intelex, beside all that is here."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", PEER]
        subprocess.run(install, check=True, env=environment())
        yield python


# Sections


def words_of(found: Found | None, limit: float) -> str:
    """What a fit took and found."""
    if found is None:
        return f"more than {limit:g} s"
    return (
        f"{found['seconds']:.2f} s, {found['bytes'] / 1e9:.2f} GB, {found['support']:,} "
        "support vectors"
    )


def apart(ours: Found | None, theirs: Found | None) -> str:
    """Relative difference of dual objectives; below 0 if ours is short of theirs."""
    if ours is None or theirs is None:
        return "unknown"
    return f"{ours['objective'] / theirs['objective'] - 1:+.1e}"


def to_few(options: argparse.Namespace) -> None:
    """Samples of which few are support vectors."""
    limit, done = options.limit, []
    for n in options.sizes or SIZES["few"]:
        with tempfile.TemporaryDirectory() as name:
            write_samples(Path(name), n)
            found = {}
            for solver in SOLVERS:
                found[solver] = fit_apart(options, "few", solver, name)
                print(f"  N = {n:,}, {solver}: {words_of(found[solver], limit)}", flush=True)
        libsvm, intelex, ours = (found[solver] for solver in SOLVERS)
        print(
            f"few, N = {n:,}: dual objective {apart(ours, libsvm)} of LIBSVM's, "
            f"{apart(ours, intelex)} of intelex's",
            flush=True,
        )
        if ours is not None:
            peers = {
                PEERS[solver]: one["seconds"]
                for solver, one in found.items()
                if solver in PEERS and one is not None
            }
            runs, what = REPEATS if n < SHORT else 1, f"{n:,} x 100, few support vectors"
            record("svm", what, ours["seconds"], "s", peers, runs=runs)
            record("memory", f"SVM of {n:,} x 100", ours["bytes"] / 1e9, "GB", {"allowed": 4.0})
            done.append((n, ours["support"], ours["seconds"]))
    if len(done) > 1:
        size, support, taken = np.log(np.array(done, dtype=np.float64).T)
        print(
            f"few: time grows as N to the {np.polyfit(size, taken, 1)[0]:.2f}, as N times "
            f"support vectors to the {np.polyfit(size + support, taken, 1)[0]:.2f}",
            flush=True,
        )


def to_mnist(options: argparse.Namespace) -> None:
    """All 60,000 images: ours at s = 0.7, the peer's Gaussian kernel on the mapped rows."""
    if options.data is None:
        raise SystemExit("mnist needs --data DIR or DHSK_DATA")
    for noise in NOISE:
        found = {}
        for solver in ("intelex", "dhsk"):
            one = found[solver] = fit_apart(options, "mnist", solver, options.data, noise)
            tested = "" if one is None else f", test accuracy {one['accuracy']:.4f}"
            text = f"{words_of(one, options.limit)}{tested}"
            print(f"  {noise:.0%} noise, {solver}: {text}", flush=True)
        peer, ours = found["intelex"], found["dhsk"]
        if ours is not None and peer is not None:
            what = "MNIST, 60,000 images" + (f", {noise:.0%} of labels at random" if noise else "")
            scores = ours["accuracy"], peer["accuracy"]
            record("svm", what, ours["seconds"], "s", {PEER: peer["seconds"]}, scores=scores)
            peers = {PEER: peer["bytes"] / 1e9, "allowed": 4.0}
            record("memory", f"SVM of {what}", ours["bytes"] / 1e9, "GB", peers)


def to_killed(options: argparse.Namespace) -> None:
    """`dhsk train`, killed at random moments and run again: the same model bit for bit."""
    n = (options.sizes or SIZES["killed"])[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_samples(folder, n)
        whole = run_train(folder, folder / "whole.npz", None)
        again = run_train(folder, folder / "again.npz", None)
        expected = arrays_of(folder / "whole.npz")
        differ = not equal(expected, arrays_of(folder / "again.npz"))
        print(f"  N = {n:,}: {whole:.1f} s, again {again:.1f} s, equal: {not differ}", flush=True)
        wrong, both, undisturbed = int(differ), [], [again]
        for number, share in enumerate(np.sort(np.random.default_rng(0).random(KILLS))):
            out = folder / f"{number}.npz"
            run_train(folder, out, share * min(whole, again))
            early = out.exists()
            taken = run_train(folder, out, None)
            same = equal(expected, arrays_of(out))
            wrong += not same
            both.append(share * min(whole, again) + taken)
            if number % 5 == 0:  # in turn, as others may compute
                undisturbed.append(run_train(folder, folder / f"whole {number}.npz", None))
            print(
                f"  killed after {share * min(whole, again):.1f} s"
                f"{' (it had ended)' if early else ''}, then {taken:.1f} s; equal: {same}",
                flush=True,
            )
    what = f"SVM of {n:,} x 100, killed at a random moment, both runs"
    peers = {"undisturbed": float(np.mean(undisturbed))}
    record("interruption", what, float(np.mean(both)), "s", peers, runs=KILLS)
    told = f"of {KILLS + 1} models equal, bit by bit"
    record("interruption", f"SVM of {n:,} x 100, killed and resumed", KILLS + 1 - wrong, told)
    if wrong:
        raise SystemExit(1)


def run_train(folder: Path, out: Path, killed_after: float | None) -> float:
    """Seconds of ``dhsk train``, which is killed with its processes after some, if given."""
    # fmt: off
    command = [
        sys.executable, "-m", "dhsk", "train", str(folder / "rows.npy"),
        "--labels", str(folder / "labels.npy"), "--map", "identity",
        "--kernel", "gaussian", "--sigma", str((2.0 * GAMMA) ** -0.5), "--C", str(PENALTY),
        "--tol", str(TOL), "--memory", MEMORY, "--out", str(out),
    ]
    # fmt: on
    begin = time.perf_counter()
    with subprocess.Popen(
        command,
        start_new_session=True,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            process.wait(killed_after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    if killed_after is None and process.returncode:
        raise SystemExit(f"dhsk train ended with code {process.returncode}")
    return time.perf_counter() - begin


def arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a model file, but for the header, which says how long the fit took."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files if name != "header"}


def equal(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> bool:
    """Whether two models have the same arrays, bit for bit."""
    return first.keys() == second.keys() and all(
        value.dtype == second[name].dtype
        and value.shape == second[name].shape
        and value.tobytes() == second[name].tobytes()
        for name, value in first.items()
    )


def to_client(options: argparse.Namespace) -> None:
    """Two workers with a thread each beside one process with two threads."""
    n = (options.sizes or SIZES["client"])[0]
    with tempfile.TemporaryDirectory() as name:
        write_samples(Path(name), n)
        found = {}
        for how in ("process", "client"):
            found[how] = fit_apart(options, "client", how, name)
            print(f"  N = {n:,}, {how}: {words_of(found[how], options.limit)}", flush=True)
    client, process = found["client"], found["process"]
    if client is not None and process is not None:
        peers = {"one process, two threads": process["seconds"]}
        record("svm", f"{n:,} x 100 on two workers of Dask", client["seconds"], "s", peers)


SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "few": to_few,
    "mnist": to_mnist,
    "killed": to_killed,
    "client": to_client,
}


def main() -> None:
    """Read the command line and run the sections."""
    parser = parser_of(__doc__, SECTIONS, data=True)
    of_sizes = "numbers of samples; killed and client take the first"
    parser.add_argument("--sizes", type=int, nargs="+", help=of_sizes)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of one process")
    parser.add_argument("--intelex", help="interpreter that has scikit-learn-intelex")
    parser.add_argument("--fit", nargs="+", help=argparse.SUPPRESS)
    options = parsed(parser)
    if options.fit is not None:
        fit_here(options.sections[0], options.fit[0], options.fit[1:])
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # of all children too
    sections = options.sections or list(SECTIONS)
    needed = options.intelex is None and {"few", "mnist"} & set(sections)
    with intelex_installed() if needed else nullcontext(options.intelex) as python:
        options.intelex = python
        for section in sections:
            print(f"{section}:", flush=True)
            SECTIONS[section](options)


if __name__ == "__main__":
    main()
