"""`dhsk predict --into obs/NAME`: labels in the samples' own AnnData file."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE

N, DIM = 90, 12
CELLS = [f"cell{number}" for number in range(N)]


def write_h5ad(path: str, X: Any, columns: dict[str, Any]) -> None:
    """Write cells, genes and columns of text as AnnData does."""
    genes = np.array([f"gene{number}" for number in range(X.shape[1])])
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"], file.attrs["encoding-version"] = "anndata", "0.1.0"
        file.create_dataset("X", data=X, chunks=(10, X.shape[1]))
        encode(file["X"], "array")
        tables = ("obs", {"_index": np.array(CELLS), **columns}), ("var", {"_index": genes})
        for table, found in tables:
            group = file.create_group(table)
            encode(group, "dataframe")
            group.attrs["_index"] = "_index"
            order = [name for name in found if name != "_index"]
            group.attrs["column-order"] = np.array(order, dtype=h5py.string_dtype())
            for name, values in found.items():
                text = values.astype(object)
                encode(group.create_dataset(name, data=text), "string-array")


def encode(node: Any, name: str) -> None:
    """Say how something is encoded."""
    node.attrs["encoding-type"], node.attrs["encoding-version"] = name, "0.2.0"


@pytest.fixture
def trained(run: Any, counts: Any) -> Any:
    """A model of three classes, and its samples in a file, in the current folder."""
    X, y = counts(N, DIM), np.repeat(["a", "b", "c"], N // 3)
    for code, label in enumerate("abc"):
        X[y == label, 4 * code : 4 * code + 4] += 3
    write_h5ad("x.h5ad", X, {"type": y, "batch": y[::-1]})
    assert run("train", "x.h5ad", "--labels", "x.h5ad:obs/type", "--out", "m")[0] == DONE
    return X


def content(path: str) -> dict[str, Any]:
    """All arrays of a file by their names, and the attributes."""
    found: dict[str, Any] = {}

    def take(name: str, node: Any) -> None:
        found[name] = dict(node.attrs), node[()].tolist() if hasattr(node, "shape") else None

    with h5py.File(path) as file:
        file.visititems(take)
    return found


def test_labels_become_a_column(run: Any, trained: Any) -> None:
    """Those of the table, which dhsk reads as labels; all else of the file is as it was."""
    before = content("x.h5ad")
    Path("x.h5ad").chmod(0o640)
    code, out, err = run("predict", "m", "x.h5ad", "--into", "obs/label", "--out", "o.csv")
    assert (code, err) == (DONE, "")
    assert out == "output: o.csv, obs/label of x.h5ad\n"
    assert stat.S_IMODE(Path("x.h5ad").stat().st_mode) == 0o640
    expected = pd.read_csv("o.csv")["label"].tolist()
    assert dhsk.read_labels("x.h5ad:obs/label", N).tolist() == expected
    after = content("x.h5ad")
    assert after.pop("obs")[0]["column-order"].tolist() == ["type", "batch", "label"]
    new = [name for name in after if name.startswith("obs/label")]
    assert sorted(new) == ["obs/label", "obs/label/categories", "obs/label/codes"]
    before.pop("obs")
    assert {name: str(value) for name, value in after.items() if name not in new} == {
        name: str(value) for name, value in before.items()
    }
    assert not list(Path().glob(".*part"))


@pytest.mark.parametrize("classes", [["a", "b", "c"], [2, 10, 300]], ids=str)
def test_anndata_reads_them(run: Any, trained: Any, classes: list[Any]) -> None:
    """As a categorical column of text or numbers, in order; and writes the file again."""
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    labels = np.repeat(classes, N // 3)
    np.save("y.npy", labels)
    assert run("train", "x.h5ad", "--labels", "y.npy", "--out", "other")[0] == DONE
    assert run("predict", "other", "x.h5ad", "--into", "obs/label", "--out", "o.csv")[0] == DONE
    found = anndata.read_h5ad("x.h5ad")
    assert found.obs.columns.tolist() == ["type", "batch", "label"]
    assert found.obs["label"].tolist() == pd.read_csv("o.csv")["label"].tolist()
    assert found.obs["label"].cat.categories.tolist() == classes
    assert not found.obs["label"].cat.ordered
    assert found.obs_names.tolist() == CELLS
    np.testing.assert_array_equal(found.X, trained)
    found.write_h5ad("again.h5ad")
    assert dhsk.read_labels("again.h5ad:obs/label", N).tolist() == found.obs["label"].tolist()


def test_a_file_of_anndata_takes_a_column(run: Any, trained: Any) -> None:
    """One that anndata wrote, compressed and sparse, with a categorical column that is replaced."""
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    scipy = pytest.importorskip("scipy.sparse")
    own = anndata.read_h5ad("x.h5ad")
    own.X = scipy.csr_matrix(own.X)
    own.obs["old"] = pd.Categorical(["p"] * N)
    own.obs["depth"] = np.arange(N)
    own.layers["twice"] = 2 * own.X
    own.write_h5ad("y.h5ad", compression="gzip")
    words = ("predict", "m", "y.h5ad:layers/twice", "--into", "obs/old", "--replace")
    assert run(*words)[0] == DONE
    assert run("predict", "m", "y.h5ad", "--out", "o.csv")[0] == DONE
    found = anndata.read_h5ad("y.h5ad")
    assert found.obs.columns.tolist() == ["type", "batch", "old", "depth"]
    assert found.obs["old"].tolist() == pd.read_csv("o.csv")["label"].tolist()
    assert found.obs["depth"].tolist() == list(range(N))
    assert (found.layers["twice"] != 2 * own.X).nnz == 0


def test_a_column_is_replaced_only_if_told(run: Any, trained: Any) -> None:
    """Without it nothing is computed; with it the column keeps its place."""
    before = Path("x.h5ad").read_bytes()
    code, _, err = run("predict", "m", "x.h5ad", "--into", "obs/type")
    assert (code, err.count("\n")) == (BAD_INPUT, 1)
    assert "x.h5ad has a column obs/type already (columns: batch, type)" in err
    assert "with --replace" in err
    assert Path("x.h5ad").read_bytes() == before
    words = ("--into", "obs/type", "--replace", "--labels", "x.h5ad:obs/type")
    code, out, _ = run("predict", "m", "x.h5ad", *words)
    assert (code, "accuracy" in out) == (DONE, True)
    with h5py.File("x.h5ad") as file:
        assert file["obs"].attrs["column-order"].tolist() == ["type", "batch"]
        assert file["obs/type"].attrs["encoding-type"] == "categorical"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("x.h5ad",), "give --out FILE, or --into obs/NAME"),
        (("x.h5ad", "--out", "o.csv", "--replace"), "--replace is for a column of --into"),
        (("x.h5ad", "--into", "obs/l", "--proba"), "--proba is for the table of --out"),
        (("x.h5ad", "--into", "label"), "name it obs/NAME, not label"),
        (("x.h5ad", "--into", "obs/a/b"), "name it obs/NAME, not obs/a/b"),
        (("x.h5ad", "--into", "var/l"), "name it obs/NAME, not var/l"),
        (("x.h5ad", "--into", "obs/_index"), "names the cells: name another column"),
        (("x.npy", "--into", "obs/l"), "into an .h5ad file on a disk, but the samples are x.npy"),
        (("bare.h5ad", "--into", "obs/l"), "bare.h5ad has no table obs of AnnData"),
        (("short.h5ad", "--into", "obs/l"), "short.h5ad has 90 rows in obs, but 40 samples"),
    ],
)
def test_what_cannot_be_written_is_refused(
    run: Any, trained: Any, words: tuple[str, ...], said: str
) -> None:
    """In one sentence, before anything is computed."""
    np.save("x.npy", trained)
    with h5py.File("bare.h5ad", "w") as file:
        file.create_dataset("X", data=trained)
    write_h5ad("short.h5ad", trained, {})
    with h5py.File("short.h5ad", "r+") as file:
        del file["X"]
        file.create_dataset("X", data=trained[:40])
    before = {path: path.read_bytes() for path in Path().glob("*.h5ad")}
    code, _, err = run("predict", "m", *words)
    assert code == BAD_INPUT
    assert said in " ".join(err.split())
    assert {path: path.read_bytes() for path in Path().glob("*.h5ad")} == before


KILLED = """
import os, shutil, signal, h5py
def killed(*args, **options):
    os.kill(os.getpid(), signal.SIGKILL)
{where} = killed
from dhsk.__main__ import main
main(["predict", "m", "x.h5ad", "--into", "obs/label"])
"""


@pytest.mark.parametrize("where", ["shutil.copyfileobj", "h5py.Group.create_dataset", "os.fsync"])
def test_a_killed_run_leaves_the_file_as_it_was(run: Any, trained: Any, where: str) -> None:
    """Wherever it is killed; the next run writes the column, and removes what was left."""
    before = Path("x.h5ad").read_bytes()
    ended = subprocess.run(
        [sys.executable, "-c", KILLED.format(where=where)], capture_output=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert Path("x.h5ad").read_bytes() == before
    assert len(list(Path().glob(".x.h5ad*part"))) == 1
    ended = subprocess.run(
        [sys.executable, "-m", "dhsk", "predict", "m", "x.h5ad", "--into", "obs/label"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr.decode()
    assert len(dhsk.read_labels("x.h5ad:obs/label", N)) == N
    assert not list(Path().glob(".x.h5ad*part"))


def test_a_file_that_changed_meanwhile_is_left(
    run: Any, trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cells may be others now."""
    copied = shutil.copyfileobj

    def changed(*args: Any) -> None:
        copied(*args)
        with h5py.File("x.h5ad", "r+") as file:
            file["X"][0, 0] += 1
        os.utime("x.h5ad", ns=(1, 1))

    monkeypatch.setattr(shutil, "copyfileobj", changed)
    code, _, err = run("predict", "m", "x.h5ad", "--into", "obs/label")
    assert code != DONE
    assert "x.h5ad has changed since it was opened" in err
    with h5py.File("x.h5ad") as file:
        assert "label" not in file["obs"]
