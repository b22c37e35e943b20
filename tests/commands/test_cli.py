"""The command, run as a person runs it: exit codes, sentences, files."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import h5py
import numpy as np
import pytest
import zarr
from scipy.sparse import csr_array, save_npz

import dhsk
from dhsk.__main__ import BAD_INPUT, BAD_STORE, DONE, INTERRUPTED, TOO_BIG
from dhsk.commands.cv import cv
from dhsk.devices import VARIABLE, chosen_device
from dhsk.execution.lock import sole_writer

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.slow
def test_gram_then_info_then_verify_then_cv(run: Any, samples: Any) -> None:
    """The whole job by hand: every step says where its output is and what comes next."""
    code, out, _ = run("gram", "x.npy", "--out", "g", "--kernel", "cosine", "--tile", 30)
    assert (code, "output: g" in out, "next:   dhsk cv g" in out) == (DONE, True, True)
    code, out, _ = run("info", "g")
    assert code == DONE
    assert "80 x 80 float64, triangle" in out
    assert "6 of 6 done" in out
    code, out, _ = run("verify", "g")
    assert (code, "all 6 tiles are sound" in out) == (DONE, True)
    code, out, _ = run("cv", "g", "--labels", "y.txt", "--time-scale", "0.7,1", "--C", 1,
                       "--folds", 4, "--out", "o")  # fmt: skip
    assert code == DONE
    assert "best:   heat s=" in out
    data = json.loads(Path("o/results.json").read_text())
    assert len(data["rows"]) == 2 * 1 * 4
    files = {p.name for p in Path("o").iterdir()}
    results = {"results.json", "results.csv", "predictions.csv", "report.html"}
    assert files == {"fits", "run.toml"} | results


@pytest.mark.slow
def test_gram_equals_the_library(run: Any, samples: Any) -> None:
    """The command computes what the function computes."""
    assert run("gram", "x.npy", "--out", "g", "--time-scale", 0.7, "--dtype", "float32")[0] == DONE
    kernel = dhsk.HeatKernel.at_scale(12, 0.7)
    expected = kernel(dhsk.hyperspherical_map(samples)).astype(np.float32)
    G = dhsk.open_gram("g")
    assert G.kernel == kernel
    np.testing.assert_allclose(G[:, :], expected, rtol=0, atol=2**-23)


@pytest.mark.slow
def test_cv_on_samples_compares_all_kernels(run: Any, samples: Any) -> None:
    """Six families in one run; the same command again uses the stored products."""
    words = ("cv", "x.npy", "--labels", "y.txt", "--time-scale", 1, "--sigma", "2,5", "--C", "1,10",
             "--kernel", "heat,parametrix,cosine,linear,gaussian,polynomial", "--folds", 3,
             "--out", "o")  # fmt: skip
    assert run(*words)[0] == DONE
    first = json.loads(Path("o/results.json").read_text())
    assert len(first["summary"]) == 7 * 2
    assert run(*words)[0] == DONE
    second = json.loads(Path("o/results.json").read_text())
    assert [row["mean"] for row in first["summary"]] == [row["mean"] for row in second["summary"]]


@pytest.mark.slow
def test_labels_from_a_column_of_the_samples(run: Any, samples: Any) -> None:
    """A label column of the table is taken out of the features by itself."""
    lines = [",".join(f"f{k}" for k in range(12)) + ",kind"]
    lines += [",".join(map(str, row)) + f",{'a' if n < 40 else 'b'}"
              for n, row in enumerate(samples)]  # fmt: skip
    Path("x.csv").write_text("\n".join(lines))
    code, _, err = run(
        "cv", "x.csv", "--labels", "x.csv:kind", "--C", 1, "--folds", 2, "--out", "o"
    )
    assert code == DONE, err
    assert json.loads(Path("o/results.json").read_text())["samples"]["dim"] == 12


@pytest.mark.parametrize(
    ("path", "column"), [("x.csv", "kind"), ("./x.csv", "kind"), ("x.csv", "Q1: kind:")]
)
def test_labels_and_groups_are_no_features(
    path: str, column: str, cv: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A label is that of its group here: either would tell all. Names may have colons."""
    values = np.random.default_rng(0).integers(1, 99, (120, 2)).tolist()
    lines = [f"a,b,patient,{column}"] + [
        f"{a},{b},{n % 30},{n % 30 // 15}" for n, (a, b) in enumerate(values)
    ]
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("\n".join(lines))
    code, _, err = cv(
        "x.csv", "--labels", f"{path}:{column}", "--groups", f"{path}:patient",
        "--kernel", "gaussian", "--C", 1, "--folds", 3,
    )  # fmt: skip
    assert code == DONE, err
    assert json.loads(Path("o/results.json").read_text())["samples"]["dim"] == 2


@pytest.mark.slow
def test_tables_are_read_as_they_are_meant(run: Any, samples: Any) -> None:
    """Semicolons, no header, ids: each is found or given, and what was found is said once."""
    rows = [
        [str(1000 + i), *map(str, row), "ab"[i // 40]] for i, row in enumerate(samples.tolist())
    ]
    Path("x.csv").write_text("".join(";".join(row) + "\n" for row in rows))
    words = ("cv", "x.csv", "--labels", "x.csv:13", "--time-scale", 1, "--C", 1, "--folds", 4)
    code, _, err = run(*words, "--out", "o")
    assert code == DONE
    assert "dhsk: x.csv has no header: its first row is taken for a sample" in err
    assert "dhsk: x.csv: column '0' holds a different whole number in every row" in err
    assert err.count("dhsk:") == 2
    code, _, err = run(*words, "--id", 0, "--no-header", "--out", "p")
    assert (code, "dhsk:" in err) == (DONE, False)
    data = json.loads(Path("p/results.json").read_text())
    assert (data["samples"]["n_samples"], data["samples"]["dim"]) == (80, 12)
    code, _, err = run(*words, "--header", "--out", "q")
    assert (code, "has no column '13'" in err) == (BAD_INPUT, True)


def test_a_long_table_is_told(run: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """One of a number for each sample and taxon, by whose taxa the samples are named."""
    monkeypatch.chdir(tmp_path)
    rows = [f"t{t},s{s},{s + t},{'ab'[s % 2]}" for t in range(6) for s in range(10)]
    Path("long.csv").write_text("\n".join(["OTU,Sample,Abundance,group", *rows]) + "\n")
    words = ("train", "long.csv", "--labels", "long.csv:group", "--drop-column", "Sample")
    code, _, err = run(*words, "--id-column", "OTU", "--out", "m")
    assert code == DONE
    assert "column OTU of long.csv has 6 values in 60 rows, and there is one feature" in err


@pytest.mark.slow
def test_classes_of_few_samples(run: Any, samples: Any) -> None:
    """One sentence says so, and one what it came to; --min-class leaves them out."""
    Path("y.txt").write_text("\n".join(["up"] * 40 + ["down"] * 39 + ["odd"]) + "\n")
    words = ("cv", "x.npy", "--labels", "y.txt", "--time-scale", 1, "--C", 1)
    code, out, err = run(*words, "--out", "o")
    assert code == DONE
    assert err.count("\n") == 1
    assert err.startswith("dhsk: 1 class (odd: 1) has fewer samples than the 5 folds")
    assert "beware: class odd (1 in all) is missing where 1 of 5 folds were trained" in out
    code, out, err = run(*words, "--min-class", 5, "--out", "p")
    assert (code, err) == (DONE, "")
    assert "beware: 1 class (odd: 1) has too few samples: left out, 1 samples in all" in out
    assert json.loads(Path("p/results.json").read_text())["classes"] == ["down", "up"]


@pytest.mark.slow
def test_h5ad_file_with_its_own_labels(run: Any, samples: Any) -> None:
    """Samples and labels of one file, which has no columns to leave out."""
    with h5py.File("x.h5ad", "w") as file:
        file["X"] = samples
        file["obs/kind"] = np.arange(80) // 40
    code, _, err = run(
        "cv", "x.h5ad", "--labels", "x.h5ad:obs/kind", "--C", 1, "--folds", 2, "--out", "o"
    )
    assert code == DONE, err
    described = json.loads(Path("o/results.json").read_text())["samples"]
    assert (described["dim"], described["source"]) == (12, "x.h5ad:X")


@pytest.mark.slow
def test_zarr_folder_then_its_store(run: Any, samples: Any) -> None:
    """A zarr folder is samples to `cv`, a Gram store is not samples to `gram`."""
    zarr.create_array("x.zarr", data=samples)
    code, _, err = run("cv", "x.zarr", "--labels", "y.txt", "--C", 1, "--folds", 2, "--out", "o")
    assert code == DONE, err
    assert run("gram", "x.zarr", "--out", "g", "--tile", 30)[0] == DONE
    code, _, err = run("gram", "g", "--out", "h")
    assert code == BAD_INPUT
    assert "g is a Gram store or in one" in err


def test_sparse_file(run: Any, samples: Any) -> None:
    """CSR as scipy writes it."""
    save_npz("x.npz", csr_array(samples))
    assert run("gram", "x.npz", "--out", "g", "--tile", 30)[0] == DONE
    G = dhsk.open_gram("g")
    assert G.header.nnz == (np.count_nonzero(samples),)


def bad(name: str) -> list[Any]:
    """Words of a command that must end with exit code 2, and what it must say."""
    cv = ["cv", "x.npy", "--out", "o", "--labels"]
    gram = ["gram", "x.npy", "--out", "g"]
    return {
        "missing file": (["gram", "none.npy", "--out", "g"], "none.npy"),
        "unknown format": (["gram", "y.txt.zip", "--out", "g"], "zip"),
        "missing labels": ([*cv, "none.txt"], "none.txt"),
        "bare column": (
            ["cv", "z.csv", "--out", "o", "--labels", "kind"],
            "no file kind: .* named as --labels z.csv:kind",
        ),
        "bare column of AnnData": (
            ["cv", "z.h5ad", "--out", "o", "--labels", "obs/kind"],
            "no file obs/kind: .* named as --labels z.h5ad:obs/kind",
        ),
        "other length": ([*cv, "short.txt"], "3 labels.*80 samples|80 samples.*3 labels"),
        "one class": ([*cv, "same.txt"], "all 80 labels are a"),
        "nan": (["gram", "nan.npy", "--out", "g"], "row 7.*column 3|column 3.*row 7"),
        "inf": (["gram", "inf.npy", "--out", "g"], "row 7.*column 3|column 3.*row 7"),
        "negative": (["gram", "minus.npy", "--out", "g"], "row 7.*column 3.*projective"),
        "zero row": (["gram", "zero.npy", "--out", "g", "--zero-rows", "error"], "row 7.*drop"),
        "time zero": ([*gram, "--time", "0"], "time must be .*0"),
        "negative scale": ([*gram, "--time-scale", "-1"], "time_scale must be .*-1"),
        "two times": ([*gram, "--time-scale", "1", "--time", "1"], "not both"),
        "time nan": ([*gram, "--time", "nan"], "time must be .*nan"),
        "unknown kernel": ([*gram, "--kernel", "rbf"], "'rbf' is 'gaussian' here"),
        "unknown kernels": ([*cv, "y.txt", "--kernel", "heat,rbf"], "'rbf' is 'gaussian' here"),
        "no numbers": ([*cv, "y.txt", "--C", "1;2"], "not a list of numbers"),
        "no size": ([*gram, "--memory", "much"], "positive size such as 2GB"),
        "folder": (["cv", "folder", "--out", "o", "--labels", "y.txt"], "is a folder, but"),
        "no cluster": ([*gram, "--cluster", "nowhere"], "no cluster 'nowhere'"),
    }[name]  # fmt: skip


@pytest.fixture
def bad_files(samples: Any) -> None:
    """Everything that can be wrong with a file."""
    for name, row, column, value in (
        ("nan", 7, 3, np.nan), ("inf", 7, 3, np.inf), ("minus", 7, 3, -1),
        ("zero", 7, slice(None), 0),
    ):  # fmt: skip
        X = samples.copy()
        X[row, column] = value
        np.save(f"{name}.npy", X)
    Path("y.txt.zip").write_text("x")
    Path("z.csv").write_text("a,b,kind\n1,2,x\n")
    Path("short.txt").write_text("a\nb\na\n")
    Path("same.txt").write_text("a\n" * 80)
    Path("folder").mkdir()


@pytest.mark.slow(beyond=16)
@pytest.mark.usefixtures("bad_files")
@pytest.mark.parametrize("name", [
    "missing file", "unknown format", "missing labels", "bare column",
    "bare column of AnnData", "other length", "one class",
    "nan", "inf", "negative", "zero row", "time zero", "negative scale",
    "two times", "time nan", "unknown kernel", "unknown kernels", "no numbers", "no size", "folder",
    "no cluster",
])  # fmt: skip
def test_bad_input_ends_with_two_and_a_sentence(run: Any, name: str) -> None:
    """One clear sentence on standard error, no traceback, and no tile on disk."""
    words, message = bad(name)
    code, out, err = run(*words)
    assert code == BAD_INPUT
    sentence = err.strip().splitlines()[-1]
    assert re.search(message, sentence), sentence
    assert "Traceback" not in err + out
    assert not Path("g").exists()
    assert not Path("o/gram").exists()


@pytest.mark.slow
def test_store_of_other_samples_or_kernel(run: Any, samples: Any) -> None:
    """A wrong --out is bad input, and the store in it stays."""
    assert run("gram", "x.npy", "--out", "g")[0] == DONE
    np.save("other.npy", samples + 1)
    code, _, err = run("gram", "other.npy", "--out", "g")
    assert (code, "made with other samples" in err) == (BAD_INPUT, True)
    code, _, err = run("gram", "x.npy", "--out", "g", "--time-scale", 2)
    assert (code, "made with other kernel" in err) == (BAD_INPUT, True)
    assert run("verify", "g")[0] == DONE


def test_out_that_cannot_be_written(run: Any, samples: Any) -> None:
    """A file where a folder should be is named."""
    Path("file").write_text("")
    code, _, err = run("cv", "x.npy", "--labels", "y.txt", "--out", "file")
    assert (code, "file" in err, "Traceback" in err) == (BAD_INPUT, True, False)


def test_damage_is_found_and_repaired(run: Any, samples: Any) -> None:
    """Exit code 4 for a damaged or incomplete store; --repair makes it as it was."""
    run("gram", "x.npy", "--out", "g", "--tile", 30)
    chunk = Path("g/gram/c/0/1")
    sound = chunk.read_bytes()
    chunk.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    code, _, err = run("verify", "g")
    assert (code, "(0, 1)" in err) == (BAD_STORE, True)
    np.save("other.npy", samples + 1)
    code, _, err = run("verify", "g", "--repair", "other.npy")
    assert (code, "other samples" in err) == (BAD_STORE, True)
    code, out, _ = run("verify", "g", "--repair", "x.npy")
    assert (code, "1 damaged or missing tiles computed again: (0, 1)" in out) == (DONE, True)
    assert chunk.read_bytes() == sound
    rows = Path("g/rows/dense/c/0/0")
    rows.write_bytes(rows.read_bytes()[:-1])
    chunk.unlink()
    code, out, _ = run("verify", "g", "--repair", "x.npy")
    assert (code, chunk.read_bytes() == sound) == (DONE, True)
    assert "the samples (rows) in g are damaged: written again" in out
    Path("g/gram/c/1/2").unlink()
    assert run("verify", "g")[0] == BAD_STORE
    code, out, _ = run("info", "g")
    assert (code, "5 of 6 done" in out) == (DONE, True)
    code, _, err = run("cv", "g", "--labels", "y.txt", "--out", "o")
    assert (code, "lacks 1 of 6 tiles" in err) == (BAD_STORE, True)


@pytest.mark.parametrize("file", ["gram/zarr.json", "rows/zarr.json", "rows/dense/zarr.json"])
def test_repair_says_what_it_wrote_again(run: Any, samples: Any, file: str) -> None:
    """Descriptions too, of which the tiles know nothing."""
    run("gram", "x.npy", "--out", "g", "--tile", 30)
    text = Path("g", file).read_text()
    Path("g", file).write_text(text.replace("node_type", "mode_type", 1))
    code, _, err = run("verify", "g")
    assert (code, f"g/{file} is damaged" in err) == (BAD_STORE, True)
    code, out, _ = run("verify", "g", "--repair", "x.npy")
    assert (code, f"g/{file} is damaged: written again" in out) == (DONE, True)
    assert "0 damaged or missing tiles computed again" in out
    assert Path("g", file).read_text() == text
    code, out, _ = run("verify", "g")
    assert (code, "all 6 tiles are sound" in out) == (DONE, True)


@pytest.mark.parametrize("kind", ["samples", "nodes"])
def test_a_complete_store_is_tested_when_it_is_asked_for_again(
    run: Any, samples: Any, kind: str
) -> None:
    """Nothing is computed then, and damage is no success."""
    words: tuple[Any, ...] = ("gram", "x.npy", "--tile", 30, "--out", "g")
    if kind == "nodes":
        edges = (f"n{i}\tn{(i * i + 1) % 70}\n" for i in range(70) if i != (i * i + 1) % 70)
        Path("edges.tsv").write_text("".join(edges))
        kernel = ("--graph", "exponential", "--beta", 0.5)
        words = ("gram", "edges.tsv", *kernel, "--tile", 30, "--out", "g")
    assert "was complete" not in run(*words)[1]
    code, out, _ = run(*words)
    assert (code, "g was complete: nothing was computed, and all checksums" in out) == (DONE, True)
    chunk = Path("g/gram/c/0/1")
    sound = chunk.read_bytes()
    chunk.write_bytes(sound[:-9] + bytes([sound[-9] ^ 1]) + sound[-8:])
    code, _, err = run(*words)
    assert (code, "(0, 1)" in err, "--repair SAMPLES" in err) == (BAD_STORE, True, True)
    chunk.write_bytes(sound)
    description = Path("g/rows/zarr.json")
    damaged = description.read_text().replace("complete", "komplete")
    description.write_text(damaged)
    code, _, err = run(*words)
    assert (code, "g/rows/zarr.json is damaged" in err) == (BAD_STORE, True)
    assert description.read_text() == damaged  # not mended without a word


@pytest.mark.slow
def test_store_in_use_is_refused_to_writers(run: Any, samples: Any) -> None:
    """While one process writes to a store, others may look at it: exit code 4 for the rest."""
    run("gram", "x.npy", "--out", "g", "--tile", 30)
    with sole_writer(Path("g")), sole_writer(Path("o/fits/gram/cosine")):
        for words in (
            ("gram", "x.npy", "--out", "g"),
            ("verify", "g", "--repair", "x.npy"),
            ("cv", "x.npy", "--labels", "y.txt", "--out", "o"),
        ):
            code, _, err = run(*words)
            held = f"is being written by process {os.getpid()} on "
            assert (code, held in err, err.count("\n")) == (BAD_STORE, True, 1)
        assert run("info", "g")[0] == DONE
        assert run("verify", "g")[0] == DONE
        assert run("cv", "g", "--labels", "y.txt", "--out", "read")[0] == DONE
    assert run("gram", "x.npy", "--out", "g")[0] == DONE


@pytest.mark.parametrize("command", [["info"], ["verify"]])
def test_absent_store(run: Any, samples: Any, command: list[str]) -> None:
    """A store that is not there is exit code 4."""
    code, _, err = run(*command, "nowhere")
    assert (code, "nowhere does not exist" in err) == (BAD_STORE, True)


def outcome_of(out: str) -> dict[str, list[str]]:
    """Rows of the table that ends a run: predicted and measured."""
    rows = (re.split(r"\s{2,}", line.strip()) for line in out.splitlines())
    return {row[0]: row[1:] for row in rows if len(row) == 3}


def test_prediction_beside_what_happened(run: Any, samples: Any, address: str) -> None:
    """The last lines of a run compare; a run that goes on says how little it had to do."""
    words = ("gram", "x.npy", "--out", "g", "--tile", 30, "--dtype", "float32")
    found = outcome_of(run(*words)[1])
    assert found["tiles computed"] == ["6", "6"]
    # 6 tiles of 30 x 30 in float32 and 80 samples of 12 in float64; on disk also zarr's metadata.
    assert found["on disk"][0] == f"{(6 * 900 * 4 + 80 * 12 * 8) / 1024:.2f} kiB"
    # The commands run in this process, which is large after many tests.
    assert found["peak memory, all processes"][1].endswith(("MiB", "GiB"))
    assert [seconds[-1] for seconds in found["seconds"]] == ["s", "s"]
    Path("g/gram/c/0/1").unlink()
    found = outcome_of(run(*words, "--cluster", address)[1])
    assert found["peak memory, all processes"][1] == "not seen from here"
    assert found["tiles computed"] == ["6", "1"]


@pytest.mark.slow
def test_products_in_float32(run: Any, samples: Any) -> None:
    """The option reaches the computation, and a kernel that takes none refuses it."""
    words = ("gram", "x.npy", "--out", "g", "--product-dtype", "float32")
    assert run(*words)[0] == DONE
    assert dhsk.open_gram("g").header.product_dtype == "float32"
    code, _, err = run("gram", "x.npy", "--out", "h", "--product-dtype", "float32",
                       "--kernel", "polynomial")  # fmt: skip
    assert (code, "takes no float32" in err) == (BAD_INPUT, True)
    words = ("plan", "x.npy", "--product-dtype", "float32", "--verbose")
    assert "(float32)" in run(*words)[1]


def test_gram_that_does_not_fit(run: Any, samples: Any) -> None:
    """Exit code 3 before anything is written."""
    code, _, err = run("gram", "x.npy", "--out", "g", "--memory", "100MB")
    assert (code, "95.37 MiB are allowed" in err) == (TOO_BIG, True)
    assert not Path("g").exists()


def test_interrupt_is_exit_code_130(run: Any, samples: Any, monkeypatch: Any) -> None:
    """An interrupt says that the same command goes on from there."""

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dhsk.commands.gram.compute_gram", interrupt)
    code, _, err = run("gram", "x.npy", "--out", "g")
    said = "interrupted; what is finished is kept: run the same command again to go on"
    assert (code, said in err) == (INTERRUPTED, True)


def test_an_interrupt_before_the_work_promises_nothing(
    run: Any, samples: Any, monkeypatch: Any
) -> None:
    """Nothing is kept where samples are still being opened."""

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dhsk.commands.gram.open_samples_of", interrupt)
    code, _, err = run("gram", "x.npy", "--out", "g")
    assert (code, Path("g").exists()) == (INTERRUPTED, False)
    assert "interrupted before anything was computed: run the same command again" in err
    assert "kept" not in err


@pytest.mark.slow
def test_interrupted_cv_says_where_its_rows_are(run: Any, samples: Any, monkeypatch: Any) -> None:
    """Those of the kernels that are finished; without any it says nothing of them."""
    words = ("cv", "x.npy", "--labels", "y.txt", "--time-scale", "0.7,1", "--C", "1,10",
             "--folds", 4, "--out", "o")  # fmt: skip
    table = Path("o/results.csv")
    whole = dhsk.cross_validate

    def stopping(stage: str) -> Any:
        def stop(event: dhsk.Progress) -> None:
            if event.stage == stage and (stage == "tiles" or table.exists()):
                raise KeyboardInterrupt

        def stopped(*args: Any, **options: Any) -> Any:
            return whole(*args, **options | {"progress": stop})

        return stopped

    for stage, said in (("tiles", False), ("fits", True)):
        with monkeypatch.context() as patch:
            patch.setattr("dhsk.validation.cross_validate.cross_validate", stopping(stage))
            code, _, err = run(*words)
        assert (code, "run the same command again" in err) == (INTERRUPTED, True)
        assert ("finished kernels: o/results.csv" in err, table.exists()) == (said, said)
    kept = table.read_text().splitlines()
    assert len(kept) == 1 + 2 * 4
    assert run(*words)[0] == DONE
    lines = table.read_text().splitlines()
    assert len(lines) == 1 + 2 * 2 * 4
    assert set(kept) < set(lines)


@pytest.mark.parametrize("command", ["demo", "plan", "gram", "info", "verify", "cv"])
def test_every_command_has_help(run: Any, command: str) -> None:
    """--help works everywhere."""
    code, out, _ = run(command, "--help")
    assert (code, "Usage: dhsk" in out) == (DONE, True)


@pytest.mark.slow
def test_run_as_a_module() -> None:
    """`python -m dhsk` is the command too."""
    words = [sys.executable, "-m", "dhsk", "--version"]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert run.stdout == f"dhsk, version {dhsk.__version__}\n"


def test_a_device_is_that_of_the_command_alone(
    run: Any, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--device` goes before the environment, and ends with the command."""
    monkeypatch.setenv(VARIABLE, "abacus")
    words = ["gram", "x.npy", "--out", "g"]
    code, _, err = run(*words)
    assert (code, "not 'abacus'" in err) == (BAD_INPUT, True)
    assert run(*words, "--device", "cpu")[0] == DONE
    assert chosen_device() is None


def test_the_demo_gives_options_of_a_grid(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It invokes `dhsk cv` with what that takes; whole it runs in CI."""
    seen: dict[str, Any] = {}
    names = {parameter.name for parameter in cv.params}
    stands_for = click.Command("cv", params=cv.params, callback=lambda **given: seen.update(given))
    monkeypatch.setattr("dhsk.commands.demo.cv", stands_for)
    code, _, err = run("demo", "--out", "digits", "--workers", 2)
    assert (code, seen["workers"]) == (DONE, 2), err
    assert set(seen) <= names
    assert Path("digits/digits.npy").exists()
