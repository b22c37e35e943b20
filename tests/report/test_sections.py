"""What a page says of scorers, fits that stopped early, capacity, bounds, and optional parts."""

import re
from typing import Any

import numpy as np
import pytest

from dhsk.report.words import brief, duration, give_or_take, score
from dhsk.results.parts import Results
from dhsk.results.schema import read_results

REFIT = {"n_support": 310, "kkt": 0.0008, "gap": 0.0003, "converged": True, "seconds": 12.1,
         "n_iter": 900,
         "margin": 0.021, "vc": 1210, "effective": 4.1}  # fmt: skip

TEST = {"score": 0.875, "n": 8, "confusion": [[3, 1], [0, 4]], "seconds": 0.8}

STAGES = [
    {"time_scales": [0.25, 1.0, 4.0], "C": [1.0, 10.0], "C_scaled": [],
     "why": "Look closer about 1.", "best": {"label": "heat s=1", "mean": 0.912}},
    {"time_scales": [0.7, 1.4], "C": [10.0], "C_scaled": [],
     "why": "Nothing better was found.", "best": {"label": "heat s=0.7", "mean": 0.907}},
    {"time_scales": [], "C": [100.0], "C_scaled": [],
     "why": "The largest C was best.", "best": {"label": "heat s=0.7", "mean": 0.901}},
]  # fmt: skip


@pytest.fixture(scope="module")
def everything(results: Any) -> Any:
    """Results with all optional parts, another scorer and bounds of the eigenvalues."""
    cell = next(cell for cell in results()["summary"] if cell["C"] == 10.0)
    search = [stage | {"best": cell | stage["best"]} for stage in STAGES]
    parts = {"test": TEST, "refit": REFIT, "search": search}
    return results(scoring="roc_auc", eigenvalues_exact=False, **parts)


@pytest.fixture(scope="module")
def full_source(everything: Any, written: Any) -> Any:
    """Their page."""
    return written(everything)


@pytest.fixture(scope="module")
def full(everything: Any, page_of: Any) -> Any:
    """The same page, parsed."""
    return page_of(everything)


def stopped(data: dict[str, Any], label: str, C: float, folds: int) -> dict[str, Any]:
    """Return the results with fits of one cell that did not converge on the first folds."""
    for row in data["summary"] + data["rows"]:
        if (row["label"], row["C"]) == (label, C) and row.get("fold", 0) < folds:
            row["converged"] = False
    return data


def sections(text: str) -> list[str]:
    """Return the titles of the sections."""
    return re.findall("<h2>(.*?)</h2>", text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scoring", "word", "heading"),
    [
        ("roc_auc", "ROC AUC", "ROC AUC by fold"),
        ("f1_macro", "f1 macro", "F1 macro by fold"),
    ],
)
def test_the_score_is_called_as_its_scorer(
    scoring: str, word: str, heading: str, results: Any, written: Any, page_of: Any
) -> None:
    """First sentence, tile, headings, axes and their descriptions use the name of the scorer."""
    data = results(scoring=scoring)
    page = page_of(data)
    assert f"mean {word} 0.928 (std 0.006) over 5 folds" in page.text
    assert heading in sections(written(data))
    assert f"Mean {word} over 5 folds" in page.text
    for said in (word, f"mean {word}", f"Mean {word}, heat", heading):
        assert said in page.words  # axes of folds and capacity, titles of heat map and folds
    assert "accuracy" not in page.words


def test_the_accuracy_keeps_its_name(page: Any, source: str) -> None:
    """Accuracy by fold, and on the axes of the folds and of capacity."""
    assert "Accuracy by fold" in sections(source)
    assert {"accuracy", "mean accuracy"} <= set(page.words)


def test_another_score_is_compared_with_the_accuracy(full: Any) -> None:
    """The share of the largest class is a baseline of the accuracy only."""
    assert "accuracy of the same fits: 0.900" in full.text
    assert "largest class" not in full.text


@pytest.mark.slow
def test_scores_may_be_negative(results: Any, written: Any, page_of: Any) -> None:
    """All scores below zero: map, table, axes and colours as of any others."""
    data = results(scoring="neg_log_loss")
    for row in data["summary"]:
        row["mean"] -= 3
    for row in data["rows"]:
        row["score"] -= 3
    page = page_of(data)
    for cell in data["summary"]:
        assert page.words.count(f"−{-cell['mean']:.3f}") >= 2
    assert "heat kernel at time scale 1, C = 10: mean neg log loss −2.072 (std" in page.text
    assert "−2.500 −2.072" in page.text  # the ends of the colour scale
    assert "-2." not in page.text
    heat_map = written(data).split("<svg")[1]
    assert {"fill: #440154", "fill: #fde725"} <= set(re.findall("fill: #[0-9a-f]+", heat_map))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (score(-0.0004), "0.000"),
        (score(-12.5), "−12.500"),
        (brief(None), "–"),
        (brief(0.01234), "0.0123"),
        (brief(999.4), "999"),
        (brief(123456), "123,456"),
        (duration(0.5), "0.5\N{NO-BREAK SPACE}s"),
        (duration(59.6), "59.6\N{NO-BREAK SPACE}s"),
        (duration(185.2).replace("\N{NO-BREAK SPACE}", " "), "3 min 5 s"),
        (duration(7800).replace("\N{NO-BREAK SPACE}", " "), "2 h 10 min"),
    ],
)
def test_numbers_read_well(found: str, words: str) -> None:
    """No minus zero, no exponents in counts, a dash for nothing, a unit with its number."""
    assert found == words


@pytest.mark.slow
def test_the_table_has_gap_and_bounds(results: Any, page_of: Any) -> None:
    """Duality gap, VC bound and effective sample size of a cell stand in its row."""
    data = results()
    data["summary"][6] |= {"gap": 0.0123, "vc": 4321, "effective": 1.75}
    table = page_of(data).text.split("All candidates")[1]
    assert "support tol reached gap VC bound effective size fits" in table
    assert "heat s=1 10 0.928 0.006 1,240 0.00093 0.012 4,321 1.75 6.1 s" in table


@pytest.mark.slow
def test_fits_that_did_not_converge_are_told(results: Any, page_of: Any, page: Any) -> None:
    """The head counts the fits and says what helps; the table marks their cells."""
    assert "converge" not in page.text
    text = page_of(stopped(results(tol=0.002), "heat s=0.7", 100.0, folds=2)).text
    head, table = text.split("Every kernel at every C")[0], text.split("All candidates")[1]
    assert "2 of 60 fits on the folds (1 candidate) did not converge." in head
    told = text.split("Fits that did not converge")[1].split("All candidates")[0]
    assert "was above the tolerance of 0.002" in told
    assert "heat s=0.7 100 2 of 5 0.00093 0.600" in told
    assert "Nothing, if you only want a model: the best candidate that converged, heat s=1" in told
    assert "with --tol 0.001 (tol=0.001 in Python) these fits count as converged" in told
    assert "more memory (--memory) also helps" in told
    assert "heat s=0.7 2 of 5 fits not converged 100 0.600" in table
    assert table.count("not converged") == 1


@pytest.mark.slow
def test_a_best_cell_that_did_not_converge_is_told(results: Any, page_of: Any) -> None:
    """The head says that the winner itself is in doubt, on the folds and in its refit."""
    data = stopped(results(refit=REFIT | {"converged": False}), "heat s=1", 10.0, folds=5)
    text = page_of(data).text
    said = "5 of 60 fits on the folds (1 candidate), the taken candidate's among them, and the"
    assert f"{said} refit of the taken candidate did not converge" in text
    assert "converged no" in text.split("Refit of the taken candidate")[-1]
    only = page_of(results(refit=REFIT | {"converged": False})).text
    assert "The refit of the taken candidate did not converge" in only


@pytest.mark.slow
def test_capacity_shows_a_mark_for_every_cell(results: Any, written: Any, page_of: Any) -> None:
    """Score against effective sample size: kernels in a legend, and the winner's own bounds."""
    data = results(("heat s=1", "cosine"))
    page = page_of(data)
    text = page.text.split("Capacity")[1]
    assert "8 candidates, coloured by kernel." in text
    assert "The taken candidate: margin 0.0625, VC bound 258, effective sample size 2.35." in text
    assert "upper bound" in text
    assert "lower bound" in text
    assert {"heat", "cosine", "taken", "effective sample size"} <= set(page.words)
    figure = written(data).split("<h2>Capacity")[1].split("</svg>")[0]
    # 8 cells, the ring, three marks of the legend, and two ticks at least.
    assert figure.count("<use ") >= 8 + 1 + 3 + 2


@pytest.mark.slow
@pytest.mark.parametrize("size", [2.5, None])
def test_capacity_that_tells_nothing_is_left_out(size: Any, results: Any, written: Any) -> None:
    """One effective sample size for all cells, or none, gives no figure."""
    data = results()
    for row in data["summary"]:
        row |= {"effective": size, "vc": None, "margin": None}
    text = written(data)
    assert "Capacity" not in sections(text)
    assert "None" not in text.split("</style>")[1].replace("'none'", "")


@pytest.mark.slow
def test_cells_without_a_size_have_no_mark(results: Any, page_of: Any) -> None:
    """Where the capacity of some cells is not known, the figure shows the others."""
    data = results()
    data["summary"][6] |= {"effective": None, "vc": None, "margin": None}
    page = page_of(data)
    assert "11 candidates, coloured by kernel." in page.words
    assert "taken" not in page.words
    assert "The taken candidate: margin –, VC bound –, effective sample size –." in page.text


@pytest.mark.slow
def test_a_long_range_of_capacity_is_logarithmic(results: Any, page_of: Any) -> None:
    """From 1 to 5000 samples a unit, every power of ten has its tick."""
    data = results()
    for k, row in enumerate(data["summary"]):
        row["effective"] = 5000.0 ** (k / 11)
    words = page_of(data).words
    figure = words[words.index("Mean accuracy against effective sample size") :]
    assert {"1", "10", "100", "1000"} <= set(figure[: figure.index("effective sample size")])


def test_the_held_out_test_is_shown(full: Any) -> None:
    """Its score stands in the first sentence, its classes and its matrix in a section."""
    assert "over 5 folds, 0.875 on 8 held-out samples" in full.text
    text = full.text.split("Held-out test")[1]
    assert "ROC AUC 0.875 on 8 samples that took no part" in text
    assert "course 4 1.000 0.750 0.857 faculty (1)" in text  # 3/3, 3/4, 6/7
    assert "faculty 4 0.800 1.000 0.889 –" in text  # 4/5, 4/4, 8/9
    assert "Confusion matrix of the held-out test" in full.words
    assert "7 of 8 samples lie on the diagonal." in full.words
    ids = full.values("id")
    assert len(ids) == len(set(ids))


def test_the_refit_has_its_certificate(full: Any) -> None:
    """Each number of the refit is told, with the tolerance that was asked for."""
    text = full.text.split("Refit of the taken candidate")[1]
    assert (
        "converged yes tol reached 0.0008; tolerance 0.001 duality gap 0.0003 of the "
        "primal objective support vectors 310 margin 0.021 VC bound 1,210 effective sample size "
        "4.1 time 12.1 s"
    ) in text


def test_the_search_is_told_round_by_round(full: Any) -> None:
    """What was tried, the best of it and what followed, in the order of the search."""
    text = full.text.split("What was tried")[1]
    assert "sought in 2 rounds, C in 1 more." in text
    first = "1 0.25, 1, 4 1, 10 heat s=1, C = 10 0.912 Look closer about 1."
    assert f"{first} 2 0.7, 1.4 10 heat s=0.7, C = 10 0.907 Nothing better was found." in text


@pytest.mark.slow
def test_parts_that_are_not_there_are_left_out(
    results: Any, written: Any, full_source: str
) -> None:
    """Without test, refit and search, or with None for them, there is no trace of them."""
    absent = {"Held-out test", "Refit of the taken candidate", "What was tried"}
    text = written(results())
    assert absent.isdisjoint(sections(text))
    assert "held-out" not in text
    assert written(results(test=None, refit=None, search=[])) == text
    assert absent <= set(sections(full_source))


def test_lower_bounds_of_eigenvalues_are_called_so(full: Any, page: Any) -> None:
    """Ritz values are named in the text and in both figures; exact ones are not."""
    assert "lower bounds" not in page.text.split("Eigenvalues of the taken kernel")[1]
    assert "together at least 70.5 % of the trace (50 % with at most 1)" in full.text
    assert "Ritz values: lower bounds of the eigenvalues" in full.text
    assert "Eigenvalues (lower bounds)" in full.words
    assert "Cumulative share of the trace (lower bounds)" in full.words


@pytest.mark.slow
def test_the_page_of_everything_is_the_same_every_time(
    everything: Any, full_source: str, written: Any
) -> None:
    """With all optional parts too, the same data give the same bytes."""
    assert written(dict(reversed(everything.items()))) == full_source


def test_worst_rows_are_counted_cell_by_cell(results: Any) -> None:
    """A cell knows how many of its own folds stopped."""
    read = read_results(Results, stopped(results(), "heat s=1.4", 1.0, folds=3))
    found = {(c.label, c.C): (read.unfinished(c), c.converged) for c in read.cells}
    assert found.pop(("heat s=1.4", 1.0)) == (3, False)
    assert set(found.values()) == {(0, True)}


def scaled_results(results: Any) -> Any:
    """A search whose C were chosen in units of the spread, raw C from 0.5 to 1e13."""
    data = results(kernels=("heat s=0.5", "heat s=1", "heat s=2", "heat s=4"), C=(0.5, 1.5, 5.0))
    spreads = {"heat s=0.5": 1.0, "heat s=1": 0.5, "heat s=2": 1e-5, "heat s=4": 5e-13}
    highest = next(row for row in data["summary"] if row["label"] == "heat s=4" and row["C"] == 5.0)
    near = next(row for row in data["summary"] if row["label"] == "heat s=1" and row["C"] == 1.5)
    highest["mean"], near["mean"] = 0.96, 0.958
    for row in data["rows"]:
        if (row["label"], row["C"]) in (("heat s=4", 5.0), ("heat s=1", 1.5)):
            apart = [0.001, -0.003, 0.004, -0.001, -0.001][row["fold"]]
            row["score"] = 0.96 if row["C"] == 5.0 else 0.958 + 2 * apart
    for row in (*data["summary"], *data["rows"]):
        row["C_scaled"], row["C"] = row["C"], row["C"] / spreads[row["label"]]
    trial = {"time_scales": [0.5, 1.0, 2.0, 4.0], "C": [row["C"] for row in data["summary"]],
             "C_scaled": [0.5, 1.5, 5.0], "best": highest, "why": "why"}  # fmt: skip
    ended = "ended: from 2 on the kernel is linear, and larger times change nothing"
    return data | {"best": highest, "search": [trial], "search_ended": ended}


@pytest.mark.parametrize(
    ("deviation", "shown"), [(0.006, "0.006"), (0.0005, "0.001"), (0.0004, "0.0004"), (0, "0.000")]
)
def test_deviations_that_are_not_zero_are_not_shown_as_zero(deviation: float, shown: str) -> None:
    """With one digit, where three decimals have none."""
    assert give_or_take(0.999, deviation) == f"0.999\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{shown}"


@pytest.mark.slow
def test_grid_of_a_search_is_a_rectangle(results: Any, page_of: Any) -> None:
    """C in units of the spread is one axis, the time scale the other; raw C is in the table."""
    page = page_of(scaled_results(results))
    words = page.words
    figure = words[words.index("Mean accuracy, heat") :]
    figure = figure[: figure.index("What was tried")]
    assert "C × variance under the kernel" in figure
    shown = [word.strip() for word in figure if word.strip()]
    # Every kernel at every C: none is left out, and nothing but its score is in a cell.
    assert sum(re.fullmatch(r"0\.\d{3}", word) is not None for word in shown) == 12
    columns = sorted(word for word in shown if word in ("0.5", "1.5", "5"))
    assert columns == ["0.5", "0.5", "1.5", "5"]
    table = page.text.split("All candidates")[1]
    assert {"1e13", "500000"} <= set(table.split())


@pytest.mark.slow
def test_a_grid_of_many_C_is_no_empty_map(results: Any, page_of: Any) -> None:
    """Where each kernel has values of C of its own, the columns count them."""
    data = results()
    factors = {"heat s=0.7": 1.0, "heat s=1": 2.5, "heat s=1.4": 7.0}
    for row in (*data["summary"], *data["rows"]):
        row["C"] *= factors[row["label"]]
    page = page_of(data)
    assert "number of the row's C, smallest first" in page.words
    assert "C" not in page.words[: page.words.index("Accuracy by fold")]


@pytest.mark.slow
def test_a_search_is_told(results: Any, page_of: Any) -> None:
    """Where it ended, and raw C."""
    text = page_of(scaled_results(results)).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "Best and taken: heat kernel at time scale 4, C = 1e13 (5 / variance)" in text
    assert "the outlined candidate is the best, and taken." in text
    assert "The search ended: from 2 on the kernel is linear" in text
    assert "0.5, 1.5, 5 / variance" in text
    assert "largest time scale" not in text
    assert "C × variance" in text
    assert "Best first" in text
    assert "/ variance" not in page_of(results()).text


@pytest.mark.slow
def test_cells_that_cannot_be_told_apart_are_named(results: Any, page_of: Any) -> None:
    """Dots mark them, and words say that they differ by less than a colour can show."""
    data = scaled_results(results)
    page = page_of(data)
    said = "The 2 candidates with a dot are within one standard error of the highest mean"
    paired = "that of differences paired over the folds as in the decision"
    assert f"{said}, {paired}: these folds cannot tell them apart" in page.text
    assert "Their means differ by 0.002, too little for a colour to show." in page.text
    assert "with a dot" not in page_of(results()).text


@pytest.mark.slow
def test_code_for_the_best_cell(results: Any, page_of: Any, page: Any) -> None:
    """Python for every run, commands for those of the command line, all digits of C in both."""
    assert "dhsk.HeatSVC(C=10, time_scale=1).fit(X, y)" in page.text
    assert "dhsk.cross_validate(X, y, time_scale=1, C=10, cv=5)" in page.text
    assert "dhsk train" not in page.text
    data = results(("cosine", "gaussian sigma=2"), C=(10.0, 0.1 + 0.2))
    data["settings"] = {"seed": 7, "class_weight": "balanced"}
    data["samples"]["source"] = "my counts.npz"
    text = page_of(data).text
    assert "kernel=dhsk.GaussianKernel(2), class_weight='balanced').fit" in text
    assert "dhsk train 'my counts.npz' --labels LABELS --kernel gaussian --sigma 2 --C 10" in text
    assert "--class-weight balanced --folds 5 --seed 7 --out again" in text


def scores_by_fold(data: Any, scores: dict[str, list[float]]) -> Any:
    """Results of one C with these scores of the folds, by kernel."""
    for row in data["rows"]:
        row["score"] = scores[row["label"]][row["fold"]]
    for row in data["summary"]:
        own = scores[row["label"]]
        row["mean"], row["std"] = float(np.mean(own)), float(np.std(own))
    highest = max(data["summary"], key=lambda row: row["mean"])
    return data | {"best": highest, "choice": {"rule": "best", "left_out": 0}}


HARD = [0.5, 0.6, 0.7, 0.8, 0.9]
"""Folds that differ much: a standard error of 0.07."""

BY_FOLD = {
    "heat s=1": HARD,
    "heat s=2": [0.51, 0.59, 0.71, 0.79, 0.89],
    "cosine": [0.48, 0.59, 0.68, 0.79, 0.88],
    "linear": [0.1, 0.2, 0.3, 0.4, 0.5],
}
"""Paired, the second is 0.002 ± 0.0073 below, the third 0.016 ± 0.0037."""


@pytest.mark.slow
def test_what_the_decision_compares_is_shown(results: Any, page_of: Any) -> None:
    """Paired differences beside the bands, the best first, and what they mean."""
    page = page_of(scores_by_fold(results(list(BY_FOLD), C=(1.0,)), BY_FOLD))
    assert "beside them mean ± standard deviation" in page.text
    assert "0.700 ± 0.141" in page.text.replace("\N{NO-BREAK SPACE}", " ")
    shown = page.text.partition("The decision compares fold by fold")[2].partition("Code for")[0]
    assert "verdict heat s=1 1 0.700 – the best, and taken cosine 1 0.684" in shown
    assert "0.0160 ± 0.0037 worse by 4.4 standard errors linear" in shown
    assert "0.4000 ± 0.0000 worse" in shown
    assert "0.0160 ± 0.0037 below the best" in page.text
    alone = page_of(results(["heat s=1", "heat s=2"]))
    assert "The decision compares" not in alone.text


def test_figure_and_table_of_the_folds_have_the_same_cells(results: Any, written: Any) -> None:
    """Of equal means the simplest, here the larger time, which is not the first by its name."""
    tied = {"cosine": HARD, "heat s=1": BY_FOLD["cosine"], "heat s=2": BY_FOLD["cosine"]}
    page = written(scores_by_fold(results(list(tied), C=(1.0,)), tied))
    figure, _, table = page.partition("by fold</h2>")[2].partition("fold by fold")
    table = table.partition("</table>")[0]
    for name, is_shown in (("cosine", True), ("heat s=2", True), ("heat s=1", False)):
        assert (f"{name}, C = 1" in figure, name in table) == (is_shown, is_shown)


def test_the_page_is_of_the_one_to_take(results: Any, page_of: Any) -> None:
    """Title, code and outline are of the simplest kernel, and the decision names the best."""
    near = BY_FOLD | {"cosine": BY_FOLD["heat s=2"], "heat s=2": [0.1] * 5}
    data = scores_by_fold(results(list(near), C=(1.0,)), near)
    taken = next(row for row in data["summary"] if row["label"] == "cosine")
    text = page_of(data | {"best": taken, "choice": {"rule": "simplest", "left_out": 0}}).text
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    assert "Taken: cosine kernel, C = 1" in text
    said = "Decision: take cosine, C = 1: the simplest kernel within one standard error of the best"
    assert f"{said} (heat s=1, C = 1, 0.0020 ± 0.0073 better)" in text
    assert 'dhsk.HeatSVC(C=1, kernel="cosine").fit(X, y)' in text
    assert "The taken candidate first, then by mean" in text
    assert "0.0020 ± 0.0073 taken: within one standard error" in text
    assert "The taken candidate; each sample is predicted by the fold" in text
    assert "The taken candidate again. Rows are true classes" in text
    assert "Eigenvalues of the taken kernel" in text
    assert "Best candidate" not in text
    said = "the outlined candidate is taken, of the simplest kernel within one standard error"
    assert f"{said} of the best, 0.700 of heat s=1, C = 1." in text


@pytest.mark.slow
def test_few_samples_are_told(results: Any, page_of: Any) -> None:
    """Where a kernel may be a point better and is not taken."""
    rough = {"heat s=1": [0.9, 0.6, 0.9, 0.7, 0.9], "cosine": [0.7, 0.7, 0.8, 0.8, 0.9]}
    data = scores_by_fold(results(list(rough), C=(1.0,), class_counts=[80, 60]), rough)
    text = page_of(data | {"best": data["summary"][1]}).text.replace("\N{NO-BREAK SPACE}", " ")
    # Differences 0.2, -0.1, 0.1, -0.1, 0: variance 0.0017, and 0.017 (1/5 + 1/4) is 0.087 squared.
    said = "With 140 samples a difference from the best below 0.087 cannot be told from chance here"
    assert f"{said}; --repeats 5 makes that about 0.070." in text


@pytest.mark.slow
def test_dots_have_the_standard_error_of_the_decision(results: Any, page_of: Any) -> None:
    """The cosine kernel is within the error of the mean, but not within that of differences."""
    page = page_of(scores_by_fold(results(list(BY_FOLD), C=(1.0,)), BY_FOLD))
    assert "The 2 candidates with a dot are within one standard error" in page.text
