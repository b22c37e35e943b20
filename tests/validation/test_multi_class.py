"""Grids of fits of each class against the rest: the scores of scikit-learn, and what is tried."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import dhsk
from dhsk.errors import InputError
from dhsk.results.columns import ONE_VS_REST, Row
from dhsk.results.paired import FoldSizes
from dhsk.validation.grid import MANY_PAIRS, ways_of
from dhsk.validation.halving import Survivors

X, Y = (part[:400] for part in load_digits(return_X_y=True))
KERNEL = dhsk.HeatKernel.at_scale(64, 0.7)
K = KERNEL.of_rows(dhsk.hyperspherical_map(X))
PENALTIES = [0.1, 3.0, 100.0]
TIGHT = 1e-6
NO_METHODS = dhsk.Output(baselines=False)
FOLDS = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))


def grid(**options: Any) -> dhsk.CvResult:
    """A grid of one kernel."""
    given = {"kernels": KERNEL, "C": PENALTIES, "cv": 3, "multi_class": "ovr"} | options
    given.setdefault("fit", dhsk.Fitting(tol=TIGHT))
    return dhsk.cross_validate(X, Y, **given)


def peer(C: float, fold: int) -> tuple[Any, Any]:
    """Decisions of scikit-learn's classifier for what a fold holds out, and its score there."""
    train, test = FOLDS[fold]
    model = OneVsRestClassifier(SVC(kernel="precomputed", C=C, tol=TIGHT))
    model.fit(K[np.ix_(train, train)], Y[train])
    held_out = K[np.ix_(test, train)]
    decisions = np.column_stack([one.decision_function(held_out) for one in model.estimators_])
    return decisions, model.score(held_out, Y[test])


@pytest.mark.parametrize("way", ["stored", "on working sets", "on a client"])
def test_scores_and_decisions_are_those_of_scikit_learn(
    way: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """For each fold and C, however they are computed."""
    options: dict[str, Any] = {}
    if way == "on working sets":
        monkeypatch.setattr("dhsk.models.pair_fits.way_of", lambda *_, **__: "working sets")
        monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 64)
        options["out"] = dhsk.Output(baselines=False, disk="300kB")
    elif way == "on a client":
        options["client"] = request.getfixturevalue("client")
    found = grid(**options)
    for row in found.results_:
        assert row["label"] == f"heat s=0.7{ONE_VS_REST}"
        _, score = peer(row["C"], row["fold"])
        assert row["score"] == pytest.approx(score, abs=1e-12)
        assert row["converged"]
    for C in PENALTIES:
        own = found.out_of_fold(found.best_ | {"C": C})
        for fold in range(3):
            decisions, _ = peer(C, fold)
            mine = own.decisions[own.fold == fold]
            np.testing.assert_allclose(mine, decisions, atol=2e-3 * max(1.0, C**0.5))


def test_each_kernel_has_its_own_matrix() -> None:
    """Fits of one kernel share a matrix, and not with those of the next."""
    other = dhsk.HeatKernel.at_scale(64, 2.0)
    both = grid(kernels=[KERNEL, other]).results_
    alone = [row for kernel in (KERNEL, other) for row in grid(kernels=kernel).results_]
    assert {row["label"] for row in both} == {row["label"] for row in alone}
    values = [
        {(r["label"], r["C"], r["fold"]): (r["score"], r["n_support"], r["vc"]) for r in rows}
        for rows in (both, alone)
    ]
    assert values[0] == values[1]


def test_a_search_tries_both_and_a_given_grid_pairs_alone() -> None:
    """Of three classes and more."""
    families = {cell.kernel for cell in dhsk.cross_validate(X, Y, cv=3, out=NO_METHODS).summary}
    assert families == {
        name + rest for name in ("heat", "cosine", "linear") for rest in ("", ONE_VS_REST)
    }
    assert {cell.kernel for cell in grid(multi_class="auto").summary} == {"heat"}
    two = np.minimum(Y, 1)
    for way in ("auto", "ovr"):
        found = dhsk.cross_validate(
            X, two, kernels=KERNEL, C=1.0, cv=3, multi_class=way, out=NO_METHODS
        )
        assert {cell.kernel for cell in found.summary} == {"heat"}


def test_the_model_is_fitted_as_its_cell_was() -> None:
    """And scored by its greatest decision; the estimator has the parameter."""
    used, rest = np.arange(300), np.arange(300, 400)
    taken = dhsk.Refit("best", test=(X[rest], Y[rest]))
    found = dhsk.cross_validate(
        X[used], Y[used], kernels=KERNEL, C=3.0, cv=3, multi_class="ovr", refit=taken
    )
    model = found.best_estimator_
    assert model.multi_class == "ovr"
    alone = dhsk.HeatSVC(3.0, 0.7, multi_class="ovr").fit(X[used], Y[used])
    np.testing.assert_allclose(
        model.decision_function(X[rest]), alone.decision_function(X[rest]), atol=5e-3
    )
    assert found.test is not None
    assert found.test.score == pytest.approx(alone.score(X[rest], Y[rest]), abs=0.011)


def test_probabilities_are_those_of_each_class() -> None:
    """Sigmoids of the other folds' decisions, scaled to sum to one."""
    found = grid(scoring="neg_log_loss", C=[3.0])
    assert np.isfinite([row["score"] for row in found.results_]).all()
    uniform = -log_loss(Y, np.full((len(Y), 10), 0.1))
    assert found.best_score_ > 0.5 * uniform  # losses are negative


def rows_of(label: str, scores: Any, C: float = 1.0) -> list[Row]:
    """Rows of a cell, fold by fold."""
    proof = {"seconds": 1.0, "converged": True, "n_iter": 1, "gap": 0.0, "n_support": 1.0}
    return [
        Row(kernel=label, label=label, C=C, fold=fold, score=score, **proof)
        for fold, score in enumerate(scores)
    ]


@pytest.mark.parametrize(
    ("rest", "goes_on"),
    [
        ([0.84, 0.86, 0.83, 0.85, 0.87], ["heat" + ONE_VS_REST]),
        ([0.81, 0.81, 0.80, 0.80, 0.80], ["heat", "heat" + ONE_VS_REST]),
        ([0.80, 0.80, 0.79, 0.80, 0.81], ["heat", "heat" + ONE_VS_REST]),
        ([0.70, 0.71, 0.69, 0.70, 0.72], ["heat"]),
    ],
    ids=["better", "hardly better", "hardly worse", "worse"],
)
def test_both_ways_go_on_where_neither_is_better(rest: Any, goes_on: list[str]) -> None:
    """By more than a standard error; of one-vs-rest, which takes longer on all, the best C."""
    rows = []
    for label, scores in (("heat", [0.8, 0.81, 0.79, 0.8, 0.81]), ("heat" + ONE_VS_REST, rest)):
        rows += rows_of(label, scores) + rows_of(label, np.array(scores) - 0.02, 2.0)
    found = Survivors.of(rows, FoldSizes(5, 1, 800.0, 200.0, 1000, True), last=True)
    assert list(found.C) == goes_on
    assert list(found.C.values()) == [(1.0, 2.0), (1.0,)][: len(goes_on)]


def test_of_kinds_that_are_not_the_best_one_way_goes_on() -> None:
    """The second way takes time, and would not win."""
    both = [
        *rows_of("cosine", [0.8, 0.79, 0.8, 0.8, 0.81]),
        *rows_of("cosine" + ONE_VS_REST, [0.8, 0.8, 0.79, 0.8, 0.81]),
    ]
    rows = [*both, *rows_of("heat", [0.81, 0.79, 0.8, 0.82, 0.81])]
    found = Survivors.of(rows, FoldSizes(5, 1, 800.0, 200.0, 1000, True), last=True)
    assert sorted(found.C) == ["cosine", "heat"]


def test_another_name_is_refused() -> None:
    """Before any work."""
    with pytest.raises(InputError, match="'auto', 'ovo' or 'ovr', but it is 'all'"):
        grid(multi_class="all")


def test_a_search_of_many_classes_tries_no_pairs() -> None:
    """Of 64 classes there are more than are worth it, of 63 not; who asks for them gets them."""
    assert 63 * 62 // 2 <= MANY_PAIRS < 64 * 63 // 2
    assert ways_of("auto", 63, search=True) == ("ovo", "ovr")
    assert ways_of("auto", 64, search=True) == ("ovr",)
    assert ways_of("auto", 10, search=False) == ("ovo",)
    assert ways_of("auto", 11, search=False) == ("ovr",)
    assert ways_of("ovo", 64, search=True) == ("ovo",)
