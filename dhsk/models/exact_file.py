"""Model files: one archive of arrays and JSON, never a pickle."""

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Rows
from dhsk.errors import InputError
from dhsk.execution.runners import own_room
from dhsk.files import parse_json, written_beside
from dhsk.kernels import Kernel, kernel_from_spec
from dhsk.kernels.base import positive_parameter
from dhsk.models.archive import read_arrays
from dhsk.models.exact import Certificates, Expansion, SvcModel
from dhsk.samples import SphereMap, ZeroRule, parse_sphere_map, parse_zero_rule
from dhsk.samples.paths import reading

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Model = TypeVar("Model")

SCHEMA: Final = 1
FORMAT: Final = "dhsk svm model"
_HEADER: Final = "header"


def save_model(model: SvcModel, path: str | Path) -> None:
    """Write a model, in the archive format of numpy; replaced in one step if it exists.

    Parameters
    ----------
    model
        The model.
    path
        File to write, with any ending; its folder must exist.

    Raises
    ------
    InputError
        The labels are of a type that no file can hold without pickling them.
    OSError
        The file cannot be written.
    """
    header = {"tol": model.certificates.tol, "C": model.certificates.C, "unit": model.unit}
    arrays = {**arrays_of(model.expansion), **arrays_of(model.certificates)}
    if model.sigmoids is not None:
        arrays["sigmoids"] = model.sigmoids
    write_model(Path(path), FORMAT, model, header, arrays)


def load_model(path: str | Path) -> SvcModel:
    """Read what `save_model` wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    SvcModel
        The same model: its decisions are the same to the last bit.

    Raises
    ------
    InputError
        There is no such file, or it is no model, damaged, of another kind or version.
    """
    return read_model(path, {FORMAT: model_of})


class Kept(Protocol):
    """What model files of every kind keep."""

    @property
    def kernel(self) -> Kernel:
        """The kernel."""

    @property
    def sphere_map(self) -> SphereMap:
        """How samples become its rows."""

    @property
    def classes(self) -> NDArray[Any]:
        """Labels."""

    @property
    def rows(self) -> Rows:
        """Mapped rows."""

    @property
    def notes(self) -> Mapping[str, Any]:
        """What else the maker wants to keep."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if they have any."""

    @property
    def zero_rows(self) -> ZeroRule:
        """What becomes of samples of zeros."""

    @property
    def n_zero_rows(self) -> int:
        """How many of the training samples were."""


def write_model(
    path: Path,
    kind: str,
    model: Kept,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a model of some kind; replaced in one step if it exists.

    Parameters
    ----------
    path
        File to write.
    kind
        What tells models of this kind from others.
    model
        The model.
    header, arrays
        What it has besides.

    Raises
    ------
    InputError
        The labels are of a type that no file can hold without pickling them.
    OSError
        The file cannot be written.
    """
    whole = {
        "format": kind,
        "schema": SCHEMA,
        "kernel": model.kernel.to_spec(),
        "sphere_map": model.sphere_map,
        **header,
        "classes_are_objects": model.classes.dtype.kind == "O",
        "notes": dict(model.notes),
        "feature_names": model.feature_names,
        "zero_rows": model.zero_rows,
        "n_zero_rows": model.n_zero_rows,
    }
    parts: dict[str, Any] = {
        _HEADER: np.frombuffer(json.dumps(whole, default=_as_json).encode(), np.uint8),
        "classes": _plain(model.classes),
        **arrays,
        **_row_arrays(model.rows),
    }
    with written_beside(path) as file:
        # An open file: np.savez would add .npz to a name. `_plain` and rows need no pickle, and
        # numpy before 2.2 would take allow_pickle for one more array.
        np.savez(file, **parts)


def read_model(path: str | Path, kinds: Mapping[str, Callable[..., Model]]) -> Model:
    """Read what `write_model` wrote.

    Parameters
    ----------
    path
        The file.
    kinds
        What makes a model of the header and the arrays, by kinds that can be used.

    Returns
    -------
    Model
        What was made.

    Raises
    ------
    InputError
        There is no such file, or it is no model, damaged, of another kind or version.
    BudgetError
        Its arrays do not fit half of the free memory.
    """
    path = Path(path)
    with reading(str(path)):
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        with path.open("rb") as file:  # by its name, an unreadable file is no archive either
            if not zipfile.is_zipfile(file):
                raise InputError(f"{path} is no dhsk model, or not the whole of one")
    arrays = read_arrays(path, own_room(None))
    header = _header(arrays.pop(_HEADER, None), path, list(kinds))
    try:
        return kinds[header["format"]](header, arrays)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is a damaged model: {error}") from error


def _header(stored: NDArray[Any] | None, path: Path, kinds: Sequence[str]) -> dict[str, Any]:
    try:
        header = parse_json(b"" if stored is None else stored.tobytes())
    except ValueError:
        header = None
    found = str(header.get("format")) if isinstance(header, dict) else ""
    if not (found.startswith("dhsk ") and found.endswith(" model")):
        raise InputError(f"{path} is no dhsk model: it is an archive of something else")
    if found not in kinds:
        raise InputError(
            f"{path} is a {found}, but what reads it here takes a {' or a '.join(kinds)}: load it "
            "with the estimator, or the version of dhsk, that wrote it"
        )
    if header.get("schema") != SCHEMA:
        raise InputError(
            f"{path} is a model of schema {header.get('schema')}, but this dhsk reads schema "
            f"{SCHEMA}: train it again, or use the dhsk that wrote it"
        )
    return dict(header)


def common_of(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """What models of every kind have, by the names of `Kept`."""
    classes, rows = arrays["classes"], _rows(arrays)
    return {
        "kernel": kernel_from_spec(header["kernel"]),
        "sphere_map": parse_sphere_map(header["sphere_map"]),
        "classes": classes.astype(object) if header["classes_are_objects"] else classes,
        "rows": rows,
        "notes": header["notes"],
        "feature_names": _feature_names(header, rows.shape[1]),
        "zero_rows": parse_zero_rule(header.get("zero_rows", "center")),  # earlier files have none
        "n_zero_rows": int(header.get("n_zero_rows", 0)),
    }


def _feature_names(header: dict[str, Any], dim: int) -> tuple[str, ...] | None:
    """Names of the features; earlier files have those of DataFrames, in the notes."""
    notes = header["notes"]
    earlier = notes.get("feature_names") if isinstance(notes, dict) else None
    names = header.get("feature_names", earlier)
    if names is None:
        return None
    if len(names) != dim or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names are {len(names)} and not {dim} names")
    return tuple(names)


def model_of(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> SvcModel:
    """Exact model of a file's header and arrays."""
    stored = [f.name for f in fields(Certificates) if f.name not in header]
    model = SvcModel(
        **common_of(header, arrays),
        expansion=Expansion(**{f.name: arrays[f.name] for f in fields(Expansion)}),
        certificates=Certificates(
            tol=header["tol"], C=header["C"], **{name: arrays[name] for name in stored}
        ),
        sigmoids=arrays.get("sigmoids"),
        unit=positive_parameter("unit", header.get("unit", 1.0)),  # older files have none
    )
    _check_shapes(model)
    return model


def _check_shapes(model: SvcModel) -> None:
    k, n_sv = len(model.classes), model.rows.shape[0]
    n_pairs, expansion = k * (k - 1) // 2, model.expansion
    require_shapes(
        support=(expansion.support, (n_sv,)),
        n_support=(expansion.n_support, (k,)),
        dual_coef=(expansion.dual_coef, (k - 1, n_sv)),
        intercepts=(expansion.intercepts, (n_pairs,)),
        violation=(model.certificates.violation, (n_pairs,)),
        sigmoids=(model.sigmoids, (n_pairs, 2)),
    )
    if expansion.n_support.sum() != n_sv:
        raise ValueError(f"n_support sums to {expansion.n_support.sum()}, not {n_sv}")


def require_shapes(**shapes: tuple[NDArray[Any] | None, tuple[int, ...]]) -> None:
    """Refuse arrays of a file, by their names, that do not have the shapes given with them.

    Raises
    ------
    ValueError
        One has not.
    """
    for name, (array, shape) in shapes.items():
        if array is not None and array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, not {shape}")


def arrays_of(part: "DataclassInstance") -> dict[str, NDArray[Any]]:
    """Fields of a dataclass that are arrays, by their names."""
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Labels in a type that needs no pickle."""
    if classes.dtype.kind in "biufUS":
        return classes
    if all(isinstance(label, str) for label in classes):
        return classes.astype(np.str_)
    raise InputError(
        f"labels of dtype {classes.dtype} cannot be written: use whole numbers or strings"
    )


def _row_arrays(rows: Rows) -> dict[str, NDArray[Any]]:
    if isinstance(rows, np.ndarray):
        return {"rows": rows}
    return {
        "rows_data": rows.data,
        "rows_indices": rows.indices,
        "rows_indptr": rows.indptr,
        "rows_shape": np.array(rows.shape),
    }


def _rows(arrays: dict[str, NDArray[Any]]) -> Rows:
    if "rows" in arrays:
        return arrays["rows"]
    parts = (arrays["rows_data"], arrays["rows_indices"], arrays["rows_indptr"])
    rows = csr_array(parts, shape=tuple(arrays["rows_shape"].tolist()))
    rows.check_format(full_check=True)
    return rows


def _as_json(value: Any) -> Any:
    """Numbers of numpy as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is no JSON")
