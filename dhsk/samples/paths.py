"""`FILE` and `FILE:KEY` arguments, and detection of files that change after they are opened."""

import codecs
import csv
import gzip
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from io import BufferedReader, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TextIO

from dhsk.errors import DhskError, InputError, SamplesChangedError, StoreError
from dhsk.files import REFUSED
from dhsk.objects.faults import UnansweredError
from dhsk.objects.path import SCHEME, ObjectPath, Version
from dhsk.objects.places import Place, is_url

# What numpy, zipfile, gzip, zarr, h5py and scikit-learn raise on damaged files.
_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    csv.Error,
    RuntimeError,  # zipfile: encrypted, or (NotImplementedError) an unknown compression
    zlib.error,
    zipfile.BadZipFile,
    KeyError,  # h5py: an object that is listed but cannot be opened
    OverflowError,
    MemoryError,  # a damaged length
)

_MOST_NAMES = 1000
"""Names of a folder among which a file that is not there is looked for."""

_ZARR_METADATA = ("zarr.json", ".zarray", ".zgroup")  # of format 3, and 2


class TextError(ValueError):
    """Text that cannot be read; says what it is, and the way out."""


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Convert errors of libraries on damaged data to an `InputError` that begins with `name`.

    If the system refuses to read the data, it is a `StoreError`.
    """
    try:
        yield
    except DhskError:
        raise
    except _UNREADABLE as error:
        if isinstance(error, OSError) and error.errno in REFUSED:
            raise StoreError(
                f"{name} cannot be read ({os.strerror(error.errno)}): make it readable, or give "
                "another file"
            ) from error
        if isinstance(error, TextError):
            raise InputError(f"{name} {error}") from error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{name} cannot be read, is it complete? ({reason})") from error


@dataclass(frozen=True)
class Origin:
    """A file or zarr folder at the time it was opened, and the key of a part of it, if any."""

    path: Place
    key: str | None
    metadata: str | None
    """Name of the file that describes a zarr folder; None for a file."""
    version: Version

    @classmethod
    def of(cls, source: str | os.PathLike[str] | ObjectPath) -> "Origin":
        """Parse `FILE` or `FILE:KEY`; a file whose whole name exists takes precedence.

        A folder may be one of text files. Raises `InputError` if there is no such file;
        StoreError if its server refuses or does not answer.
        """
        text = str(source) if isinstance(source, ObjectPath) else os.fspath(source)
        with reading(text):
            path, key, metadata = _split(text)
            return cls(path, key, metadata, _version_of(path, metadata))

    def __str__(self) -> str:
        return str(self.path) if self.key is None else f"{self.path}:{self.key}"

    @property
    def suffix(self) -> str:
        """The lower-case extension, including `.gz` of compressed files: `.csv.gz`."""
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])

    @property
    def is_folder(self) -> bool:
        """Whether it is a zarr folder."""
        return self.metadata is not None

    @property
    def is_text_folder(self) -> bool:
        """Whether it is a folder on a disk, of text files; a server is not asked."""
        return self.metadata is None and isinstance(self.path, Path) and self.path.is_dir()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Convert errors of libraries on a damaged file to an `InputError` that names the file.

        If the file has changed since it was opened, it is a `SamplesChangedError`.
        """
        with reading(str(self.path)):
            self._refuse_other()
            try:
                yield
            except UnansweredError:
                raise
            except (*_UNREADABLE, StoreError):  # the reason may be that the file was replaced
                self._refuse_other()
                raise
            if isinstance(self.path, ObjectPath):  # each range is of what was there at its time
                self._refuse_other()

    def _refuse_other(self) -> None:
        if _version_of(self.path, self.metadata) != self.version:
            raise SamplesChangedError(
                f"{self.path} has changed since it was opened: run the same again when nothing "
                "writes to it"
            )

    @contextmanager
    def open_bytes(self) -> Iterator[BufferedReader | gzip.GzipFile]:
        """Open the file for reading; `.gz` is decompressed."""
        with self.path.open("rb") as handle:
            if not self.suffix.endswith(".gz"):
                yield handle
                return
            with gzip.GzipFile(fileobj=handle, mode="rb") as plain:
                yield plain

    @contextmanager
    def open_text(self, newline: str | None = "") -> Iterator[TextIO]:
        """Open the file for reading as text, in UTF-8 or by its byte order mark.

        With None as `newline`, line ends of all systems become line feeds.
        """
        with self.open_bytes() as handle:
            # Spreadsheets write a byte order mark, which would become part of a name: in UTF-8 for
            # CSV, in UTF-16 for "Unicode text".
            begin = handle.peek(2)
            marked = begin[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            if not marked and b"\0" in begin:
                raise InputError(
                    f"{self.path} is a binary file and not text: give a text file, or name it by "
                    "what it is"
                )
            encoding = "utf-16" if marked else "utf-8-sig"
            with TextIOWrapper(handle, encoding=encoding, newline=newline) as text:
                try:
                    yield text
                except UnicodeDecodeError as error:
                    if marked:
                        raise
                    local, stem = isinstance(self.path, Path), self.path.name.partition(".")[0]
                    own = str(self.path) if local else self.path.name
                    excel = ", in Excel as the type CSV UTF-8, or" * (self.suffix == ".csv")
                    new = f"{stem}_utf8{self.suffix}"
                    raise TextError(
                        f"is not UTF-8 text (byte {error.object[error.start]:#x}): save it as "
                        f"UTF-8{excel} as pathlib.Path({new!r}).write_text(pathlib.Path({own!r})."
                        "read_text(ENCODING), 'utf-8') does in Python; ENCODING is 'cp1252' for "
                        "most of western Europe, 'cp1250' for Czech or Polish"
                    ) from error

    def refuse_key(self, keyed: str) -> None:
        """Refuse a `FILE:KEY` argument whose file has no parts to choose from."""
        if self.key is not None:
            raise InputError(
                f"{self}: a {self.suffix} file has no parts, so give {self.path} without "
                f"':{self.key}' ({keyed})"
            )


def packed(*suffixes: str) -> tuple[str, ...]:
    """Suffixes of a format whose files may be compressed: each, and the same with `.gz`."""
    return tuple(suffix + end for suffix in suffixes for end in ("", ".gz"))


def _split(source: str) -> tuple[Place, str | None, str | None]:
    """Find the file or zarr folder in `FILE` or `FILE:KEY`, where both may contain colons.

    Returns it, the key, and the name of the file that describes the folder.
    """
    whole = _place(source)
    if isinstance(whole, ObjectPath):
        whole.answers()
    named = len(SCHEME) if isinstance(whole, ObjectPath) else 0
    colons = [at for at, letter in enumerate(source) if letter == ":" and at >= named]
    for end in [len(source), *colons]:
        place, key = _place(source[:end]), source[end + 1 :] or None
        if place.is_file():
            return place, key, None
        metadata = next((name for name in _ZARR_METADATA if (place / name).is_file()), None)
        if metadata is not None:
            return place, key, metadata
    if isinstance(whole, Path) and whole.is_dir():  # of text files, or nothing that is read
        return whole, None, None
    if whole.is_dir():
        raise InputError(f"{source} is a folder, but a file or a zarr folder is needed")
    if isinstance(whole, Path) and whole.exists():
        raise InputError(
            f"{source} {what_it_is(whole)}, but samples are read several times: write them to a "
            "file, with the extension of its format"
        )
    raise InputError(f"there is no file {source}{_near(whole)}")


def what_it_is(path: Path) -> str:
    """Words for what is neither a file nor a folder."""
    if path.is_symlink() and not path.exists():
        return "is a link to a file that does not exist"
    return "is a pipe" if path.is_fifo() else "is a device or a socket"


def _near(path: Place) -> str:
    """Say which file of the same folder has nearly the same name, if one has."""
    if not isinstance(path, Path) or not path.parent.is_dir():
        return ""
    with suppress(OSError):
        names = [each.name for each in islice(path.parent.iterdir(), _MOST_NAMES)]
        name, *key = path.name.partition(":")
        near = get_close_matches(name, names, 1, 0.8)
        stems = [one.partition(".")[0] for one in (name, *near)]  # .csv alone is no likeness
        if near and get_close_matches(stems[0], stems[1:], 1, 0.6):
            return f": is it {path.with_name(''.join([near[0], *key]))}?"
    return ""


def _place(text: str) -> Place:
    if not is_url(text):
        return Path(text)
    if not text.startswith(SCHEME):
        raise InputError(f"{text}: give a local path, or s3://BUCKET/KEY")
    return ObjectPath.parse(text)


def _version_of(path: Place, metadata: str | None) -> Version:
    """Version of a file; of a folder on a server, that of the file that describes it."""
    if isinstance(path, ObjectPath):
        return (path if metadata is None else path / metadata).version()
    status = path.stat()
    return Version(status.st_size, status.st_mtime_ns)
