"""Folders of text files, whose subfolders may be the classes."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError
from dhsk.samples.format import Asked, Documents, Format, SamplesFile
from dhsk.samples.names import listed
from dhsk.samples.paths import Origin, packed, what_it_is
from dhsk.systems import quoted

TEXT_FILES = packed(".txt")


@dataclass(frozen=True)
class TextFolder(Documents):
    """The text files of a folder and its subfolders, in the order of their names."""

    source: str
    folder: Path
    files: tuple[str, ...]
    """Paths relative to the folder, with slashes."""

    def texts(self) -> Iterator[str]:
        """Yield the content of each file."""
        for name in self.files:
            origin = Origin.of(self.folder / name)
            with origin.reading(), origin.open_text() as text:
                content = text.read()
            yield content

    def ids(self) -> Iterator[str]:
        """Paths of the files."""
        return map(_readable, self.files)

    def place(self, row: int) -> str:
        """Path of a file."""
        return _readable(str(self.folder / self.files[row]))


def open_text_folder(origin: Origin) -> TextFolder:
    """Texts of a folder: one a file, `.txt` or `.txt.gz`; hidden files and folders do not count."""
    assert isinstance(origin.path, Path)
    folder = origin.path
    with origin.reading():
        named = [path for path in folder.rglob("*") if path.name.lower().endswith(TEXT_FILES)]
        found = (path.relative_to(folder) for path in named if not path.is_dir())
        names = [path.as_posix() for path in found if not any(p[0] == "." for p in path.parts)]
    if not names:
        raise InputError(
            f"{folder} is a folder, but a file or a zarr folder is needed, or a folder of .txt "
            "files, and it has none"
        )
    odd = next((folder / name for name in names if not (folder / name).is_file()), None)
    if odd is not None:
        raise InputError(
            f"{_readable(str(odd))} {what_it_is(odd)}, but each text is a file: move it away"
        )
    return TextFolder(str(folder), folder, tuple(sorted(names)))


def one_text(origin: Origin) -> TextFolder:
    """A text file as the only one of a folder."""
    assert isinstance(origin.path, Path)
    origin.refuse_key("it is one text")
    return TextFolder(str(origin.path), origin.path.parent, (origin.path.name,))


def folder_labels(origin: Origin) -> NDArray[np.str_]:
    """Subfolder of each text file of a folder, (n_samples,), as in sklearn's `load_files`."""
    files = open_text_folder(origin).files
    alone = next((name for name in files if "/" not in name), None)
    if alone is not None:
        raise InputError(
            f"{origin.path}: {alone} is in no subfolder, but the labels are the names of "
            "subfolders: move it into one, or give a file of labels"
        )
    return np.array([_readable(name.partition("/")[0]) for name in files], dtype=np.str_)


def _readable(name: str) -> str:
    r"""Name of a file as text that can be written: bytes that are not UTF-8 become like \xe9."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _open(origin: Origin, asked: Asked) -> TextFolder:
    if asked.drop_columns:
        asked.refuse_words(origin)
    if asked.id_column is not None:
        raise InputError(
            f"{origin.path} is a folder of texts, whose ids are their paths: leave out --id-column "
            f"{asked.id_column}"
        )
    return open_text_folder(origin)


def _describe(origin: Origin) -> SamplesFile:
    """Text files, and the subfolders that are their labels."""
    name, files = quoted(str(origin.path)), open_text_folder(origin).files
    rows = [("texts", f"{len(files):,} files")]
    if any("/" not in file for file in files):
        return SamplesFile("a folder of texts", rows, name)
    classes = np.unique(folder_labels(origin)).tolist()
    rows.append(("labels", f"{len(classes):,} subfolders: {listed(classes)}"))
    return SamplesFile("a folder of texts, one folder for each class", rows, name, None)


FORMAT = Format((), _open, _describe, lambda origin, _: folder_labels(origin), has_columns=True)
