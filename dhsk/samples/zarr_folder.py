"""Samples and labels in zarr folders, of format 2 or 3, other than Gram stores."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dhsk.errors import InputError, StoreError
from dhsk.files import parse_json
from dhsk.objects.faults import UnansweredError
from dhsk.objects.path import ObjectPath
from dhsk.objects.places import Place
from dhsk.samples.format import Asked
from dhsk.samples.paths import Origin
from dhsk.samples.trees import tree_format


def is_gram_store(folder: Place) -> bool:
    """Whether a folder is a Gram store of dhsk, by its zarr attributes."""
    try:
        return "dhsk" in parse_json((folder / "zarr.json").read_bytes())["attributes"]
    except UnansweredError:
        raise
    except (OSError, StoreError, ValueError, KeyError, TypeError):  # refused, or something else
        return False


@contextmanager
def _opened(origin: Origin, _: str | None) -> Iterator[Any]:
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
    if not isinstance(folder, ObjectPath):
        return str(folder)
    from dhsk.samples.zarr_objects import ObjectFolder

    return ObjectFolder(folder)


def _open(origin: Origin, asked: Asked) -> Any:
    """Open an array, or a CSR group of AnnData, in a folder; `X` of a group without a key."""
    if any(map(is_gram_store, (origin.path, *origin.path.absolute().parents))):
        raise InputError(
            f"{origin.path} is a Gram store or in one, and its values are not samples: give the "
            "samples that it was made from, or read it with dhsk.open_gram"
        )
    return _TREE.open(origin, asked)


_TREE = tree_format("zarr", ".zarr", _opened)
FORMAT = replace(_TREE, open=_open)
