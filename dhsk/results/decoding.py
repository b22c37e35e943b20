"""JSON -> dataclasses by their type hints; an error names the place of the wrong value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from dhsk.errors import InputError

T = TypeVar("T")

_WORDS: Final = {float: "a finite number", int: "a whole number", bool: "true or false"}


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
