"""Bad input at every door: one sentence, the exit code of docs/commands.md, nothing left behind."""

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from scipy.sparse import csr_array, save_npz

import dhsk
from dhsk import errors
from dhsk.__main__ import BAD_INPUT, main
from dhsk.samples import open_samples, read_labels


@pytest.fixture
def here(tmp_path: Path, counts: Any, monkeypatch: Any) -> Path:
    """Folder with sound samples and labels, and some that are not; the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent / "caches"))
    X = counts(40, 12)
    X[20:, :4] += 3
    np.save("x.npy", X)
    Path("y.txt").write_text("up\n" * 20 + "down\n" * 20)
    np.save("bytes.npy", np.array([b"\xff\xfe"] * 20 + [b"b"] * 20))
    sparse = csr_array(X)
    parts = {name: getattr(sparse, name) for name in ("data", "indices", "indptr")}
    np.savez("wide.npz", **parts, shape=np.array([40, 2**60]))
    X[0] = -1.0
    np.save("negative.npy", X)
    Path("t.csv").write_text("text,y\n" + "red wine,u\ngreen tea,v\n" * 20)
    return tmp_path


@pytest.fixture
def run(capfd: Any) -> Callable[..., tuple[int, str]]:
    """Run a command in this process; exit code and all that reached the terminal."""

    def command(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        captured = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out + captured.err

    return command


REFUSED = {
    "cv idle sigma": (
        "cv x.npy --labels y.txt --sigma 3 --out o",
        "--sigma has no effect on heat:",
    ),
    "cv idle time": (
        "cv x.npy --labels y.txt --kernel cosine,linear --time-scale 0.5 --out o",
        "--time-scale has no effect on cosine, linear:",
    ),
    "labels that are the samples": (
        "cv t.csv:text --labels t.csv:text --out o",
        "--labels t.csv:text are the samples themselves: name another column",
    ),
    "train idle sigma": (
        "train x.npy --labels y.txt --sigma 1 --out m",
        "--sigma has no effect on heat: leave it out, or give --kernel gaussian",
    ),
    "train idle time": (
        "train x.npy --labels y.txt --kernel linear --map scaled --time-scale 1 --out m",
        "--time-scale has no effect on linear:",
    ),
    "gram idle degree": (
        "gram x.npy --kernel gaussian --degree 2 --out g",
        "--degree has no effect on gaussian:",
    ),
    "plan idle time": ("plan x.npy --kernel cosine --time 0.1", "--time has no effect on cosine:"),
    "device": ("cv x.npy --labels y.txt --device gpu --out o", "'cpu', 'cuda' or 'cuda:'"),
    "cv C": ("cv x.npy --labels y.txt --rank 5 --C 1e300 --out o", "C=1e+300"),
    "cv small C": ("cv x.npy --labels y.txt --rank 5 --C 1e-300 --out o", "C=1e-300"),
    "cv weights": ("train x.npy --labels y.txt --rank 5 --C 1e31 --out o", "C=1e+31"),
    "cv time": ("cv x.npy --labels y.txt --time-scale 1e-9 --out o", "levels"),
    "cv shorter time": ("cv x.npy --labels y.txt --time-scale 1e-300 --out o", "levels"),
    "cv time of rank": ("cv x.npy --labels y.txt --rank 5 --time-scale 1e-9 --out o", "levels"),
    "train seed": ("train x.npy --labels y.txt --rank 5 --seed -1 --out o", "-1 is not in"),
    "train long seed": (
        "train x.npy --labels y.txt --probability --seed 12345678901234567890 --out o",
        "12345678901234567890 is not in",
    ),
    "cv seed": ("cv x.npy --labels y.txt --seed 4294967296 --out o", "4294967296 is not in"),
    "labels of bytes": ("cv x.npy --labels bytes.npy --out o", "not UTF-8 text"),
    "NUL": ("train x.npy --labels y.txt --out o\0o", "NUL"),
    "wide": ("cv wide.npz --labels y.txt --out o", "dim=1152921504606846976"),
    "negative": ("cv negative.npy --labels y.txt --out o/p", "holds -1.0"),
    "negative of rank": ("cv negative.npy --labels y.txt --rank 5 --out o", "holds -1.0"),
    "a few labels": ("cv x.npy --labels negative.npy --out o", "not one label"),
    "scoring": ("cv x.npy --labels y.txt --scoring nonsense --out o", "'nonsense' is not known"),
    "tol": ("cv x.npy --labels y.txt --tol -1 --out o", "tol must be positive"),
    "labels for the model": ("train x.npy --labels y.txt --out y.txt", "is the input y.txt"),
    "column of samples": ("train x.npy:a --labels y.txt --out ./x.npy", "is the input x.npy:a"),
    "key with a colon": ("train x.npy:a:b --labels y.txt --out x.npy", "is the input x.npy:a:b"),
    "model for predictions": ("predict y.txt x.npy --out y.txt", "is the input y.txt"),
    "file for a folder": ("cv x.npy --labels y.txt --out x.npy/o", "Not a directory"),
    "long name": (f"train x.npy --labels y.txt --out {'o' * 300}", "File name too long"),
}


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_sentence_and_leaves_nothing(case: str, run: Any, here: Path) -> None:
    """Exit code 2, one sentence that names what is wrong, no folder, no file."""
    before = sorted(here.rglob("*"))
    words, sentence = REFUSED[case]
    code, said = run(*words.split(" "))
    assert (code, sentence in said, "Traceback" in said) == (BAD_INPUT, True, False), said
    lines = [line for line in said.splitlines() if line.startswith(("dhsk: ", "Error: "))]
    assert len(lines) == 1, said
    assert sorted(here.rglob("*")) == before


@pytest.mark.slow
def test_results_folder_of_an_earlier_run_stays(run: Any, here: Path) -> None:
    """Only a folder that the command made itself goes after a refusal."""
    (here / "o").mkdir()
    assert run("cv", "negative.npy", "--labels", "y.txt", "--out", "o")[0] == BAD_INPUT
    assert list((here / "o").iterdir()) == []


def test_more_columns_than_memory_give_the_right_matrix(here: Path) -> None:
    """2^60 columns, of which twelve occur: the cosines of the twelve, to the rounding of sums."""
    few = dhsk.compute_gram(csr_array(np.load("x.npy")), dhsk.CosineKernel())
    many = dhsk.compute_gram("wide.npz", dhsk.CosineKernel())
    eps = np.finfo(np.float64).eps
    np.testing.assert_allclose(np.asarray(many), np.asarray(few), rtol=0, atol=12 * eps)


@pytest.mark.slow
def test_any_flipped_bit_of_an_npy_header_is_one_sentence(here: Path) -> None:
    """Of numpy come SyntaxError, TokenError and others; both readers say it in a sentence."""
    np.save("small.npy", np.arange(6).reshape(3, 2) % 2)
    whole = Path("small.npy").read_bytes()
    np.save("labels.npy", np.arange(4) % 2)
    labels = Path("labels.npy").read_bytes()
    sentences = []
    for bit in range(8 * 128):
        for content, read in ((whole, _read), (labels, lambda f: read_labels(f, 4))):
            damaged = bytearray(content)
            damaged[bit // 8] ^= 1 << bit % 8
            Path("damaged.npy").write_bytes(damaged)
            try:
                read("damaged.npy")
            except dhsk.InputError as error:
                sentences.append(str(error))
    assert len(sentences) > 500
    assert all("damaged.npy" in said and "\n" not in said for said in sentences)


def _read(file: str) -> Any:
    return list(open_samples(file).blocks(10))


def test_lying_headers_of_labels_take_no_memory(here: Path) -> None:
    """A header that announces 2^50 labels is compared with the size of the file."""
    np.save("y.npy", np.zeros(3))
    content = Path("y.npy").read_bytes().replace(b"(3,), }" + 15 * b" ", b"(1125899906842624,), }")
    Path("y.npy").write_bytes(content)
    with pytest.raises(dhsk.InputError, match=r"truncated: it has 152 bytes and its header ann"):
        read_labels("y.npy", 3)


def test_metadata_nested_too_deep_are_damaged(run: Any, here: Path) -> None:
    """The parser gives up with a RecursionError."""
    deep = "[" * 100_000 + "]" * 100_000
    (here / "deep.zarr").mkdir()
    (here / "deep.zarr/zarr.json").write_text(deep)
    for words in ("gram deep.zarr --out o", "plan deep.zarr", "info deep.zarr"):
        code, said = run(*words.split())
        assert (code, said.count("\n"), "Traceback" in said) == (2, 1, False), said
    code, said = run("verify", "deep.zarr")
    assert (code, said.count("\n"), "not a Gram store" in said) == (4, 1, True), said
    features = dhsk.NystromFeatures(3).fit(np.load("x.npy"))
    with pytest.raises(dhsk.StoreError, match="something else"):
        features.write(np.load("x.npy"), here / "deep.zarr")


@pytest.mark.parametrize(
    "kind",
    [e for e in vars(errors).values() if isinstance(e, type)],
    ids=lambda kind: kind.__name__,
)
def test_every_error_comes_whole_out_of_a_worker(kind: type[errors.DhskError]) -> None:
    """Workers send errors as pickles: class and message stay."""
    again = pickle.loads(pickle.dumps(kind("0.5 of 2 GB: use less")))
    assert (type(again), str(again)) == (kind, "0.5 of 2 GB: use less")


def test_kernels_that_cannot_be_proven_are_pickled_and_say_so_when_used(here: Path) -> None:
    """Pickling is no place for an error: Dask would say in 155 lines that it cannot serialise."""
    kernel = pickle.loads(pickle.dumps(dhsk.HeatKernel(12, 1e-10)))
    assert kernel == dhsk.HeatKernel(12, 1e-10)
    with pytest.raises(dhsk.AccuracyError, match="levels"):
        kernel.of_cosine(0.5)
    with pytest.raises(dhsk.AccuracyError, match="levels"):
        dhsk.compute_gram("x.npy", kernel, store="g")
    assert not Path("g").exists()
    y = Path("y.txt").read_text().split()
    G = dhsk.compute_gram("x.npy", dhsk.CosineKernel(), store="cosines")
    with pytest.raises(dhsk.AccuracyError, match="levels"):
        dhsk.cross_validate(G, y, kernels=[kernel])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: dhsk.connect(5), "cluster must be one of local, .*got 5"),  # type: ignore[arg-type]
        (lambda: dhsk.connect(n_workers=0), "n_workers must be a whole number, at least 1"),
        (lambda: dhsk.connect(n_workers=-1), "n_workers must be a whole number, at least 1"),
        (lambda: dhsk.connect(n_workers=2.5), "n_workers must be a whole number, at least 1"),
    ],
)
def test_connect_refuses_what_is_no_cluster(call: Any, sentence: str) -> None:
    """Before any process is started."""
    with pytest.raises(dhsk.InputError, match=sentence):
        call()


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5])
@pytest.mark.filterwarnings("ignore:probability of SVC:FutureWarning")
def test_seeds_that_numpy_does_not_take_are_refused(seed: Any, here: Path) -> None:
    """At the Python doors too, by the name of their parameter."""
    X, y = np.load("x.npy"), np.repeat([0, 1], 20)
    with pytest.raises(dhsk.InputError, match="random_state must be"):
        dhsk.cross_validate(X, y, cv=dhsk.StratifiedFolds(random_state=seed))
    for model in (
        dhsk.SVC(probability=True, random_state=seed),
        dhsk.NystromSVC(3, random_state=seed),
        dhsk.NystromFeatures(3, random_state=seed),
    ):
        with pytest.raises(dhsk.InputError, match="random_state"):
            model.fit(X, y)


PRELUDE = """
import contextlib, io, os, sys
from pathlib import Path
from dhsk.__main__ import main

def check(words, sentence):
    said = io.StringIO()
    before = sorted(Path().rglob("*"))
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(words.split())
        except SystemExit as ended:
            code = ended.code
    text = said.getvalue()
    fine = code == 4 and text.count(chr(10)) == 1 and sentence in text and ": " in text[6:]
    assert fine, (words, code, text)
    assert sorted(Path().rglob("*")) == before, words
"""


def run_with_permissions(folder: Path, script: str) -> None:
    """Run Python code as one whom the permissions of files bind: root without its privilege."""
    before = []
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root may read and write everything, and there is no setpriv to change it")
        before = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    done = subprocess.run(
        [*before, sys.executable, "-c", PRELUDE + script],
        cwd=folder, check=False, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_files_that_may_not_be_read_are_exit_code_4(here: Path) -> None:
    """Every command, every format: which file, why, and the way out."""
    X = np.load("x.npy")
    np.savez("x.npz", X=X)
    save_npz("csr.npz", csr_array(X))
    np.savetxt("x.csv", X, delimiter=",")
    Path("x.svm").write_text("".join(f"{i % 2} 1:{i + 1}\n" for i in range(40)))
    with h5py.File("x.h5ad", "w") as file:
        file["X"] = X
    zarr.save("x.zarr", X)
    dhsk.HeatSVC().fit(X, np.repeat([0, 1], 20)).save("m.dhsk")
    dhsk.compute_gram(X, dhsk.CosineKernel(), store="g")
    formats = ("npz", "csr.npz", "csv", "svm", "h5ad", "npy")
    names = [name if "." in name else f"x.{name}" for name in formats]
    script = f"""
for name in {names!r}:
    os.chmod(name, 0)
    for words in ("gram NAME --out o", "train NAME --labels y.txt --out o", "plan NAME",
                  "cv NAME --labels y.txt --out o"):
        check(words.replace("NAME", name), f"{{name}} cannot be read (Permission denied): make it")
    os.chmod(name, 0o644)
for sealed in ("m.dhsk", "y.txt", "x.zarr", "x.zarr/zarr.json", "g", "g/zarr.json"):
    os.chmod(sealed, 0)
    whole = sealed.split("/")[0]
    for words in {{
        "m.dhsk": ["predict m.dhsk x.npy --out o"],
        "y.txt": ["cv x.npy --labels y.txt --out o", "train x.npy --labels y.txt --out o",
                  "cv g --labels y.txt --out o"],
        "x.zarr": ["gram x.zarr --out o", "plan x.zarr", "predict m.dhsk x.zarr --out o"],
        "g": ["info g", "verify g", "cv g --labels y.txt --out o"],
    }}[whole]:
        check(words, "(Permission denied): ")
    os.chmod(sealed, 0o755)
"""
    run_with_permissions(here, script)


@pytest.mark.slow
def test_places_that_may_not_be_written_are_exit_code_4(here: Path) -> None:
    """Before any work, and with a way out."""
    (here / "sealed").mkdir()
    X, y = np.load("x.npy"), np.repeat([0, 1], 20)
    dhsk.HeatSVC().fit(X, y).save("m.dhsk")
    (here / "sealed").chmod(0o555)
    script = """
for out in ("sealed", "sealed/o"):
    for words in ("gram x.npy", "cv x.npy --labels y.txt", "cv x.npy --labels y.txt --rank 5"):
        check(f"{words} --out {out}", "cannot be written (Permission denied): choose another")
for words in ("train x.npy --labels y.txt --out", "train x.npy --labels y.txt --rank 5 --out",
              "predict m.dhsk x.npy --out"):
    check(f"{words} sealed/o", "sealed cannot be written (Permission denied): choose another")
check("kernel --dim 12 --plot sealed/k.png", "sealed")
"""
    run_with_permissions(here, script)
