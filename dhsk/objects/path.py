"""Paths of objects: ``s3://BUCKET/KEY``."""

import errno
import io
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from dhsk.errors import InputError, StoreError
from dhsk.objects.client import FIRST_SECONDS, PATIENCE_SECONDS, Result, bucket_of, patiently
from dhsk.objects.faults import library, told
from dhsk.objects.reader import MOST_BYTES, ObjectReader

SCHEME: Final = "s3://"

PART_BYTES: Final = 8 << 20
"""Bytes of a ranged read; larger objects are read by several requests at a time."""

_PARTS_AT_ONCE: Final = 4

_DELETED_AT_ONCE: Final = 1000


Range: TypeAlias = tuple[int, int] | dict[str, int]
"""Begin and end, or an "offset", or the length of a "suffix", of bytes, as obstore takes them."""


class Version(NamedTuple):
    """What tells two contents of a file apart, without reading it."""

    size: int
    """In bytes."""
    mark: int | str
    """Of a file on a disk, the time of its last change in nanoseconds; of an object, ETag and
    time."""


@dataclass(frozen=True)
class ObjectPath:
    """Path of an object, or the prefix of several: methods are those of `pathlib.Path`.

    An object appears whole or not at all, and only its size tells that it is there. It has no
    credentials: every process takes those of its environment. Requests are repeated while the
    server does not answer, up to `PATIENCE_SECONDS`. Errors are StoreError, or FileNotFoundError.
    """

    bucket: str
    key: str
    """Parts joined by slashes, without one at the ends."""

    @classmethod
    def parse(cls, url: str) -> "ObjectPath":
        """Parse ``s3://BUCKET/KEY``; InputError for anything else."""
        bucket, _, key = url.removeprefix(SCHEME).partition("/")
        parts = [part for part in key.split("/") if part]
        if "@" in bucket or ":" in bucket:  # not repeated: these may be credentials
            raise InputError(
                "an s3:// URL has no user, password or port: set AWS_ACCESS_KEY_ID, "
                "AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL"
            )
        if not (url.startswith(SCHEME) and bucket and parts) or {".", ".."} & set(parts):
            raise InputError(f"{url}: give s3://BUCKET/PREFIX")
        return cls(bucket, "/".join(parts))

    def __str__(self) -> str:
        """The URL."""
        return f"{SCHEME}{self.bucket}/{self.key}"

    # Names

    def __truediv__(self, part: str) -> "ObjectPath":
        """Path below this one."""
        return self.joinpath(part)

    def joinpath(self, *parts: str) -> "ObjectPath":
        """Path below this one."""
        return ObjectPath(self.bucket, "/".join(part for part in (self.key, *parts) if part))

    def with_name(self, name: str) -> "ObjectPath":
        """Path with another last part."""
        return self.parent / name

    @property
    def name(self) -> str:
        """Last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def suffixes(self) -> list[str]:
        """Extensions of the name, each with its dot."""
        return PurePosixPath(self.name).suffixes

    @property
    def parent(self) -> "ObjectPath":
        """Path without its last part."""
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    @property
    def parents(self) -> list["ObjectPath"]:
        """Paths that this one is below, the longest first; not the bucket."""
        parts = self.key.split("/")
        return [ObjectPath(self.bucket, "/".join(parts[:n])) for n in range(len(parts) - 1, 0, -1)]

    def absolute(self) -> "ObjectPath":
        """Itself."""
        return self

    # Questions

    def version(self, patience: float = PATIENCE_SECONDS) -> Version:
        """Version of the object; FileNotFoundError if there is none.

        `patience` is that with a server that does not answer, in seconds.
        """
        meta = self._ask("read", lambda: library().head(self._store, self.key), patience)
        return Version(int(meta["size"]), f"{meta['e_tag']} {meta['last_modified']}")

    def size(self) -> int | None:
        """Bytes of the object; None if there is none."""
        try:
            return self.version().size
        except FileNotFoundError:
            return None

    def is_file(self) -> bool:
        """Whether there is an object."""
        return self.size() is not None

    def is_dir(self) -> bool:
        """Whether there are objects below."""
        return self._ask("listed", lambda: next(self._below(chunk=1), None)) is not None

    def exists(self) -> bool:
        """Whether there is an object, or one below."""
        return self.is_file() or self.is_dir()

    def sizes(self) -> dict[str, int]:
        """Bytes of every object below, by its key relative to this path."""
        skipped = len(self.key) + 1
        return self._ask("listed", lambda: {key[skipped:]: size for key, size in self._below()})

    def entries(self) -> set[str]:
        """First parts of the keys below, relative to this path."""
        found = self._ask("listed", lambda: library().list_with_delimiter(self._store, self.key))
        keys = [*found["common_prefixes"], *(meta["path"] for meta in found["objects"])]
        return {key.rpartition("/")[2] for key in keys}

    def answers(self) -> None:
        """Ask the server once, with little patience, whether there is such an object or not."""
        with suppress(FileNotFoundError):
            self.version(FIRST_SECONDS)

    def check(self) -> None:
        """Ask the server once, with little patience; StoreError if this path cannot be listed."""
        self._ask("listed", lambda: next(self._below(chunk=1), None), FIRST_SECONDS)

    def _below(self, chunk: int = 1000) -> Iterator[tuple[str, int]]:
        """Keys and sizes of all objects below."""
        for found in library().list(self._store, self.key, chunk_size=chunk):
            for meta in found:
                yield meta["path"], int(meta["size"])

    def samefile(self, other: object) -> bool:
        """Whether this is the object of a path or URL."""
        return str(self) == str(other)

    # Content

    def open(self, mode: Literal["rb"] = "rb") -> io.BufferedReader:  # noqa: ARG002  # as of paths
        """Open the object for reading; it is read by ranges."""
        return io.BufferedReader(ObjectReader(self.read_parts, self.version().size), MOST_BYTES)

    def read_bytes(self, part: Range | None = None) -> bytes:
        """The object, or some consecutive bytes of it."""
        options = {} if part is None else {"range": part}
        return self._ask(
            "read", lambda: bytes(library().get(self._store, self.key, options=options).bytes())
        )

    def read_parts(self, start: int, *buffers: memoryview) -> None:
        """Read bytes from `start` on into buffers, one after the other, by parallel requests."""
        ranges = []
        for into in buffers:
            ranges.append((start, into))
            start += len(into)
        self.read_ranges(ranges)

    def read_ranges(self, ranges: Iterable[tuple[int, memoryview]]) -> None:
        """Fill each buffer with the bytes from its start on, by parallel requests."""
        parts = [
            (start + first, into[first : first + PART_BYTES])
            for start, into in ranges
            for first in range(0, len(into), PART_BYTES)
        ]
        if len(parts) == 1:
            self._read_range(*parts[0])
            return
        readers = _readers(os.getpid())
        for done in [readers.submit(self._read_range, *part) for part in parts]:
            done.result()

    def _read_range(self, start: int, into: memoryview) -> None:
        got = self._ask(
            "read",
            lambda: library().get_range(self._store, self.key, start=start, length=len(into)),
        )
        if len(got) != len(into):
            raise StoreError(f"{self} became shorter while it was read: run the same again")
        into[:] = memoryview(got)

    def write_bytes(self, data: Any) -> None:
        """Write the object, over an older one."""
        self._ask(
            "written", lambda: library().put(self._store, self.key, data, use_multipart=False)
        )

    def create(self, data: bytes) -> bool:
        """Write the object unless there is one; whether this call wrote it.

        Different callers give different data, as a write whose answer was lost is known by them.
        """
        kinds = library("obstore.exceptions")

        def write() -> bool:
            try:
                library().put(self._store, self.key, data, mode="create", use_multipart=False)
            except (kinds.AlreadyExistsError, kinds.PreconditionError):
                return False
            return True

        if self._ask("written", write):
            return True
        try:
            return self.read_bytes() == data
        except FileNotFoundError:  # its owner has just removed it
            return False

    def unlink(self, *, missing_ok: bool = False, patience: float = PATIENCE_SECONDS) -> None:
        """Delete the object; `patience` is that with a server that does not answer, in seconds."""
        if not missing_ok and not self.is_file():
            raise FileNotFoundError(errno.ENOENT, "no such object", str(self))
        self._delete([self.key], patience)

    def remove_below(self, patience: float = PATIENCE_SECONDS) -> None:
        """Delete all objects below; `patience` as in `unlink`."""
        keys = self._ask("listed", lambda: [key for key, _ in self._below()], patience)
        for first in range(0, len(keys), _DELETED_AT_ONCE):
            self._delete(keys[first : first + _DELETED_AT_ONCE], patience)

    def _delete(self, keys: list[str], patience: float) -> None:
        def delete() -> None:
            with suppress(FileNotFoundError):
                library().delete(self._store, keys)

        self._ask("deleted", delete, patience)

    def _ask(
        self, verb: str, request: Callable[[], Result], patience: float = PATIENCE_SECONDS
    ) -> Result:
        """Do a request, again while the server does not answer; see `told` for `verb`."""

        def asked() -> Result:
            with told(str(self), verb):
                return request()

        return patiently(asked, patience)

    @property
    def _store(self) -> Any:
        return bucket_of(self.bucket)


@lru_cache(maxsize=1)
def _readers(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  # threads do not survive a fork
    """Threads of this process for the parts of large objects."""
    return ThreadPoolExecutor(_PARTS_AT_ONCE, thread_name_prefix="dhsk-read")
