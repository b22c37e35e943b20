"""Shared fixtures: small samples, and an oracle for Gram matrices."""

import json
import math
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import zip_longest
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.request import Request, urlopen

import mpmath
import numpy as np
import pytest
from distributed import Client
from hypothesis import settings
from scipy.special import eval_gegenbauer
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1]))  # worker processes import functions of tests

# Tests start hundreds of processes, each of which would compile the package's source for a second,
# and each process of tests the tests' own for ten: what they compile is kept.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Of a test that is slow beyond some cases, the first are not; long files come first."""
    cases: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("slow")
        if mark is None or "beyond" not in mark.kwargs:
            continue
        name = item.nodeid.partition("[")[0]
        cases[name] += 1
        if cases[name] <= mark.kwargs["beyond"]:
            item.own_markers.remove(mark)
    yield  # to what deselects tests
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items)


SECONDS = {"real": 30.0, "slow": 2.0}
"""About what a test with a mark takes that does not say; one without takes a tenth of a second."""


def longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """The same tests, file by file, so that no process has a long file when the others have ended.

    Files that wait for real parts take turns with others, which compute.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting, computing = [], []
    for file in sorted(files.values(), key=lambda tests: -sum(map(seconds_of, tests))):
        (waiting if any(map(is_real, file)) else computing).append(file)
    turns = zip_longest(waiting, computing, fillvalue=[])
    return [test for two in turns for file in two for test in file]


def seconds_of(item: pytest.Item) -> float:
    """About how long a test takes."""
    marks = ((item.get_closest_marker(name), usual) for name, usual in SECONDS.items())
    return max((mark.kwargs.get("seconds", usual) for mark, usual in marks if mark), default=0.1)


def is_real(item: pytest.Item) -> bool:
    """Whether a test waits for a real part."""
    return item.get_closest_marker("real") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Give BLAS one thread in each of several processes of tests, and keep the order of files.

    Its threads spin while they wait: where those of two processes share the cores, some files take
    three times as long. And xdist would begin with the files of most tests, and end with those of
    few, which are the longest.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    config.option.loadscopereorder = False


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Estimators without `random_state` draw the same numbers in every run of a test."""
    np.random.seed(0)  # noqa: NPY002  # the generator of scikit-learn's random_state=None


@pytest.fixture(autouse=True)
def threads_of_blas(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests of threads find BLAS with several threads, however many it has elsewhere."""
    several = request.node.get_closest_marker("threads") is not None
    with threadpool_limits(2, user_api="blas") if several else nullcontext():
        yield


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in this process say nothing of progress, however busy the machine is."""
    monkeypatch.setattr("dhsk.bars.QUIET_SECONDS", math.inf)


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """Ctrl-C is heard here and by what is started here.

    A shell ignores it for what it runs in the background, and processes inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20260714)


@pytest.fixture
def counts(rng: np.random.Generator) -> Callable[[int, int], Any]:
    """Maker of count data, (n, dim), without an all-zero row."""

    def make(n: int, dim: int) -> Any:
        X = rng.poisson(0.7, size=(n, dim)).astype(np.float64)
        X[np.arange(n), rng.integers(0, dim, n)] += 1.0
        return X

    return make


@pytest.fixture
def heat_oracle() -> Callable[..., Any]:
    """Heat kernel of count data by scipy's Gegenbauer polynomials and 40-digit weights."""

    def gram(X: Any, dim: int, time: float, Y: Any = None) -> Any:
        unit = [np.sqrt(A / A.sum(axis=1, keepdims=True)) for A in (X, X if Y is None else Y)]
        # One dot product at a time, in extended precision: no BLAS, no common code.
        cosines = np.array(
            [[float((a.astype(np.longdouble) * b).sum()) for b in unit[1]] for a in unit[0]]
        )
        lam, total = (dim - 2) / 2, np.zeros_like(cosines)
        for level, weight in enumerate(_weights(dim, time)):
            total += (
                weight
                * eval_gegenbauer(level, lam, np.clip(cosines, -1, 1))
                / eval_gegenbauer(level, lam, 1.0)
            )
        return total

    return gram


def _weights(dim: int, time: float) -> list[float]:
    """Weights a_l of the normalised series (math of Zhao & Song 2017, Theorem 1), dim >= 3."""
    with mpmath.workdps(40):
        terms = []
        for level in range(1000):
            harmonics = mpmath.binomial(level + dim - 3, level) * (2 * level + dim - 2) / (dim - 2)
            decay = mpmath.exp(-level * (level + dim - 2) * mpmath.mpf(time))
            terms.append(harmonics * decay)
            if level > math.sqrt(dim) and terms[-1] < max(terms) * mpmath.mpf(10) ** -22:
                break
        total = mpmath.fsum(terms)
        return [float(term / total) for term in terms]


@pytest.fixture
def nystrom_oracle() -> Callable[..., Any]:
    """Nyström features of mapped rows by numpy, of full rank; what is left turns them only."""

    def features(kernel: Any, rows: Any, landmarks: Any) -> Any:
        rows, landmarks = (np.asarray(A, dtype=np.float64) for A in (rows, landmarks))
        values, vectors = np.linalg.eigh(kernel(landmarks))
        return kernel(rows, landmarks) @ (vectors / np.sqrt(values))

    return features


@pytest.fixture
def client() -> Any:
    """A cluster of two threads in this process."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as started:
        yield started


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Reader of every file in a folder."""
    return lambda path: {
        str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }


@pytest.fixture
def data_dir() -> Path:
    """Folder with the real data sets; tests that need it are skipped without it."""
    folder = os.environ.get("DHSK_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set DHSK_DATA to the folder that holds them")
    return Path(folder)


# Results that nobody computed

HEAT = ("heat s=0.7", "heat s=1", "heat s=1.4")
PARAMETERS = {"s": "time_scale", "t": "time", "sigma": "sigma"}


def kernel_columns(label: str) -> dict[str, Any]:
    """Return the fields that say which kernel a row is of: "heat s=1", "cosine"."""
    name, *parts = label.split(" ")
    found = {PARAMETERS.get(k): float(v) for k, _, v in (p.partition("=") for p in parts)}
    fields = {field: found.get(field) for field in PARAMETERS.values()}
    if fields["time_scale"]:
        fields["time"] = 0.0158 * fields["time_scale"]
    return {"kernel": name, "label": label, **fields}


def exact_fit(size: float) -> dict[str, Any]:
    """Return what proves a fit whose effective sample size is `size`."""
    return {"n_support": 1240, "kkt": 0.00093, "gap": 0.00047, "converged": True, "n_iter": 9000,
            "margin": 0.0625, "vc": 258, "effective": size, "seconds": 6.1}  # fmt: skip


def make_results(
    kernels: tuple[str, ...] = HEAT,
    C: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0),
    classes: tuple[str, ...] | list[str] = ("course", "faculty"),
    n_folds: int = 5,
    samples: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return a results.json whose best cell is the second kernel (or the only one) at C = 10."""
    summary, rows = [], []
    best = kernels[min(1, len(kernels) - 1)]
    for i, label in enumerate(kernels):
        for c in C:
            mean = 0.9281 if label is best and c == 10 else 0.5 + 0.01 * i + 0.001 * c
            cell = {**kernel_columns(label), "C": c} | exact_fit(1.25 + i + 1 / c)
            summary.append({**cell, "mean": mean, "std": 0.0061})
            rows += [{**cell, "fold": f, "score": mean + 0.004 * (f - 2)}
                     for f in range(n_folds)]  # fmt: skip
    n = len(classes)
    confusion = [[90 if i == j else 10 * (j == (i + 1) % n) for j in range(n)] for i in range(n)]
    n_test = 100 * n * changes.get("repeats", 1) / n_folds
    described = {"source": "counts.npz", "n_samples": 100 * n, "dim": 375, "nnz": None,
                 "sphere_map": "hyperspherical", "fingerprint": "ab12cd34"}  # fmt: skip
    return {
        "schema": 3,
        "version": "0.1.0",
        "created": "2026-11-21T06:00:00Z",
        "samples": described | (samples or {}),
        "classes": list(classes),
        "class_counts": [100] * n,
        "folds": {
            "n": n_folds,
            "splitter": "StratifiedKFold(n_splits=5, random_state=0, shuffle=True)"
            if n_folds > 1
            else "ShuffleSplit(n_splits=1)",
            "n_train": max(100 * n - n_test, 1.0),
            "n_test": n_test,
        },
        "scoring": "accuracy",
        "tol": 1e-3,
        "rows": rows,
        "summary": summary,
        "best": max(summary, key=lambda cell: cell["mean"]),
        "choice": {"rule": "best", "left_out": 0},
        "low_rank": None,
        "confusion": confusion,
        "eigenvalues": [100.0, 40.0, 1.0, 1e-3],
        "eigenvalues_exact": True,
        "trace": 200.0,
        "plan": [["tiles", "3 tiles of 1,400 x 1,400"]],
        "seconds": {"gram": 3.1, "fits": 40.0, "total": 185.2},
        **changes,
    }


RANKS = (500, 1000, 2000)
LOW_RANK_FIT = {"n_features": 1998, "gradient": 0.00021, "gap": 0.00013, "converged": True,
            "n_iter": 5, "n_support": None, "kkt": None, "margin": None, "vc": None,
            "effective": None, "seconds": 6.1}  # fmt: skip


def make_low_rank(
    kernels: tuple[str, ...] = HEAT,
    ranks: tuple[int, ...] = RANKS,
    selection: str = "rpcholesky",
    loss: str = "squared_hinge",
    oversampling: float = 1.0,
    refit: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """Return a results.json of low rank; the last rank has the best cell and the least error."""
    data = make_results(kernels, eigenvalues=[], eigenvalues_exact=False, **changes)
    ranked: dict[str, list[dict[str, Any]]] = {"rows": [], "summary": []}
    for k, rank in enumerate(ranks):
        for name, rows in ranked.items():
            for row in data[name]:
                error = (0.12 + 0.01 * kernels.index(row["label"])) / 4**k
                own = {"rank": rank, "trace_error": error}
                score = "mean" if name == "summary" else "score"
                rows.append(
                    row | LOW_RANK_FIT | own | {score: row[score] - 0.02 * (len(ranks) - 1 - k)}
                )
    best = max(ranked["summary"], key=lambda row: row["mean"])
    chosen = {
        "rank": list(ranks),
        "selection": selection,
        "loss": loss,
        "oversampling": oversampling,
    }
    fit = {"refit": LOW_RANK_FIT} if refit else {}
    return data | ranked | fit | {"best": best, "low_rank": chosen}


@pytest.fixture(scope="session")
def results() -> Callable[..., dict[str, Any]]:
    """Maker of a results.json."""
    return make_results


@pytest.fixture(scope="session")
def low_rank() -> Callable[..., dict[str, Any]]:
    """Maker of a results.json of low rank."""
    return make_low_rank


@pytest.fixture(scope="session")
def object_server() -> Iterator[dict[str, str]]:
    """A server with the interface of S3, in the memory of a process; variables that lead to it."""
    pytest.importorskip("obstore")
    pytest.importorskip("moto")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert monotonic() < end, "the server did not start"
                sleep(0.1)
        known = {
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_REGION": "us-east-1",
        }
        urlopen(Request(f"{known['AWS_ENDPOINT_URL']}/bucket", method="PUT")).close()
        yield known
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def bucket(object_server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a bucket of the server, which the environment leads to."""
    for name in ("AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in object_server.items():
        monkeypatch.setenv(name, value)
    return "bucket"


@pytest.fixture
def rewritten() -> Callable[..., None]:
    """Change parts of a model file."""

    def rewrite(path: Path, header: dict[str, Any], **arrays: Any) -> None:
        with np.load(path) as archive:
            parts = {name: archive[name] for name in archive.files}
        found = json.loads(parts["header"].tobytes()) | header
        parts |= arrays | {"header": np.frombuffer(json.dumps(found).encode(), np.uint8)}
        with path.open("wb") as file:
            np.savez(file, **parts)

    return rewrite
