"""Samples and labels in `.h5ad` files of AnnData, read by h5py."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dhsk.errors import InputError
from dhsk.samples.base import Samples
from dhsk.samples.chunked import find_samples, open_chunked
from dhsk.samples.columns import features_of, read_column, read_index
from dhsk.samples.paths import Origin


def open_h5ad(origin: Origin) -> Samples:
    """Open `X`, or the key of `origin`: `layers/NAME`, `raw/X`; dense or CSR."""
    with opened_h5ad(origin) as file:
        key = find_samples(origin, file) or "/"
        names = read_index(origin, file, features_of(key))
    opener, index = partial(opened_h5ad, origin, key), partial(_sample_names, origin)
    return open_chunked(f"{origin.path}:{key}", opener, names, index)


def _sample_names(origin: Origin) -> tuple[str, ...] | None:
    with opened_h5ad(origin) as file:
        return read_index(origin, file, "obs")


def h5ad_labels(origin: Origin) -> NDArray[Any]:
    """Read the column `obs/COLUMN`."""
    with opened_h5ad(origin) as file:
        return read_column(origin, file)


@contextmanager
def opened_h5ad(origin: Origin, key: str = "/") -> Iterator[Any]:
    """Context with an object of an opened file."""
    try:
        import h5py
    except ImportError as error:
        raise InputError(
            f"{origin.path} cannot be read without h5py: pip install 'dhsk[h5ad]'"
        ) from error
    if isinstance(origin.path, Path):  # HDF5 reads a file faster than through Python
        with origin.reading(), h5py.File(origin.path, "r") as file:
            yield file[key]
        return
    with origin.reading(), origin.path.open("rb") as handle, h5py.File(handle, "r") as file:
        yield file[key]
