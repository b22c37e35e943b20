"""Files and folders of named arrays, of zarr and HDF5, with names and labels as AnnData has them.

The encodings: https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError
from dhsk.samples.base import Samples
from dhsk.samples.chunked import choose_key, find_samples, open_chunked, read_vector
from dhsk.samples.format import LABELS, SHOWN, Asked, Format, SamplesFile, describe_arrays
from dhsk.samples.kinds import FEWEST_GROUPS, STAY_TOGETHER, names_groups
from dhsk.samples.names import as_text, listed
from dhsk.samples.paths import Origin
from dhsk.systems import quoted
from dhsk.units import counted

Opened: TypeAlias = Callable[[Origin, str | None], AbstractContextManager[Any]]
"""Opens the root of a file or folder, or what has a key in it."""

_COUNTS: Final = ("layers/counts", "raw/X")
"""Where AnnData usually keeps counts beside other values."""


def tree_format(words: str, suffix: str, opened: Opened) -> Format:
    """Format of files or folders that are opened so."""
    describe = partial(_describe, f"{words} ({suffix})", opened)
    return Format((suffix,), partial(_open, opened), describe, partial(_labels, opened))


def _open(opened: Opened, origin: Origin, _: Asked) -> Samples:
    """Open `X`, or what the key names, such as `layers/NAME`; or the array that is the root."""
    with opened(origin, None) as root:
        if hasattr(root, "shape"):
            _refuse_key(origin)
            key = None
        else:
            key = find_samples(origin, root)
    if key is None:
        return open_chunked(str(origin.path), partial(opened, origin, None))
    source = f"{origin.path}:{key}"
    # A part of a zarr folder has its own modification time.
    place = (Origin.of(origin.path / key), None) if origin.is_folder else (origin, key)
    samples = open_chunked(source, partial(opened, *place))
    read = partial(_read_names, opened, origin, source)
    features = read(_features_of(key), samples.shape[1])
    return replace(samples, feature_names=features, names=partial(read, "obs", samples.shape[0]))


def _refuse_key(origin: Origin) -> None:
    if origin.key is not None:
        raise InputError(
            f"{origin}: {origin.path} is one array, so give it without ':{origin.key}'"
        )


def _read_names(
    opened: Opened, origin: Origin, source: str, table: str | None, count: int
) -> tuple[str, ...] | None:
    """Read the names that AnnData gives `count` rows of a table: of samples, or of features.

    `table` is "obs", or the result of `_features_of`; None if there is no such table of AnnData.
    """
    with opened(origin, None) as root:
        if table is None or table not in root:
            return None
        node = root[table]
        name = node.attrs.get("_index")
        if hasattr(node, "shape") or not isinstance(name, str) or name not in node:
            return None
        names = as_text(_column(origin, node[name]))
    if len(names) != count:
        raise InputError(
            f"{source} has {count} {'rows' if table == 'obs' else 'columns'}, but the index of "
            f"{table} has {len(names)} names: write the file again"
        )
    return names


def _features_of(key: str) -> str | None:
    """Key of the AnnData table with the feature names of an array; None if there is none."""
    if key == "raw/X":
        return "raw/var"
    return "var" if key == "X" or key.startswith("layers/") else None


# Labels


def _labels(opened: Opened, origin: Origin, _: Asked) -> NDArray[Any]:
    """Read labels, (n_samples,), whole: a vector, or a column as AnnData encodes it (`obs/COLUMN`).

    A missing label is None.
    """
    with opened(origin, None) as root:
        if hasattr(root, "shape"):
            _refuse_key(origin)
            return read_vector(origin, root)
        refuse_compound(origin, root)
        key = origin.key
        if key is None or key not in root:
            key = choose_key(origin, _columns(root), ("y", "labels"), "the labels")
        return _column(origin, root[key])


def _columns(root: Any) -> frozenset[str]:
    """Return the columns of an AnnData table of samples, else the names in a group."""
    if "obs" not in root:
        return frozenset(root)
    obs = root["obs"]
    return frozenset(f"obs/{name}" for name in obs if name != obs.attrs.get("_index"))


def refuse_compound(origin: Origin, root: Any) -> None:
    """Refuse the table of samples that AnnData wrote before 0.7: an array of records."""
    if "obs" in root and hasattr(root["obs"], "shape"):
        raise InputError(
            f"{origin.path} is of an old version of AnnData, whose obs is one array: write it again"
            " with anndata.read_h5ad(FILE).write_h5ad(OTHER)"
        )


def _column(origin: Origin, node: Any) -> NDArray[Any]:
    if hasattr(node, "shape"):
        return read_vector(origin, node)
    if "codes" in node and "categories" in node:
        codes = read_vector(origin, node["codes"])
        # One more category, which the code -1 of a missing value selects.
        categories = [*read_vector(origin, node["categories"]).tolist(), None]
        if codes.size and not -1 <= codes.min() <= codes.max() < len(categories) - 1:
            raise ValueError(f"a code has no category, of {len(categories) - 1}")
        labels: NDArray[Any] = np.array(categories, dtype=object)[codes]
        return labels
    if "values" in node and "mask" in node:
        values = read_vector(origin, node["values"]).astype(object)
        values[read_vector(origin, node["mask"]).astype(bool)] = None
        return values
    raise InputError(
        f"{origin} is a group (of {', '.join(sorted(node)) or 'nothing'}), but labels are read "
        "from a vector, a categorical or a nullable column"
    )


# Descriptions


def _describe(words: str, opened: Opened, origin: Origin) -> SamplesFile:
    """Layers, columns of samples, and which of them may be labels."""
    rows, label, group, counts, gaps = list[tuple[str, str]](), None, None, None, 0
    with opened(origin, None) as root:
        if not hasattr(root, "shape"):
            counts = next((key for key in _COUNTS if key in root and key != origin.key), None)
            if "obs" in root and not hasattr(root["obs"], "shape"):
                rows, label = _tables(root)
                group = _group_in(origin, root["obs"])
                gaps = 0 if label is None else _missing(origin, root["obs"][label])
    labels = "LABELS" if label is None else quoted(f"{origin.path}:obs/{label}")
    if gaps:
        rows += [("gaps", f"{counted(gaps, 'row')} without obs/{label}: leave them out")]
    if group is not None:
        rows += [("groups", f"obs/{group}: {STAY_TOGETHER}")]
    found = describe_arrays(words, origin, partial(_open, opened), rows, labels, counts)
    if found.seems == "logarithms" and counts and origin.key is None:
        found = replace(found, samples=quoted(f"{origin.path}:{counts}"), seems=None)
    if group is not None:
        found = replace(found, grouped=f" --groups {quoted(f'{origin.path}:obs/{group}')}")
    return replace(found, python=[_without_gaps(origin, str(label))]) if gaps else found


def _group_in(origin: Origin, obs: Any) -> str | None:
    """Column of samples that is called as groups are, and has several samples of many groups."""
    names: list[str] = sorted(filter(names_groups, obs))
    for name in names:
        values = np.unique(_column(origin, obs[name]).astype(str), return_counts=True)
        if len(values[0]) >= FEWEST_GROUPS and values[1].max() > 1:
            return name
    return None


def _missing(origin: Origin, node: Any) -> int:
    """Number of missing values of a categorical or a nullable column; other types have none."""
    if hasattr(node, "shape"):  # whose values `in` would look at, one by one
        return 0
    if "codes" in node:
        return int((read_vector(origin, node["codes"]) < 0).sum())
    return int(read_vector(origin, node["mask"]).astype(bool).sum()) if "mask" in node else 0


def _without_gaps(origin: Origin, label: str) -> str:
    """Line of Python that writes AnnData anew without the rows that have no label."""
    kind, path = origin.suffix[1:], str(origin.path)
    stem = origin.path.name.partition(".")[0]
    return (
        f"adata = anndata.read_{kind}({path!r}); adata[adata.obs[{label!r}].notna()]"
        f".write_{kind}('{stem}_labelled.{kind}') in Python"
    )


_OF_CLASSES: Final = ("type", "class", "label", "cluster", "disease", "condition", "status")
_OF_ORIGIN: Final = ("batch", "donor", "sample", "patient", "assay", "plate", "library", "site")
"""Words in names of columns that hold classes, and in those that say where samples are from."""


def _doubt(name: str) -> tuple[bool, bool, str]:
    """Sort key: names of columns that are likely labels first."""
    lower = name.lower()
    own, other = (any(word in lower for word in some) for some in (_OF_CLASSES, _OF_ORIGIN))
    return other, not own, name


def _tables(root: Any) -> tuple[list[tuple[str, str]], str | None]:
    """Layers, columns and other arrays of AnnData, and the column that may hold the labels."""
    obs = root["obs"]
    # sorted: a folder lists its names in any order
    columns = sorted(key for key in obs if key != obs.attrs.get("_index"))
    layers = [f"layers/{key}" for key in sorted(root.get("layers", ()))]
    layers += ["raw/X"] if "raw" in root and "X" in root["raw"] else []
    others = [f"obsm/{key}" for key in sorted(root.get("obsm", ()))]
    usual = next((name for name in LABELS if name in columns), None)
    groups = [name for name in columns if not hasattr(obs[name], "shape")]
    label = usual or min((c for c in groups if "categories" in obs[c]), key=_doubt, default=None)
    parts = {"layers": layers, "obs": columns, "obsm": others}
    rows = [(what, listed(names, SHOWN)) for what, names in parts.items() if names]
    return [*rows, *([] if label is None else [("labels", f"perhaps obs/{label}")])], label
