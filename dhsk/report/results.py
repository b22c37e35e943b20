"""Content of results.json, checked once; the rest of the room trusts it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError

SCHEMA = 2
"""Version of the layout of results.json that this room reads."""


@dataclass(frozen=True)
class Cell:
    """One kernel at one C, summed up over the folds.

    Attributes
    ----------
    kernel, label
        Family ("heat"), and the name that tells its members apart ("heat s=1").
    time_scale, time, sigma
        Parameters of the kernel; None where it has none.
    C
        Penalty of the SVM.
    mean, std
        Accuracy over the folds.
    n_support
        Support vectors, mean over the folds.
    kkt
        Largest KKT violation over the folds.
    seconds
        Time of the fits, summed over the folds.
    folds
        Accuracy of each fold, in the order of the folds.
    """

    kernel: str
    label: str
    time_scale: float | None
    time: float | None
    sigma: float | None
    C: float
    mean: float
    std: float
    n_support: float
    kkt: float
    seconds: float
    folds: tuple[float, ...]


@dataclass(frozen=True)
class Samples:
    """Where the samples came from and how large they are; `nnz` is None for dense ones."""

    source: str
    n_samples: int
    dim: int
    nnz: int | None
    sphere_map: str
    fingerprint: str


@dataclass(frozen=True)
class Results:
    """One cross-validation: `cells` best first, `confusion` (true, predicted) of `best`."""

    version: str
    created: str
    samples: Samples
    classes: tuple[str, ...]
    class_counts: tuple[int, ...]
    n_folds: int
    splitter: str
    cells: tuple[Cell, ...]
    best: Cell
    confusion: NDArray[np.int64]
    eigenvalues: NDArray[np.float64]
    trace: float
    plan: tuple[tuple[str, str], ...]
    seconds: dict[str, float]


def parse(data: Mapping[str, Any]) -> Results:
    """Return the content of a results.json as `Results`.

    Raises
    ------
    InputError
        A key is missing, a value is of the wrong kind, or the parts contradict each other.
    """
    root = _Fields(data, "")
    _check_schema(root)
    cells = _cells(root)
    best = _best(root.part("best"), cells)
    classes = tuple(str(name) for name in root.items("classes"))
    return Results(
        version=root.text("version"),
        created=root.text("created"),
        samples=_samples(root.part("samples")),
        classes=classes,
        class_counts=tuple(int(n) for n in root.vector("class_counts", len(classes))),
        n_folds=root.part("folds").whole("n"),
        splitter=root.part("folds").text("splitter"),
        cells=(best, *(c for c in cells if c is not best)),
        best=best,
        confusion=_confusion(root, len(classes)),
        eigenvalues=root.vector("eigenvalues"),
        trace=root.number("trace"),
        plan=_plan(root),
        seconds={key: root.part("seconds").number(key) for key in ("gram", "fits", "total")},
    )


@dataclass(frozen=True)
class _Fields:
    """A JSON object that knows its place, so that an error can name it."""

    values: Mapping[str, Any]
    place: str

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise _wrong(self.place or "data", "an object with named values", self.values)

    def path(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def get(self, key: str) -> Any:
        if key not in self.values:
            raise InputError(
                f"the results have no '{self.path(key)}', so no report can be made of them; "
                "give the whole content of a results.json that `dhsk cv` wrote"
            )
        return self.values[key]

    def text(self, key: str) -> str:
        return str(self.get(key))

    def number(self, key: str) -> float:
        return _number(self.get(key), self.path(key))

    def optional(self, key: str) -> float | None:
        return None if self.get(key) is None else self.number(key)

    def whole(self, key: str) -> int:
        return int(self.number(key))

    def items(self, key: str) -> list[Any]:
        value = self.get(key)
        if not isinstance(value, list | tuple):
            raise _wrong(self.path(key), "a list", value)
        return list(value)

    def vector(self, key: str, length: int | None = None) -> NDArray[np.float64]:
        values = self.items(key)
        if length is not None and len(values) != length:
            raise _wrong(self.path(key), f"a list of {length} numbers, one per class", values)
        return np.array([_number(v, f"{self.path(key)}[{i}]") for i, v in enumerate(values)])

    def part(self, key: str) -> "_Fields":
        return _Fields(self.get(key), self.path(key))

    def parts(self, key: str) -> "list[_Fields]":
        return [_Fields(v, f"{self.path(key)}[{i}]") for i, v in enumerate(self.items(key))]


def _number(value: Any, place: str) -> float:
    if not isinstance(value, Real) or not isfinite(value):
        raise _wrong(place, "a finite number", value)
    return float(value)


def _wrong(place: str, wanted: str, value: object) -> InputError:
    found = " ".join(repr(value).split())[:80]
    return InputError(f"'{place}' of the results must be {wanted}, but it is {found}")


def _check_schema(root: _Fields) -> None:
    schema = root.get("schema")
    if schema != SCHEMA:
        raise InputError(
            f"the results have schema {schema!r}, but this version of dhsk reads schema {SCHEMA}; "
            f"make the report with the dhsk that wrote them (version {root.text('version')})"
        )


def _samples(fields: _Fields) -> Samples:
    nnz = fields.optional("nnz")
    return Samples(
        source=fields.text("source"),
        n_samples=fields.whole("n_samples"),
        dim=fields.whole("dim"),
        nnz=None if nnz is None else int(nnz),
        sphere_map=fields.text("sphere_map"),
        fingerprint=fields.text("fingerprint"),
    )


def _key(fields: _Fields) -> tuple[str, float]:
    return fields.text("label"), fields.number("C")


def _cells(root: _Fields) -> tuple[Cell, ...]:
    scores: dict[tuple[str, float], dict[int, float]] = {}
    for row in root.parts("rows"):
        scores.setdefault(_key(row), {})[row.whole("fold")] = row.number("score")
    cells = [_cell(fields, scores.get(_key(fields), {})) for fields in root.parts("summary")]
    if not cells:
        raise _wrong("summary", "a list of at least one cell", [])
    # Ties go to the smaller C, as the simpler model.
    return tuple(sorted(cells, key=lambda c: (-c.mean, c.C, c.label)))


def _cell(fields: _Fields, scores: dict[int, float]) -> Cell:
    label, C = _key(fields)
    if not scores:
        raise InputError(
            f"'rows' of the results has no fold of {fields.place} (label {label!r}, C = {C:g}); "
            "give the whole content of a results.json that `dhsk cv` wrote"
        )
    return Cell(
        kernel=fields.text("kernel"),
        label=label,
        time_scale=fields.optional("time_scale"),
        time=fields.optional("time"),
        sigma=fields.optional("sigma"),
        C=C,
        mean=fields.number("mean"),
        std=fields.number("std"),
        n_support=fields.number("n_support"),
        kkt=fields.number("kkt"),
        seconds=fields.number("seconds"),
        folds=tuple(scores[fold] for fold in sorted(scores)),
    )


def _best(fields: _Fields, cells: tuple[Cell, ...]) -> Cell:
    label, C = _key(fields)
    for cell in cells:
        if (cell.label, cell.C) == (label, C):
            return cell
    raise InputError(
        f"'best' of the results (label {label!r}, C = {C:g}) is none of the {len(cells)} cells "
        "of 'summary'; give the whole content of a results.json that `dhsk cv` wrote"
    )


def _confusion(root: _Fields, n_classes: int) -> NDArray[np.int64]:
    rows = root.items("confusion")
    square = len(rows) == n_classes and all(
        isinstance(row, list | tuple) and len(row) == n_classes for row in rows
    )
    if not square or n_classes == 0:
        wanted = f"{n_classes} rows of {n_classes} counts, for the {n_classes} names in 'classes'"
        raise _wrong("confusion", wanted, rows)
    flat = [_number(v, f"confusion[{i}]") for i, row in enumerate(rows) for v in row]
    return np.array(flat).astype(np.int64).reshape(n_classes, n_classes)


def _plan(root: _Fields) -> tuple[tuple[str, str], ...]:
    pairs = root.items("plan")
    for i, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise _wrong(f"plan[{i}]", "a pair [name, text]", pair)
    return tuple((str(name), str(text)) for name, text in pairs)
