"""Samples and labels in zarr folders, of format 2 or 3, other than Gram stores."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numpy.typing import NDArray

from dhsk.errors import InputError, StoreError
from dhsk.files import parse_json
from dhsk.objects.faults import UnansweredError
from dhsk.objects.path import ObjectPath
from dhsk.objects.places import Place
from dhsk.samples.base import Samples
from dhsk.samples.chunked import find_samples, open_chunked
from dhsk.samples.columns import features_of, read_column, read_index
from dhsk.samples.paths import Origin


def is_gram_store(folder: Place) -> bool:
    """Whether a folder is a Gram store of dhsk, by its zarr attributes."""
    try:
        return "dhsk" in parse_json((folder / "zarr.json").read_text())["attributes"]
    except UnansweredError:
        raise
    except (OSError, StoreError, ValueError, KeyError, TypeError):  # refused, or something else
        return False


def open_zarr(origin: Origin) -> Samples:
    """Open an array, or a CSR group of AnnData, in a folder; `X` of a group without a key."""
    if any(map(is_gram_store, (origin.path, *origin.path.absolute().parents))):
        raise InputError(
            f"{origin.path} is a Gram store or in one, and its values are not samples: give the "
            "samples that it was made from, or read it with dhsk.open_gram"
        )
    with opened_zarr(origin) as root:
        if hasattr(root, "shape"):
            _refuse_key(origin)
            key = None
        else:
            key = find_samples(origin, root)
            names = read_index(origin, root, features_of(key))
    if key is None:
        return open_chunked(str(origin.path), partial(opened_zarr, origin))
    # Its own origin, which has its own modification time.
    part = Origin.of(origin.path / key)
    index = partial(_sample_names, origin)
    return open_chunked(f"{origin.path}:{key}", partial(opened_zarr, part), names, index)


def _sample_names(origin: Origin) -> tuple[str, ...] | None:
    with opened_zarr(origin) as root:
        return read_index(origin, root, "obs")


def zarr_labels(origin: Origin) -> NDArray[Any]:
    """Read a vector, or a column of an AnnData folder, `obs/COLUMN`."""
    with opened_zarr(origin) as root:
        if hasattr(root, "shape"):
            _refuse_key(origin)
        return read_column(origin, root)


def _refuse_key(origin: Origin) -> None:
    if origin.key is not None:
        raise InputError(
            f"{origin}: {origin.path} is one array, so give it without ':{origin.key}'"
        )


@contextmanager
def opened_zarr(origin: Origin) -> Iterator[Any]:
    """Open the array or group in a folder, whose members are opened when they are used."""
    import zarr

    with origin.reading():
        try:
            yield zarr.open(_store_of(origin.path), mode="r")
        except ValueError as error:
            if "data type" in str(error):  # zarr says all that it was given
                raise InputError(
                    f"{origin.path} has an array of a type that zarr {zarr.__version__} does not "
                    "know: write it again with numbers, or strings"
                ) from error
            raise
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"its metadata are damaged: {error}") from error


def _store_of(folder: Place) -> Any:
    """A folder as zarr opens it."""
    if not isinstance(folder, ObjectPath):
        return str(folder)
    from dhsk.samples.zarr_objects import ObjectFolder

    return ObjectFolder(folder)
