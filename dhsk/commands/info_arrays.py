"""Part of `dhsk info` on files of arrays: shapes, tables of AnnData, and what values seem to be."""

from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote
from typing import Any, Final

from dhsk.commands.describing import LABELS, SamplesFile, listed, value_notes
from dhsk.errors import InputError
from dhsk.samples import open_samples
from dhsk.samples.binary import NpySamples, archive_keys, member_header
from dhsk.samples.h5ad import opened_h5ad
from dhsk.samples.looks import first_rows
from dhsk.samples.paths import Origin
from dhsk.samples.zarr_folder import opened_zarr

_COUNTS: Final = ("layers/counts", "raw/X")
"""Where AnnData usually keeps counts beside other values."""


def describe_arrays(words: str, origin: Origin) -> SamplesFile:
    """Describe an array, an archive, or a file of AnnData; labels are in it or in another file."""
    name = quote(str(origin.path))
    rows, labels = _parts(origin)
    try:
        samples = open_samples(str(origin))
    except InputError:  # an archive without X: the user names one of its arrays
        return SamplesFile(words, rows, f"{name}:NAME", labels)
    kept = f"{name}:{origin.key}" if origin.key else name
    n, dim = samples.shape
    shape = f"{n:,} x {dim:,}{'' if samples.nnz is None else f', {samples.nnz:,} entries'}"
    if isinstance(samples, NpySamples):
        shape += f" {samples.header.dtype}"
    notes = value_notes(first_rows(samples), samples.feature_names, _beside(origin))
    return SamplesFile(
        words, [("samples", shape), *rows, *notes], kept, labels, facts={"shape": [n, dim]}
    )


def _parts(origin: Origin) -> tuple[list[tuple[str, str]], str]:
    """Arrays of an archive, or tables of AnnData, and the labels on a command line."""
    if origin.suffix == ".npz":
        return _of_archive(origin)
    if origin.suffix == ".npy":
        return [], "LABELS"
    with _opened(origin) as root:
        if hasattr(root, "shape") or "obs" not in root or hasattr(root["obs"], "shape"):
            return [], "LABELS"
        obs = root["obs"]
        # sorted: a folder lists its names in any order
        columns = sorted(key for key in obs if key != obs.attrs.get("_index"))
        layers = [f"layers/{key}" for key in sorted(root.get("layers", ()))]
        layers += ["raw/X"] if "raw" in root and "X" in root["raw"] else []
        label = _label(obs, columns)
    rows = [("layers", listed(layers))] if layers else []
    rows += [("obs", listed(columns))] if columns else []
    if label is None:
        return rows, "LABELS"
    return [*rows, ("labels", f"perhaps obs/{label}")], quote(f"{origin.path}:obs/{label}")


def _of_archive(origin: Origin) -> tuple[list[tuple[str, str]], str]:
    headers = {key: member_header(origin, key) for key in sorted(archive_keys(origin))}
    shown = [
        f"{key} {' x '.join(f'{size:,}' for size in header.shape) or 'scalar'} {header.dtype}"
        for key, header in headers.items()
    ]
    vectors = [key for key, header in headers.items() if len(header.shape) == 1]
    label = next((key for key in ("y", *LABELS) if key in vectors), None)
    labels = "LABELS" if label is None else quote(f"{origin.path}:{label}")
    return [("arrays", listed(shown))], labels


def _label(obs: Any, columns: list[str]) -> str | None:
    """The usual name of labels, else the first categorical column, else none."""
    usual = next((name for name in LABELS if name in columns), None)
    return usual or next((name for name in columns if "categories" in obs[name]), None)


def _beside(origin: Origin) -> str | None:
    """Where the same file has counts; None if it has none."""
    if origin.suffix in (".npy", ".npz"):
        return None
    with _opened(origin) as root:
        if hasattr(root, "shape"):
            return None
        return next((key for key in _COUNTS if key in root and key != origin.key), None)


@contextmanager
def _opened(origin: Origin) -> Iterator[Any]:
    with (opened_zarr if origin.is_folder else opened_h5ad)(origin) as root:
        yield root
