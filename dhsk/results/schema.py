"""Conversion of `Results` to and from the JSON of results.json."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

from dhsk.errors import InputError
from dhsk.results.columns import Cell, Row, flat
from dhsk.results.decoding import decoded, wrong
from dhsk.results.parts import Results

SCHEMA: Final = 3
"""Version of the layout of results.json; no other one is read."""

R = TypeVar("R", bound=Results)


def encoded(results: Results) -> dict[str, Any]:
    """Plain numbers, strings, lists and dicts by field: the content of a results.json."""
    parts = {field.name: getattr(results, field.name) for field in fields(Results)}
    plain = {name: _plain(part) for name, part in parts.items()}
    # For readers of the file: it follows from the rows, so `read_results` makes it anew.
    decision = _plain(results.decision) | {
        "sentence": results.decision.sentence,
        "unseen": results.decision.unseen,
    }
    return {"schema": SCHEMA} | plain | {"decision": decision}


def _plain(value: Any) -> Any:
    if isinstance(value, Row | Cell):
        return flat(value)
    if is_dataclass(value):
        return {name: _plain(part) for name, part in vars(value).items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value


def read_results(kind: type[R], data: Any) -> R:
    """Make results of class `kind` from the content of a results.json.

    InputError for another schema, a missing key, a wrong value, or parts that contradict each
    other.
    """
    if not isinstance(data, Mapping) or "schema" not in data:
        raise wrong("data", "the content of a results.json that `dhsk cv` wrote", data)
    if data["schema"] != SCHEMA:
        raise InputError(
            f"the results have schema {data['schema']!r}, but this version of dhsk reads schema "
            f"{SCHEMA}: compute them again (dhsk cv --overwrite), or read them with the dhsk that "
            f"wrote them ({data.get('version')})"
        )
    results = decoded(kind, data)
    _check(results)
    return results


def _check(results: Results) -> None:
    """Raise InputError for parts that contradict each other."""
    n = len(results.classes)
    tests = {"confusion": results.confusion}
    if results.test is not None:
        tests["test.confusion"] = results.test.confusion
    for place, counts in tests.items():
        if n == 0 or len(counts) != n or any(len(row) != n for row in counts):
            raise wrong(place, f"{n} rows of {n} counts, for the {n} names in 'classes'", counts)
    if len(results.class_counts) != n:
        raise wrong("class_counts", f"a list of {n} numbers, one per class", results.class_counts)
    for cell in results.summary:
        if cell.point not in results.rows_of:
            raise wrong("rows", f"one row or more of {cell.label!r}, C = {cell.C:g}", "lacking")
    if len({tuple(row.fold for row in results.rows_of[c.point]) for c in results.summary}) > 1:
        raise wrong("rows", "one row of each cell for each fold", "lacking")
    if any(len(one.scores) != results.folds.n for one in results.baselines.tried):
        raise wrong("baselines", f"{results.folds.n} scores of each, one per fold", "other numbers")
    if results.best not in results.summary:
        raise wrong("best", "a cell of 'summary'", results.best.label)
