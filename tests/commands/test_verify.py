"""`dhsk verify` and `dhsk info` of feature stores and models."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.nystrom import feature_blocks, features
from dhsk.nystrom.feature_store import ATTRIBUTE, FeatureStore

N, DIM, ROWS = 150, 12, 16


@pytest.fixture
def X(counts: Any) -> Any:
    """Counts."""
    return counts(N, DIM)


@pytest.fixture
def model(X: Any) -> dhsk.NystromFeatures:
    """What gives the features."""
    return dhsk.NystromFeatures(20, random_state=0).fit(X)


@pytest.fixture
def store(
    X: Any, model: dhsk.NystromFeatures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Features in ten blocks."""
    monkeypatch.setattr(features, "ROWS", 8)
    monkeypatch.setattr(feature_blocks, "ROWS", 8)
    monkeypatch.setattr(feature_blocks, "CHUNK_BYTES", ROWS * 20 * 8)
    model.write(X, tmp_path / "z")
    return tmp_path / "z"


def flipped(data: bytes, position: int) -> bytes:
    """The same bytes but for one bit."""
    changed = bytearray(data)
    changed[position // 8] ^= 1 << position % 8
    return bytes(changed)


# Features


def test_a_sound_store_of_features(store: Path, run: Any) -> None:
    """Counted, described, and tested."""
    code, out, _ = run("verify", store)
    assert code == 0
    assert "all 10 blocks of features are sound" in out
    code, out, _ = run("info", store)
    assert code == 0
    assert "feature store" in out
    assert "150 x 20 float64" in out
    assert "heat s=" in out or "heat t=" in out
    assert "10 of 10 done, 16 rows each" in out


def test_damaged_missing_and_swapped_blocks(
    contents: Any, store: Path, X: Any, model: dhsk.NystromFeatures, run: Any
) -> None:
    """Each is found; deleted and written again, the store has the same bits."""
    before = contents(store)
    chunk = store / "c/3/0"
    chunk.write_bytes(flipped(chunk.read_bytes(), 12345))
    code, _, error = run("verify", store)
    assert code == 4
    assert f"1 of 10 blocks of features are damaged: delete {chunk}, and write" in error
    chunk.unlink()
    code, _, error = run("verify", store)
    assert code == 4
    assert "lacks 1 of 10 blocks of features" in error
    assert "9 of 10 done" in run("info", store)[1]
    model.write(X, store)
    assert contents(store) == before
    (store / "c/0/0").rename(store / "aside")
    (store / "c/1/0").rename(store / "c/0/0")
    (store / "aside").rename(store / "c/1/0")
    code, _, error = run("verify", store)
    assert code == 4
    assert "2 of 10 blocks of features are damaged" in error
    for number in (0, 1):
        (store / f"c/{number}/0").unlink()
    model.write(X, store)
    assert contents(store) == before


def test_any_flipped_bit_of_the_header_is_damage(
    store: Path, X: Any, model: dhsk.NystromFeatures, run: Any, rng: Any
) -> None:
    """Never 'something else': by verify, by info and by write, which touches nothing."""
    file = store / "zarr.json"
    sound = file.read_bytes()
    for position in rng.choice(8 * len(sound), 150, replace=False):
        file.write_bytes(flipped(sound, int(position)))
        try:
            found = FeatureStore.open(store)
            found.check_sound()
        except dhsk.CorruptTileError:
            continue
        assert json.loads(file.read_bytes()) == json.loads(sound)
    for wrong in (
        sound.replace(ATTRIBUTE.encode(), b"dhsk_featurds"),
        sound.replace(b'"landmarks"', b'"landmarkr"'),
        sound.replace(b"attributes", b"attributer"),
        sound[:-3],
        b"{" + sound,
    ):
        file.write_bytes(wrong)
        for command in ("verify", "info"):
            code, _, error = run(command, store)
            assert code == 4
            assert "the description of the features in" in error
            assert "is damaged (zarr.json)" in error
            assert error.count("\n") == 1
        with pytest.raises(dhsk.CorruptTileError, match="description of the features in"):
            model.write(X, store)
        assert file.read_bytes() == wrong


def test_features_of_samples_that_change_are_not_written(
    X: Any, model: dhsk.NystromFeatures, tmp_path: Path
) -> None:
    """Between the two readings; nothing is left, and the next call writes the new ones."""

    def change(event: dhsk.Progress) -> None:
        if event.stage == "features" and event.done == 0:
            X[140] += 1

    with pytest.raises(dhsk.SamplesChangedError, match="row 140 "):
        model.write(X, tmp_path / "z", progress=change)
    assert not (tmp_path / "z").exists()
    Z = model.write(X, tmp_path / "z").compute()
    np.testing.assert_allclose(Z, model.transform(X), atol=1e-13)


# Models


@pytest.fixture(params=["exact", "low rank"])
def saved(request: Any, X: Any, tmp_path: Path) -> Path:
    """A model file of either kind."""
    y = X[:, 0] > 1
    made = dhsk.HeatSVC() if request.param == "exact" else dhsk.NystromSVC(20)
    made.fit(X, y).save(tmp_path / "m")
    return tmp_path / "m"


def test_a_sound_model(saved: Path, run: Any) -> None:
    """Tested, and described."""
    code, out, _ = run("verify", saved)
    assert code == 0
    assert "arrays are sound" in out
    code, out, _ = run("info", saved)
    assert code == 0
    assert "model" in out
    assert "12 features, map hyperspherical" in out
    assert re.search(r"classes .*False.*, True", out)


def test_a_damaged_model_is_exit_code_4(saved: Path, run: Any, rng: Any) -> None:
    """A flipped bit of any member, a cut file; what is no model is wrong input."""
    sound = saved.read_bytes()
    with zipfile.ZipFile(saved) as archive:
        starts = [member.header_offset + 120 for member in archive.infolist()]
    for start in starts:
        saved.write_bytes(flipped(sound, 8 * start))
        code, _, error = run("verify", saved)
        assert code == 4, error
        assert error.count("\n") == 1
    saved.write_bytes(sound[: len(sound) // 2])
    code, _, error = run("verify", saved)
    assert code == 4
    assert "train the model again" in error
    saved.write_text("mine")
    assert run("verify", saved)[0] == 2


def test_numbers_that_are_none_are_damage(saved: Path, run: Any) -> None:
    """A NaN in what predictions come from, with all checksums right."""
    with np.load(saved) as archive:
        parts = dict(archive)
    parts["intercepts"] = np.full_like(parts["intercepts"], np.nan)
    with saved.open("wb") as file:
        np.savez(file, **parts)
    code, _, error = run("verify", saved)
    assert code == 4
    assert "1 of 1 numbers of intercepts are not finite" in error


def test_a_fitted_estimator_is_described_and_tested(X: Any, tmp_path: Path, run: Any) -> None:
    """By its own name; `dhsk predict` says what reads it."""
    path = tmp_path / "r"
    dhsk.HeatKernelRidge(0.5).fit(X, X[:, 0]).save(path)
    code, out, _ = run("info", path)
    assert code == 0
    for words in (
        "fitted HeatKernelRidge",
        "12 features, map hyperspherical",
        "alpha=0.5",
        f"rank={len(X)}",
    ):
        assert words in out
    assert f"dhsk.HeatKernelRidge.load('{path}')" in out.replace("\n", "")
    facts = json.loads(run("info", path, "--json")[1])
    assert (facts["kind"], facts["estimator"]) == ("fitted estimator", "HeatKernelRidge")
    assert facts["arrays"] == {"dual_coef": [N], "rows": [N, DIM]}
    code, out, _ = run("verify", path)
    assert code == 0
    assert "all 3 arrays are sound" in out
    np.save(tmp_path / "x.npy", X)
    code, _, error = run("predict", path, tmp_path / "x.npy", "--out", tmp_path / "p.csv")
    assert code == 2
    assert "is a model of dhsk.HeatKernelRidge: read it with HeatKernelRidge.load" in error


def test_numbers_of_a_fitted_estimator_are_finite(X: Any, tmp_path: Path, run: Any) -> None:
    """But for derivatives of a likelihood, which are NaN where there are none."""
    kernel = dhsk.GaussianKernel(3.0)
    process = dhsk.HeatGaussianProcessRegressor(kernel=kernel).fit(X, X[:, 0])
    process.save(tmp_path / "p")
    assert np.isnan(process.gradient_[0])
    assert run("verify", tmp_path / "p")[0] == 0
    process.dual_coef_[3] = np.nan
    process.save(tmp_path / "p")
    code, _, error = run("verify", tmp_path / "p")
    assert code == 4
    assert "1 of 150 numbers of dual_coef are not finite" in error


def test_repair_is_for_gram_stores(saved: Path, store: Path, run: Any) -> None:
    """Others say what puts them right."""
    for path in (saved, store):
        code, _, error = run("verify", path, "--repair", "x.npy")
        assert code == 2
        assert "--repair is for Gram stores" in error
