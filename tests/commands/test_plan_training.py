"""`dhsk plan` on classifiers: the memory that the run records, and seconds from pilot fits."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from dhsk.__main__ import BAD_INPUT, DONE
from dhsk.planning.pilot import Pilot

N = 600


@pytest.fixture(autouse=True)
def exact_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Print bytes in full, of a process that holds as much as a command does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for place in ("planning.training", "commands.train"):
        monkeypatch.setattr(f"dhsk.{place}.format_bytes", str)
    for place in ("limits", "memory"):
        monkeypatch.setattr(f"dhsk.execution.{place}.held_bytes", lambda: 3 * 10**8)


@pytest.fixture(params=["x.npy", "x.npz"])
def file(request: Any, run: Any, rng: np.random.Generator) -> str:
    """Samples of three classes, dense or sparse, some rows much longer than others."""
    del run  # it goes to an empty folder
    y = np.arange(N) % 3
    X = rng.poisson(rng.gamma(0.3, size=(N, 40)) * (1 + (np.arange(40) % 3 == y[:, None])))
    X[:, 0] += 1
    np.savetxt("y.txt", y, fmt="%d")
    if request.param == "x.npy":
        np.save("x.npy", X)
    else:
        save_npz("x.npz", csr_array(X.astype(float)))
    return str(request.param)


def planned(out: str) -> dict[str, str]:
    """Memory of one model by the name of the way."""
    rows = re.findall(r"^(exact|rank [\d,]+) +(\d+|-) ", out, re.MULTILINE)
    return dict(rows)


@pytest.mark.parametrize(("way", "words"), [("exact", []), ("rank 40", ["--rank", "40"])])
def test_the_plan_says_what_the_run_records(
    run: Any, file: str, way: str, words: list[str]
) -> None:
    """To the byte."""
    code, out, _ = run("plan", file, "--classes", 3, "--memory", "2GB", "--rank", 40)
    assert code == DONE
    train = ["train", file, "--labels", "y.txt", "--out", "m", "--memory", "2GB"]
    code, said, _ = run(*train, *words)
    assert code == DONE
    (recorded,) = re.findall(r"^memory: \d+ at the peak, (\d+) predicted$", said, re.MULTILINE)
    assert planned(out)[way] == recorded


def test_labels_give_seconds(run: Any, file: str, monkeypatch: Any) -> None:
    """A range for one model and for the grid, of exact fits and of the ranks that were named."""
    given = []

    def pilot(samples: Any, labels: Any, fit: Callable[..., Any], smallest: int, **_: Any) -> Pilot:
        fit(samples, labels)  # the real one
        given.append((type(fit.__self__).__name__, smallest))  # type: ignore[attr-defined]
        return Pilot([100, 200, 300], [1.0, 2.0, 3.0])

    monkeypatch.setattr("dhsk.commands.plan_training.run_pilot", pilot)
    code, out, _ = run("plan", file, "--labels", "y.txt", "--rank", 40, "--grid", "5,3,2", "--C", 2,
                       "--verbose")  # fmt: skip
    assert code == DONE
    assert given == [("HeatSVC", 256), ("NystromSVC", 256)]
    assert "3 classes: one model, and a grid search of 5 folds x 3 C x 2 kernels" in out
    assert "memory of exact: process " in out
    assert "memory of rank 40: process " in out
    assert "pilot of exact, C = 2: 100 samples in 1 s, 200 samples in 2 s" in out
    assert "Seconds for all 600 samples, an extrapolation of the pilot fits" in out
    for name in ("exact", "rank 40"):
        assert re.search(rf"^{name} +\d[\d.]* s to \d[\d.]* s +.* min .* s to .* s$", out, re.M)
    assert "31 fits, one after the other" in out
    assert "for seconds give labels" not in out


@pytest.mark.slow
def test_a_rank_with_too_few_samples_is_said(run: Any, file: str, monkeypatch: Any) -> None:
    """The other ways have their seconds all the same."""
    quick = Pilot([256, 512], [0.1, 0.2])
    real = "dhsk.commands.plan_training.run_pilot"
    monkeypatch.setattr("dhsk.planning.pilot.SECONDS", 0.0)
    code, out, _ = run("plan", file, "--labels", "y.txt", "--rank", 200)
    assert code == DONE
    assert "rank 200: pilot fits need 800 samples or more, but there are 600: train on" in out
    monkeypatch.setattr(real, lambda *_, **__: quick)
    monkeypatch.setattr("dhsk.commands.plan_training.MOST_PILOT_RANK", 30)
    out = run("plan", file, "--labels", "y.txt", "--rank", 40)[1]
    assert "rank 40: pilot fits of ranks above 30 would take too long" in out
    assert re.search(r"^exact +0", out, re.M)


def test_few_samples_are_planned_without_seconds(run: Any) -> None:
    """The memory is told, and that fits need no pilot; there is no empty table."""
    np.save("few.npy", np.eye(4)[np.arange(40) % 4] + 1)
    np.save("few-y.npy", np.arange(40) % 2)
    code, out, _ = run("plan", "few.npy", "--labels", "few-y.npy")
    assert code == DONE
    assert "exact: pilot fits need 512 samples or more, but there are 40: train on all" in out
    assert "memory of exact: process " not in out
    assert "exact: as scikit-learn's SVC" in out
    assert "Seconds for all" not in out


def test_what_does_not_fit_has_no_seconds(run: Any, file: str) -> None:
    """It says so in the table."""
    code, out, _ = run("plan", file, "--labels", "y.txt", "--memory", "250MB", "--rank", 40)
    assert code != DONE  # nor does the matrix
    assert planned(out) == {"exact": "-", "rank 40": "-"}
    assert "pilot of" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x.npy", "--labels", "few.txt"], "600 samples"),
        (["x.npy", "--labels", "same.txt"], "same.txt: all 600 labels are 1"),
        (["x.npy", "--labels", "y.txt", "--classes", "3"], "--labels goes with SAMPLES"),
        (["--n", "600", "--dim", "40", "--labels", "y.txt"], "--labels goes with SAMPLES"),
    ],
)
def test_labels_that_cannot_be_used(run: Any, words: list[str], message: str) -> None:
    """Refused before anything is shown."""
    np.save("x.npy", np.ones((N, 4)))
    np.savetxt("y.txt", np.arange(N) % 3, fmt="%d")
    np.savetxt("few.txt", np.arange(300) % 3, fmt="%d")
    np.savetxt("same.txt", np.ones(N), fmt="%d")
    code, out, err = run("plan", *words)
    assert (code, out) == (BAD_INPUT, "")
    assert message in err
