"""The command `dhsk features`, run as a person runs it."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dhsk
from dhsk.__main__ import BAD_INPUT, BAD_STORE, DONE, INTERRUPTED
from dhsk.nystrom import feature_blocks
from dhsk.nystrom.feature_store import FeatureStore
from dhsk.progress import Progress

FEATURES = ("features", "x.npy", "--rank", 20, "--out", "z")

NAMES = [f"w{j}" for j in range(12)]


def stored(folder: str) -> Any:
    """Features of a folder, as other programs read them."""
    array: Any = zarr.open_array(folder, mode="r")
    return array[:]


def write_table(file: str, X: Any, names: list[str]) -> None:
    """A table of samples with their names and classes."""
    order = [NAMES.index(name) for name in names]
    rows = [f"s{i},{'ud'[i // 40]},{','.join(map(str, row[order]))}" for i, row in enumerate(X)]
    Path(file).write_text("\n".join([f"id,class,{','.join(names)}", *rows]) + "\n")


def test_one_bar_is_of_all_that_it_does(
    run: Any, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the search of landmarks to the last block; also of a run that writes only."""
    seen: list[Progress] = []
    with dhsk.show_progress(seen.append) as progress:
        monkeypatch.setattr("dhsk.commands.features.show_progress", lambda: nullcontext(progress))
        for words in (FEATURES, ("features", "x.npy", "--by", "z", "--out", "new")):
            assert run(*words)[0] == DONE
            shares = [event.of_all for event in seen]
            assert shares == sorted(shares)
            assert shares[0] < 0.5
            assert shares[-1] == 1
            stages = {event.stage for event in seen}
            assert ("landmarks" in stages, "features" in stages) == (words is FEATURES, True)
            seen.clear()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten blocks of eight rows."""
    monkeypatch.setattr("dhsk.nystrom.features.ROWS", 8)
    monkeypatch.setattr(feature_blocks, "ROWS", 8)
    monkeypatch.setattr(feature_blocks, "CHUNK_BYTES", 8 * 20 * 8)
    monkeypatch.setattr(feature_blocks, "core_count", lambda: 1)


def test_features_are_those_of_the_estimator(run: Any, samples: Any) -> None:
    """What it says, what it leaves, and features of new samples by the same landmarks."""
    code, out, err = run(*FEATURES)
    expected = dhsk.NystromFeatures(20, random_state=0).fit(samples)
    assert (code, err) == (DONE, "")
    np.testing.assert_array_equal(stored("z"), expected.transform(samples))
    head, row = (re.split(r"\s{2,}", line.strip()) for line in out.splitlines()[1:3])
    assert head == ["samples", "features", "landmarks", "trace error", "time"]
    assert row[:4] == ["80", "20 float64", "60", f"{expected.trace_error_:.2e}"]
    assert out.startswith(f"features of heat s={expected.time_scale_:.4g} (t=")
    assert "output: z\nnext:   zarr.open_array('z') in Python, or dhsk train z --labels" in out
    assert out.endswith("or:     dhsk features NEW_SAMPLES --by z --out FOLDER\n")
    assert {path.name for path in Path().iterdir()} == {"x.npy", "y.txt", "z"}
    assert "dhsk features NEW_SAMPLES --by z --out FOLDER" in run("info", "z")[1]
    np.save("new.npy", samples[::3])
    code, out, err = run("features", "new.npy", "--by", "z", "--out", "new")
    assert (code, err, "trace error" in out) == (DONE, "", False)
    np.testing.assert_array_equal(stored("new"), expected.transform(samples[::3]))
    expected.save("file.dhsk")
    assert run("features", "new.npy", "--by", "file.dhsk", "--out", "again")[0] == DONE
    assert run("features", "new.npy", "--by", "new", "--out", "third")[0] == DONE
    for folder in ("again", "third"):
        np.testing.assert_array_equal(stored(folder), stored("new"))
    words = ("train", "z", "--labels", "y.txt", "--kernel", "linear", "--out", "m")
    assert run(*words)[0] == DONE


def test_options_are_those_of_the_estimator(run: Any, samples: Any) -> None:
    """Of landmarks, the kernel, the map and the type."""
    words = ("--kernel", "gaussian", "--sigma", 3, "--selection", "uniform", "--oversampling", 2)
    more = ("--seed", 4, "--dtype", "float32", "--map", "projective", "--memory", "6GB")
    assert run(*FEATURES, *words, *more)[0] == DONE
    model = dhsk.NystromFeatures(
        20, dhsk.GaussianKernel(3.0), "uniform", oversampling=2, sphere_map="projective",
        dtype="float32", random_state=4,
    ).fit(samples)  # fmt: skip
    np.testing.assert_array_equal(stored("z"), model.transform(samples))


def test_a_table_with_labels_and_ids(run: Any, samples: Any) -> None:
    """They are left out as they are told; new tables may have more columns, in any order."""
    write_table("x.csv", samples, NAMES)
    code, _, err = run("features", "x.csv", "--rank", 20, "--out", "z")
    assert (code, "or leave them out with --drop-column class" in err) == (BAD_INPUT, True)
    words = ("--drop-column", "class", "--id-column", "id")
    code, out, _ = run("features", "x.csv", "--rank", 20, *words, "--out", "z")
    assert code == DONE
    assert "NEW_SAMPLES --drop-column class --id-column id --by z --out" in out
    expected = dhsk.NystromFeatures(20, random_state=0).fit(samples)
    np.testing.assert_array_equal(stored("z"), expected.transform(samples))
    write_table("new.csv", samples, NAMES[::-1])
    code, _, err = run("features", "new.csv", "--by", "z", "--out", "new")
    assert (code, "2 columns beside the 12 features, left out: id, class" in err) == (DONE, True)
    np.testing.assert_array_equal(stored("new"), stored("z"))
    write_table("few.csv", samples, NAMES[2:])
    code, _, err = run("features", "few.csv", "--by", "z", *words, "--out", "few")
    assert (code, "w0" in err, Path("few").exists()) == (BAD_INPUT, True, False)


def test_texts(run: Any, tmp_path: Path) -> None:
    """Words are counted for all texts at once: a transformer keeps none."""
    texts = ["a bird sings", "a bird flies", "the sea is deep", "the sea is cold"]
    Path("t.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    code, out, err = run("features", "t.jsonl:text", "--rank", 3, "--out", "z")
    assert (code, "--by" in out) == (DONE, False), err
    assert stored("z").shape == (4, 3)
    code, _, err = run("features", "t.jsonl:text", "--by", "z", "--out", "new")
    assert (code, "write the features of all texts at once" in err) == (BAD_INPUT, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("features", "x.npy", "--out", "z"), "give --rank, the number of features, or --by"),
        ((*FEATURES, "--rank", 0), "0 is not in the range"),
        ((*FEATURES, "--sigma", 2), "--sigma has no effect on heat"),
        ((*FEATURES, "--by", "m"), "--rank was chosen with m: leave it out, or --by"),
        (("features", "x.npy", "--by", "m", "--out", "z", "--seed", 1), "--seed was chosen with m"),
        (("features", "x.npy", "--by", "m", "--out", "z", "--map", "clr"), "--map was chosen"),
        (("features", "x.npy", "--by", "svm", "--out", "z"), "svm"),
        (("features", "x.npy", "--by", "none", "--out", "z"), "there is no file none"),
        (("features", "x.npy", "--by", "old", "--out", "z"), "old has no model.dhsk, which makes"),
        (("features", "none.npy", "--rank", 3, "--out", "z"), "there is no file none.npy"),
        (("features", "bad.npy", "--rank", 3, "--out", "z"), "bad.npy: row 7.* holds nan"),
        (("features", "bad.npy", "--by", "m", "--out", "z"), "bad.npy: row 7.* holds nan"),
        (
            ("features", "few.npy", "--by", "m", "--out", "z"),
            "few.npy has 5 features, not the 12 of m:",
        ),
        ((*FEATURES, "--zero-rows", "error"), "x.npy: row 3 .* is all zero"),
        ((*FEATURES, "--part", "3/2"), "there is no part 3 of 2"),
        ((*FEATURES, "--part", "1/2", "--workers", 2), "--part needs no --cluster"),
    ],
)
def test_what_cannot_be_used_ends_in_a_sentence(
    run: Any, samples: Any, words: Any, message: str
) -> None:
    """Exit code 2, and nothing on the disk."""
    model = dhsk.NystromFeatures(5, random_state=0).fit(samples)
    model.save("m")
    model.write(samples, "old")
    dhsk.HeatSVC().fit(samples, np.arange(80) % 2).save("svm")
    wrong = samples.copy()
    wrong[7, 2] = np.nan
    np.save("bad.npy", wrong)
    np.save("few.npy", samples[:, :5])
    wrong = samples.copy()
    wrong[3] = 0
    np.save("x.npy", wrong)
    before = sorted(path.name for path in Path().iterdir())
    code, _, err = run(*words)
    assert (code, "X contains" in err) == (BAD_INPUT, False)
    assert re.search(message, err), err
    assert sorted(path.name for path in Path().iterdir()) == before


def interrupted(stage: str, done: int) -> Callable[[], Any]:
    """Progress that ends at a moment, as Ctrl-C does."""

    @contextmanager
    def show() -> Iterator[Any]:
        def see(event: Progress) -> None:
            if (event.stage, event.done) == (stage, done):
                raise KeyboardInterrupt

        with dhsk.show_progress(see) as progress:
            yield progress

    return show


@pytest.mark.parametrize(("stage", "done"), [("landmarks", 60), ("features", 0), ("features", 4)])
def test_the_same_command_goes_on(
    run: Any,
    samples: Any,
    small_blocks: None,
    contents: Any,
    monkeypatch: Any,
    stage: str,
    done: int,
) -> None:
    """To the same bits, and once there are landmarks without choosing them again."""
    assert run(*FEATURES, "--out", "whole")[0] == DONE
    with monkeypatch.context() as patched:
        patched.setattr("dhsk.commands.features.show_progress", interrupted(stage, done))
        code, _, err = run(*FEATURES)
    assert (code, "run the same command again to go on" in err) == (INTERRUPTED, True)
    if stage == "features":
        assert FeatureStore.open(Path("z")).missing() == list(range(done, 10))
        monkeypatch.setattr("dhsk.estimators.nystrom.approximate", None)
    assert run(*FEATURES)[0] == DONE
    assert contents(Path("z")) == contents(Path("whole"))
    assert {path.name for path in Path().iterdir()} == {"x.npy", "y.txt", "z", "whole"}


def test_a_complete_store_is_read_and_kept(
    run: Any, samples: Any, small_blocks: None, contents: Any, monkeypatch: Any
) -> None:
    """The same command says so; what is damaged or gone is named, or made again."""
    assert run(*FEATURES)[0] == DONE
    before = contents(Path("z"))
    monkeypatch.setattr("dhsk.estimators.nystrom.approximate", None)
    code, out, _ = run(*FEATURES)
    assert code == DONE
    assert out.startswith("z was complete: nothing was computed, and all checksums are right\n")
    Path("z/c/3/0").write_bytes(bytes(len(before["c/3/0"])))
    code, _, err = run(*FEATURES)
    assert (code, "1 of 10 blocks of features are damaged: delete z/c/3/0" in err) == (
        BAD_STORE,
        True,
    )
    Path("z/c/3/0").unlink()
    code, out, _ = run(*FEATURES)
    assert (code, "was complete" in out) == (DONE, False)
    assert contents(Path("z")) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rank", 30), r"z holds features of other rank \(20, now 30\): choose another path"),
        (("--seed", 1, "--dtype", "float32"), r"other dtype \(float64, now float32\), seed \(0, "),
        (("--time-scale", 2), "of other kernel "),
        (("--out", "python"), "python holds features without model.dhsk, which another program"),
    ],
)
def test_other_features_are_refused_before_any_work(
    run: Any, samples: Any, contents: Any, monkeypatch: Any, words: Any, message: str
) -> None:
    """Of other options, or of unknown ones; finished or not."""
    assert run(*FEATURES)[0] == DONE
    dhsk.NystromFeatures(20, random_state=0).fit(samples).write(samples, "python")
    before = contents(Path())
    monkeypatch.setattr("dhsk.estimators.nystrom.approximate", None)
    for part in ((), ("--part", "1/2")):
        code, _, err = run(*FEATURES, *words, *part)
        assert code == BAD_INPUT
        assert re.search(message, err), err
        assert contents(Path()) == before


def test_other_samples_and_other_content_are_refused(run: Any, samples: Any, contents: Any) -> None:
    """And nothing of it is touched."""
    assert run(*FEATURES)[0] == DONE
    Path("folder").mkdir()
    Path("folder/mine.txt").write_text("mine")
    np.save("x.npy", samples + 1)
    before = contents(Path())
    code, _, err = run(*FEATURES)
    assert (code, "z holds features of other samples (" in err) == (BAD_INPUT, True)
    code, _, err = run("features", "x.npy", "--by", "z", "--out", "z")
    assert (code, "z holds features of other samples (" in err) == (BAD_INPUT, True)
    for out in ("folder", "y.txt"):
        code, _, err = run(*FEATURES, "--out", out)
        assert (code, f"{out} holds something else than features" in err) == (BAD_STORE, True)
    assert contents(Path()) == before


def test_a_part_says_what_is_missing(run: Any, samples: Any, small_blocks: None) -> None:
    """By a fitted transformer parts may run one after the other; the last one finishes."""
    dhsk.NystromFeatures(20, random_state=0).fit(samples).save("m")
    words = ("features", "x.npy", "--by", "m", "--out")
    assert run(*words, "whole")[0] == DONE
    code, out, _ = run(*words, "z", "--part", "1/3")
    assert (code, "this part is done: 6 blocks of z are still to be" in out) == (DONE, True)
    code, _, err = run("features", "x.npy", "--by", "whole", "--out", "z", "--part", "2/3")
    assert (code, "part 1 was begun with other options" in err) == (BAD_INPUT, True)
    for number in (3, 2):
        code, out, _ = run(*words, "z", "--part", f"{number}/3")
        assert (code, "output: z" in out) == (DONE, number == 2)
    np.testing.assert_array_equal(stored("z"), stored("whole"))
    assert [path.name for path in Path("z.parts").iterdir()] == ["ended.npz"]
    assert "all parts have ended before, and made z" in run(*words, "z", "--part", "2/3")[1]
