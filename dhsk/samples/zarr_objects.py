"""Folders of zarr on a server, as zarr reads them."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, BufferPrototype

from dhsk.objects.path import ObjectPath, Range


class ObjectFolder(Store):
    """The objects below a path, which are only read.

    Zarr's own store on obstore would give up on a server that is started again.
    """

    supports_writes = False
    supports_deletes = False
    supports_partial_writes = False
    supports_listing = True

    def __init__(self, path: ObjectPath) -> None:
        super().__init__(read_only=True)
        self._path = path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectFolder) and other._path == self._path

    def __hash__(self) -> int:
        return hash(self._path)

    def __str__(self) -> str:
        return str(self._path)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Content of an object, or a part of it; None if there is none."""
        try:
            content = await asyncio.to_thread((self._path / key).read_bytes, _range_of(byte_range))
        except FileNotFoundError:
            return None
        return prototype.buffer.from_bytes(content)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of several objects."""
        return list(
            await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges))
        )

    async def exists(self, key: str) -> bool:
        """Whether there is an object."""
        return await asyncio.to_thread((self._path / key).is_file)

    async def list(self) -> AsyncIterator[str]:
        """Names of all objects."""
        for name in await asyncio.to_thread(self._path.sizes):
            yield name

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Names of all objects that begin with a prefix."""
        async for name in self.list():
            if name.startswith(prefix):
                yield name

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names of what is directly in a folder."""
        folder = self._path / prefix.rstrip("/") if prefix else self._path
        for name in await asyncio.to_thread(folder.entries):
            yield name

    async def set(self, key: str, value: Any) -> None:
        """Refuse."""
        del key, value
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Refuse."""
        del key
        self._check_writable()


def _range_of(part: ByteRequest | None) -> Range | None:
    match part:
        case RangeByteRequest(start, end):
            return start, end
        case OffsetByteRequest(offset):
            return {"offset": offset}
        case SuffixByteRequest(suffix):
            return {"suffix": suffix}
    return None
