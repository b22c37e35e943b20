"""Matrices, models and predictions on a device are those of the processor.

The device is the processor, by `tests.devices.host`, with numpy's products: values have the same
bits, and sums differ by the order of their terms.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from scipy.sparse import csr_array

import dhsk
from dhsk.devices import (
    VARIABLE,
    Device,
    call_on_device,
    chosen_device,
    current_device,
    device,
    refuse_too_large,
    tf32_error,
)
from dhsk.execution.resources import Resources
from dhsk.gram.device_passes import pass_bytes
from dhsk.gram.plan import make_plan
from dhsk.gram.sides import GramSides
from dhsk.kernels.stretched import StretchedGaussianKernel, StretchedKernel
from dhsk.models.on_device import RowsOnDevice, most_whole
from dhsk.models.sources import RowsSource
from dhsk.planning.device import device_lines
from dhsk.solvers.sources import Combination
from tests.devices.host import HostDevice

RNG = np.random.default_rng(0)
COUNTS = RNG.random((700, 20))
COUNTS[7] = COUNTS[3]
OTHERS = np.vstack([COUNTS[:5], RNG.random((300, 20))])
ROUNDING = 700 * 2.0**-52
"""Largest relative error of a sum of 700 positive terms, in either order."""

HEAT = dhsk.HeatKernel.at_scale(20, 1.0)
KERNELS = {
    "heat": HEAT,
    "heat far": dhsk.HeatKernel.at_scale(20, 0.1),
    "heat time derivative": HEAT.time_derivative(),
    "stretched": StretchedKernel(dhsk.HeatKernel.at_scale(20, 6.0), 1e-7),
    "cosine": dhsk.CosineKernel(),
    "linear": dhsk.LinearKernel(),
    "gaussian": dhsk.GaussianKernel(1.3),
    "stretched gaussian": StretchedGaussianKernel(1e3, 1e-6),
}


def rows_for(kernel: Any, samples: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Samples as a kernel takes them."""
    rows: Any = dhsk.hyperspherical_map(samples) if kernel.spherical else samples
    return np.asarray(rows).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", KERNELS)
def test_values_have_the_bits_of_the_processor(host: HostDevice, name: str, dtype: str) -> None:
    """Given equal inner products, which are taken from the device: each operation is IEEE's."""
    kernel = KERNELS[name]
    rows = rows_for(kernel, COUNTS, dtype)
    host.strip_bytes = 1 << 30  # in strips numpy's products differ
    on_device = kernel.of_rows(rows)
    products = (KERNELS["cosine"] if kernel.spherical else KERNELS["linear"]).of_rows(rows)
    assert host.taken == 2
    with device("cpu"):
        norms2 = kernel.norms2(rows)
        expected = np.asarray(kernel.of_product(products, norms2, norms2))
        kernel.make_symmetric(expected)
    np.testing.assert_array_equal(on_device, expected)
    assert on_device.dtype == dtype


@pytest.mark.parametrize("strip_bytes", [1, 1 << 12, 1 << 30])
@pytest.mark.parametrize("name", ["heat", "gaussian", "linear"])
def test_equal_rows_are_found_in_every_strip(host: HostDevice, name: str, strip_bytes: int) -> None:
    """Rows 0 to 4 and the equal rows 3 and 7 of one side are on the other side too."""
    kernel, host.strip_bytes = KERNELS[name], strip_bytes
    rows, columns = (rows_for(kernel, side, "float64") for side in (COUNTS, OTHERS))
    values = kernel.of_rows(rows, columns)
    own = np.diagonal(kernel.of_rows(rows))
    of_equal = values[[0, 1, 2, 3, 4, 7], [0, 1, 2, 3, 4, 3]]
    exact = 0 if kernel.unit_diagonal else ROUNDING
    np.testing.assert_allclose(of_equal, own[[0, 1, 2, 3, 4, 7]], rtol=exact)
    with device("cpu"):
        np.testing.assert_allclose(values, kernel.of_rows(rows, columns), rtol=1e-12)


def test_rows_that_are_called_distinct_are_not_compared(host: HostDevice) -> None:
    """As on the processor: their values are off by rounding."""
    rows = rows_for(HEAT, COUNTS, "float64")
    found = HEAT.of_distinct_rows(rows[:300], rows[300:])
    assert host.taken == 1
    with device("cpu"):
        np.testing.assert_allclose(found, HEAT.of_rows(rows[:300], rows[300:]), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["heat", "gaussian", "linear"])
@pytest.mark.parametrize("types", [("float64", "float64"), ("float32", "float32"),
                                   ("float32", "float64")])  # fmt: skip
@pytest.mark.parametrize("across", [False, True])
def test_products_of_matrices(
    host: HostDevice, kernel: str, types: tuple[str, str], across: bool
) -> None:
    """From both sides, in several groups, of a square and of a rectangular matrix."""
    host.strip_bytes = 1 << 14  # groups of two tiles and strips of a few rows
    G: Any = dhsk.compute_gram(
        COUNTS, kernel, Y=OTHERS if across else None, dtype=types[0], product_dtype=types[1],
        tile=64,
    )  # fmt: skip
    V, W = RNG.random((G.shape[1], 3)), RNG.random(G.shape[0])
    before = host.taken
    found = G @ V, W @ G
    assert host.taken - before >= 2
    with device("cpu"):
        expected = G @ V, W @ G
    # of float32 values, which differ where their products do
    tolerance = ROUNDING if types == ("float64", "float64") else 1e-6
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance)


def test_a_stored_matrix_has_the_same_values(host: HostDevice, tmp_path: Path) -> None:
    """Tiles are computed on the device; reading and multiplying stored ones is as ever."""
    kernels = ["heat", dhsk.HeatKernel.at_scale(20, 0.7)]
    found = dhsk.compute_gram(COUNTS, kernels, store=tmp_path / "on", tile=128)
    assert host.taken > 0
    with device("cpu"):
        expected = dhsk.compute_gram(COUNTS, kernels, store=tmp_path / "off", tile=128)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12)
            assert (np.asarray(one) == np.asarray(one).T).all()
    before = host.taken
    found[0] @ np.ones(700)
    assert host.taken == before


def test_operators_of_many_passes_keep_no_tiles(host: HostDevice) -> None:
    """A device computes them sooner than they are read."""
    G = dhsk.compute_gram(COUNTS, "heat", tile=128)
    values = G.eigh(3)[0]
    assert host.taken > 0
    assert G.with_tiles_held(1 << 30) is G
    with device("cpu"):
        assert G.with_tiles_held(1 << 30) is not G
        np.testing.assert_allclose(values, G.eigh(3)[0], rtol=1e-8)


@pytest.mark.parametrize("kernel", [HEAT, dhsk.GaussianKernel(1.3)])
def test_blocks_of_a_source_are_symmetric(host: HostDevice, kernel: Any) -> None:
    """And have ones on their diagonal, whatever strips they are made in."""
    host.strip_bytes = 1 << 12
    rows = rows_for(kernel, COUNTS[8:], "float64")  # none are equal
    source = RowsSource(rows, kernel)
    members = RNG.permutation(len(rows))[:300]
    K = source.block(members)[:, :300]
    quick = source.approximate(1 << 30).block(members)[:, :300]
    assert host.taken == 2
    assert (K == K.T).all()
    assert (np.diagonal(K) == 1.0).all()
    with device("cpu"):
        expected = RowsSource(rows, kernel).block(members)
    np.testing.assert_allclose(K, expected[:, :300], rtol=1e-12)
    np.testing.assert_allclose(quick, K, atol=1e-5)


def test_a_sample_with_itself_is_exact(host: HostDevice) -> None:
    """In combinations at samples whose columns they are, of distinct rows too."""
    source = RowsSource(rows_for(HEAT, COUNTS[8:], "float64"), HEAT)
    members = np.arange(5, 205)
    (found,) = source.combine([Combination(np.arange(300), members, np.eye(200))])
    assert host.taken == 1
    assert (found[members, np.arange(200)] == 1.0).all()


@pytest.mark.parametrize("repeated", [True, False])
def test_products_of_a_source_take_several_blocks(host: HostDevice, repeated: bool) -> None:
    """Of rows above the diagonal, whose own values are exact; equal ones may be in two blocks."""
    host.strip_bytes = 1 << 25
    rows = RNG.random((8400, 3))
    if repeated:
        rows[8300] = rows[10]
    kernel, some = dhsk.GaussianKernel(0.5), np.r_[:100, 8191:8300]
    V = np.zeros((8400, len(some)))
    V[some, np.arange(len(some))] = 1.0
    V = np.hstack([V, RNG.random((8400, 2))])
    found = RowsSource(rows, kernel).product(V)
    assert host.taken == 1
    assert (found[some, np.arange(len(some))] == 1.0).all()
    np.testing.assert_allclose(found[some], kernel(rows[some], rows) @ V, rtol=8400 * 2.0**-52)
    assert not repeated or found[8300, 10] == 1.0


TARGET = (np.sin(3 * COUNTS @ np.arange(20)) > 0).astype(int) + (COUNTS[:, 0] > 0.5)
MODELS: dict[str, Callable[[], Any]] = {
    "SVC": dhsk.SVC,
    "HeatSVC": lambda: dhsk.HeatSVC(C=3.0),
    "HeatSVC of one-vs-rest": lambda: dhsk.HeatSVC(C=3.0, multi_class="ovr"),
    "SVC of a linear kernel": lambda: dhsk.SVC(kernel="linear"),
    "HeatKernelRidge": lambda: dhsk.HeatKernelRidge(0.1),
    "NystromRidge": lambda: dhsk.NystromRidge(50, random_state=0),
    "NystromRidge of all": lambda: dhsk.NystromRidge(
        50, selection="uniform", oversampling=2, random_state=0
    ),
    "NystromSVC": lambda: dhsk.NystromSVC(50, selection="kmeans", random_state=0),
    "NystromSVC, logistic": lambda: dhsk.NystromSVC(
        50, C=1e3, loss="logistic", tol=1e-4, random_state=0
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_predict_the_same(host: HostDevice, name: str) -> None:
    """To the tolerance of their fits."""
    model = MODELS[name]().fit(COUNTS, TARGET)
    assert host.taken > 0
    decide = getattr(model, "decision_function", model.predict)
    found = decide(OTHERS)
    with device("cpu"):
        again = MODELS[name]().fit(COUNTS, TARGET)
        np.testing.assert_allclose(decide(OTHERS), found, atol=1e-9)
        of_cores = getattr(again, "decision_function", again.predict)(OTHERS)
    np.testing.assert_allclose(found, of_cores, atol=5e-3)


def test_low_rank_is_computed_in_every_pass(host: HostDevice) -> None:
    """Of classes, folds, C and ranks, with Hessians, a line search and what is held out."""
    y = np.where(TARGET > 1, 1, TARGET)
    how: Any = {"C": [0.1, 1e4], "cv": 3, "kernels": HEAT, "search": "full"}
    how["low_rank"] = dhsk.LowRank([20, 40])
    found = dhsk.cross_validate(COUNTS, y, **how)
    taken = host.taken
    assert taken > 2 * 30  # passes of each rank
    with device("cpu"):
        expected = dhsk.cross_validate(COUNTS, y, **how)
    assert host.taken == taken
    for one, other in zip(found.rows, expected.rows, strict=True):
        assert one.score == pytest.approx(other.score, abs=5e-3)


def test_a_matrix_larger_than_working_sets(tmp_path: Path) -> None:
    """Combinations of columns at all rows are made on the device, and the fit is certified."""
    host = HostDevice(tmp_path, room=8 * 5000**2)  # the whole matrix may take half of it
    host.strip_bytes = 1 << 22
    X = RNG.random((5000, 6))
    y = (np.sin(4 * X @ np.arange(6)) > 0).astype(int)
    with device(host):
        model = dhsk.HeatSVC(C=10.0).fit(X, y)
    taken = host.taken
    with device("cpu"):
        again = dhsk.HeatSVC(C=10.0).fit(X, y)
    assert taken > 5
    assert model.kkt_violation_ <= 1e-3
    np.testing.assert_allclose(
        model.decision_function(X[:500]), again.decision_function(X[:500]), atol=5e-3
    )


def test_sparse_samples_and_other_kernels_stay_on_the_processor(host: HostDevice) -> None:
    """What a device does not compute needs no other call."""
    dhsk.compute_gram(csr_array(COUNTS * (COUNTS > 0.5)), "heat") @ np.ones(700)
    dhsk.PolynomialKernel(2, 1.0)(COUNTS)
    assert host.launched == 0


def test_samples_stay_on_the_device_for_further_passes(tmp_path: Path) -> None:
    """As long as the matrix lives, if they take a small share of it."""
    v, taken = np.ones(700), []
    for room in (1 << 34, 15 * COUNTS.nbytes):  # an eighth is less than rows and columns
        host = HostDevice(tmp_path, room=room)
        with device(host):
            G = dhsk.compute_gram(COUNTS, "heat")
            products = [G @ v for _ in range(2)]
            before = host.copied
            products.append(G @ v)
            taken.append(host.copied - before >= COUNTS.nbytes)
            np.testing.assert_array_equal(products[0], products[2])
        with device("cpu"):
            np.testing.assert_allclose(products[0], G @ v, rtol=ROUNDING)
    assert taken == [False, True]


def test_short_factors_have_their_bound() -> None:
    """Factors of 11 bits, cut off or rounded, and sums in float32: within what is said of TF32."""
    rng = np.random.default_rng(0)
    for dim in (3, 28, 784):
        rows = rng.random((200, dim)) ** 4
        rows = (rows / np.linalg.norm(rows, axis=1)[:, None]).astype(np.float32)
        cut = (rows.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
        off = np.abs(
            np.cumsum(cut[:100] * cut[100:], axis=1, dtype=np.float32)[:, -1].astype(float)
            - (rows[:100].astype(float) * rows[100:]).sum(axis=1)
        ).max()
        assert 2.0**-13 < off <= tf32_error(dim) < 2.2e-3


def test_a_device_without_room_says_so(tmp_path: Path) -> None:
    """With what is needed and what is there."""
    small = HostDevice(tmp_path, room=1000)
    G = dhsk.compute_gram(COUNTS, "heat")
    with device(small), pytest.raises(dhsk.BudgetError, match="samples of a group of tiles take"):
        G @ np.ones(700)
    refuse_too_large(small, 400, "rows")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:-1", ""])
def test_an_unknown_device_is_refused(name: str) -> None:
    """With the names that there are."""
    with pytest.raises(dhsk.InputError, match="device must be 'cpu', 'cuda' or"), device(name):
        pass


def test_a_device_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names what to install."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(dhsk.InputError, match=r'pip install "dhsk\[cuda\]"'), device("cuda:17"):
        pass


def test_the_environment_chooses_for_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block goes before it, and it is not looked at within one."""
    monkeypatch.setenv(VARIABLE, "abacus")
    with pytest.raises(dhsk.InputError, match="abacus"):
        current_device()
    assert chosen_device() is None
    with device("cpu"):
        assert current_device() is None
        assert chosen_device() == "cpu"
        assert call_on_device("cpu", chosen_device) == "cpu"
    monkeypatch.setenv(VARIABLE, "")
    assert current_device() is None


def test_a_device_travels_to_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers whose environment names a device that does not exist take that of the call."""
    monkeypatch.setenv(VARIABLE, "abacus")
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
        device("cpu"),
    ):
        G = dhsk.compute_gram(COUNTS, "heat", client=client)
        np.testing.assert_allclose(G @ np.ones(700), np.asarray(G).sum(axis=1), rtol=ROUNDING)


def test_a_gpu_pays_for_large_blocks_alone() -> None:
    """By rough rates; a block of 100 x 100 does not, one of 10,000 x 10,000 does."""
    pays = Device.pays
    assert not pays(None, 100 * 100 * 120, 8 * 100 * 100)  # type: ignore[arg-type]
    assert pays(None, 10_000**2 * 800, 8 * 10_000**2)  # type: ignore[arg-type]


def test_plan_says_what_a_device_takes(tmp_path: Path) -> None:
    """The limit of whole matrices is that of fits, and a pass takes no more than is said."""
    host = HostDevice(tmp_path, room=8 * 2 * 300**2)  # half of it for 300 samples
    kernel = dhsk.GaussianKernel(1.0)
    rows = RowsOnDevice(kernel, COUNTS, exact=True)
    assert most_whole(host, COUNTS.itemsize) == 300
    plan = make_plan(GramSides(700, 20), Resources(1, 1, 1 << 30), tile=64)
    with device(host):
        assert rows.whole(np.arange(300)) is not None
        assert rows.whole(np.arange(301)) is None
        lines = dict(device_lines(plan, kernel))
    assert lines["exact SVM on it"] == (
        "its matrix, 3.74 MiB, does not fit and is fetched in blocks; at most 300 samples fit"
    )
    # 64 rows of 160 bytes, as many as two strips of 64 KiB hold, on both sides, and two strips
    assert pass_bytes(host, 160, plan.tiling) == 160 * (700 + 700) + 2 * host.strip_bytes
    assert lines["G @ v on it"] == "693.50 kiB, 2 tasks at a time"


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("kernel", "entries", "what"),
    [
        (dhsk.PolynomialKernel(2, 1.0), None, "this kernel stays"),
        (HEAT, 100, "sparse samples stay"),
    ],
)
def test_plan_says_what_stays_on_the_processor(kernel: Any, entries: int | None, what: str) -> None:
    """Kernels that no device computes, and sparse samples."""
    plan = make_plan(GramSides(700, 20, nnz=entries), Resources(1, 1, 1 << 30))
    assert dict(device_lines(plan, kernel))["on it"] == f"nothing: {what} on the processor"
    with device("cpu"):
        assert device_lines(plan, kernel) == []
