"""Model files: one archive of arrays and JSON, never a pickle."""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import arrays_of_rows, rows_of_arrays
from dhsk.errors import InputError
from dhsk.kernels import kernel_from_spec
from dhsk.models.archive import names_of_header, read_archive, write_archive
from dhsk.models.base import Arrays, TrainedModel, require_shapes
from dhsk.models.exact import SvcModel
from dhsk.models.fitted import FittedState, state_of_file
from dhsk.models.low_rank import LowRankModel
from dhsk.objects.places import Place
from dhsk.samples import parse_zero_rule, vectorizer_of
from dhsk.samples.weighted import TFIDF, fixed_map, parse_map_name

Loaded: TypeAlias = SvcModel | LowRankModel | FittedState
"""What a file of this room holds."""

_KINDS: Final[dict[str, type[SvcModel] | type[LowRankModel]]] = {
    kind.format: kind for kind in (SvcModel, LowRankModel)
}
_FORMATS: Final = (*_KINDS, FittedState.format)
_WEIGHTS: Final = "feature_weights"


def save_model(model: TrainedModel, path: str | Place) -> None:
    """Write a model in numpy's npz format, with any file name; an existing file is replaced.

    Raises InputError if the labels cannot be written without pickle, OSError if the file cannot be
    written, StoreError if a server refuses it.
    """
    own, arrays = model.to_arrays()
    header = {
        "format": model.format,
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
        raise read_by(found.estimator, path)
    return found


def load_any(path: str | Place) -> Loaded:
    """Read a model, or what `save_fitted` wrote; raises as `load_model`."""
    path, header, arrays = read_archive(path, _FORMATS)
    try:
        if header["format"] == FittedState.format:
            return state_of_file(header, arrays)
        return _KINDS[header["format"]].from_arrays(_common(header, arrays), header, arrays)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is a damaged model: {error}") from error


def read_by(estimator: str, path: str | Place) -> InputError:
    """Error for a file that another estimator reads."""
    return InputError(f"{path} is a model of dhsk.{estimator}: read it with {estimator}.load")


def _common(header: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Fields of all models."""
    classes, rows = arrays["classes"], rows_of_arrays("rows", arrays)
    names, name = names_of_header(header, rows.shape[1]), parse_map_name(header["sphere_map"])
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
        "vectorizer": vectorizer_of(header["vectorizer"], names),
        "zero_rows": parse_zero_rule(header["zero_rows"]),
        "n_zero_rows": int(header["n_zero_rows"]),
    }


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Labels in a type that needs no pickle."""
    if classes.dtype.kind in "biufUS":
        return classes
    if all(isinstance(label, str) for label in classes):
        return classes.astype(np.str_)
    raise InputError(
        f"labels of dtype {classes.dtype} cannot be written: use whole numbers or strings"
    )
