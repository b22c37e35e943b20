"""Conversion of `Results` to and from the JSON of results.json, of schema 2 too."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

from dhsk.errors import InputError
from dhsk.results.columns import Cell, Row, flat
from dhsk.results.decoding import decoded, wrong
from dhsk.results.parts import Results

SCHEMA: Final = 3
"""Version of the layout of results.json that this version writes."""

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
    """Make results of class `kind` from the content of a results.json of schema 2 or 3.

    InputError for another schema, a missing key, a wrong value, or parts that contradict each
    other.
    """
    if not isinstance(data, Mapping) or "schema" not in data:
        raise wrong("data", "the content of a results.json that `dhsk cv` wrote", data)
    if data["schema"] not in (2, SCHEMA):
        raise InputError(
            f"the results have schema {data['schema']!r}, but this version of dhsk reads schemas 2 "
            f"and {SCHEMA}; read them with the dhsk that wrote them ({data.get('version')})"
        )
    results = decoded(kind, data if data["schema"] == SCHEMA else _from_schema_2(data))
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


def read_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[Row, ...]:
    """Rows from a checkpoint, also from one written with schema 2."""
    now = (_columns(row, "rank" in row) if "steps" in row else row for row in rows)
    return tuple(decoded(Row, row, f"rows[{i}]") for i, row in enumerate(now))


def _from_schema_2(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same content with the keys and columns of schema 3."""
    try:
        return _converted(data)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"the results of schema 2 are damaged ({reason})") from error


def _converted(data: Mapping[str, Any]) -> dict[str, Any]:
    ranked, n_folds = bool(data.get("low_rank")), data["folds"]["n"]
    rows = [_columns(row, ranked) for row in data["rows"]]
    summary = []
    for old in data["summary"]:
        cell = _columns(old, ranked)
        own = [row for row, was in zip(rows, data["rows"], strict=True) if _key(was) == _key(old)]
        summary.append(cell | {"n_iter": sum(row["n_iter"] for row in own)})
    cells = {_key(old): cell for old, cell in zip(data["summary"], summary, strict=True)}
    new = dict(data) | {"rows": rows, "summary": summary, "best": cells[_key(data["best"])]}
    new["choice"] = data.get("choice") and {
        **data["choice"],
        "highest": cells[_key(data["choice"]["highest"])],
    }
    new["search"] = [
        {**stage, "best": cells[_key(stage["best"])], "C_scaled": stage.get("C_scaled") or []}
        for stage in data.get("search", [])
    ]
    new["refit"] = data.get("refit") and _columns(data["refit"], ranked)
    ranks = sorted({cell["rank"] for cell in summary if ranked})
    new["low_rank"] = {**data["low_rank"], "rank": ranks} if ranked else None
    for key in ("dropped_classes", "untrained_classes"):
        new[key] = [
            {"name": one["class"], "samples": one["samples"], "folds": one.get("folds", n_folds)}
            for one in data.get(key, [])
        ]
    return new


def _key(old: Mapping[str, Any]) -> tuple[str, float]:
    """Key of a cell in schema 2, whose label had the rank in it."""
    return old["label"], old["C"]


def _columns(old: Mapping[str, Any], ranked: bool) -> dict[str, Any]:
    """Columns of schema 3: low rank had its features in `n_support`, its gradient in `kkt`."""
    new = dict(old)
    new["n_iter"] = new.pop("steps", 0)
    if ranked:
        new["n_features"], new["gradient"] = int(new.pop("n_support")), new.pop("kkt")
    if ranked and "label" in new:
        new["label"] = new["label"].removesuffix(f", rank {new['rank']}")
    return new
