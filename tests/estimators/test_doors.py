"""Every way to fit a kernel to samples takes them by the same map: the same predictions."""

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, LinearSVC, OneClassSVM

import dhsk
from dhsk.__main__ import DONE, main
from dhsk.kernels import NAMED, Kernel

DIM, TIME_SCALE = 64, 0.5

TOL = 1e-9
"""Of all solvers, so that what they find agrees to `CLOSE` of the largest."""
CLOSE = 1e-5

KERNELS: dict[str, tuple[Kernel, list[str]]] = {
    kernel.name: (kernel, words)
    for kernel, words in (
        (dhsk.HeatKernel.at_scale(DIM, TIME_SCALE), ["--time-scale", str(TIME_SCALE)]),
        (dhsk.ParametrixKernel(0.05), ["--time", "0.05"]),
        (dhsk.CosineKernel(), []),
        (dhsk.LinearKernel(), []),
        (dhsk.GaussianKernel(1.5), ["--sigma", "1.5"]),
        (dhsk.PolynomialKernel(2, 1.0), ["--degree", "2", "--offset", "1"]),
        (dhsk.SmoothedKernel(dhsk.HeatKernel.at_scale(DIM, TIME_SCALE), 0.1), []),
        (dhsk.AveragedKernel(dhsk.HeatKernel.at_scale(DIM, TIME_SCALE), 0.1, 3), []),
    )
}
"""Kernels, and the words that give them on the command line, if any can."""

by_kernel = pytest.mark.parametrize("kernel", [k for k, _ in KERNELS.values()], ids=list(KERNELS))
of_a_command = pytest.mark.parametrize("name", [name for name in KERNELS if name in NAMED])


def digits() -> tuple[Any, Any, Any]:
    """Training samples, their labels, and other samples; grey values from 0 to 1."""
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:150] / 16, y[:150], X[150:240] / 16


def matrices(kernel: Kernel) -> tuple[Any, Any]:
    """Gram matrices of the training samples, and of the others with these, without a map named."""
    X, _, test = digits()
    return dhsk.compute_gram(X, kernel)[:, :], dhsk.compute_gram(test, kernel, X)[:, :]


def assert_close(found: Any, expected: Any) -> None:
    """The same numbers to `CLOSE` of the largest."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE * np.abs(expected).max())


@pytest.mark.slow
@by_kernel
def test_exact_svm(kernel: Kernel, tmp_path: Path) -> None:
    """Estimator, saved and loaded, on a Gram matrix, cross-validated, and scikit-learn's."""
    X, y, test = digits()
    model = dhsk.HeatSVC(2.0, kernel=kernel, tol=TOL).fit(X, y)
    decisions = model.decision_function(test)
    K, K_test = matrices(kernel)
    precomputed = SVC(C=2.0, kernel="precomputed", tol=TOL).fit(K, y)
    assert_close(decisions, precomputed.decision_function(K_test))
    stored = dhsk.HeatSVC(2.0, kernel=kernel, tol=TOL, store=tmp_path / "g").fit(X, y)
    assert_close(stored.decision_function(test), decisions)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(
        dhsk.HeatSVC.load(tmp_path / "m").decision_function(test), decisions
    )
    chosen = dhsk.cross_validate(
        X, y, kernels=[kernel], C=2.0, cv=3, fit=dhsk.Fitting(tol=TOL), refit=True
    ).model_
    pairs = chosen.decisions(chosen.row_map(test))
    assert_close(pairs, model.model_.decisions(model.model_.row_map(test)))


@pytest.mark.slow(beyond=2)
@by_kernel
def test_low_rank_svm(kernel: Kernel, tmp_path: Path) -> None:
    """All samples are landmarks, so it is scikit-learn's linear one on a root of the matrix."""
    X, y, test = digits()
    made = partial(dhsk.NystromSVC, len(X), 2.0, kernel=kernel, dtype="float64", tol=TOL)
    model = made(random_state=0).fit(X, y)
    decisions = model.decision_function(test)
    K, K_test = matrices(kernel)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept])
    linear = LinearSVC(C=2.0, tol=TOL, max_iter=100_000, dual=False).fit(K @ root, y)
    assert_close(decisions, linear.decision_function(K_test @ root))
    model.save(tmp_path / "m")
    loaded = dhsk.NystromSVC.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.decision_function(test), decisions)
    chosen = dhsk.cross_validate(
        X,
        y,
        kernels=[kernel],
        C=2.0,
        low_rank=dhsk.LowRank(len(X)),
        cv=3,
        fit=dhsk.Fitting(tol=1e-6),
        refit=True,
    ).model_
    found = chosen.predict(chosen.row_map(test))
    np.testing.assert_array_equal(found, model.predict(test))


@by_kernel
def test_low_rank_features(kernel: Kernel) -> None:
    """Of all samples as landmarks their inner products are the kernel."""
    X, _, test = digits()
    features = dhsk.NystromFeatures(kernel=kernel, selection=np.arange(len(X))).fit(X)
    K, K_test = matrices(kernel)
    assert_close(features.transform(X) @ features.transform(X).T, K)
    assert_close(features.transform(test) @ features.transform(X).T, K_test)


@by_kernel
def test_ridge_and_one_class(kernel: Kernel) -> None:
    """They predict what scikit-learn's do of `compute_gram`."""
    X, y, test = digits()
    K, K_test = matrices(kernel)
    ridge = dhsk.HeatKernelRidge(0.5, kernel=kernel, tol=TOL, fit_intercept=False).fit(X, y)
    assert_close(
        ridge.predict(test), KernelRidge(alpha=0.5, kernel="precomputed").fit(K, y).predict(K_test)
    )
    one = dhsk.HeatOneClassSVM(0.3, kernel=kernel, tol=TOL).fit(X)
    other = OneClassSVM(nu=0.3, kernel="precomputed", tol=TOL).fit(K)
    assert_close(one.score_samples(test), other.score_samples(K_test))


@pytest.mark.slow(beyond=7)
@of_a_command
@pytest.mark.parametrize("rank", [None, 150])
def test_commands(
    name: str, rank: int | None, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """`dhsk train` and `dhsk predict` give the labels of the estimators."""
    X, y, test = digits()
    kernel, words = KERNELS[name]
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("t.npy", test)
    np.savetxt("y.txt", y, fmt="%d")
    exact: Callable[..., Any] = partial(dhsk.HeatSVC, tol=TOL)
    low_rank: Callable[..., Any] = partial(
        dhsk.NystromSVC, rank, dtype="float64", random_state=0, tol=TOL
    )
    how = [] if rank is None else ["--rank", rank, "--dtype", "float64"]
    options = ["--labels", "y.txt", "--C", 2, "--tol", TOL, "--kernel", name, *words, *how]
    for command in (["train", "x.npy", *options, "--out", "m"], ["predict", "m", "t.npy"]):
        with pytest.raises(SystemExit) as ended:
            main([*map(str, command), *(["--out", "p.csv"] if command[0] == "predict" else [])])
        assert ended.value.code == DONE, capsys.readouterr().err
    with Path("p.csv").open(newline="") as file:
        labels = [int(row["label"]) for row in csv.DictReader(file)]
    estimator = (exact if rank is None else low_rank)(C=2.0, kernel=kernel)
    assert labels == estimator.fit(X, y).predict(test).tolist()
