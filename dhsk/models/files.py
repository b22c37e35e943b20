"""Model files: one archive of arrays and JSON, never a pickle."""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import arrays_of_rows, rows_of_arrays
from dhsk.errors import InputError
from dhsk.kernels import kernel_from_spec
from dhsk.models.archive import (
    names_of_header,
    read_archive,
    write_archive,
)
from dhsk.models.base import Arrays, TrainedModel, require_shapes
from dhsk.models.exact import SvcModel
from dhsk.models.fitted import FittedState, state_of_file
from dhsk.models.low_rank import LowRankModel
from dhsk.objects.places import Place
from dhsk.samples import parse_zero_rule, vectorizer_of
from dhsk.samples.weighted import TFIDF, fixed_map, parse_map_name

SCHEMA: Final = 1
Loaded: TypeAlias = SvcModel | LowRankModel | FittedState
"""What a file of this room holds."""

_KINDS: Final[dict[str, type[SvcModel] | type[LowRankModel]]] = {
    kind.format: kind for kind in (SvcModel, LowRankModel)
}
_SCHEMAS: Final = {**dict.fromkeys(_KINDS, SCHEMA), FittedState.format: FittedState.schema}
_WEIGHTS: Final = "feature_weights"


def save_model(model: TrainedModel, path: str | Place) -> None:
    """Write a model in numpy's npz format, with any file name; an existing file is replaced.

    Raises InputError if the labels cannot be written without pickle, OSError if the file cannot be
    written, StoreError if a server refuses it.
    """
    own, arrays = model.to_arrays()
    header = {
        "format": model.format,
        "schema": SCHEMA,
        "kernel": model.kernel.to_spec(),
        "sphere_map": model.map_name,
        **own,
        "classes_are_objects": model.classes.dtype.kind == "O",
        "notes": dict(model.notes),
        "feature_names": model.feature_names,
        "vectorizer": None if model.vectorizer is None else model.vectorizer.settings,
        "zero_rows": model.zero_rows,
        "n_zero_rows": model.n_zero_rows,
    }
    parts = {
        "classes": _plain(model.classes),
        **arrays,
        **({} if model.feature_weights is None else {_WEIGHTS: model.feature_weights}),
        **arrays_of_rows("rows", model.rows),
    }
    write_archive(path, header, parts)


def load_model(path: str | Place) -> SvcModel | LowRankModel:
    """Read a model of `save_model`, with the same decision values to the last bit.

    Raises InputError if the file is missing, damaged, no model or of another version, BudgetError
    if its arrays do not fit in half of the free memory.
    """
    found = load_any(path)
    if isinstance(found, FittedState):
        raise read_by_other(found, path)
    return found


def load_fitted(path: str | Place) -> FittedState:
    """Read what `save_fitted` wrote.

    Raises InputError if the file is missing, damaged, of something else or of another version,
    BudgetError if its arrays do not fit in half of the free memory.
    """
    found = load_any(path)
    if not isinstance(found, FittedState):
        raise read_by_other(found, path)
    return found


def load_any(path: str | Place) -> Loaded:
    """Read a model, or a fitted estimator; raises as `load_model`."""
    path, header, arrays = read_archive(path, _SCHEMAS)
    try:
        if header["format"] == FittedState.format:
            return state_of_file(header, arrays)
        return _KINDS[header["format"]].from_arrays(_common(header, arrays), header, arrays)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is a damaged model: {error}") from error


def in_python(found: Loaded, path: str | Place) -> str:
    """How an estimator is made of a file in Python."""
    return f"dhsk.{class_of(found)}.load({str(path)!r})"


def read_by_other(found: Loaded, path: str | Place) -> InputError:
    """Error for a file of another estimator."""
    name = class_of(found)
    return InputError(f"{path} is a model of dhsk.{name}: read it with {name}.load")


def class_of(found: Loaded) -> str:
    """Name of the estimator that reads a file."""
    if isinstance(found, FittedState):
        return found.estimator
    return "HeatSVC" if isinstance(found, SvcModel) else "NystromSVC"


def _common(header: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Fields of all models."""
    classes, rows = arrays["classes"], rows_of_arrays("rows", arrays)
    names, name = _feature_names(header, rows.shape[1]), parse_map_name(header["sphere_map"])
    weights = arrays[_WEIGHTS] if name == TFIDF else None
    require_shapes(feature_weights=(weights, (rows.shape[1],)))
    return {
        "kernel": kernel_from_spec(header["kernel"]),
        "sphere_map": fixed_map(name),
        "feature_weights": weights,
        "classes": classes.astype(object) if header["classes_are_objects"] else classes,
        "rows": rows,
        "notes": header["notes"],
        "feature_names": names,
        "vectorizer": vectorizer_of(header.get("vectorizer"), names),
        "zero_rows": parse_zero_rule(header.get("zero_rows", "center")),  # earlier files have none
        "n_zero_rows": int(header.get("n_zero_rows", 0)),
    }


def _feature_names(header: dict[str, Any], dim: int) -> tuple[str, ...] | None:
    """Names of the features; files of earlier versions have them in the notes."""
    notes = header["notes"]
    earlier = notes.get("feature_names") if isinstance(notes, dict) else None
    return names_of_header({"feature_names": earlier, **header}, dim)


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Labels in a type that needs no pickle."""
    if classes.dtype.kind in "biufUS":
        return classes
    if all(isinstance(label, str) for label in classes):
        return classes.astype(np.str_)
    raise InputError(
        f"labels of dtype {classes.dtype} cannot be written: use whole numbers or strings"
    )
