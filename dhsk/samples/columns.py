"""Labels and names in zarr folders and HDF5 files: vectors, and columns as AnnData encodes them.

The encodings: https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError
from dhsk.samples.binary import as_text, choose_key
from dhsk.samples.paths import Origin


def read_column(origin: Origin, root: Any) -> NDArray[Any]:
    """Read labels, (n_samples,), whole: a vector, or a column as AnnData encodes it (`obs/COLUMN`).

    A missing label is None. Raises `InputError` if there is no such column, or it has another
    number of dimensions.
    """
    if hasattr(root, "shape"):
        return _vector(origin, root)
    _refuse_compound(origin, root)
    key = origin.key
    if key is None or key not in root:
        key = choose_key(origin, _columns(root), ("y", "labels"), "the labels")
    return _column(origin, root[key])


def read_index(origin: Origin, root: Any, table: str | None) -> tuple[str, ...] | None:
    """Read the names that AnnData gives the rows of a table: of samples, or of features.

    `table` is "obs", or the result of `features_of`; None if there is no such table of AnnData.
    """
    if table is None or table not in root:
        return None
    node = root[table]
    name = node.attrs.get("_index")
    if hasattr(node, "shape") or not isinstance(name, str) or name not in node:
        return None
    return as_text(_column(origin, node[name]))


def features_of(key: str | None) -> str | None:
    """Key of the AnnData table with the feature names of an array; None if there is none."""
    if key == "raw/X":
        return "raw/var"
    return "var" if key == "X" or (key or "").startswith("layers/") else None


def _columns(root: Any) -> frozenset[str]:
    """Return the columns of an AnnData table of samples, else the names in a group."""
    if "obs" not in root:
        return frozenset(root)
    obs = root["obs"]
    return frozenset(f"obs/{name}" for name in obs if name != obs.attrs.get("_index"))


def _refuse_compound(origin: Origin, root: Any) -> None:
    """Refuse the table of samples that AnnData wrote before 0.7: an array of records."""
    if "obs" in root and hasattr(root["obs"], "shape"):
        raise InputError(
            f"{origin.path} is of an old version of AnnData, whose obs is one array: write it again"
            " with anndata.read_h5ad(FILE).write_h5ad(OTHER)"
        )


def _column(origin: Origin, node: Any) -> NDArray[Any]:
    if hasattr(node, "shape"):
        return _vector(origin, node)
    if "codes" in node and "categories" in node:
        codes = _vector(origin, node["codes"])
        # One more category, which the code -1 of a missing value selects.
        categories = [*_vector(origin, node["categories"]).tolist(), None]
        if codes.size and not -1 <= codes.min() <= codes.max() < len(categories) - 1:
            raise ValueError(f"a code has no category, of {len(categories) - 1}")
        labels: NDArray[Any] = np.array(categories, dtype=object)[codes]
        return labels
    if "values" in node and "mask" in node:
        values = _vector(origin, node["values"]).astype(object)
        values[_vector(origin, node["mask"]).astype(bool)] = None
        return values
    raise InputError(
        f"{origin} is a group (of {', '.join(sorted(node)) or 'nothing'}), but labels are read "
        "from a vector, a categorical or a nullable column"
    )


def _vector(origin: Origin, array: Any) -> NDArray[Any]:
    if len(array.shape) != 1:
        raise InputError(
            f"{origin}: shape {tuple(array.shape)} is not one label per sample, (n_samples,)"
        )
    values = np.asarray(array[:])
    if values.dtype.names is not None:
        raise InputError(
            f"{origin} holds records of {len(values.dtype.names)} fields and not one label per "
            "sample: write the field with the labels as an array of its own"
        )
    if values.dtype.hasobject:  # strings of HDF5 are bytes
        texts = [v.decode("utf-8") if isinstance(v, bytes) else v for v in values]
        values = np.array(texts, dtype=object)
    return values
