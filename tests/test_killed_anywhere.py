"""Killed after each entry of its journal, every method resumes to the bits of a whole run."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.models.fit_plan import plan_fits
from dhsk.solvers import eigenpairs
from tests.killed import KilledError, kill_after

N = 150
RNG = np.random.default_rng(0)
Y = np.arange(N) % 3
X = RNG.poisson(2.0 + 1.5 * (Y[:, None] == np.arange(12) % 3)) + 1.0
TARGETS = X[:, 0] - X[:, 1] + RNG.normal(size=N)
HEAT = dhsk.HeatKernel.at_scale(12, 0.7)

Run = Callable[[Path | None], Any]
"""What a method finds with a journal in a folder."""


def gaussian_process(time: float | str, probes: int) -> Run:
    """A fit; with 300 probes numpy reuses temporary arrays, as with thousands of samples."""

    def run(journal: Path | None) -> Any:
        model = dhsk.HeatGaussianProcessRegressor(
            time, 0.1, normalize_y=True, solver="iterative", n_probes=probes,
            preconditioner_rank=20, tol=0.01, journal=journal,
        )  # fmt: skip
        model.fit(X, TARGETS)
        return model.dual_coef_, model.log_marginal_likelihood_value_, model.time_scale_

    return run


def deviations(journal: Path | None) -> Any:
    """Standard deviations of a Gaussian process."""
    model = dhsk.HeatGaussianProcessRegressor(0.7, 0.1, solver="iterative", preconditioner_rank=9)
    model.fit(X[:100], TARGETS[:100]).journal = journal
    return model.predict(X[100:], return_std=True)


def ridge(journal: Path | None) -> Any:
    """Kernel ridge regression of many targets."""
    model = dhsk.HeatKernelRidge(0.01, tol=0.01, preconditioner_rank=10, journal=journal)
    return model.fit(X, X[:, :3] * TARGETS[:, None]).dual_coef_


def svc(journal: Path | None) -> Any:
    """Exact SVMs of pairs of classes."""
    return bits_of_model(dhsk.HeatSVC(C=10.0).fit_samples(X, Y, journal=journal))


def against_the_rest(journal: Path | None) -> Any:
    """Exact SVMs of each class."""
    model = dhsk.HeatSVC(C=10.0, multi_class="ovr")
    return bits_of_model(model.fit_samples(X, Y, journal=journal))


def nystrom(journal: Path | None) -> Any:
    """Landmarks, and Newton's method."""
    model = dhsk.NystromSVC(30, C=10.0, time_scale=0.7, random_state=0)
    return bits_of_model(model.fit_samples(X, Y, journal=journal))


def features(journal: Path | None) -> Any:
    """Landmarks, and the leading components of their features."""
    model = dhsk.NystromFeatures(30, oversampling=2.0, time_scale=0.7, random_state=0)
    model.fit_samples(X, journal=journal)
    return model.landmarks_, model.normalization_, model.trace_error_


def components(journal: Path | None) -> Any:
    """Principal components from passes over a matrix."""
    model = dhsk.HeatKernelPCA(3, journal=journal).fit(X)
    return model.eigenvalues_, model.eigenvectors_


def clusters(journal: Path | None) -> Any:
    """Spectral clusters."""
    model = dhsk.HeatSpectralClustering(3, journal=journal).fit(X)
    return model.labels_, model.embedding_


def diffusion(journal: Path | None) -> Any:
    """A diffusion map, of tiles."""
    return dhsk.diffusion_map(dhsk.compute_gram(X, HEAT, tile=50), 3, journal=journal)


def discrepancies(journal: Path | None) -> Any:
    """Kernel mean discrepancies by passes of three groups of tiles."""
    grams = dhsk.compute_gram(X, [HEAT, dhsk.CosineKernel()], tile=25)
    found = dhsk.maximum_mean_discrepancy(grams, Y % 2, 30, memory=8 * N, journal=journal)
    return sorted(vars(found).items())


def grid(some: slice = slice(None), **options: Any) -> Run:
    """A cross-validation of some samples."""

    def run(journal: Path | None) -> Any:
        how: dict[str, Any] = {"cv": 2, "C": [0.1, 1.0]} | options
        own = {name: how.pop(name) for name in ("disk", "baselines") if name in how}
        out = dhsk.Output(journal, **own)
        found = dhsk.cross_validate(X[some], Y[some], out=out, **how)
        return [row | {"seconds": 0} for row in found.results_], found.data["confusion"]

    return run


def bits_of_model(fitted: Any) -> Any:
    """All arrays of a model's file."""
    arrays = fitted.model_.to_arrays()[1]
    return {name: np.asarray(arrays[name]).tobytes() for name in sorted(arrays)}


LOW_RANK = dhsk.LowRank(20)
METHODS: dict[str, Run] = {
    "Gaussian process": gaussian_process(0.7, 300),
    "Gaussian process of any time": gaussian_process("auto", 4),
    "standard deviations": deviations,
    "ridge": ridge,
    "exact": svc,
    "against the rest": against_the_rest,
    "against the rest on working sets": against_the_rest,
    "working sets": svc,
    "low rank": nystrom,
    "features": features,
    "components": components,
    "clusters": clusters,
    "diffusion map": diffusion,
    "discrepancies": discrepancies,
    "grid": grid(kernels=["cosine", HEAT]),
    "grid against the rest": grid(kernels=["cosine", HEAT], multi_class="ovr"),
    "grid in parts": grid(slice(36), kernels=["cosine", HEAT]),
    "grid on working sets": grid(kernels=["cosine", HEAT], disk="20kB"),
    "grid of low rank": grid(kernels=["cosine", HEAT], low_rank=LOW_RANK),
    "search": grid(slice(40), time_scale="auto", C=1.0, baselines=False),
    "search by halving": grid(slice(120), C=1.0, baselines=False),
}
"""Baselines, of which there are as many as the clock allows, are in the other grids."""


MOST_KILLS = 12
"""Of methods with more entries, so many kills are spread over all."""


@pytest.fixture
def entries_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry is written, not one in a while; few samples are multiplied in passes too."""
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    monkeypatch.setattr("dhsk.execution.kept_pass.UNKEPT_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.nystrom.kept_values.UNKEPT_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.validation.fold_fits.UNKEPT_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.solvers.dual.CHANGES_OF_TASK", 1)
    monkeypatch.setattr("dhsk.solvers.dual.STEPS_OF_TASK", 1)
    monkeypatch.setattr("dhsk.solvers.whole.FINE_SAMPLES", 32)
    monkeypatch.setattr(eigenpairs, "SMALL", 20)
    monkeypatch.setattr("dhsk.estimators.posterior.AT_ONCE", 25)
    monkeypatch.setattr("dhsk.estimators.evidence.MOST_ITERATIONS", 1)


def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Working sets for these few samples."""
    for name, count in (("FIRST", 32), ("LEAST", 32), ("SPARE", 8), ("JOINING", 16)):
        monkeypatch.setattr(f"dhsk.solvers.working_set.{name}", count)
    monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 32)
    monkeypatch.setattr("dhsk.models.pair_fits.KEPT_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.models.pair_fits.DECIDED_ENTRIES", 4000)


def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids in parts of 12 samples."""

    def planned(*args: Any, **options: Any) -> Any:
        return replace(plan_fits(*args, **options), whole=False, room=12**2 * 8)

    monkeypatch.setattr("dhsk.validation.exact.plan_fits", planned)


def bits(found: Any) -> Any:
    """Bytes of arrays anywhere in what was found, and all else as it is."""
    match found:
        case np.ndarray():
            return found.dtype.str, found.shape, found.tobytes()
        case list() | tuple():
            return [bits(one) for one in found]
        case _:
            return repr(found)


QUICK = {
    "exact",
    "low rank",
    "features",
    "standard deviations",
    "discrepancies",
    "grid",
    "grid of low rank",
}
"""Methods of few entries."""


@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in METHODS],
)
@pytest.mark.usefixtures("entries_of_all")
def test_killed_after_each_entry_it_resumes_to_the_same_bits(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once after each, from the beginning; a journal itself changes no bit."""
    if method.endswith("working sets"):
        small_sets(monkeypatch)
    if method == "against the rest on working sets":
        monkeypatch.setattr("dhsk.models.pair_fits.way_of", lambda *_, **__: "working sets")
    if method == "grid in parts":
        in_parts(monkeypatch)
    monkeypatch.setattr("dhsk.validation.halving.FEW", 100)
    monkeypatch.setattr("dhsk.validation.halving.FIRST", (24, 24))
    monkeypatch.setattr("dhsk.validation.halving.MOST_SHARE", 10.0)
    run = METHODS[method]
    whole = bits(run(None))
    with monkeypatch.context() as patched:
        names = kill_after(patched, 0)
        assert bits(run(tmp_path / "whole")) == whole
    assert len(names) > 1
    for last in np.unique(np.linspace(1, len(names), MOST_KILLS, dtype=int)).tolist():
        with monkeypatch.context() as patched:
            kill_after(patched, last)
            with pytest.raises(KilledError):
                run(tmp_path / str(last))
        assert bits(run(tmp_path / str(last))) == whole, f"killed after entry {last}"
