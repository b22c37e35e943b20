"""The code on the page does what it says: it is run, and gives the same scores."""

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

import dhsk

GRIDS: dict[str, dict[str, Any]] = {
    "heat": {"time_scale": [0.3, 0.7], "C": [1.0, 3.7]},
    "heat at a time": {"kernels": [dhsk.HeatKernel(dim=9, time=0.05)], "C": 2.0},
    "automatic": {"time_scale": "auto"},
    "another map": {"kernels": "cosine", "C": 10.0, "sphere_map": "projective"},
    "gaussian": {"kernels": [dhsk.GaussianKernel(2.5)], "C": 10.0, "class_weight": "balanced"},
    "scaled columns": {
        "kernels": [dhsk.GaussianKernel(2.5)],
        "C": 10.0,
        "sphere_map": "scaled",
    },
    "polynomial": {
        "kernels": [dhsk.PolynomialKernel(3, 1.5)],
        "C": 0.1,
        "cv": dhsk.StratifiedFolds(4, random_state=3),
    },
    "parametrix": {
        "kernels": [dhsk.ParametrixKernel(0.1)],
        "C": 5.0,
        "fit": dhsk.Fitting(tol=1e-5),
    },
    "an order": {
        "kernels": [dhsk.ParametrixKernel(0.1, order=1, dim=9)],
        "C": 5.0,
        "fit": dhsk.Fitting(indefinite="allow"),
    },
    "repeats": {"time_scale": 0.5, "C": 4.0, "cv": dhsk.StratifiedFolds(4, 2, random_state=5)},
    "low rank": {"time_scale": 0.5, "C": 4.0, "low_rank": dhsk.LowRank(15, loss="logistic")},
}


def code_of(result: dhsk.CvResult, folder: Path) -> list[str]:
    """Blocks of code on the page of a result."""
    result.report(folder / "report.html")
    page = (folder / "report.html").read_text()
    return [html.unescape(text) for text in re.findall("<code>(.*?)</code>", page, flags=re.S)]


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("name", GRIDS)
def test_python_gives_the_same_score(
    name: str, counts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model has the kernel and C of the best cell, the cross-validation its mean."""
    X, y = counts(60, 9), np.repeat(["a", "b"], [35, 25])
    X[35:, :3] += 1
    settings = {"class_weight": GRIDS[name].get("class_weight")}  # those of a command
    result = dhsk.cross_validate(X, y, **{"cv": 4} | GRIDS[name])
    object.__setattr__(result, "settings", settings)
    monkeypatch.chdir(tmp_path)
    names = {"X": X, "y": y, "X_new": X[:3]}
    exec(code_of(result, tmp_path)[0], names)
    assert names["result"].best_score_ == pytest.approx(result.best_score_, abs=1e-12)
    assert len(names["result"].summary) == 1
    found = names["result"].best
    # By its time alone, a heat kernel may have another label.
    assert found.time == pytest.approx(result.best.time)
    assert (found.kernel, found.sigma, found.rank) == (
        result.best.kernel, result.best.sigma, result.best.rank
    )  # fmt: skip
    assert pytest.approx(result.best.C) == names["model"].C
    assert (tmp_path / "model.dhsk").exists()


@pytest.mark.slow
def test_a_splitter_of_the_user_is_left_to_him(counts: Any, tmp_path: Path) -> None:
    """And so are groups."""
    X, y = counts(40, 5), np.tile([0, 1], 20)
    own = dhsk.cross_validate(X, y, time_scale=1.0, C=1.0, cv=[(np.arange(20), np.arange(20, 40))])
    assert "C=1, cv=cv)" in code_of(own, tmp_path)[0]
    grouped = dhsk.cross_validate(
        X, y, time_scale=1.0, C=1.0, cv=3, groups=np.repeat(np.arange(10), 4)
    )
    assert "cv=3, groups=groups" in code_of(grouped, tmp_path)[0]
    ordered = dhsk.cross_validate(X, y, time_scale=1.0, C=1.0, cv=StratifiedKFold(3))
    assert "C=1, cv=cv)" in code_of(ordered, tmp_path)[0]
    rare = np.where(np.arange(40) < 3, 2, y)
    folds = dhsk.StratifiedFolds(3, min_class=10)
    few = dhsk.cross_validate(X, rare, time_scale=1.0, C=1.0, cv=folds)
    assert "cv=dhsk.StratifiedFolds(n_splits=3, min_class=4)" in code_of(few, tmp_path)[0]
