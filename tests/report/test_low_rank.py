"""What a page says and draws of cross-validations of low rank."""

import re
from typing import Any

import pytest

HEAT = ("heat s=0.7", "heat s=1", "heat s=1.4")


@pytest.fixture(scope="module")
def source(low_rank: Any, written: Any) -> Any:
    """The page of three kernels at three ranks and four C, with a refit, on three classes."""
    return written(low_rank(classes=["a", "b", "c"], refit=True))


@pytest.fixture(scope="module")
def page(low_rank: Any, page_of: Any) -> Any:
    """The same page, parsed."""
    return page_of(low_rank(classes=["a", "b", "c"], refit=True))


def titles(source: str) -> list[str]:
    """Return the titles of the sections."""
    return re.findall("<h2>(.*?)</h2>", source)


@pytest.mark.slow
def test_the_first_sentence_has_the_rank(page: Any, source: str) -> None:
    """Kernel, rank and C of the winner, the last two never broken over lines."""
    said = "Best and taken: heat kernel at time scale 1, rank 2,000, C = 10: mean accuracy 0.928"
    assert said in page.text
    blank = "\N{NO-BREAK SPACE}"
    assert f"1, rank{blank}2,000, C{blank}={blank}10: mean" in source


@pytest.mark.parametrize(
    "tile",
    [
        "features 2,000 taken candidate, landmarks by randomly pivoted Cholesky",
        "trace error 0.00813 share of the kernel matrix not in the features",
        "gradient norm 0.00021 relative to that at 0, as tol is; taken candidate, worst fold",
        "total time 3 min 5 s 3.1 s for the features",
    ],
)
def test_tiles_tell_of_landmarks(tile: str, page: Any) -> None:
    """Landmarks, trace error and gradient stand where exact classifiers have other numbers."""
    assert tile in page.text


def test_words_of_exact_classifiers_are_absent(page: Any, source: str) -> None:
    """No support vectors, KKT, margin, VC bound, Gram matrix or eigenvalues of what has none."""
    for word in (
        "support",
        "tol reached",
        "margin",
        "VC bound",
        "effective",
        "Gram",
        "igenvalue",
        "None",
        "nan",
    ):
        assert word not in page.text
    assert {"Capacity", "Eigenvalues of the taken kernel"}.isdisjoint(titles(source))


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ("rpcholesky", "chosen among all samples by randomly pivoted Cholesky, which"),
        ("uniform", "chosen among all samples by uniform sampling, which"),
        ("kmeans", "are centres of groups of all samples by k-means, which"),
    ],
)
def test_the_classifiers_are_described(
    selection: str, words: str, low_rank: Any, page_of: Any
) -> None:
    """Features, loss, choice of landmarks, and what the trace error means, at one rank too."""
    data = low_rank(ranks=(2000,), selection=selection, loss="logistic")
    text = page_of(data).text.split("What the features miss")[1]
    assert "linear ones on Nyström features, one class against the other" in text
    assert "with the logistic loss" in text
    assert words in text
    assert "the features miss, as a part of its trace (the sum of its diagonal): 0.13 for" in text


@pytest.mark.slow
def test_more_landmarks_than_features_are_told(low_rank: Any, page_of: Any) -> None:
    """And what becomes of them."""
    text = page_of(low_rank(oversampling=3.0)).text
    assert "no labels: 3 for each feature, of which the leading components are kept." in text


def test_many_classes_are_each_against_the_rest(page: Any) -> None:
    """Three classes give three classifiers; the loss of `LinearSVC` is called by its name."""
    assert "one class against the rest, with the squared hinge loss" in page.text


def test_the_table_has_rank_error_and_gradient(page: Any) -> None:
    """Columns of low rank, kernels without the rank in their names, and what the columns mean."""
    table = page.text.split("All candidates")[1]
    assert "kernel rank C mean std trace error gradient norm gap fits heat s=1 2,000 10" in table
    assert "heat s=1 2,000 10 0.928 0.006 0.00813 0.00021 0.00013 6.1 s" in table
    assert "below 0.001 times the smaller side's share of the samples" in table
    assert ", rank" not in table.split("Refit")[0]


def test_the_refit_has_its_facts(page: Any) -> None:
    """Gradient, gap, landmarks, features and trace error of the fit on all samples."""
    text = page.text.split("Refit of the taken candidate")[1]
    assert (
        "converged yes gradient norm 0.00021 of that at 0; the tolerance is 0.001 times the "
        "smaller side's share of the samples duality gap at most 0.00013 of the objective "
        "rank 2,000 features 1,998 trace error 0.00813 time 6.1 s"
    ) in text


@pytest.mark.slow
def test_fits_that_did_not_converge_are_told(low_rank: Any, page_of: Any) -> None:
    """The head speaks of the gradient, and the table marks the cell at its rank."""
    data = low_rank()
    for row in data["summary"] + data["rows"]:
        if (row["label"], row["rank"], row["C"]) == ("heat s=1", 500, 1.0):
            row["converged"] = False
    head, rest = page_of(data).text.split("Every kernel")
    assert "5 of 180 fits on the folds (1 candidate) did not converge." in head
    told = rest.split("Fits that did not converge")[1].split("All candidates")[0]
    assert "while the norm of the gradient was above the tolerance" in told
    assert "heat s=1, rank 500 1 5 of 5 0.00021 0." in told
    assert "heat s=1 5 of 5 fits not converged 500 1 " in rest.split("All candidates")[1]


def test_every_rank_has_its_heat_map(page: Any, source: str) -> None:
    """Several kernels: a map for each rank, times down and C across, one cell outlined."""
    assert "Every kernel at every rank and C" in titles(source)
    for rank in ("500", "1,000", "2,000"):
        assert f"Mean accuracy, heat, rank {rank}" in page.words
    maps = source.split("Every kernel at every rank and C</h2>")[1].split("<h2>")[0]
    assert maps.count("<svg") == 3
    assert maps.count("stroke-width: 2.2") == 1
    assert page.words.count("time scale") == 3
    assert "the largest rank that was tried: better may lie outside the grid" in page.text


def test_a_lonely_kernel_has_one_map_of_all_ranks(low_rank: Any, page_of: Any) -> None:
    """One kernel: its ranks are the rows, so that no row stands alone."""
    page = page_of(low_rank(("heat s=1",)))
    assert "Mean accuracy, heat s=1" in page.words
    assert "time scale" not in page.words
    assert page.words.count("2,000") >= 3  # the map, two panels against rank
    assert page.words.index("500") < page.words.index("1,000") < page.words.index("rank")


@pytest.mark.slow
def test_kernels_without_a_time_have_a_map_for_each_rank(low_rank: Any, page_of: Any) -> None:
    """Their rows are kernels, not kernels at ranks."""
    page = page_of(low_rank(("cosine", "gaussian sigma=2")))
    assert "Mean accuracy, kernels without a time, rank 500" in page.words
    assert page.words.count("gaussian sigma=2") >= 4  # three maps and a legend
    maps = page.words[: page.words.index("Accuracy by fold")]
    assert "gaussian sigma=2, rank 500" not in maps


def test_score_and_error_are_drawn_against_rank(page: Any, source: str) -> None:
    """Two panels, a line of each kernel in both, the best cell ringed, the ranks as ticks."""
    assert "What a larger rank brings" in titles(source)
    figure = source.split("What a larger rank brings</h2>")[1].split("</svg>")[0]
    assert figure.count("<svg") == 1
    for words in ("mean accuracy, best C", "trace error", "taken", *HEAT):
        assert f">{words}</text>" in figure
    assert figure.count(">rank</text>") == 2
    assert all(figure.count(f">{rank}</text>") == 2 for rank in ("500", "1,000", "2,000"))
    # Lines: three kernels in two panels and in the legend.
    assert len(re.findall("fill: none; stroke: #[0-9a-f]{6}; stroke-width: 1.2", figure)) == 9
    said = "heat s=1, rank 500: 0.888, trace error 0.13; rank 1,000: 0.908, trace error 0.0325;"
    assert said in page.text


def test_one_rank_draws_no_line(low_rank: Any, written: Any) -> None:
    """There is nothing to compare, and the headings say so."""
    source = written(low_rank(ranks=(2000,)))
    assert "What the features miss" in titles(source)
    assert "Every kernel at every C" in titles(source)
    assert "best C</text>" not in source


@pytest.mark.slow
def test_crowded_ranks_share_ticks(low_rank: Any, written: Any) -> None:
    """Ranks too close for their numbers are drawn, and only some of them named."""
    ranks = (1000, 1001, 4000)
    source = written(low_rank(ranks=ranks))
    figure = source.split("What a larger rank brings</h2>")[1].split("</svg>")[0]
    assert ">1,000</text>" in figure
    assert ">1,001</text>" not in figure
    assert ">4,000</text>" in figure


CASES: dict[str, dict[str, Any]] = {
    "one cell": {"kernels": ("heat s=1",), "ranks": (500,), "C": (10.0,)},
    "one C": {"C": (10.0,)},
    "twelve kernels": {"kernels": tuple(f"heat s={k}" for k in range(12))},
    "one class": {"classes": ["only"]},
    "long names": {"kernels": tuple(f"{'long-' * 9}{k} order=12 s={k}" for k in range(3))},
    "two orders": {"kernels": ("parametrix order=0 s=1", "parametrix order=1 s=1")},
    "a selection of tomorrow": {"selection": "<b>best</b>", "loss": "<b>hinge</b>"},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_unusual_results_give_a_whole_page(case: Any, low_rank: Any, page_of: Any) -> None:
    """Few and many cells, long and strange names give a well-formed page without nan."""
    page = page_of(low_rank(**case))
    assert {"nan", "inf", "None"}.isdisjoint(page.text.split())
    assert "b" not in page.tags
    ids = page.values("id")
    assert len(ids) == len(set(ids))


@pytest.mark.slow
@pytest.mark.parametrize("errors", [(0.0, 0.0), (-1e-9, 0.3), (1e-12, 0.5)])
def test_errors_down_to_nothing_are_drawn(
    errors: tuple[float, float], low_rank: Any, page_of: Any
) -> None:
    """Nothing missed, rounding below nothing, and twelve powers of ten."""
    data = low_rank(ranks=(500, 1000))
    for row in [*data["summary"], *data["rows"]]:
        row["trace_error"] = errors[row["rank"] == 500]
    words = page_of(data).words
    assert {"nan", "inf"}.isdisjoint(words)
    assert ("1e-12" in words) == (errors[0] == 1e-12)
    assert ("0.00" in words) == (errors[0] <= 0)  # the axis is linear and begins at zero


def test_the_same_data_give_the_same_bytes(low_rank: Any, written: Any, source: str) -> None:
    """The order of keys does not show in the page."""
    data = low_rank(classes=["a", "b", "c"], refit=True)
    assert written(dict(reversed(data.items()))) == source
