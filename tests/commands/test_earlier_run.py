"""`dhsk cv` into a folder that holds results: of the same run, of another one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.__main__ import BAD_INPUT, BAD_STORE, DONE
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.lock import sole_writer

WORDS = ("--labels", "y.txt", "--time-scale", "0.7,1", "--C", "1,10", "--folds", "3")
RANK = (*WORDS, "--rank", "10")


@pytest.fixture
def run(cv: Any, counts: Any) -> Any:
    """Run `dhsk cv` in a folder of samples; exit code and what is printed."""
    X = counts(60, 12)
    X[30:, :4] += 3
    np.save("x.npy", X)
    np.save("other.npy", X[::-1])
    Path("y.txt").write_text("up\n" * 30 + "down\n" * 30)
    Path("z.txt").write_text("up\n" * 29 + "down\n" * 31)

    def command(*words: Any) -> tuple[int, str]:
        code, out, err = cv(*words)
        return code, out + err

    return command


def contents() -> dict[str, bytes]:
    """All files of the results, and what is in them."""
    return {str(p): p.read_bytes() for p in Path("o").rglob("*") if p.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("words", [WORDS, RANK], ids=["exact", "low rank"])
def test_the_same_run_is_repeated(words: Any, run: Callable[..., Any]) -> None:
    """Samples in another file or format, other memory: the same results are written again."""
    assert run("x.npy", *words)[0] == DONE
    before = json.loads(Path("o/results.json").read_text())
    np.savez("copy.npz", np.load("x.npy"))
    assert run("copy.npz", *words, "--memory", "2GB", "--model")[0] == DONE
    after = json.loads(Path("o/results.json").read_text())
    assert after["rows"] == before["rows"]  # even the seconds: nothing was fitted again
    assert Path("o/model.dhsk").exists()


OTHERS = {
    "C": (["x.npy", *WORDS, "--C", "1"], "other C:"),
    "times": (["x.npy", *WORDS, "--time-scale", "1"], "other kernels:"),
    "labels": (["x.npy", *WORDS, "--labels", "z.txt"], "other labels:"),
    "folds": (["x.npy", *WORDS, "--folds", "4", "--seed", "1"], "other folds, seed:"),
    "scoring": (["x.npy", *WORDS, "--scoring", "f1_macro"], "other scoring:"),
    "classes": (["x.npy", *WORDS, "--min-class", "2"], "other min class:"),
    "map": (["x.npy", *WORDS, "--map", "projective"], "other map:"),
    "rank": (["x.npy", *RANK], "other rank:"),
    "samples": (["other.npy", *WORDS], "other samples:"),
}


@pytest.fixture(scope="module")
def kept() -> dict[str, bytes]:
    """What the first `finished` run has left."""
    return {}


@pytest.fixture
def finished(run: Callable[..., Any], kept: dict[str, bytes]) -> dict[str, bytes]:
    """Results of a run, finished: once for all tests."""
    if not kept:
        assert run("x.npy", *WORDS)[0] == DONE
        kept.update(contents())
    for name, content in kept.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    return contents()


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS)
def test_another_run_is_refused(case: str, run: Callable[..., Any], finished: Any) -> None:
    """Exit code 2, what differs, both ways out; nothing is changed."""
    words, message = OTHERS[case]
    code, said = run(*words)
    assert (code, message in said, "--overwrite" in said) == (BAD_INPUT, True, True), said
    assert contents() == finished


@pytest.mark.slow
def test_results_are_overwritten_if_asked_for(run: Callable[..., Any], finished: Any) -> None:
    """Results of other samples give way with their products; what is refused replaces nothing."""
    Path("o/model.dhsk").write_bytes(b"of the other run")
    before = contents()
    assert run("other.npy", *WORDS, "--overwrite", "--scoring", "nonsense")[0] == BAD_INPUT
    assert contents() == before
    assert run("other.npy", *WORDS, "--overwrite")[0] == DONE
    assert not Path("o/model.dhsk").exists()
    X = dhsk.open_samples("other.npy")
    y = np.array(["up"] * 30 + ["down"] * 30)
    expected = dhsk.cross_validate(X, y, time_scale=[0.7, 1], C=[1, 10], cv=3)
    found = dhsk.CvResult.from_json("o/results.json")
    assert [row["score"] for row in found.results_] == [r["score"] for r in expected.results_]
    code, said = run("x.npy", *WORDS)
    assert (code, "other samples" in said) == (BAD_INPUT, True)


@pytest.mark.slow
def test_a_store_in_the_folder_stays(run: Callable[..., Any], finished: Any) -> None:
    """The products of a run serve another one, and are not removed even if it may overwrite."""
    assert run("x.npy", *WORDS, "--overwrite", "--store", "o/gram")[0] == DONE
    gram = {name: content for name, content in contents().items() if "/gram/" in name}
    assert gram
    code, said = run("o/gram/cosine", *WORDS, "--C", "5", "--overwrite")
    assert code == DONE, said
    assert gram.items() <= contents().items()


@pytest.mark.slow
def test_samples_in_the_folder_stay(run: Callable[..., Any], finished: Any) -> None:
    """Products that would have to go with the samples themselves are not removed."""
    dhsk.compute_gram("x.npy", "cosine", store="o/fits/gram/cosine")  # as a killed run leaves it
    Path("other.npy").rename("o/fits/gram/other.npy")
    code, said = run("o/fits/gram/other.npy", *WORDS, "--overwrite")
    assert (code, "made with other samples" in said) == (BAD_INPUT, True), said
    assert finished.items() <= contents().items()


def test_samples_that_changed_since_an_interrupt(run: Callable[..., Any]) -> None:
    """The way out is that of finished runs."""
    dhsk.compute_gram("x.npy", "cosine", store="o/fits/gram/cosine")  # as a killed run leaves it
    code, said = run("other.npy", *WORDS)
    assert (code, "o holds an unfinished run: give another --out, or --overwrite" in said) == (
        BAD_INPUT,
        True,
    ), said
    assert run("other.npy", *WORDS, "--overwrite")[0] == DONE


@pytest.mark.slow
def test_an_interrupted_run_goes_on(run: Callable[..., Any], monkeypatch: Any) -> None:
    """The same command goes on; another one is refused as soon as there are rows."""
    put = Checkpoint.put
    done = []

    def interrupted(self: Checkpoint, name: str, arrays: Any, values: Any = None) -> None:
        put(self, name, arrays, values)
        done.append(name)
        # After a kernel's rows.
        if values and isinstance(values.get("rest"), dict) and len(done) > 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "put", interrupted)
        run("x.npy", *WORDS)
        run("x.npy", *WORDS)  # writes the rows of what was finished
    assert Path("o/results.csv").exists()
    assert not Path("o/results.json").exists()
    code, said = run("x.npy", *WORDS, "--C", "3")
    assert (code, "other C:" in said) == (BAD_INPUT, True), said
    assert run("x.npy", *WORDS)[0] == DONE


@pytest.mark.slow
def test_a_held_out_test_may_be_added(run: Callable[..., Any], finished: Any) -> None:
    """Not replaced by other ones, or left out, without a word."""
    test = ("--test", "other.npy", "--test-labels")
    assert run("x.npy", *WORDS, *test, "y.txt")[0] == DONE
    for words in ((*test, "z.txt"), ()):
        code, said = run("x.npy", *WORDS, *words)
        assert (code, "other test labels" in said) == (BAD_INPUT, True)


def test_results_of_an_unknown_run_are_not_replaced(run: Callable[..., Any]) -> None:
    """Of an earlier version, or of something else: the folder is left alone."""
    Path("o").mkdir()
    Path("o/results.csv").write_text("a\n")
    code, said = run("x.npy", *WORDS)
    assert (code, "an unknown run" in said) == (BAD_INPUT, True)
    assert contents() == {"o/results.csv": b"a\n"}
    assert run("x.npy", *WORDS, "--overwrite")[0] == DONE


@pytest.mark.slow
def test_a_refused_run_leaves_no_note(run: Callable[..., Any]) -> None:
    """Options that are refused late leave the folder as it was."""
    Path("o").mkdir()
    assert run("x.npy", *WORDS, "--scoring", "nonsense")[0] == BAD_INPUT
    assert list(Path("o").iterdir()) == []


def test_two_runs_do_not_write_into_one_folder(run: Callable[..., Any]) -> None:
    """The one that comes second says who writes there, and removes nothing of the first."""
    kept = Path("o/fits/kept")
    kept.parent.mkdir(parents=True)
    kept.touch()
    with sole_writer(Path("o")):
        code, said = run("x.npy", *WORDS)
        assert code == BAD_STORE
        assert "is being written by process" in said
        assert kept.exists()
    assert run("x.npy", *WORDS)[0] == DONE
    assert not Path("o/.lock").exists()
