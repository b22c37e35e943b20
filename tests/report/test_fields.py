"""What the report asks of a results.json, and how it says what is wrong with one."""

import copy
from pathlib import Path
from typing import Any

import pytest
from dhsk.report.results import parse

from dhsk.errors import InputError
from dhsk.report import write_report

READ_OF_ROWS = {"label", "C", "fold", "score", "converged"}
"""Everything else of a row stands in `summary` as well."""

READ_OF_BEST = {"label", "C"}


def needed(data: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the place of every key that the report reads."""
    read = {"rows": READ_OF_ROWS, "best": READ_OF_BEST}
    places = [place for place in keys(data) if len(place) > 1]
    return [(key,) for key in data] + [p for p in places if p[-1] in read.get(p[0], p)]


def keys(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of every key, descending into the first item of a list."""
    if isinstance(value, dict):
        below = [keys(v, (*place, k)) for k, v in value.items()]
        return [(*place, k) for k in value] + [p for places in below for p in places]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return keys(value[0], (*place, 0))
    return []


def test_a_missing_key_is_named(results: Any, tmp_path: Path) -> None:
    """Each key that is lacking gives one sentence with its place, and no file."""
    places = needed(results())
    assert {("tol",), ("summary", 0, "gap"), ("rows", 0, "converged")} <= set(places)
    for place in places:
        data = copy.deepcopy(results())
        inner: Any = data
        for step in place[:-1]:
            inner = inner[step]
        del inner[place[-1]]
        with pytest.raises(InputError, match=rf"have no '.*{place[-1]}'.*results\.json") as caught:
            write_report(data, tmp_path / "report.html")
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 1}, "have schema 1, but this version of dhsk reads schema 2"),
        ({"trace": float("nan")}, "'trace' of the results must be a finite number, but it is nan"),
        ({"eigenvalues": [1.0, "x"]}, r"'eigenvalues\[1\]' .* finite number, but it is 'x'"),
        ({"eigenvalues": None}, "'eigenvalues' of the results must be a list"),
        ({"eigenvalues_exact": 1}, "'eigenvalues_exact' .* must be true or false, but it is 1"),
        ({"class_counts": [1]}, "'class_counts' .* list of 2 numbers"),
        ({"confusion": [[1, 2]]}, "'confusion' .* 2 rows of 2 counts"),
        ({"classes": [], "class_counts": [], "confusion": []}, "'confusion' .* 0 rows"),
        ({"summary": []}, "'summary' .* at least one cell"),
        ({"rows": []}, r"no fold of summary\[0\] \(label 'heat s=0.7', C = 0.1\)"),
        ({"best": {"label": "heat s=9", "C": 1}}, "label 'heat s=9', C = 1.* none of the 12 cells"),
        ({"plan": [["tiles"]]}, r"'plan\[0\]' .* a pair"),
        ({"samples": "counts.npz"}, "'samples' .* an object with named values"),
        (
            {"test": {"score": 0.9, "n": 9, "confusion": [[9]], "seconds": 1.0}},
            r"'test\.confusion' .* 2 rows of 2 counts",
        ),
        ({"refit": {"n_support": 3}}, r"have no 'refit\.kkt'"),
        ({"search": [{"time_scales": 1, "best": {}}]}, r"have no 'search\[0\]\.best\.label'"),
    ],
)
def test_wrong_values_are_refused(
    changes: dict[str, Any], message: str, results: Any, tmp_path: Path
) -> None:
    """A value of the wrong kind is named with its place, what it should be and what it is."""
    with pytest.raises(InputError, match=message) as caught:
        write_report(results() | changes, tmp_path / "report.html")
    assert "\n" not in str(caught.value)


def test_scores_of_the_folds_are_those_of_the_cell(results: Any) -> None:
    """Rows may come in any order: each cell has its own scores, first fold first."""
    data = results()
    best = parse({**data, "rows": data["rows"][::-1]}).best
    assert best.folds == tuple(0.9281 + 0.004 * (fold - 2) for fold in range(5))
