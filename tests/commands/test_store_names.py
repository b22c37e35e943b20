"""Commands on Gram stores take samples whose columns are in another order."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

import dhsk
from dhsk.__main__ import BAD_INPUT, BAD_STORE, DONE
from dhsk.gram.storage.store import GramStore

DIM = 8
NAMES = [f"w{i}" for i in range(DIM)]


def tiles_of(store: Path) -> dict[str, bytes]:
    """Every chunk of the matrix, as it lies on the disk."""
    return {str(f): f.read_bytes() for f in sorted((store / "gram" / "c").glob("*/*"))}


@pytest.mark.slow
def test_commands_on_a_store_put_columns_in_order(run: Any, counts: Any) -> None:
    """`dhsk gram` again, `info`, `verify --repair`, `cv STORE` with test samples, its model."""
    X = counts(30, DIM)
    X[15:, :3] += 9
    y = np.repeat(["a", "b"], 15)
    frame = pd.DataFrame(X, columns=NAMES)
    frame.to_csv("x.csv", index=False)
    frame[NAMES[::-1]].to_csv("r.csv", index=False)
    frame.rename(columns={"w2": "two"}).to_csv("z.csv", index=False)
    Path("y.txt").write_text("\n".join(y))

    gram = ("--kernel", "cosine", "--tile", 8, "--out", "g")
    assert run("gram", "x.csv", *gram)[0] == DONE
    assert "features  w0, w1, w2, w3, w4, ... (8)\n" in run("info", "g")[1]
    whole = tiles_of(Path("g"))
    GramStore.open(Path("g")).remove_tile(0, 2)
    assert run("gram", "r.csv", *gram)[0] == DONE
    code, _, err = run("gram", "z.csv", *gram)
    assert (code, "lacks 1 of the 8 features of g (w2)" in err) == (BAD_INPUT, True)
    GramStore.open(Path("g")).remove_tile(0, 2)
    assert run("verify", "g", "--repair", "z.csv")[0] == BAD_STORE
    assert run("verify", "g", "--repair", "r.csv")[0] == DONE
    assert tiles_of(Path("g")) == whole
    words = ("--labels", "y.txt", "--time-scale", 1, "--C", 10, "--folds", 3, "--model")
    code, out, _ = run("cv", "g", *words, "--test", "r.csv", "--test-labels", "y.txt",
                       "--out", "o")  # fmt: skip
    assert code == DONE
    score = float(out.split("test:   accuracy ")[1].split()[0])
    for file in ("x.csv", "r.csv"):
        assert run("predict", "o/model.dhsk", file, "--decision", "--out", f"{file}.o")[0] == DONE
    assert Path("x.csv.o").read_text() == Path("r.csv.o").read_text()
    K = np.asarray(dhsk.HeatKernel.at_scale(DIM, 1.0)(dhsk.hyperspherical_map(X)))
    expected = SVC(C=10, kernel="precomputed").fit(K, y).predict(K)
    assert pd.read_csv("x.csv.o")["label"].tolist() == expected.tolist()
    assert score == pytest.approx(np.mean(expected == y), abs=5e-5)  # as it is printed
