"""Samples of zeros on the command line: one line on standard error, and the rule in the model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.__main__ import BAD_INPUT, DONE


@pytest.fixture
def data(counts: Any) -> tuple[Any, Any, Any]:
    """Samples, four of zeros; the same with ones in these; labels."""
    X = counts(60, 12)
    X[30:, :3] += 2
    X[[0, 7, 33, 59]] = 0
    full = X.copy()
    full[[0, 7, 33, 59]] = 1
    return X, full, np.repeat([0, 1], 30)


@pytest.mark.slow
def test_commands(run: Any, data: Any) -> None:
    """Each says it in one line, and none at all if there are none; the model decides later."""
    X, full, y = data
    np.save("x.npy", X)
    np.save("full.npy", full)
    Path("y.txt").write_text("\n".join(map(str, y)))

    said = "dhsk: 4 of 60 samples of x.npy are all zero"
    grid = ("--time-scale", 0.7, "--folds", 3)
    commands: list[tuple[Any, ...]] = [
        ("gram", "x.npy", "--out", "g"),
        ("train", "x.npy", "--labels", "y.txt", "--out", "m"),
        ("train", "x.npy", "--labels", "y.txt", "--rank", 20, "--out", "r"),
        ("predict", "m", "x.npy", "--out", "p.csv"),
        ("cv", "x.npy", "--labels", "y.txt", *grid, "--rank", 20, "--out", "d"),
    ]
    for words in commands:
        code, _, err = run(*words)
        assert code == DONE
        assert [line.startswith(said) for line in err.splitlines()] == [True], err
        rest = [*words[:-1], f"{words[-1]}-2"]
        code, _, err = run(*("full.npy" if word == "x.npy" else word for word in rest))
        assert (code, err) == (DONE, "")
        if words[0] != "predict":
            code, _, err = run(*rest[:-1], f"{words[-1]}-3", "--zero-rows", "error")
            assert (code, "x.npy: row 0 (counted from 0) is all zero" in err) == (BAD_INPUT, True)
    assert "4 samples, at the centre" in run("info", "g")[1]
    strict = ("train", "full.npy", "--labels", "y.txt", "--zero-rows", "error", "--out", "s")
    assert run(*strict)[0] == DONE
    assert run("predict", "s", "x.npy", "--out", "q.csv")[0] == BAD_INPUT
