"""Predictions by blocks: the same bits anywhere, within their memory, errors as in one block."""

import threading
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from distributed import Client
from scipy.sparse import csr_array

import dhsk
from dhsk.errors import BudgetError, ClusterError, InputError, ZeroRowsWarning
from dhsk.execution.memory import Share
from dhsk.execution.run import Run
from dhsk.models import predict as module
from dhsk.models.exact import Certificates, Expansion, SvcModel
from dhsk.models.predict import Predictor
from dhsk.progress import Progress
from dhsk.samples import open_samples
from dhsk.units import parse_bytes

DIM = 40
N = 1_500
"""Samples of a prediction: twelve blocks."""

KINDS = ("dense", "sparse", "float32")


def samples_of(n: int, seed: int = 1) -> Any:
    """Counts, none of them all zero."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.3, (n, DIM)).astype(np.float64)
    X[np.arange(n), rng.integers(0, DIM, n)] += 1.0
    return X


def model_of(k: int, each: int, X: Any, **options: Any) -> SvcModel:
    """A model of k classes with so many support vectors each, the first of X, and random duals."""
    rng = np.random.default_rng(0)
    pairs = k * (k - 1) // 2
    ones = np.ones(pairs)
    kernel = dhsk.HeatKernel.at_scale(X.shape[1], 0.6)
    return SvcModel(
        kernel=kernel,
        sphere_map="hyperspherical",
        classes=np.arange(k),
        rows=dhsk.hyperspherical_map(X[: k * each]).astype(options.get("dtype", "float64")),
        expansion=Expansion(
            support=np.arange(k * each),
            n_support=np.full(k, each),
            dual_coef=rng.normal(size=(k - 1, k * each)),
            intercepts=rng.normal(size=pairs),
        ),
        certificates=Certificates(ones, ones, ones, ones, ones.astype(int), ones > 0, 1e-3, 1.0),
    )


def model_and_samples(kind: str) -> tuple[SvcModel, Any]:
    """A model of four classes with 2,000 support vectors, and other samples."""
    fitted, X = samples_of(2_000, 0), samples_of(N)
    if kind == "sparse":
        return model_of(4, 500, csr_array(fitted)), csr_array(X)
    return model_of(4, 500, fitted, dtype="float32" if kind == "float32" else "float64"), X


def decided(model: SvcModel, X: Any, **options: Any) -> Any:
    """Decision values of all samples."""
    predictor = Predictor(model.row_map, model.rows, model.decisions, model.width)
    return predictor.whole(open_samples(X), Run(**options), 8 * model.width)


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Number of cores of this process, as it is told."""
    return lambda count: monkeypatch.setattr("dhsk.execution.memory.core_count", lambda: count)


@pytest.mark.threads
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_the_same_bits_on_any_number_of_cores(
    kind: str, cores: Callable[[int], None], client: Any
) -> None:
    """And near those of one block."""
    model, X = model_and_samples(kind)
    found = []
    for count in (1, 2, 5):
        cores(count)
        found.append(decided(model, X))
    found.append(decided(model, X, client=client))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    rows = model.row_map(csr_array(X) if kind == "sparse" else X)
    rounding = 1e-4 if kind == "float32" else 1e-10
    np.testing.assert_allclose(found[0], model.decisions(rows), rtol=0, atol=rounding)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:probability of SVC:FutureWarning")
def test_processes_give_the_same_bits() -> None:
    """Estimators with a client predict on its workers, all of them."""
    X, y = samples_of(700), np.arange(700) % 3
    probed = samples_of(4 * N, 3)
    with dhsk.connect("local", n_workers=2) as client:
        for estimator in (
            dhsk.SVC(kernel="heat", tol=0.1, probability=True, random_state=0),
            dhsk.NystromSVC(50, loss="logistic", random_state=0),
            dhsk.HeatKernelRidge(tol=1e-2),
        ):
            here = estimator.fit(X, y)
            names = ["predict", "decision_function", "predict_proba"]
            names = [name for name in names if hasattr(here, name)]
            expected = [getattr(here, name)(probed) for name in names]
            here.set_params(client=client)
            for name, one in zip(names, expected, strict=True):
                np.testing.assert_array_equal(getattr(here, name)(probed), one)


def test_a_client_computes_unless_there_is_little_to_do(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its connection has ended, as that of a fit often has when its model is used."""
    X, y = samples_of(400), np.arange(400) % 2
    model = dhsk.HeatSVC(tol=0.1).fit(X, y).set_params(client=client)
    asked = []
    executor = module.executor_of

    def watched(*arguments: Any) -> Any:
        asked.append(arguments[0])
        return executor(*arguments)

    monkeypatch.setattr(module, "executor_of", watched)
    expected = model.predict(samples_of(N))
    assert asked == [client]
    model.predict(X[:50])
    with Client(client.scheduler.address, set_as_default=False) as other:
        model.set_params(client=other)
    np.testing.assert_array_equal(model.predict(samples_of(N)), expected)
    assert asked == [client]


def test_without_its_scheduler_a_client_computes_nothing(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not been closed: an error, not a long computation where nobody expects it."""
    model, X = model_and_samples("dense")
    with monkeypatch.context() as patch:
        patch.setattr(client, "status", "connecting")
        with pytest.raises(ClusterError, match="the connection to the scheduler is lost"):
            decided(model, X, client=client)


# Memory


def traced_peak(function: Any) -> int:
    """Most bytes that a call allocates at a time, as numpy and scipy tell."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.threads
@pytest.mark.slow
@pytest.mark.parametrize("of", ["labels", "probabilities"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_memory_is_what_was_planned(
    kind: str, of: str, cores: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 190 pairs, whose decisions of all samples would be more than all of it."""
    n, k = 12_000, 20
    fitted, X = samples_of(2_000, 0), samples_of(n)
    if kind == "sparse":
        fitted, X = csr_array(fitted), csr_array(X)
    model = model_of(k, 100, fitted)
    object.__setattr__(model, "sigmoids", np.tile([-1.0, 0.0], (190, 1)))
    plans: list[Share] = []
    plan = module.plan_prediction

    def watched(*arguments: Any) -> Share:
        plans.append(plan(*arguments))
        return plans[-1]

    monkeypatch.setattr(module, "plan_prediction", watched)
    cores(2)
    function = model.predict if of == "labels" else model.probabilities
    predictor = Predictor(model.row_map, model.rows, function, model.width)
    model.predict(model.row_map(fitted[:10]))  # what is loaded once
    row_bytes = 8 if of == "labels" else 8 * k
    held = SimpleNamespace(rss=300_000_000)  # as without the tests before
    monkeypatch.setattr(psutil.Process, "memory_info", lambda _: held)
    for allowed in (None, "450MB"):
        memory = None if allowed is None else parse_bytes(allowed)
        options = Run(memory)
        peak = traced_peak(lambda o=options: predictor.whole(open_samples(X), o, row_bytes))
        parts = plans[-1].need.parts
        planned = plans[-1].need.total - parts["process"]
        assert peak <= planned
        assert planned < 8 * n * 190 * 16  # as if all decisions were in memory at the same time
        assert plans[-1].at_once == 2
    assert plans[-1].rows < plans[0].rows


def test_what_does_not_fit_is_refused() -> None:
    """With the numbers, before a sample is read."""
    X, y = samples_of(400), np.arange(400) % 2
    model = dhsk.HeatSVC(tol=0.1).fit(X, y)
    model.set_params(memory="310MB")
    match = r"a prediction needs .*process .*blocks of samples .*but .* are allowed: allow more"
    with pytest.raises(BudgetError, match=match):
        model.predict(samples_of(N))
    model.set_params(memory="4GB").predict(samples_of(N))


# Errors


@pytest.mark.threads
@pytest.mark.parametrize("anywhere", ["threads", "client"])
def test_errors_name_the_first_bad_row_of_all(anywhere: str, client: Any) -> None:
    """NaN deep in the samples; on threads of two such rows the first, and no thread stays."""
    model, X = model_and_samples("dense")
    X[[1_234] if anywhere == "client" else [1_234, 1_400], 3] = np.nan
    before = threading.active_count()
    options = {"client": client} if anywhere == "client" else {}
    with pytest.raises(InputError, match=r"X: row 1234, column 3 .*must be finite"):
        decided(model, X, **options)
    assert anywhere == "client" or threading.active_count() == before


@pytest.mark.parametrize("anywhere", ["threads", "client"])
def test_samples_of_zeros_are_counted(anywhere: str, client: Any) -> None:
    """Those of all blocks, in one warning."""
    X, y = samples_of(400), np.arange(400) % 2
    model = dhsk.HeatSVC(tol=0.1).fit(X, y)
    model.set_params(client=client if anywhere == "client" else None)
    probed = samples_of(N)
    probed[[0, 700, 1_499]] = 0.0
    with pytest.warns(ZeroRowsWarning, match=r"3 of 1,500 samples"):
        model.predict(probed)


@pytest.mark.threads
def test_an_interrupt_ends_all_threads(
    cores: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is heard between blocks; those that run end, and no other begins."""
    cores(2)
    monkeypatch.setattr("dhsk.models.predict._LEAST_WORK", 0)
    model, X = model_and_samples("dense")
    computed: list[int] = []

    def function(rows: Any) -> Any:
        computed.append(rows.shape[0])
        return model.decisions(rows)

    def interrupt(event: Progress) -> None:
        if event.done:
            raise KeyboardInterrupt

    before = threading.active_count()
    predictor = Predictor(model.row_map, model.rows, function, model.width)
    with pytest.raises(KeyboardInterrupt):
        predictor.whole(open_samples(X), Run(report=interrupt), 48)
    assert threading.active_count() <= before
    assert sum(computed) < N


def test_progress_is_reported_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """From none to all samples, block by block."""
    monkeypatch.setattr("dhsk.models.predict._LEAST_WORK", 0)
    model, X = model_and_samples("dense")
    events: list[Progress] = []
    decided(model, X, report=events.append)
    assert {event.stage for event in events} == {"predictions"}
    done = [event.done for event in events]
    assert (done[0], done[-1], sorted(done)) == (0, N, done)
    assert len(done) > 10
