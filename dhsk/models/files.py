"""Files of models and of fitted estimators: one archive of arrays and JSON, never a pickle.

Rejected: all of `vars(estimator)`, as any attribute would be part of the format unseen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Rows, arrays_of_rows, rows_of_arrays
from dhsk.errors import InputError
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel, kernel_from_spec
from dhsk.models.archive import names_of_header, read_archive, write_archive
from dhsk.models.base import Arrays, TrainedModel, require_shapes
from dhsk.models.exact import SvcModel
from dhsk.models.low_rank import LowRankModel
from dhsk.objects.places import Place
from dhsk.samples import ZeroRows, parse_sphere_map, parse_zero_rule, vectorizer_of
from dhsk.samples.weighted import LEARNT, SCALED, fixed_map, parse_map_name

Value: TypeAlias = bool | int | float | str | NDArray[Any] | csr_array | None
"""Something that a fit has learnt."""

_SPARSE = "sparse"
"""Stands in the header for a CSR array."""
_DENSE = "dense"


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedState:
    """A fitted estimator, as a file has it."""

    format: ClassVar[str] = "dhsk estimator model"
    """Identifies files of this kind."""
    estimator: str
    """Name of its class in dhsk."""
    parameters: Mapping[str, Any]
    """Parameters, of JSON, or a kernel."""
    learnt: Mapping[str, Value]
    """Fitted attributes by their names in the file."""
    row_map: RowMap | None
    """Map of samples to rows of the kernel; None for an estimator without a kernel."""
    n_features: int
    """Number of features of a sample."""
    feature_names: tuple[str, ...] | None
    notes: Mapping[str, Any]
    """Further JSON values."""

    def spec_of_parameters(self) -> dict[str, Any]:
        """Parameters as JSON."""
        given = self.parameters.items()
        return {name: v.to_spec() if isinstance(v, Kernel) else v for name, v in given}

    @property
    def arrays(self) -> dict[str, Rows]:
        """What was learnt that is an array."""
        found = self.learnt.items()
        return {name: value for name, value in found if isinstance(value, np.ndarray | csr_array)}

    def numbers(self) -> dict[str, Rows]:
        """Arrays of floating point numbers that are finite in every fit."""
        return {
            name: value
            for name, value in self.arrays.items()
            # There may be no derivative of a likelihood.
            if value.dtype.kind == "f" and not name.startswith("gradient")
        }


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


def save_fitted(state: FittedState, path: str | Place) -> None:
    """Write a fitted estimator with any file name; an existing file is replaced atomically.

    Raises OSError if the file cannot be written, StoreError if a server refuses it.
    """
    values: dict[str, Any] = {}
    arrays: Arrays = {}
    for name, value in state.learnt.items():
        if isinstance(value, np.ndarray | csr_array):
            values[name] = {"array": _DENSE if isinstance(value, np.ndarray) else _SPARSE}
            arrays |= arrays_of_rows(name, value)
        else:
            values[name] = value
    header = {
        "format": state.format,
        "estimator": state.estimator,
        "parameters": state.spec_of_parameters(),
        "learnt": values,
        "row_map": None if state.row_map is None else _spec_of_map(state.row_map),
        "n_features": state.n_features,
        "feature_names": state.feature_names,
        "notes": dict(state.notes),
    }
    write_archive(path, header, arrays)


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
            return _state_of_file(header, arrays)
        return _KINDS[header["format"]].from_arrays(_common(header, arrays), header, arrays)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is a damaged model: {error}") from error


def read_by(estimator: str, path: str | Place) -> InputError:
    """Error for a file that another estimator reads."""
    return InputError(f"{path} is a model of dhsk.{estimator}: read it with {estimator}.load")


def _state_of_file(header: dict[str, Any], arrays: Arrays) -> FittedState:
    """Fitted estimator of the header and the arrays of a file.

    Raises KeyError, TypeError, ValueError or InputError if something is missing or damaged.
    """
    learnt = {name: _value(name, value, arrays) for name, value in header["learnt"].items()}
    parameters = {
        name: kernel_from_spec(value) if isinstance(value, dict) else value
        for name, value in header["parameters"].items()
    }
    dim = int(header["n_features"])
    row_map = None if header["row_map"] is None else _map_of_spec(header["row_map"])
    if row_map is not None:
        require_shapes(feature_weights=(row_map.weights, (2, dim)))
    return FittedState(
        estimator=str(header["estimator"]),
        parameters=parameters,
        learnt=learnt,
        row_map=row_map,
        n_features=dim,
        feature_names=names_of_header(header, dim),
        notes=header["notes"],
    )


def _value(name: str, stored: Any, arrays: Arrays) -> Value:
    """What a fit has learnt, of its JSON and the arrays."""
    if not isinstance(stored, dict):
        return stored  # type: ignore[no-any-return]  # JSON
    found = rows_of_arrays(name, arrays)
    if (stored["array"] == _DENSE) != isinstance(found, np.ndarray):
        raise ValueError(f"{name} is not {stored['array']}")
    return found


def _spec_of_map(row_map: RowMap) -> dict[str, Any]:
    return {
        "kernel": row_map.kernel.to_spec(),
        "sphere_map": row_map.sphere_map,
        "dtype": row_map.dtype,
        "zero_rows": row_map.zero_rows.rule,
        **({} if row_map.weights is None else {_WEIGHTS: row_map.weights.tolist()}),
    }


def _map_of_spec(spec: dict[str, Any]) -> RowMap:
    return RowMap(
        kernel_from_spec(spec["kernel"]),
        parse_sphere_map(spec["sphere_map"]),
        np.dtype(spec["dtype"]).name,
        ZeroRows(parse_zero_rule(spec["zero_rows"])),
        np.array(spec[_WEIGHTS]) if _WEIGHTS in spec else None,
    )


def _common(header: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Fields of all models."""
    classes, rows = arrays["classes"], rows_of_arrays("rows", arrays)
    names, name = names_of_header(header, rows.shape[1]), parse_map_name(header["sphere_map"])
    weights = arrays[_WEIGHTS] if name in LEARNT else None
    dim = rows.shape[1]
    require_shapes(feature_weights=(weights, (2, dim) if name == SCALED else (dim,)))
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
