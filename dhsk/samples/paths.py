"""`FILE` and `FILE:KEY` arguments, and detection of files that change after they are opened."""

import codecs
import csv
import gzip
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from dhsk.errors import DhskError, InputError, SamplesChangedError, StoreError
from dhsk.files import REFUSED

TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
SVMLIGHT = (".svm", ".svm.gz", ".svmlight", ".svmlight.gz", ".libsvm", ".libsvm.gz")

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

_TEXTS = (*TABLES, ".txt", ".txt.gz")

_ZARR_METADATA = ("zarr.json", ".zarray", ".zgroup")  # of format 3, and 2


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
        text = name.lower().endswith(_TEXTS)
        if text and isinstance(error, UnicodeDecodeError) and error.encoding.startswith("utf-8"):
            raise InputError(
                f"{name} is not UTF-8 text (byte {error.object[error.start]:#x}): save it as "
                "UTF-8, as iconv -f WINDOWS-1252 -t UTF-8 does"
            ) from error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{name} cannot be read, is it complete? ({reason})") from error


@dataclass(frozen=True)
class Origin:
    """A file or zarr folder at the time it was opened, and the key of a part of it, if any."""

    path: Path
    key: str | None
    size: int
    """Size in bytes."""
    modified: int
    """Modification time of the file system, in nanoseconds."""

    @classmethod
    def of(cls, source: str | os.PathLike[str]) -> "Origin":
        """Parse `FILE` or `FILE:KEY`; a file whose whole name exists takes precedence.

        Raises `InputError` if there is no such file, or it is a folder that holds no zarr array or
        group.
        """
        with reading(os.fspath(source)):
            path, key = _split(os.fspath(source))
            status = path.stat()
        return cls(path, key, status.st_size, status.st_mtime_ns)

    def __str__(self) -> str:
        return str(self.path) if self.key is None else f"{self.path}:{self.key}"

    @property
    def suffix(self) -> str:
        """The lower-case extension, including `.gz` of compressed files: `.csv.gz`."""
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Convert errors of libraries on a damaged file to an `InputError` that names the file.

        If the file has changed since it was opened, it is a `SamplesChangedError`.
        """
        with reading(str(self.path)):
            self._refuse_other(self.path.stat())
            try:
                yield
            except _UNREADABLE:  # the reason may be that the file was replaced
                self._refuse_other(self.path.stat())
                raise

    def _refuse_other(self, status: os.stat_result) -> None:
        """Refuse a file whose size or modification time has changed."""
        if (status.st_size, status.st_mtime_ns) != (self.size, self.modified):
            raise SamplesChangedError(
                f"{self.path} has changed since it was opened: run the same again when nothing "
                "writes to it"
            )

    def open_bytes(self) -> BinaryIO:
        """Open the file for reading; `.gz` is decompressed."""
        if self.suffix.endswith(".gz"):
            return cast("BinaryIO", gzip.open(self.path, "rb"))
        return self.path.open("rb")

    def open_text(self) -> TextIO:
        """Open the file for reading as text, in UTF-8 or by its byte order mark."""
        handle = self.open_bytes()
        # Spreadsheets write a byte order mark, which would become part of a name: in UTF-8 for
        # CSV, in UTF-16 for "Unicode text".
        begin = cast("BufferedReader", handle).peek(2)[:2]
        marked = begin in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        return TextIOWrapper(handle, encoding="utf-16" if marked else "utf-8-sig", newline="")

    def refuse_key(self, keyed: str) -> None:
        """Refuse a `FILE:KEY` argument whose file has no parts to choose from."""
        if self.key is not None:
            raise InputError(
                f"{self}: a {self.suffix} file has no parts, so give {self.path} without "
                f"':{self.key}' ({keyed})"
            )


def _split(source: str) -> tuple[Path, str | None]:
    """Find the file or zarr folder in `FILE` or `FILE:KEY`, where both may contain colons."""
    colons = [position for position, letter in enumerate(source) if letter == ":"]
    for end in [len(source), *colons]:
        path = Path(source[:end])
        if path.is_file() or any((path / name).is_file() for name in _ZARR_METADATA):
            return path, source[end + 1 :] or None
    if Path(source).is_dir():
        raise InputError(f"{source} is a folder, but a file or a zarr folder is needed")
    raise InputError(f"there is no file {source}")
