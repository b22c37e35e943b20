"""results.json: what is written is read back; schema 2 is converted; damage is one sentence."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dhsk.errors import InputError
from dhsk.results.parts import FewSamples, Results
from dhsk.results.schema import encoded, read_results, read_rows

OLD = Path(__file__).parents[1] / "compatibility" / "2026-11"


def old(name: str) -> dict[str, Any]:
    """A results.json of schema 2."""
    data: dict[str, Any] = json.loads((OLD / f"{name}.json").read_text())
    assert data["schema"] == 2
    return data


def new() -> dict[str, Any]:
    """The same of schema 3."""
    return encoded(read_results(Results, old("cv")))


@pytest.mark.parametrize("name", ["cv", "cv-rank"])
def test_what_is_written_is_read_back(name: str) -> None:
    """Through JSON, to equal results and the same text."""
    found = read_results(Results, old(name))
    text = json.dumps(encoded(found), allow_nan=False)
    again = read_results(Results, json.loads(text))
    assert again == found
    assert json.dumps(encoded(again)) == text
    assert json.loads(text)["schema"] == 3


def test_exact_results_of_schema_2_keep_their_values() -> None:
    """Every column of every row, cell and the refit; steps are iterations now."""
    data = old("cv")
    found = encoded(read_results(Results, data))
    for place in ("rows", "summary"):
        for was, now in zip(data[place], found[place], strict=True):
            steps = {"n_iter": was.pop("steps")} if "steps" in was else {}
            assert now == now | was | steps
            assert (now["rank"], now["n_features"], now["gradient"]) == (None, None, None)
    assert found["best"] in found["summary"]
    assert found["best"]["mean"] == data["best"]["mean"]
    assert found["refit"]["n_iter"] == data["refit"]["steps"]
    assert found["choice"] == {"rule": data["choice"]["rule"], "left_out": 0}
    same = ("classes", "class_counts", "confusion", "eigenvalues", "trace", "plan", "seconds",
            "scoring", "tol", "version", "created", "samples")  # fmt: skip
    for key in same:
        assert found[key] == data[key]
    assert found["folds"] == data["folds"] | {"n_train": None, "n_test": None}


def test_low_rank_of_schema_2_gets_columns_of_its_own() -> None:
    """Features and gradient stood under other names, and the rank in the label too."""
    data = old("cv-rank")
    found = read_results(Results, data)
    for was, row in zip(data["rows"], found.rows, strict=True):
        assert (row.n_features, row.gradient) == (was["n_support"], was["kkt"])
        assert (row.n_support, row.kkt, row.n_iter) == (None, None, was["steps"])
        assert f"{row.label}, rank {row.rank}" == was["label"]
    assert found.low_rank is not None
    assert found.low_rank.rank == (4, 8)
    assert (found.best.rank, found.best.mean) == (8, data["best"]["mean"])
    assert found.refit is not None
    assert (found.refit.n_features, found.refit.kkt) == (8, None)
    assert len(found.rows_of[found.best.point]) == 3


def test_optional_parts_of_schema_2_are_converted() -> None:
    """Stages of a search, and classes of few samples; the oldest files have no choice."""
    data = old("cv")
    stage = {"time_scales": [0.7], "C": [1.0], "C_scaled": None, "why": "w",
             "best": {"label": "heat s=0.7", "C": 1.0, "C_scaled": None, "mean": 0.3}}  # fmt: skip
    data |= {"search": [stage], "search_ended": "ended",
             "dropped_classes": [{"class": "d", "samples": 1}],
             "untrained_classes": [{"class": "c", "samples": 2, "folds": 1}]}  # fmt: skip
    del data["choice"]
    found = read_results(Results, data)
    assert found.search[0].best == found.summary[0]
    assert found.search[0].C_scaled == ()
    assert found.dropped_classes == (FewSamples("d", 1, 3),)  # all folds lack it
    assert found.untrained_classes == (FewSamples("c", 2, 1),)
    assert found.choice is None


def test_rows_of_checkpoints_of_both_schemas_are_read() -> None:
    """To the same rows."""
    for name in ("cv", "cv-rank"):
        data = old(name)
        rows = read_results(Results, data).rows
        assert read_rows(data["rows"]) == rows
        assert read_rows(encoded(read_results(Results, data))["rows"]) == rows


def keys(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of every key, descending into the first item of a list."""
    if isinstance(value, dict):
        below = [keys(v, (*place, k)) for k, v in value.items()]
        return [(*place, k) for k in value] + [p for places in below for p in places]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return keys(value[0], (*place, 0))
    return []


@pytest.mark.parametrize("make", [new, lambda: old("cv"), lambda: old("cv-rank")])
def test_damage_anywhere_is_one_sentence(make: Any) -> None:
    """A key that is lacking, or holds an object, is an error of one line, or does not matter."""
    whole = make()
    found = []
    for place in keys(whole):
        for damage in ("lacking", {"wrong": 1}):
            data = copy.deepcopy(whole)
            inner: Any = data
            for step in place[:-1]:
                inner = inner[step]
            if damage == "lacking":
                del inner[place[-1]]
            else:
                inner[place[-1]] = damage
            try:
                encoded(read_results(Results, data))
            except InputError as error:
                found.append(str(error))
    assert len(found) > 80
    assert not any("\n" in sentence for sentence in found)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 1}, "have schema 1, but this version of dhsk reads schemas 2 and 3"),
        ({"schema": 4, "version": "9.0"}, r"schema 4.* dhsk that wrote them \(9.0\)"),
        ({"eigenvalues": [1.0, "x"]}, r"'eigenvalues\[1\]' .* finite number, but it is 'x'"),
        ({"class_counts": [1]}, "'class_counts' .* list of 3 numbers"),
        ({"confusion": [[1, 2]]}, "'confusion' .* 3 rows of 3 counts"),
        ({"classes": [], "class_counts": [], "confusion": []}, "'confusion' .* 0 rows"),
        ({"summary": []}, "'best' .* a cell of 'summary'"),
        ({"rows": []}, r"'rows' .* one row or more of 'heat s=0.7', C = 1"),
        ({"plan": [["tiles"]]}, r"'plan\[0\]' .* a list of 2"),
        (
            {"test": {"score": 0.9, "n": 9, "confusion": [[9]], "seconds": 1.0}},
            r"'test\.confusion' .* 3 rows of 3 counts",
        ),
    ],
)
def test_contradictions_and_other_schemas_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    """What it should be, and what it is."""
    with pytest.raises(InputError, match=message):
        read_results(Results, new() | changes)


@pytest.mark.parametrize("data", [[], {}, None, "text", {"rows": []}])
def test_what_is_no_results_file_is_said_to_be_none(data: Any) -> None:
    """Other JSON."""
    with pytest.raises(InputError, match=r"content of a results\.json"):
        read_results(Results, data)
