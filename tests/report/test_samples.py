"""Sections on single samples: ROC, map, mistakes; bars of the classes."""

from typing import Any

import pytest

from dhsk.report.classes import MOST

CURVES = [
    {"positive": "faculty", "area": 0.9125, "false_positives": [0.0, 0.1, 1.0],
     "true_positives": [0.0, 0.9, 1.0]},
]  # fmt: skip
MAP = {"samples": [0, 3, 5], "x": [0.1, -1.0, 0.3], "y": [0.2, 0.0, -0.4], "true": [0, 1, 1],
       "predicted": [0, 0, -1], "shares": [0.25, 0.125]}  # fmt: skip
WRONG = [
    {"sample": 7, "name": "doc-7", "true": "course", "predicted": "faculty", "margin": 1.234},
    {"sample": 3, "name": "doc-3", "true": "faculty", "predicted": "course", "margin": 0.05},
]


def examined(**changes: Any) -> dict[str, Any]:
    """Return what was kept of single samples."""
    return {"n_wrong": 2, "wrong": WRONG, "curves": CURVES, "map": MAP} | changes


def test_all_three_are_on_the_page(results: Any, page_of: Any) -> None:
    """Areas in words, shares of the variance, mistakes by their ids."""
    page = page_of(results(examined=examined()))
    assert "faculty against the other" in page.text
    assert "faculty: 0.912" in page.words
    assert "with 37.5 % of their variance" in page.text
    assert "3 samples, 1 of them mistaken for another class." in page.words
    assert "component 1 (25 % of the variance)" in page.words
    assert "sample row class taken for how sure doc-7 7 course faculty 1.23" in page.text
    assert (
        "2 samples that the taken candidate mistook for another class; rows count from 0"
        in page.text
    )


def test_without_them_there_are_no_sections(page: Any) -> None:
    """As of results of earlier versions."""
    for words in ("ROC", "in a plane", "Mistakes"):
        assert words not in page.text


@pytest.mark.slow
def test_decisions_may_be_missing(results: Any, page_of: Any) -> None:
    """No curves and no certainty, but the mistakes; without ids the rows."""
    wrong = [one | {"margin": None, "name": ""} for one in WRONG]
    text = page_of(results(examined=examined(wrong=wrong, curves=[]))).text
    assert "ROC" not in text
    assert "sample class taken for 7 course faculty" in text
    assert "How sure" not in text


@pytest.mark.slow
def test_no_mistakes_are_told(results: Any, page_of: Any) -> None:
    """In one sentence, without a table."""
    text = page_of(results(examined=examined(n_wrong=0, wrong=[]))).text
    assert "Every held-out sample was predicted right." in text


@pytest.mark.slow
def test_of_many_mistakes_some_are_listed(results: Any, page_of: Any) -> None:
    """The count is that of all."""
    text = page_of(results(examined=examined(n_wrong=1234))).text
    assert (
        "1,234 samples that the taken candidate mistook for another class, of which 2 are listed"
        in text
    )


@pytest.mark.slow
def test_many_curves_have_a_table(results: Any, page_of: Any) -> None:
    """Ten have a colour, all an area."""
    names = [f"class {k}" for k in range(12)]
    curves = [CURVES[0] | {"positive": name, "area": 0.5 + k / 100}
              for k, name in enumerate(names)]  # fmt: skip
    page = page_of(results(classes=names, examined=examined(curves=curves, map=None)))
    assert "class 0: 0.500" in page.words
    assert "class 11: 0.610" not in page.words
    assert "class 11 0.610" in page.text


@pytest.mark.slow
def test_classes_without_a_curve_are_told(results: Any, page_of: Any) -> None:
    """Those that no fold that knew them has tested, and those that are too many."""
    names = ["course", "faculty", "rare", "student"]
    curves = [CURVES[0] | {"positive": name} for name in names[:2]]
    few = [{"name": "rare", "samples": 1, "folds": 1}]
    data = results(classes=names, examined=examined(curves=curves, map=None), untrained_classes=few)
    text = page_of(data).text
    why = "no fold that was trained with the class has tested it"
    assert f"Without a curve: rare ({why}). 1 more, of larger areas, have none." in text
    assert "Without a curve" not in page_of(results(examined=examined())).text


@pytest.mark.slow
def test_classes_have_bars(page: Any, results: Any, page_of: Any) -> None:
    """Two for each class with their values; none where there are too many classes."""
    assert "Precision and recall of every class" in page.words
    assert "Lowest recall: course, 0.900." in page.words
    assert page.words.count("0.900") >= 4 + 6  # bars and table
    many = page_of(results(classes=[f"c{k}" for k in range(MOST + 1)]))
    assert "Precision and recall of every class" not in many.words
