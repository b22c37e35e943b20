"""Commands on samples, labels and stores of a server with the interface of S3."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.__main__ import DONE
from dhsk.objects.path import ObjectPath

SECRET = "the-secret-of-this-test"


@pytest.fixture
def url(bucket: str, samples: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectPath:
    """Prefix with the files of `samples`, and the same as a table with labels and ids."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    lines = ["id,class," + ",".join(f"w{j}" for j in range(samples.shape[1]))]
    lines += [f"s{i},{'ud'[i // 40]},{','.join(map(str, row))}" for i, row in enumerate(samples)]
    Path("t.csv").write_text("\n".join(lines) + "\n")
    top = ObjectPath(bucket, f"{tmp_path.name}-commands")
    for name in ("x.npy", "y.txt", "t.csv"):
        (top / name).write_bytes(Path(name).read_bytes())
    return top


def files_of(folder: Path) -> dict[str, bytes]:
    """Content of all files below."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.mark.slow
def test_a_store_of_samples_on_a_server_is_that_of_files(
    run: Any, url: ObjectPath, address: str
) -> None:
    """Bit for bit, and nothing in it or on the screen tells the credentials."""
    options = ("--tile", 32, "--cluster", address)
    code, out, err = run("gram", f"{url}/x.npy", "--out", "there.gram", *options)
    assert code == DONE, err
    assert run("gram", "x.npy", "--out", "here.gram", *options)[0] == DONE
    here, there = files_of(Path("here.gram")), files_of(Path("there.gram"))
    assert here == there
    assert SECRET not in out + err
    assert not any(SECRET.encode() in content for content in there.values())
    code, out, err = run("gram", f"{url}/x.npy", "--out", f"{url}/x.gram", *options)
    assert (code, (url / "x.gram").sizes().keys()) == (DONE, here.keys()), err
    (Path("there.gram") / "gram" / "c" / "0" / "1").unlink()
    words = ("--repair", f"{url}/x.npy", "--cluster", address)
    assert run("verify", "there.gram", *words)[0] == DONE
    assert files_of(Path("there.gram")) == here


def test_a_model_of_samples_on_a_server_is_that_of_files(run: Any, url: ObjectPath) -> None:
    """Trained exactly and by low rank; predictions with the ids and the labels of a table."""
    for kind in ((), ("--rank", 20)):
        for place, out in (("", "here"), (f"{url}/", "there")):
            labels = ("--labels", f"{place}t.csv:class")
            words = (f"{place}t.csv", *labels, "--id-column", "id")
            code, _, err = run("train", *words, "--out", f"{out}.dhsk", *kind)
            assert code == DONE, err
            code, said, err = run("predict", f"{out}.dhsk", *words, "--out", f"{out}.csv")
            assert code == DONE, err
            assert "accuracy" in said
        assert Path("there.csv").read_bytes() == Path("here.csv").read_bytes()
        here, there = np.load("here.dhsk"), np.load("there.dhsk")
        for name in ("rows", "dual_coef", "coef"):
            if name in here:
                np.testing.assert_array_equal(there[name], here[name])


@pytest.mark.slow(seconds=10)
def test_parts_share_on_a_server(run: Any, start: Any, tmp_path: Path, url: ObjectPath) -> None:
    """Processes without a folder in common make the model and the table of one."""
    train = ["train", f"{url}/x.npy", "--labels", f"{url}/y.txt", "--rank", "20"]
    assert run(*train, "--out", "here.dhsk", "--part", "1/1")[0] == DONE
    words = [[*train, "--out", f"{url}/m.dhsk", "--part", f"{number}/2"] for number in (1, 2)]
    processes = [start(tmp_path, part) for part in words]
    said = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [DONE, DONE], said
    assert (url / "m.dhsk").read_bytes() == Path("here.dhsk").read_bytes()
    predict = ["predict", f"{url}/m.dhsk", f"{url}/x.npy", "--out"]
    assert run(*predict, "here.csv")[0] == DONE
    for number in (1, 2):
        code, _, err = run(*predict, f"{url}/p.csv", "--part", f"{number}/2")
        assert code == DONE, err
    assert (url / "p.csv").read_bytes() == Path("here.csv").read_bytes()
    left = [name for name in url.sizes() if ".parts" in name]
    assert sorted(left) == ["m.dhsk.parts/ended.npz", "p.csv.parts/ended.npz"]


@pytest.mark.slow(seconds=10)
def test_parts_write_features_on_a_server(
    run: Any, start: Any, tmp_path: Path, url: ObjectPath
) -> None:
    """Those of files, to the bit; the same command goes on there, and new samples are read."""
    features = ["features", f"{url}/x.npy", "--rank", "20"]
    assert run(*features, "--out", "here", "--part", "1/1")[0] == DONE
    words = [[*features, "--out", f"{url}/z", "--part", f"{number}/2"] for number in (1, 2)]
    processes = [start(tmp_path, part) for part in words]
    said = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [DONE, DONE], said
    here, there = files_of(Path("here")), url / "z"
    assert {name: (there / name).read_bytes() for name in there.sizes()} == here
    code, out, err = run(*features, "--out", f"{url}/whole")
    assert (code, f"next:   dhsk train {url}/whole --labels LABELS" in out) == (DONE, True), err
    code, out, err = run(*features, "--out", f"{url}/whole")
    assert (code, "whole was complete: nothing was computed" in out) == (DONE, True), err
    words = [["features", f"{url}/x.npy", "--by", f"{url}/z", "--out", f"{url}/new"]]
    assert run(*words[0])[0] == DONE
    assert (url / "new" / "c" / "0" / "0").read_bytes() == here["c/0/0"]
    left = [name for name in url.sizes() if ".part" in name]
    assert left == ["z.parts/ended.npz"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [(), ("--rank", "10,20")])
def test_scores_of_samples_on_a_server_are_those_of_files(
    run: Any, url: ObjectPath, kind: Any, address: str
) -> None:
    """Of folds, and of held-out samples with their labels; results and page are there too."""
    found = []
    places: list[tuple[str, Any, str]] = [
        ("", Path("here"), "open here/report.html in a browser"),
        (f"{url}/", url / "there", f"download {url}/there/report.html and open it in a browser"),
    ]
    for place, out, following in places:
        words = (f"{place}x.npy", "--labels", f"{place}y.txt", "--folds", 2, "--C", "1")
        words += ("--time-scale", "0.5,1")
        test = ("--test", f"{place}x.npy", "--test-labels", f"{place}y.txt")
        code, said, err = run("cv", *words, *test, *kind, "--out", out, "--cluster", address)
        assert code == DONE, err
        assert following in said
        assert b"</html>" in (out / "report.html").read_bytes()
        results = json.loads((out / "results.json").read_bytes())
        found.append([row["score"] for row in results["rows"]])
        assert results["samples"]["fingerprint"]
    assert found[0] == found[1]


def test_plans_of_samples_on_a_server(run: Any, url: ObjectPath, own_cache: None) -> None:
    """Their numbers and their labels are read."""
    code, out, err = run("plan", f"{url}/x.npy", "--labels", f"{url}/y.txt", "--rank", 10)
    assert code == DONE, err
    assert f"Gram matrix of {url}/x.npy" in out
    assert "Memory of SVMs, 2 classes" in out
    assert f"dhsk gram {url}/x.npy --out STORE" in out
