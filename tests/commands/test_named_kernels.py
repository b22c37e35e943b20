"""Names of kernels at every door, and AnnData objects."""

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dhsk
from dhsk.kernels import NAMED, parse_kernel

MEANT = {
    "heat": dhsk.HeatKernel.at_scale(12, 1.0),
    "parametrix": dhsk.ParametrixKernel(np.log(12) / 12),
    "cosine": dhsk.CosineKernel(),
    "linear": dhsk.LinearKernel(),
    "gaussian": None,  # depends on the samples
    "polynomial": dhsk.PolynomialKernel(2, 1.0),
}


@pytest.fixture
def samples(counts: Any) -> tuple[Any, Any]:
    """Two classes of 20 counts, and their labels."""
    X = counts(40, 12)
    X[20:, :4] += 3
    return X, np.repeat([0, 1], 20)


@pytest.mark.parametrize("sphere_map", ["identity", "hyperspherical"])
def test_the_width_of_a_name_is_that_of_mapped_samples(sphere_map: Any, samples: Any) -> None:
    """Half the features times the variance of what the map makes of the samples, squared."""
    X, y = samples
    mapped = X if sphere_map == "identity" else dhsk.hyperspherical_map(X)
    kernel = dhsk.GaussianKernel(float(f"{np.sqrt(mapped.var() * 12 / 2):.3g}"))
    assert dhsk.compute_gram(X, "gaussian", sphere_map=sphere_map).kernel == kernel
    grid = {"kernels": "gaussian", "sphere_map": sphere_map, "C": 1.0, "cv": 2}
    assert dhsk.cross_validate(X, y, **grid).best.sigma == kernel.sigma
    model = dhsk.HeatSVC(kernel="gaussian", sphere_map=sphere_map).fit(X, y)
    assert model.kernel_ == kernel


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("name", NAMED)
def test_a_name_is_the_kernel_of_the_default_parameters(name: str, samples: Any) -> None:
    """Every door makes of a name, at a time of 1, the kernel that --kernel makes of it."""
    X, y = samples
    kernel = MEANT[name] or dhsk.GaussianKernel(float(f"{np.sqrt(X.var() * 12 / 2):.3g}"))
    G = dhsk.compute_gram(X, name)
    assert G.kernel == kernel
    assert G.with_kernel(name).kernel == kernel
    assert [one.kernel for one in dhsk.compute_gram(X, [name, kernel])] == [kernel, kernel]
    for named, given in (
        (dhsk.HeatSVC(kernel=name, time_scale=1.0), dhsk.HeatSVC(kernel=kernel)),
        (
            dhsk.NystromSVC(20, kernel=name, time_scale=1.0, dtype="float64", random_state=0),
            dhsk.NystromSVC(20, kernel=kernel, dtype="float64", random_state=0),
        ),
        (
            dhsk.NystromFeatures(5, kernel=name, time_scale=1.0),
            dhsk.NystromFeatures(5, kernel=kernel),
        ),
        (dhsk.HeatKernelRidge(kernel=name, time_scale=1.0), dhsk.HeatKernelRidge(kernel=kernel)),
        (dhsk.HeatOneClassSVM(kernel=name, time_scale=1.0), dhsk.HeatOneClassSVM(kernel=kernel)),
    ):
        assert named.fit(X, y).kernel_ == given.fit(X, y).kernel_ == kernel
        tags = [one.__sklearn_tags__().input_tags.positive_only for one in (named, given)]
        assert tags[0] == tags[1]


@pytest.mark.slow(seconds=20)
def test_commands_make_the_same_gaussian(run: Any, samples: Any, address: str) -> None:
    """Of samples, of samples as a map makes them, and of stored inner products."""
    X, y = samples
    np.save("x.npy", X)
    np.savetxt("y.txt", y, fmt="%d")
    rows = dhsk.projective_map(X)
    widths = [float(f"{np.sqrt(Z.var() * 12 / 2):.3g}") for Z in (X, rows)]
    for width, words in zip(widths, ((), ("--map", "projective")), strict=True):
        kernel = dhsk.GaussianKernel(width)
        own = ("--kernel", "gaussian", *words)
        given, workers = ("--labels", "y.txt", *own), ("--cluster", address)
        assert run("gram", "x.npy", *own, "--out", f"g{width}", *workers)[0] == 0
        assert dhsk.open_gram(f"g{width}").kernel == kernel
        assert run("train", "x.npy", *given, "--out", f"m{width}")[0] == 0
        assert dhsk.HeatSVC.load(f"m{width}").kernel_ == kernel
        assert run("cv", "x.npy", *given, "--C", 1, "--out", f"o{width}", *workers)[0] == 0
        found = json.loads(Path(f"o{width}", "results.json").read_text())
        assert kernel.label in json.dumps(found)
    assert dhsk.GaussianKernel(widths[0]).label in run("plan", "x.npy", "--kernel", "gaussian")[1]
    stored = dhsk.compute_gram(X, "linear", store="l")
    assert stored.with_kernel("gaussian").kernel == dhsk.GaussianKernel(widths[0])
    result = dhsk.cross_validate(stored, y, kernels="gaussian", C=1)
    assert {row["label"] for row in result.summary_} == {dhsk.GaussianKernel(widths[0]).label}


@pytest.mark.slow
def test_cross_validation_takes_names_at_every_time(samples: Any, tmp_path: Any) -> None:
    """Heat and parametrix kernels at each time, the others once; one name needs no list."""
    X, y = samples
    found = dhsk.cross_validate(X, y, kernels=["parametrix", "linear"], time_scale=[0.5, 1], C=1)
    labels = {row["label"] for row in found.summary_}
    assert labels == {"heat s=0.5", "heat s=1", "parametrix s=0.5", "parametrix s=1", "linear"}
    found = dhsk.cross_validate(X, y, kernels="heat", C=1)
    assert {row["time_scale"] for row in found.summary_} == {0.7, 1.0, 1.4}


def test_estimators_keep_names_and_times(samples: Any, tmp_path: Any) -> None:
    """`time_scale` goes with the names of kernels that have a time; a file keeps both."""
    X, y = samples
    model = dhsk.HeatSVC(kernel="parametrix", time_scale=0.5).fit(X, y)
    assert model.kernel_ == parse_kernel("parametrix", 12, 0.5)
    model.save(tmp_path / "m")
    again = dhsk.HeatSVC.load(tmp_path / "m")
    assert (again.kernel, again.time_scale) == ("parametrix", 0.5)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("wrong", ["warmth", 5, ["heat", "warmth"]])
def test_other_words_are_refused_with_those_there_are(wrong: Any, samples: Any) -> None:
    """One sentence with all the names."""
    X, y = samples
    said = "kernel must be a kernel of dhsk or one of heat, parametrix, cosine, linear, gaussian"
    with pytest.raises(dhsk.InputError, match=said):
        dhsk.compute_gram(X, wrong)
    with pytest.raises(dhsk.InputError, match=said):
        dhsk.cross_validate(X, y, kernels=wrong)
    with pytest.raises(dhsk.InputError, match=said):
        dhsk.HeatSVC(kernel=wrong).fit(X, y)


def annotated(values: Any) -> Any:
    """AnnData object of a matrix; where anndata is not installed, one of the same parts."""
    genes = [f"gene {number}" for number in range(values.shape[1])]
    if find_spec("anndata") is None:
        cells = [str(number) for number in range(values.shape[0])]
        return SimpleNamespace(X=values, obs_names=cells, var_names=genes)
    import anndata

    adata = anndata.AnnData(values)
    adata.var_names = genes
    return adata


@pytest.mark.filterwarnings("default")  # what anndata says of pandas is not ours
@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
def test_anndata_objects_are_their_matrix(form: str, samples: Any) -> None:
    """Samples of an AnnData object are those of its X, with the names of its variables."""
    X, y = samples
    values = {"dense": np.asarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}[form](X)
    adata = annotated(values)
    expected = dhsk.compute_gram(X if form == "dense" else sparse.csr_array(X), "heat")
    found = dhsk.compute_gram(adata, "heat")
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    tried = [dhsk.cross_validate(given, y, time_scale=1, C=1).results_ for given in (adata, X)]
    assert [row["score"] for row in tried[0]] == [row["score"] for row in tried[1]]
    for door in (dhsk.HeatSVC(), dhsk.NystromFeatures(3), dhsk.HypersphericalMap()):
        with pytest.raises(dhsk.InputError, match=r"AnnData object.*adata\.X"):
            door.fit(adata, y)
