"""What the additions of DESIGN.md must do, in a package that has them; see `tests.test_design`."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import dhsk
from dhsk.commands.cli import commands
from dhsk.commands.options import make_kernels
from dhsk.kernels import NAMED, kernel_from_spec, parse_kernel

ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Of cosines of twelve features: next to 1, angles are off by its square root."""


def samples() -> Any:
    """Counts of twelve features, one sample with none of them, and two equal ones."""
    X = np.random.default_rng(5).poisson(1.0, (40, 12)).astype(np.float64)
    X[3] = 0
    X[7] = X[8]
    return X


def run(*words: str) -> str:
    """Output of a command."""
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def laplacian(X: Any, sigma: float) -> Any:
    """Values by the formula alone."""
    rows = np.sqrt(X / np.maximum(X.sum(axis=1), 1)[:, None])
    rows[X.sum(axis=1) == 0] = 1 / np.sqrt(X.shape[1])
    K = np.exp(-np.arccos(np.clip(rows @ rows.T, -1, 1)) / sigma)
    K[(X[:, None] == X).all(axis=2)] = 1
    return K


def kernel() -> None:
    """A name at every door, its parameter on the command line, and descriptions in files."""
    X, y = samples(), np.arange(40) % 2
    near = pytest.approx(laplacian(X, 1.0), abs=np.sqrt(ROUNDING))
    with pytest.warns(dhsk.ZeroRowsWarning):
        G = dhsk.compute_gram(X, "laplacian")
    assert np.asarray(G) == near
    assert "laplacian" in NAMED
    assert kernel_from_spec(G.kernel.to_spec()) == G.kernel == parse_kernel("laplacian", 12)
    assert np.linalg.eigvalsh(np.asarray(G)).min() > -len(X) * ROUNDING
    np.save("X.npy", X[9:])
    np.savetxt("y.txt", y[9:], fmt="%d")
    model = dhsk.HeatSVC(kernel=parse_kernel("laplacian", 12), C=1.0).fit(X[9:], y[9:])
    words = ("--kernel", "laplacian", "--sigma", "1", "--C", "1")
    run("train", "X.npy", "--labels", "y.txt", *words, "--out", "model")
    again = dhsk.HeatSVC.load("model")
    assert again.kernel_ == model.kernel_
    np.testing.assert_array_equal(again.predict(X[9:]), model.predict(X[9:]))
    grid = make_kernels(["laplacian", "cosine"], 12, {"sigma": [0.5, 1.0]})
    found = dhsk.cross_validate(X[9:], y[9:], kernels=grid, C=1.0, cv=2)
    labels = ["laplacian sigma=0.5", "laplacian sigma=1", "cosine"]
    assert [row["label"] for row in found.summary_] == labels


def sphere_map() -> None:
    """A name where maps are taken, of dense and sparse samples, with the checks of counts."""
    X = samples()
    there = (X != 0) / np.sqrt(np.maximum((X != 0).sum(axis=1), 1))[:, None]
    there[3] = 1 / np.sqrt(12)
    for given in (X, sp.csr_array(X)):
        with pytest.warns(dhsk.ZeroRowsWarning):
            G = dhsk.compute_gram(given, "cosine", sphere_map="presence")
        assert np.asarray(G) == pytest.approx(there @ there.T, abs=ROUNDING)
    with pytest.raises(dhsk.InputError, match="the presence map needs non-negative samples"):
        dhsk.compute_gram(-X, "cosine", sphere_map="presence")
    with pytest.raises(
        dhsk.InputError, match="hyperspherical, projective, clr, identity, presence"
    ):
        dhsk.compute_gram(X, "cosine", sphere_map="presents")
    np.save("X.npy", X[9:])
    np.savetxt("y.txt", np.arange(31) % 2, fmt="%d")
    run("train", "X.npy", "--labels", "y.txt", "--map", "presence", "--C", "1", "--out", "model")
    model, scaled = dhsk.HeatSVC.load("model"), X[9:] * np.arange(1, 13)
    np.testing.assert_array_equal(model.decision_function(scaled), model.decision_function(X[9:]))
    assert "which features are there" in run("info", "model")


def write_idx(path: str, images: Any) -> None:
    """Write bytes, (n, height, width), as MNIST's files have them."""
    header = struct.pack(">HBB3I", 0, 8, 3, *images.shape)
    Path(path).write_bytes(header + images.astype(np.uint8).tobytes())


def file_format() -> None:
    """Opened by its extension, read block by block, as any other file of the same values."""
    images = samples().reshape(40, 3, 4)
    write_idx("digits.idx", images)
    opened = dhsk.open_samples("digits.idx")
    assert opened.shape == (40, 12)
    assert [block.shape for block in opened.blocks(16)] == [(16, 12), (16, 12), (8, 12)]
    with pytest.warns(dhsk.ZeroRowsWarning):
        found, expected = (dhsk.compute_gram(X, "cosine") for X in ("digits.idx", images))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert "bytes (.idx)" in run("info", "digits.idx")
    Path("digits.other").touch()
    with pytest.raises(dhsk.InputError, match=r"samples are read from .*\.idx"):
        dhsk.open_samples("digits.other")
    Path("digits.idx").write_bytes(Path("digits.idx").read_bytes()[:-1])
    with pytest.raises(dhsk.InputError, match="is it complete"):
        list(dhsk.open_samples("digits.idx").blocks(16))


def command() -> None:
    """Listed, with the options of all commands, and its output."""
    images = samples().reshape(40, 3, 4)
    write_idx("digits.idx", images)
    said = " ".join(run("--help").split())
    assert "nearest Say which sample is nearest to each of SAMPLES." in said
    assert "--verbose" in run("nearest", "--help")
    words = ("nearest", "digits.idx", "--kernel", "laplacian", "--map", "presence")
    lines = run(*words).splitlines()
    assert lines[7].split()[:2] == ["7", "8"]
    assert lines[7].split()[2] == "0.0000"
    assert len(lines) == 40
