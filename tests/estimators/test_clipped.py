"""Values below 0 in prediction, where the samples of the fit were counts."""

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import dhsk
from dhsk.commands.cli import commands

SAID = (
    r"2 of the values of X are below 0, the least -0.5 \(row 2, column 3, counted from 0\), .* "
    "they count as 0"
)

FITS = {
    "classifier": (dhsk.HeatSVC(), "decision_function"),
    "low rank": (dhsk.NystromSVC(10, random_state=0), "predict"),
    "one class": (dhsk.HeatOneClassSVM(), "score_samples"),
    "ridge": (dhsk.HeatKernelRidge(), "predict"),
    "gaussian process": (dhsk.HeatGaussianProcessRegressor(1.0, 0.1), "predict"),
    "pca": (dhsk.HeatKernelPCA(), "transform"),
    "density": (dhsk.HeatKernelDensity(0.5), "score_samples"),
    "neighbors": (dhsk.HeatKernelNeighbors(3), "transform"),
    "features": (dhsk.NystromFeatures(10, random_state=0), "transform"),
    "map": (dhsk.HypersphericalMap(), "transform"),
    "smoothed": (
        dhsk.HeatKernelRidge(kernel=dhsk.SmoothedKernel(dhsk.HeatKernel(6, 0.3), 0.5)),
        "predict",
    ),
    "averaged": (
        dhsk.HeatKernelRidge(kernel=dhsk.AveragedKernel(dhsk.HeatKernel(6, 0.3), 0.5, 4)),
        "predict",
    ),
}


@pytest.fixture
def samples(rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Counts, labels, new samples of which two values are below 0, and these with 0 there."""
    X, y = rng.poisson(3.0, (40, 6)) + 1.0, np.arange(40) % 2
    new = X[:10] + 0.5
    new[2, 3], new[7, 0] = -0.5, -1e-17
    return X, y, new, np.maximum(new, 0.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_values_below_zero_count_as_zero(name: str, sparse: bool, samples: Any) -> None:
    """With one warning that counts them, at the line of the user."""
    (estimator, method), (X, y, new, clipped) = FITS[name], samples
    model = estimator.fit(X, y)
    given = csr_array(new) if sparse else new
    with pytest.warns(dhsk.InputWarning, match=SAID) as caught:
        found = getattr(model, method)(given)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    expected = getattr(model, method)(csr_array(clipped) if sparse else clipped)
    assert (found != expected).sum() == 0
    with pytest.raises(dhsk.InputError, match=r"row 2"):
        estimator.fit(new, y[:10])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_z_scores_are_refused(name: str, sparse: bool, samples: Any) -> None:
    """Where counts were fitted: clipped, they would be other samples."""
    (estimator, method), (X, y, new, _) = FITS[name], samples
    wrong = new - new.mean(axis=0)
    model = estimator.fit(X, y)
    with pytest.raises(dhsk.InputError, match=r"50% of all values by size: .* z-scores for counts"):
        getattr(model, method)(csr_array(wrong) if sparse else wrong)


def test_z_scores_are_refused_before_features_are_written(samples: Any, tmp_path: Path) -> None:
    """The folder is not even made; and in the chunks of a Dask array."""
    X, _, new, _ = samples
    wrong = new - new.mean(axis=0)
    model = dhsk.NystromFeatures(10, random_state=0).fit(X)
    with pytest.raises(dhsk.InputError, match="other features than those of the fit"):
        model.write(wrong, tmp_path / "features")
    assert not (tmp_path / "features").exists()
    with pytest.raises(dhsk.InputError, match="other features than those of the fit"):
        model.transform(da.from_array(wrong, chunks=(4, 6))).compute()


def test_standard_deviations_are_clipped_too(samples: Any) -> None:
    """Whose samples are mapped a second time."""
    X, y, new, clipped = samples
    model = dhsk.HeatGaussianProcessRegressor(1.0, 0.1).fit(X, y)
    with pytest.warns(dhsk.InputWarning, match=SAID) as caught:
        found = model.predict(new, return_std=True)
    assert len(caught) == 1
    np.testing.assert_array_equal(found, model.predict(clipped, return_std=True))


def test_features_in_chunks_are_clipped(samples: Any, tmp_path: Path) -> None:
    """Written, and lazily, where nothing warns."""
    X, _, new, clipped = samples
    model = dhsk.NystromFeatures(10, random_state=0).fit(X)
    expected = model.transform(clipped)
    with pytest.warns(dhsk.InputWarning, match="2 of the values of .* are below 0") as caught:
        written = model.write(new, tmp_path / "features")
    assert len(caught) == 1
    np.testing.assert_array_equal(written, expected)
    lazy = model.transform(da.from_array(new, chunks=(4, 6)))
    np.testing.assert_allclose(lazy, expected, rtol=1e-12)


def test_maps_of_both_signs_take_values_as_they_are(samples: Any) -> None:
    """And so do kernels that need no map."""
    X, y, new, clipped = samples
    for options in ({"sphere_map": "projective"}, {"kernel": dhsk.GaussianKernel(3.0)}):
        model = dhsk.HeatSVC(**options).fit(X, y)
        assert (model.decision_function(new) != model.decision_function(clipped)).any()


@pytest.mark.parametrize("value", [np.nan, -np.inf, np.inf])
def test_values_that_are_not_finite_are_refused(value: float, samples: Any) -> None:
    """No number below 0 is made of them."""
    X, y, new, _ = samples
    new[2, 3] = value
    with pytest.raises(dhsk.InputError, match="row 2, column 3"):
        dhsk.HeatSVC().fit(X, y).predict(new)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*are below 0:dhsk.InputWarning")
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_scalers_go_before_classifiers(load: Any) -> None:
    """No fold fails where the others do not hold the least value of a column."""
    X, y = load(return_X_y=True)
    model = make_pipeline(MinMaxScaler(), dhsk.HeatSVC())
    scores = cross_val_score(model, X, y, cv=5, error_score="raise")
    assert scores.mean() > 0.93


def test_the_command_clips_and_says_so(
    samples: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, whatever the number of blocks."""
    monkeypatch.chdir(tmp_path)
    X, y, new, clipped = samples
    np.save("new.npy", new)
    np.save("clipped.npy", clipped)
    dhsk.HeatSVC().fit(X, y).save("model")
    with pytest.warns(dhsk.InputWarning, match=r"2 of the values of new.npy") as caught:
        told = CliRunner().invoke(commands, ["predict", "model", "new.npy", "--out", "new.csv"])
    assert (told.exit_code, len(caught)) == (0, 1)
    quiet = CliRunner().invoke(commands, ["predict", "model", "clipped.npy", "--out", "clip.csv"])
    assert quiet.exit_code == 0
    assert Path("new.csv").read_text() == Path("clip.csv").read_text()
