"""`--multi-class`: fits of each class against the rest at the command line."""

import html
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE

GRID = ("--kernel", "heat", "--time-scale", "0.7", "--C", "1,10", "--folds", 3)


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Images of five digits in files."""
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(n_class=5, return_X_y=True)
    np.save("x.npy", X[:300])
    Path("y.txt").write_text("\n".join(map(str, y[:300])))
    return X, y


def test_a_grid_and_its_model_are_against_the_rest(run: Any, digits: Any) -> None:
    """The page has the command that trains it again, and `info` says what it is."""
    cv = ("cv", "x.npy", "--labels", "y.txt", *GRID, "--multi-class", "ovr", "--model")
    code, out, _ = run(*cv, "--out", "found")
    assert code == DONE
    assert "heat s=0.7, one-vs-rest" in out
    assert "--multi-class ovr" in Path("found/report.html").read_text()
    model = dhsk.HeatSVC.load("found/model.dhsk")
    assert model.dual_coef_.shape[0] == 5
    code, out, _ = run("info", "found/model.dhsk")
    assert (code, "classes against the rest" in out) == (DONE, True)
    code, out, _ = run("predict", "found/model.dhsk", "x.npy", "--decision", "--out", "p.csv")
    assert code == DONE
    head = Path("p.csv").read_text().splitlines()[0]
    assert head.count("decision_") == 5


def test_training_is_against_the_rest(run: Any, digits: Any) -> None:
    """As the estimator does it."""
    X, y = digits
    train = ("train", "x.npy", "--labels", "y.txt", "--time-scale", "0.7", "--C", "10")
    code, out, _ = run(*train, "--multi-class", "ovr", "--out", "m")
    assert (code, "one-vs-rest" in out) == (DONE, True)
    alone = dhsk.HeatSVC(10.0, 0.7, multi_class="ovr").fit(X[:300], y[:300].astype(str))
    found = dhsk.HeatSVC.load("m")
    np.testing.assert_allclose(found.decision_function(X), alone.decision_function(X), atol=2e-3)


def test_many_classes_are_trained_against_the_rest(run: Any, digits: Any) -> None:
    """Unless pairs are asked for, as the command on the page of their search does."""
    y = np.arange(300) % 12
    Path("twelve.txt").write_text("\n".join(map(str, y)))
    train = ("train", "x.npy", "--labels", "twelve.txt", "--time-scale", "0.7", "--C", "10")
    code, out, _ = run(*train, "--out", "m")
    assert (code, "one-vs-rest" in out) == (DONE, True)
    code, out, _ = run(*train, "--multi-class", "ovo", "--out", "n")
    assert (code, "one-vs-rest" in out) == (DONE, False)
    cv = ("cv", "x.npy", "--labels", "twelve.txt", *GRID, "--model", "--out")
    for way, given in (("ovr", ()), ("ovo", ("--multi-class", "ovo"))):
        assert run(*cv, way, *given)[0] == DONE
        page = html.unescape(Path(way, "report.html").read_text())
        assert f"--multi-class {way}" in page
        assert page.count(f"multi_class='{way}'") == page.count("multi_class=") == 2
        assert dhsk.HeatSVC.load(f"{way}/model.dhsk").model_.multi_class == way


def test_low_rank_has_no_choice(run: Any, digits: Any) -> None:
    """It is always against the rest."""
    train = ("train", "x.npy", "--labels", "y.txt", "--rank", 20, "--out", "m")
    code, _, err = run(*train, "--multi-class", "ovo")
    assert (code, "not for --rank" in err) == (BAD_INPUT, True)
