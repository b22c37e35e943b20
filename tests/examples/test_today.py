"""The examples for today's users run on a small part of their data, and say what READMEs show."""

import gzip
import json
import os
import re
import runpy
import subprocess
import sys
import zipfile
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LONGEST = 60
FOLDERS = ("text", "newsgroups", "embeddings", "single_cell", "runs")


def succeed(code: object = 0) -> None:
    """In the place of `sys.exit`, which scripts end with."""
    assert not code


def run(folder: Path, script: Path, *words: Any) -> str:
    """What a script of an example prints, in this process: another imports for seconds first."""
    before, said = set(sys.modules), StringIO()
    with chdir(folder), redirect_stdout(said), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", [str(script), *map(str, words)])
        patch.setattr("sys.path", [str(script.parent), *sys.path])
        patch.setattr("sys.exit", succeed)
        runpy.run_path(str(script), run_name="__main__")
    for name in {file.stem for file in EXAMPLES.glob("*/*.py")} & (set(sys.modules) - before):
        del sys.modules[name]  # each has neighbours of its own
    return said.getvalue()


def shell(folder: Path, *words: Any) -> str:
    """What commands of an example print in a shell."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", *map(str, words)], cwd=folder, env=os.environ | {"PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def words_of(text: str) -> list[str]:
    """Words of an output without its numbers, which depend on the samples."""
    return re.findall(r"[A-Za-z][\w-]+:?", text)


def shown(folder: str) -> str:
    """The outputs that the README of an example shows."""
    text = (EXAMPLES / folder / "README.md").read_text()
    return "\n".join(re.findall(r"^```\n(.*?)^```$", text, re.M | re.S))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighty texts of four classes, a file each."""
    folder = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(0)
    for label in ("fft", "linalg", "signal", "stats"):
        (folder / label).mkdir()
        for number in range(20):
            own = rng.integers(0, 60, 60)
            words = [f"{label}{word}" for word in own] + ["the", "of", "array"] * 4
            (folder / label / f"{number}.txt").write_text(" ".join(words))
    return folder


@pytest.mark.parametrize("folder", FOLDERS)
def test_examples_are_short(folder: str) -> None:
    """Below 60 lines each."""
    for file in (EXAMPLES / folder).iterdir():
        if file.suffix in (".py", ".sh"):
            assert len(file.read_text().splitlines()) < LONGEST, file


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text/texts.py", "embeddings/embeddings.py"])
def test_folders_of_texts(name: str, texts: Path, tmp_path: Path) -> None:
    """Scores of each classifier are printed, and a picture is drawn."""
    (tmp_path / "few").symlink_to(texts)
    if "embeddings" in name:  # of a hundred numbers, so more words
        for file in texts.rglob("*.txt"):
            file.write_text(file.read_text() + " ".join(f" w{n % 113}" for n in range(120)))
    said = run(tmp_path, EXAMPLES / name, "few", "out.png")
    assert set(words_of(said)) <= set(words_of(shown(name.split("/")[0])))
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_folder_to_try(tmp_path: Path) -> None:
    """SciPy's documentation is there in ten classes."""
    said = run(tmp_path, EXAMPLES / "text" / "make_folder.py", "scipy-docs")
    assert re.fullmatch(r"scipy-docs: \d{3} texts\n", said)
    assert len(list((tmp_path / "scipy-docs").iterdir())) == 10


@pytest.mark.slow(seconds=20)
def test_newsgroups(texts: Path, tmp_path: Path) -> None:
    """Three classifiers on posts in a table."""
    lines = [
        "\t".join(["train" if int(file.stem) < 14 else "test", file.parent.name, file.stem,
                   file.read_text()])
        for file in sorted(texts.rglob("*.txt"))
    ]  # fmt: skip
    (tmp_path / "posts.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    script = EXAMPLES / "newsgroups" / "newsgroups.py"
    said = run(tmp_path, script, "posts.tsv.gz", "out.png")
    assert said.startswith("56 posts to train, 24 to test")
    assert set(words_of(said)) <= set(words_of(shown("newsgroups")))
    assert (tmp_path / "out.png").exists()


@pytest.mark.slow(seconds=20)
def test_single_cells(tmp_path: Path) -> None:
    """A file of the old layout becomes one that `dhsk cv` reads, with the types of the cells."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (40, 30)) + np.outer(np.arange(40) % 2, np.arange(30) < 10) * 3
    rows, columns = np.nonzero(counts)
    old = tmp_path / "old.h5ad"
    with h5py.File(old, "w") as file:
        file["raw.X/data"] = np.log1p(counts[rows, columns].astype(np.float32))
        file["raw.X/indices"] = columns
        file["raw.X/indptr"] = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))])
        file["raw.var"] = np.array([(b"G%d" % n,) for n in range(30)], [("index", "S8")])
        cells = [(b"C%d" % n, n % 2) for n in range(40)]
        file["obs"] = np.array(cells, [("index", "S8"), ("bulk_labels", "i1")])
        file["uns/bulk_labels_categories"] = np.array([b"B cell", b"T cell"])
    with zipfile.ZipFile(tmp_path / "scanpy.whl", "w") as archive:
        archive.write(old, "scanpy/datasets/10x_pbmc68k_reduced.h5ad")
    script = EXAMPLES / "single_cell" / "cells.py"
    said = run(tmp_path, script, "scanpy.whl", "cells.h5ad")
    assert said == "cells.h5ad: 40 cells, 30 genes, 2 types\n"
    (line,) = re.findall(r"^(dhsk cv .+?)(?<!\\)$", (EXAMPLES / "single_cell" / "README.md")
                         .read_text(), re.M | re.S)  # fmt: skip
    said = shell(tmp_path, "-c", line)
    assert re.search(r"mean accuracy (1\.0|0\.9)", said)
    compare = EXAMPLES / "single_cell" / "compare.py"
    predictions = tmp_path / "cells-cv" / "predictions.csv"
    said = run(tmp_path, compare, "cells.h5ad", predictions, "cells.png")
    assert re.fullmatch(r"heat kernel of dhsk cv (1\.0|0\.9).*\n(logarithms, .+\n){2}", said)
    assert set(words_of(said)) <= set(words_of(shown("single_cell")))
    assert (tmp_path / "cells.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow(seconds=20)
def test_microbes(tmp_path: Path) -> None:
    """A table that logarithms tell apart is scored in nested folds, by three methods."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, (24, 60)) * rng.integers(1, 9, (24, 1))
    counts[::2, 1:3] += 80
    header = ["sample", "label", *(f"t{n}" for n in range(60))]
    rows = [[f"s{n}", "ab"[n % 2], *map(str, row)] for n, row in enumerate(counts)]
    text = "\n".join("\t".join(row) for row in (header, *rows))
    (tmp_path / "qin2014.tsv.gz").write_bytes(gzip.compress(text.encode()))
    said = run(tmp_path, EXAMPLES / "microbiome" / "nested.py", ".", "1", "2")
    parts = [said.splitlines()[n : n + 3] for n in (0, 3, 6)]
    for heading, line, mean in parts:
        assert heading in shown("microbiome")
        assert line.removeprefix("qin2014").split() == mean.removeprefix("mean").split()
    for _, line, _ in parts[:2]:
        ours, logistic, forest, *apart = map(float, re.findall(r"(\S+) ±", line))
        assert min(ours, logistic) >= 0.8
        differences = [ours - logistic, ours - forest]
        assert apart == pytest.approx(differences, abs=1.5e-3)  # three numbers of three digits
    assert parts[2][1].split()[1:] == ["0.860", "0.848", "0.858"]


@pytest.mark.slow
def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells run one after the other, here on fewer texts, and each shows what it gave."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    cells = json.loads((EXAMPLES / "notebook" / "texts.ipynb").read_text())["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for cell in codes:
        assert cell["outputs"], cell["source"]
        assert all(output["output_type"] != "error" for output in cell["outputs"])
        code = "".join(cell["source"]).replace('*parts, "spatial", "stats"', '"fft", "integrate"')
        exec(compile(code, "texts.ipynb", "exec"), names)
    assert len(set(names["labels"])) == 2
    assert names["result"].best_score_ > 0.9


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """Few samples, as a table and as arrays."""
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, (60, 40)) + np.outer(np.arange(60) % 2, 9 * (np.arange(40) < 3))
    table = [
        ",".join([*(f"c{n}" for n in range(40)), "kind"]),
        *(",".join(map(str, [*x, "xy"[n % 2]])) for n, x in enumerate(X)),
    ]
    (tmp_path / "table.csv").write_text("\n".join(table))
    np.save(tmp_path / "counts.npy", X)
    (tmp_path / "labels.txt").write_text("\n".join("xy"[n % 2] for n in range(60)))
    return tmp_path


@pytest.mark.slow(seconds=20)
def test_a_run_on_a_laptop(digits: Path) -> None:
    """From a table to predictions."""
    said = shell(digits, EXAMPLES / "runs" / "laptop.sh", "table.csv", "kind", "out")
    assert "best:   " in said
    assert said.endswith("label\nx\ny\nx\n")


@pytest.mark.slow(seconds=20)
def test_a_run_in_a_batch_job(digits: Path) -> None:
    """From samples to a model, with the matrix on disk."""
    said = shell(digits, EXAMPLES / "runs" / "batch.sh", "counts.npy", "labels.txt", "out")
    assert "all 1 tiles are sound" in said
    assert "best:   " in said
    assert (digits / "out" / "cv" / "model.dhsk").is_file()


@pytest.mark.slow
def test_drift(tmp_path: Path) -> None:
    """A line for each share, and a picture."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1500)
    images = rng.poisson(rng.gamma(0.5, 20.0, (10, 64))[y]).reshape(-1, 8, 8)
    (tmp_path / "mnist").mkdir()
    np.savez(tmp_path / "mnist" / "mnist70k.npz", X_train=images.astype(np.uint8), y_train=y)
    script = EXAMPLES / "drift" / "drift.py"
    said = run(tmp_path, script, "--data", ".", "--out", "o", "--quick")
    assert said.startswith("500 reference images, 500 new ones")
    assert set(words_of(said)) <= set(words_of(shown("drift")))
    assert len(said.splitlines()) == 8
    assert (tmp_path / "o" / "quick" / "drift.png").exists()
