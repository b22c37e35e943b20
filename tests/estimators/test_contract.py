"""scikit-learn's contract: every check of every estimator passes, at the default tolerances."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import dhsk

GAUSSIAN = dhsk.GaussianKernel(1.0)

DEFAULTS = [
    dhsk.HypersphericalMap(),
    dhsk.ProjectiveMap(),
    dhsk.TfidfMap(),
    dhsk.HeatSVC(),
    dhsk.HeatKernelRidge(),
    dhsk.HeatGaussianProcessRegressor(),
    dhsk.HeatOneClassSVM(),
    dhsk.HeatKernelPCA(),
    dhsk.HeatKernelDensity(),
    dhsk.HeatKernelNeighbors(),
    dhsk.HeatSpectralClustering(),
    dhsk.NystromFeatures(),
    dhsk.NystromSVC(),
    dhsk.NystromRidge(),
]

QUICK = [
    dhsk.HypersphericalMap(),
    dhsk.ProjectiveMap(),
    dhsk.TfidfMap(),
    dhsk.HeatSVC(time_scale=0.5),
    dhsk.HeatKernelRidge(kernel=GAUSSIAN),
    dhsk.HeatGaussianProcessRegressor(kernel=GAUSSIAN),
    dhsk.HeatOneClassSVM(kernel=GAUSSIAN),
    dhsk.HeatKernelPCA(kernel=GAUSSIAN),
    dhsk.HeatKernelDensity(0.5),
    dhsk.HeatKernelNeighbors(kernel=GAUSSIAN),
    dhsk.HeatSpectralClustering(kernel=GAUSSIAN),
    dhsk.NystromFeatures(kernel=GAUSSIAN),
    dhsk.NystromSVC(kernel=GAUSSIAN),
    dhsk.NystromRidge(kernel="gaussian"),
]
"""At an automatic time the samples of each check have a kernel of their own, which is proven."""

OTHERS = [
    dhsk.HeatSVC(),
    dhsk.HeatSVC(sphere_map="projective"),
    dhsk.HeatSVC(kernel=GAUSSIAN),
    dhsk.HeatSVC(kernel="gaussian"),
    dhsk.HeatSVC(kernel=dhsk.SmoothedKernel(dhsk.ParametrixKernel(0.1), 0.5)),
    # One vs rest, as votes of pairs may tie, where labels are not those of the largest decision.
    dhsk.HeatSVC(kernel=dhsk.AveragedKernel(dhsk.ParametrixKernel(0.1), 0.5, 4), multi_class="ovr"),
    dhsk.HeatKernelRidge(),
    dhsk.HeatGaussianProcessRegressor(),
    dhsk.HeatGaussianProcessRegressor(time_scale=1.0, solver="iterative", preconditioner_rank=5),
    dhsk.HeatOneClassSVM(),
    dhsk.HeatOneClassSVM(sphere_map="projective"),
    dhsk.HeatKernelPCA(),
    dhsk.HeatKernelNeighbors(),
    dhsk.HeatKernelNeighbors(mode="connectivity", kernel="linear"),
    dhsk.HeatSpectralClustering(),
    dhsk.HeatSpectralClustering(sphere_map="projective", assign_labels="cluster_qr"),
    dhsk.NystromFeatures(),
    dhsk.NystromFeatures(kernel=GAUSSIAN, selection="uniform", oversampling=1.5),
    dhsk.NystromFeatures(kernel=GAUSSIAN, selection="kmeans", oversampling=1.5),
    dhsk.NystromRidge(),
    dhsk.NystromSVC(time_scale=0.5, random_state=0),
    dhsk.NystromSVC(),
    # By repeats and by weights, solutions differ by the tolerance: probabilities by 3e-5 at 1e-4.
    dhsk.NystromSVC(kernel=GAUSSIAN, loss="logistic", selection="uniform", tol=1e-9),
]


def blobs_of_counts(*args: Any, **options: Any) -> Any:
    """Blobs without negative values, as scikit-learn's other checks make them by the tag."""
    X, y, *rest = make_blobs(*args, **options)
    return X - X.min(), y, *rest


def at_start(*args: Any, options: Any, **others: Any) -> Any:
    """Minimise without a step: of zero iterations scipy would still take one."""
    return minimize(*args, options=options | {"gtol": np.inf}, **others)


@parametrize_with_checks(QUICK)
@pytest.mark.filterwarnings("ignore")  # the checks provoke some
def test_scikit_learns_contract(
    estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No check is left out.

    Four of them forget the tag `positive_only`: check_class_weight_classifiers,
    check_outliers_train, check_outliers_fit_predict and check_clustering, which adds negative noise
    itself, so that it gets another map. Each time has a kernel of its own, which is proven first:
    automatic times have one digit, so that checks share them, and a Gaussian process takes one step
    of its search, of a time none.
    """
    monkeypatch.setattr("dhsk.estimators.automatic.DIGITS", 1)
    monkeypatch.setattr("dhsk.estimators.evidence.MOST_ITERATIONS", 1)
    if str(estimator) == "HeatGaussianProcessRegressor()":
        monkeypatch.setattr("dhsk.estimators.evidence.minimize", at_start)
    if get_tags(estimator).input_tags.positive_only:
        monkeypatch.setattr(estimator_checks, "make_blobs", blobs_of_counts)
        if check.func is estimator_checks.check_clustering:
            estimator.set_params(sphere_map="projective")
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_contract_of_other_parameters(
    estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor of the defaults, and of other kernels, maps and losses."""
    test_scikit_learns_contract(estimator, check, monkeypatch)


@pytest.mark.parametrize("estimator", QUICK + OTHERS, ids=str)
def test_negative_samples_are_refused_where_the_tag_says_so(estimator: Any) -> None:
    """And only there."""
    X, y = make_blobs(30, centers=2, random_state=0)
    if not get_tags(estimator).input_tags.positive_only:
        estimator.fit(X, y)
        return
    with pytest.raises(ValueError, match=r"^Negative values in data passed to \w+: .*row \d+"):
        estimator.fit(X - np.abs(X).max(), y)


@pytest.mark.parametrize("estimator", DEFAULTS, ids=lambda one: type(one).__name__)
def test_a_gram_matrix_is_refused(estimator: Any) -> None:
    """As its rows would be taken for samples; so by the other doors."""
    X, y = np.random.default_rng(0).random((12, 3)), np.arange(12) % 2
    G = dhsk.compute_gram(X, "heat")
    for given in (G, G.centered()):
        with pytest.raises(dhsk.InputError, match="its values are not samples"):
            clone(estimator).fit(given, y)
        for door in (dhsk.open_samples, lambda found: dhsk.compute_gram(found, "heat")):
            with pytest.raises(dhsk.InputError, match="its values are not samples"):
                door(given)
