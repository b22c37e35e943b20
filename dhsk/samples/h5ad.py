"""Samples and labels in `.h5ad` files of AnnData, read by h5py; and labels written into them.

anndata is not needed: its import takes 0.9 s and 93 MB (h5py's 0.03 s and 11 MB), and it reads a
compressed CSR file of 106 MB in 1.0 s (0.8 s here).

A column is written into a copy of the file, which takes its place. Rejected: writing in place, as
HDF5 keeps its tables in memory, and a file whose writer was killed may not open again.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError, optional_module
from dhsk.files import written_beside
from dhsk.objects.places import check_writable
from dhsk.samples.names import listed
from dhsk.samples.paths import Origin
from dhsk.samples.trees import refuse_compound, tree_format

_COPIED: Final = 16 * 2**20
"""Bytes that are copied at a time."""

_VERSION: Final = "0.2.0"
"""Of AnnData's encodings of tables, arrays and categorical columns alike."""


@contextmanager
def _opened(origin: Origin, key: str | None) -> Iterator[Any]:
    h5py = optional_module("h5py", "h5ad", f"{origin.path} cannot be read without h5py")
    if isinstance(origin.path, Path):  # HDF5 reads a file faster than through Python
        with origin.reading(), h5py.File(origin.path, "r") as file:
            yield file[key or "/"]
        return
    with origin.reading(), origin.path.open("rb") as handle, h5py.File(handle, "r") as file:
        yield file[key or "/"]


FORMAT = tree_format("AnnData", ".h5ad", _opened)


@dataclass(frozen=True)
class NewColumn:
    """A column of labels that is to be written into an AnnData file on a disk: `of` checks it."""

    origin: Origin
    name: str

    @classmethod
    def of(cls, source: str, key: str, n_samples: int, *, replace: bool) -> Self:
        """Check before long work that `obs/NAME` can be written for so many samples.

        Raises InputError if `source` is no AnnData file on a disk, if its table of cells has
        another number of rows, or the column unless `replace`, or if `key` is no name of a column;
        StoreError if the folder cannot be written.
        """
        origin, (table, _, name) = Origin.of(source), key.partition("/")
        if table != "obs" or not name or "/" in name:
            raise InputError(f"labels go into a column of obs: name it obs/NAME, not {key}")
        if origin.suffix not in FORMAT.suffixes or not isinstance(origin.path, Path):
            raise InputError(
                f"labels are written into an .h5ad file on a disk, but the samples are {source}: "
                "have them in a CSV file, with --out"
            )
        with _opened(origin, None) as root:
            refuse_compound(origin, root)
            obs = root.get("obs")
            index = None if obs is None else obs.attrs.get("_index")
            if index is None or index not in obs:
                raise InputError(f"{origin.path} has no table obs of AnnData: write to --out FILE")
            rows, found = obs[index].shape[0], sorted(column for column in obs if column != index)
        if rows != n_samples:
            raise InputError(f"{origin.path} has {rows} rows in obs, but {n_samples} samples")
        if name == index:
            raise InputError(f"obs/{name} of {origin.path} names the cells: name another column")
        if name in found and not replace:
            raise InputError(
                f"{origin.path} has a column obs/{name} already (columns: {listed(found)}): name "
                "another, or replace it, with --replace"
            )
        check_writable(Path(os.path.realpath(origin.path)).parent)
        return cls(origin, name)

    @property
    def n_bytes(self) -> int:
        """Bytes of the file, which its copy takes too until it has its place."""
        return self._path.stat().st_size

    def write(self, codes: NDArray[np.int32], classes: NDArray[Any]) -> None:
        """Write the column: the class of each sample, by its number among all.

        Raises SamplesChangedError if another process has written the file since it was checked,
        OSError if the copy cannot be written.
        """
        import h5py

        with written_beside(self._path, "w+b", flush=True) as copy:
            with self.origin.reading():
                source = self._path.open("rb")
            with source:
                Path(copy.name).chmod(stat.S_IMODE(os.fstat(source.fileno()).st_mode))
                shutil.copyfileobj(source, copy, _COPIED)
            with self.origin.reading():  # it was the same file to the end
                pass
            with h5py.File(copy, "r+") as file:
                _write_categorical(file["obs"], self.name, codes, classes)

    @property
    def _path(self) -> Path:
        assert isinstance(self.origin.path, Path)
        return self.origin.path


def _write_categorical(
    obs: Any, name: str, codes: NDArray[np.int32], classes: NDArray[Any]
) -> None:
    """Write a categorical column of AnnData, in place of one of the same name."""
    import h5py

    texts, number = h5py.string_dtype(), np.min_scalar_type(-len(classes))
    if name in obs:
        del obs[name]
    group = obs.create_group(name)
    named = classes.dtype.kind in "OU"
    categories = classes.astype(object) if named else classes
    group.create_dataset("categories", data=categories, dtype=texts if named else None)
    group.create_dataset("codes", data=codes.astype(number))
    for node, encoding in (
        (group, "categorical"),
        (group["categories"], "string-array" if named else "array"),
        (group["codes"], "array"),
    ):
        node.attrs["encoding-type"], node.attrs["encoding-version"] = encoding, _VERSION
    group.attrs["ordered"] = False
    order = list(obs.attrs.get("column-order", ()))
    obs.attrs["column-order"] = np.array(list(dict.fromkeys([*order, name])), dtype=texts)
