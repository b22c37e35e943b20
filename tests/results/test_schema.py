"""results.json: what is written is read back; damage is one sentence."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dhsk.errors import InputError
from dhsk.results.parts import Results
from dhsk.results.schema import SCHEMA, encoded, read_results

FILES = Path(__file__).parents[1] / "compatibility" / "files"


def kept(name: str) -> dict[str, Any]:
    """A results.json as it was written once."""
    data: dict[str, Any] = json.loads((FILES / f"{name}.json").read_text())
    return data


@pytest.mark.parametrize("name", ["cv", "cv-rank"])
def test_what_is_written_is_read_back(name: str) -> None:
    """Through JSON, to equal results and the same text."""
    found = read_results(Results, kept(name))
    text = json.dumps(encoded(found), allow_nan=False)
    again = read_results(Results, json.loads(text))
    assert again == found
    assert json.dumps(encoded(again)) == text
    assert json.loads(text) == {"weights": [], "untested_classes": []} | kept(name)  # added later


def keys(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of every key, descending into the first item of a list."""
    if isinstance(value, dict):
        below = [keys(v, (*place, k)) for k, v in value.items()]
        return [(*place, k) for k in value] + [p for places in below for p in places]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return keys(value[0], (*place, 0))
    return []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cv", "cv-rank"])
def test_damage_anywhere_is_one_sentence(name: str) -> None:
    """A key that is lacking, or holds an object, is an error of one line, or does not matter."""
    whole = kept(name)
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
        ({"schema": SCHEMA - 1}, f"dhsk reads schema {SCHEMA}: compute them again"),
        ({"schema": SCHEMA + 1, "version": "9.0"}, r"dhsk that wrote them \(9.0\)"),
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
        read_results(Results, kept("cv") | changes)


@pytest.mark.parametrize("data", [[], {}, None, "text", {"rows": []}])
def test_what_is_no_results_file_is_said_to_be_none(data: Any) -> None:
    """Other JSON."""
    with pytest.raises(InputError, match=r"content of a results\.json"):
        read_results(Results, data)
