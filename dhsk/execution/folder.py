"""Temporary places, which are removed with the last reference to them."""

import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

from dhsk.errors import StoreError
from dhsk.execution.leftovers import Claim, remove_folder
from dhsk.objects.path import ObjectPath
from dhsk.objects.places import Place

_REMOVE_SECONDS: Final = 5.0


class TemporaryPlace(Protocol):
    """A new place of files."""

    @property
    def path(self) -> Place:
        """The place."""

    @property
    def remove(self) -> Callable[..., Any]:
        """Removes it earlier."""


class TemporaryFolder:
    """A new folder, removed with the last reference to this object or when Python ends.

    Making one also removes those that killed processes left. The default parent is the system's
    folder for temporary files.
    """

    def __init__(self, parent: Path | None = None) -> None:
        claim = Claim(parent or Path(tempfile.gettempdir()), remove_folder)
        self.path = claim.folder / claim.name
        self.remove = claim.release
        """Removes the folder earlier."""
        self._claim = claim
        self.path.mkdir(mode=0o700)


class TemporaryPrefix:
    """A new prefix on a server, removed as a `TemporaryFolder`; a killed process leaves it."""

    def __init__(self, parent: ObjectPath) -> None:
        self.path = parent / f"dhsk-{uuid4().hex[:8]}"
        self.remove = weakref.finalize(self, _remove, self.path)


def temporary_place(parent: Place | None) -> TemporaryFolder | TemporaryPrefix:
    """Make a folder, or a prefix on a server."""
    if isinstance(parent, ObjectPath):
        return TemporaryPrefix(parent)
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    return TemporaryFolder(parent)


def _remove(path: ObjectPath) -> None:
    with suppress(StoreError):
        path.remove_below(_REMOVE_SECONDS)
