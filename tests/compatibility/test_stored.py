"""What dhsk keeps on disk opens and gives what it gave; of another schema it is refused."""

import importlib.util
import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dhsk
from dhsk import NystromSVC
from dhsk.gram.storage.descriptions import checksum_of
from dhsk.nystrom.feature_store import FeatureStore

HERE = Path(__file__).parent
FILES = HERE / "files"
ROUNDING = 1e-12
"""Sums of 48 products of numbers about 1 in another order: other processors, another BLAS."""


def _load(name: str) -> Any:
    """A module beside this one; the tests are no package when dhsk is installed."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


write = _load("write")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A copy of the files."""
    return Path(shutil.copytree(FILES, tmp_path / "kept"))


@pytest.fixture(scope="module")
def values() -> Any:
    """What they gave."""
    return np.load(FILES / "values.npz")


def test_a_gram_store_has_the_same_bits(kept: Path, values: Any) -> None:
    """Its checksums hold, and resuming it changes nothing."""
    G = dhsk.open_gram(kept / "gram")
    assert G.verify() == 6
    np.testing.assert_array_equal(np.asarray(G), values["gram"])
    X, _ = write.samples()
    again = dhsk.compute_gram(X, "heat", store=kept / "gram", tile=16)
    np.testing.assert_array_equal(np.asarray(again), values["gram"])


def test_models_decide_as_they_did(kept: Path, values: Any) -> None:
    """Decisions and probabilities of both models."""
    X, _ = write.samples()
    exact = dhsk.HeatSVC.load(kept / "exact.dhsk")
    low_rank = NystromSVC.load(kept / "low-rank.dhsk")
    for found, name in (
        (exact.decision_function(X), "exact"),
        (exact.predict_proba(X), "probability"),
        (low_rank.decision_function(X), "low_rank"),
    ):
        np.testing.assert_allclose(found, values[name], rtol=0, atol=ROUNDING)


def files_of(folder: Path) -> dict[Path, bytes]:
    """All files of a store."""
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_feature_store_is_complete(kept: Path, values: Any) -> None:
    """The same features write nothing into it, here and on another processor."""
    X, _ = write.samples()
    before = files_of(kept / "features")
    Z = zarr.open_array(str(kept / "features"), mode="r")
    np.testing.assert_array_equal(Z[:], values["features"])
    model = dhsk.NystromFeatures(8, time_scale=1.0, random_state=0).fit(X)
    said, found = Z.attrs["dhsk_features"]["landmarks"], model._features.described()["landmarks"]
    other = pytest.warns(UserWarning, match="was begun on another machine")
    with nullcontext() if said == found else other:
        model.write(X, kept / "features")
    assert files_of(kept / "features") == before


@pytest.mark.parametrize("name", ["cv", "cv-rank"])
def test_results_open_and_have_a_report(kept: Path, name: str) -> None:
    """With the scores and the winner that they had."""
    said = json.loads((kept / f"{name}.json").read_text())
    found = dhsk.CvResult.from_json(kept / f"{name}.json")
    assert (
        json.loads(json.dumps(found.data)) == {"weights": [], "untested_classes": []} | said
    )  # added later
    assert found.best_score_ == said["best"]["mean"]
    found.report(kept / "report.html")
    assert "<svg" in (kept / "report.html").read_text()


def rewrite_model(file: Path) -> None:
    """Give a model the number of another schema."""
    arrays = dict(np.load(file))
    header = json.loads(arrays["header"].tobytes()) | {"schema": 1}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with file.open("wb") as opened:
        np.savez(opened, **arrays)


def rewrite_store(file: Path) -> None:
    """Give a store the number of another schema."""
    content = json.loads(file.read_text())
    attributes = content["attributes"]
    described = attributes["dhsk" if "dhsk" in attributes else "dhsk_features"]
    described["schema"] = 1
    attributes["dhsk_crc32c"] = checksum_of(described)
    file.write_text(json.dumps(content))


def rewrite_results(file: Path) -> None:
    """Give results the number of another schema."""
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": 1}))


def features_of(file: Path) -> None:
    """Verify a store of features."""
    FeatureStore.open(file.parent).check_sound()


@pytest.mark.parametrize(
    ("file", "rewrite", "read", "message"),
    [
        (
            "gram/zarr.json", rewrite_store, lambda file: dhsk.open_gram(file.parent),
            "it has schema 1, this version reads 3: compute it again",
        ),
        (
            "features/zarr.json", rewrite_store, features_of,
            "holds features of schema 1, this version reads 2: compute them again",
        ),
        ("exact.dhsk", rewrite_model, dhsk.HeatSVC.load, "reads schema 2: train it again"),
        ("low-rank.dhsk", rewrite_model, NystromSVC.load, "reads schema 2: train it again"),
        (
            "cv.json", rewrite_results, dhsk.CvResult.from_json,
            "have schema 1, but this version of dhsk reads schema 3: compute them again",
        ),
    ],
)  # fmt: skip
def test_another_schema_is_refused_with_what_to_do(
    kept: Path, file: str, rewrite: Any, read: Callable[[Path], Any], message: str
) -> None:
    """In one sentence, and nothing is changed."""
    read(kept / file)
    rewrite(kept / file)
    before = files_of(kept)
    with pytest.raises(dhsk.DhskError, match=message) as caught:
        read(kept / file)
    assert "\n" not in str(caught.value)
    assert files_of(kept) == before
