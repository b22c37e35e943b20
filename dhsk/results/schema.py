"""Conversion of `Results` to and from the JSON of results.json, by the types of its fields."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from dhsk.errors import InputError
from dhsk.results.columns import Cell, Row, flat
from dhsk.results.parts import Results

SCHEMA: Final = 3
"""Version of the layout of results.json; no other one is read."""

R = TypeVar("R", bound=Results)
T = TypeVar("T")

_WORDS: Final = {float: "a finite number", int: "a whole number", bool: "true or false"}


def encoded(results: Results) -> dict[str, Any]:
    """Plain numbers, strings, lists and dicts by field: the content of a results.json."""
    parts = {field.name: getattr(results, field.name) for field in fields(Results)}
    plain = {name: _plain(part) for name, part in parts.items()}
    # For readers of the file: it follows from the rows, so `read_results` makes it anew.
    decision = _plain(results.decision) | {
        "sentence": results.advice if results.unlearnt else results.decision.sentence,
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


# JSON -> dataclasses


def decoded(kind: Callable[..., T], value: Any, place: str = "") -> T:
    """Make a dataclass of a JSON object; errors name its `place`, such as "rows[3]".

    Fields are numbers, text, tuples, mappings, dataclasses, or unions of these. Unknown keys are
    ignored.
    """
    if not isinstance(value, Mapping):
        raise wrong(place or "data", "an object with named values", value)
    found = {}
    for name, (hint, needed) in _fields(kind).items():
        inside = f"{place}.{name}" if place else name
        if name in value:
            found[name] = _value(hint, value[name], inside)
        elif needed:
            raise InputError(
                f"the results have no '{inside}'; give the whole content of a results.json that "
                "`dhsk cv` wrote"
            )
    return kind(**found)


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Type of each field, and whether it must be given."""
    hints = get_type_hints(kind)
    return {field.name: (hints[field.name], field.default is MISSING) for field in fields(kind)}


def _value(hint: Any, value: Any, place: str) -> Any:
    if get_origin(hint) is UnionType:
        return _one_of(get_args(hint), value, place)
    if get_origin(hint) in (tuple, Sequence):
        return _items(get_args(hint), value, place)
    if is_dataclass(hint):
        return decoded(cast(Any, hint), value, place)
    if get_origin(hint) is Mapping and isinstance(value, Mapping):
        return value
    if not _is(hint, value):
        raise wrong(place, _WORDS.get(hint, "text"), value)
    return value


def _one_of(hints: Sequence[Any], value: Any, place: str) -> Any:
    """Value of one of the plain types of a union, else decoded as its last type."""
    if value is None and NoneType in hints:
        return None
    others = [hint for hint in hints if hint is not NoneType]
    return _value(next((hint for hint in others if _is(hint, value)), others[-1]), value, place)


def _items(hints: Sequence[Any], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise wrong(place, "a list", value)
    many = len(hints) == 1 or hints[-1] is Ellipsis
    if not many and len(hints) != len(value):
        raise wrong(place, f"a list of {len(hints)}", value)
    kinds = [hints[0]] * len(value) if many else hints
    return tuple(_value(kinds[i], one, f"{place}[{i}]") for i, one in enumerate(value))


def _is(hint: Any, value: Any) -> bool:
    """Whether a value is of a plain type: JSON has one type for whole numbers and others."""
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(hint, type) and isinstance(value, hint)


def wrong(place: str, wanted: str, value: object) -> InputError:
    """Error of a value of the wrong kind."""
    found = " ".join(repr(value).split())[:80]
    return InputError(f"'{place}' of the results must be {wanted}, but it is {found}")
