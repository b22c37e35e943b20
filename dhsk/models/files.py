"""Model files: one archive of arrays and JSON, never a pickle."""

import io
import json
import math
import zipfile
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Rows
from dhsk.errors import BudgetError, InputError
from dhsk.execution.limits import own_room
from dhsk.files import parse_json
from dhsk.kernels import kernel_from_spec
from dhsk.models.base import Arrays, TrainedModel, require_shapes
from dhsk.models.exact import SvcModel
from dhsk.models.low_rank import LowRankModel
from dhsk.objects.places import Place, opened, parse_place, size_of, written
from dhsk.samples import parse_zero_rule, vectorizer_of
from dhsk.samples.binary import read_header
from dhsk.samples.paths import reading
from dhsk.samples.weighted import TFIDF, fixed_map, parse_map_name
from dhsk.units import format_bytes

SCHEMA: Final = 1
_KINDS: Final[dict[str, type[SvcModel] | type[LowRankModel]]] = {
    kind.format: kind for kind in (SvcModel, LowRankModel)
}
_HEADER: Final = "header"
_WEIGHTS: Final = "feature_weights"
_HEAD_BYTES: Final = 1 << 17
"""Upper bound on the bytes before the values of an array: numpy's usual headers have 65,535."""


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
    parts: dict[str, Any] = {
        _HEADER: np.frombuffer(json.dumps(header, default=_as_json).encode(), np.uint8),
        "classes": _plain(model.classes),
        **arrays,
        **({} if model.feature_weights is None else {_WEIGHTS: model.feature_weights}),
        **_row_arrays(model.rows),
    }
    with written(parse_place("path", path)) as file:
        # An open file: np.savez would add .npz to a name. `_plain` and rows need no pickle, and
        # numpy before 2.2 would take allow_pickle for one more array.
        np.savez(file, **parts)


def load_model(path: str | Place) -> SvcModel | LowRankModel:
    """Read a model of `save_model`, with the same decision values to the last bit.

    Raises InputError if the file is missing, damaged, no model or of another version, BudgetError
    if its arrays do not fit in half of the free memory.
    """
    path = parse_place("path", path)
    with reading(str(path)):
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        _check_room(path, size_of(path) or 0)
        with opened(path) as file:  # by its name, an unreadable file is no archive either
            if not zipfile.is_zipfile(file):
                raise InputError(f"{path} is no dhsk model, or not the whole of one")
            arrays = _read_arrays(file, path)
    header = _header(arrays.pop(_HEADER, None), path)
    try:
        return _KINDS[header["format"]].from_arrays(_common(header, arrays), header, arrays)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is a damaged model: {error}") from error


def was_written_here(path: Place) -> bool:
    """Whether a file, damaged or not, begins like a model file: with the array of the header."""
    with opened(path) as file:
        begin = file.read(64)
    return begin.startswith(b"PK") and b"header.npy" in begin


def _check_room(path: Place, needed: int) -> None:
    """Raise BudgetError if arrays do not fit in memory."""
    room = own_room(None)
    if needed > room:
        raise BudgetError(
            f"the arrays of {path} take {format_bytes(needed)} but {format_bytes(room)} of "
            "memory are left: make room, or read it on a machine with more"
        )


def _read_arrays(file: IO[bytes], path: Place) -> Arrays:
    """Read all arrays of an archive; raise BudgetError before that if they do not fit."""
    with zipfile.ZipFile(file) as archive:
        _check_room(path, sum(_bytes_of(archive, member) for member in archive.infolist()))
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _bytes_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Unpacked bytes of an array; raise ValueError if its header contradicts the archive's."""
    with archive.open(member) as handle:
        head = io.BytesIO(handle.read(_HEAD_BYTES))
    shape, _, dtype = read_header(head)
    size = head.tell() + math.prod(shape) * dtype.itemsize
    if size != member.file_size:
        raise ValueError(
            f"{member.filename} has {member.file_size} bytes where its header says {size}"
        )
    return size


def _header(stored: NDArray[Any] | None, path: Place) -> dict[str, Any]:
    """Parsed header of a model of a known kind and version."""
    try:
        header = parse_json(b"" if stored is None else stored.tobytes())
    except ValueError:
        header = None
    found = str(header.get("format")) if isinstance(header, dict) else ""
    if not (found.startswith("dhsk ") and found.endswith(" model")):
        raise InputError(f"{path} is no dhsk model: it is an archive of something else")
    if found not in _KINDS:
        raise InputError(
            f"{path} is a {found}, but this dhsk reads a {' or a '.join(_KINDS)}: load it with the "
            "version of dhsk that wrote it"
        )
    if header.get("schema") != SCHEMA:
        raise InputError(
            f"{path} is a model of schema {header.get('schema')}, but this dhsk reads schema "
            f"{SCHEMA}: train it again, or use the dhsk that wrote it"
        )
    return dict(header)


def _common(header: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Fields of all models."""
    classes, rows = arrays["classes"], _rows(arrays)
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
    names = header.get("feature_names", earlier)
    if names is None:
        return None
    if len(names) != dim or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names are {len(names)} and not {dim} names")
    return tuple(names)


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Labels in a type that needs no pickle."""
    if classes.dtype.kind in "biufUS":
        return classes
    if all(isinstance(label, str) for label in classes):
        return classes.astype(np.str_)
    raise InputError(
        f"labels of dtype {classes.dtype} cannot be written: use whole numbers or strings"
    )


def _row_arrays(rows: Rows) -> Arrays:
    if isinstance(rows, np.ndarray):
        return {"rows": rows}
    return {
        "rows_data": rows.data,
        "rows_indices": rows.indices,
        "rows_indptr": rows.indptr,
        "rows_shape": np.array(rows.shape),
    }


def _rows(arrays: Arrays) -> Rows:
    if "rows" in arrays:
        return arrays["rows"]
    parts = (arrays["rows_data"], arrays["rows_indices"], arrays["rows_indptr"])
    rows = csr_array(parts, shape=tuple(arrays["rows_shape"].tolist()))
    rows.check_format(full_check=True)
    return rows


def _as_json(value: Any) -> Any:
    """Python values of numpy scalars."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is no JSON")
