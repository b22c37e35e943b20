"""Folders of text files, whose subfolders may be the classes."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError, warn
from dhsk.samples.format import Asked, Documents, Format, SamplesFile
from dhsk.samples.names import listed
from dhsk.samples.paths import Origin, packed, what_it_is
from dhsk.systems import quoted
from dhsk.units import counted

TEXT_FILES = packed(".txt")


_OF_TEXTS: Final = ("html", "htm", "xml", "md", "text", "asc", "eml")
"""Other extensions of texts."""


class NoTextsError(InputError):
    """A folder has no texts, nor files that may be some."""


@dataclass(frozen=True)
class TextFolder(Documents):
    """The text files of a folder and its subfolders, in the order of their names."""

    source: str
    folder: Path
    files: tuple[str, ...]
    """Paths relative to the folder, with slashes."""
    left_out: tuple[str, ...] = ()
    """Those of files that are no `.txt`."""

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
        found = [path for path in folder.rglob("*") if not path.is_dir()]
        paths = (path.relative_to(folder) for path in found)
        seen = sorted(p.as_posix() for p in paths if not any(part[0] == "." for part in p.parts))
    names = [name for name in seen if name.lower().endswith(TEXT_FILES)]
    others = [name for name in seen if not name.lower().endswith(TEXT_FILES)]
    if not names:
        _refuse_none(folder, others)
    odd = next((folder / name for name in names if not (folder / name).is_file()), None)
    if odd is not None:
        raise InputError(
            f"{_readable(str(odd))} {what_it_is(odd)}, but each text is a file: move it away"
        )
    _refuse_lost_classes(folder, names, others)
    return TextFolder(str(folder), folder, tuple(names), tuple(others))


def _refuse_none(folder: Path, others: Sequence[str]) -> NoReturn:
    """Refuse a folder without texts; if its files may be some, say how to rename them."""
    said = (
        f"{folder} is a folder, but a file or a zarr folder is needed, or a folder of .txt "
        "files, and it has none"
    )
    likely = sum(map(_may_be_text, others))
    if 2 * likely < max(1, len(others)) or any(name.endswith("zarr.json") for name in others):
        raise NoTextsError(said)
    raise InputError(
        f"{said} among {counted(len(others), 'file')} such as {_readable(others[0])} (those of "
        f"20news-bydate have no extension, those of WebKB .html): {_renaming(folder)}"
    )


def _refuse_lost_classes(folder: Path, names: Sequence[str], others: Sequence[str]) -> None:
    """Refuse subfolders without a text, if every text is in one: they may be classes."""
    if not all("/" in name for name in names):
        return
    known = {name.partition("/")[0] for name in names}
    of_lost = [n for n in others if "/" in n and n.partition("/")[0] not in known]
    if of_lost:
        lost = sorted({_readable(name.partition("/")[0]) for name in of_lost})
        raise InputError(
            f"{folder}: {counted(len(lost), 'subfolder')} ({listed(lost)}) would be left out, as "
            f"none of {counted(len(of_lost), 'file')} there ends in .txt, such as "
            f"{_readable(of_lost[0])}: {_renaming(folder)}; else move them away"
        )


def _may_be_text(name: str) -> bool:
    """Whether a file in a subfolder has no extension, or one of texts."""
    end = re.search(r"\.(\w{1,8})$", name)
    plain = end is None or end[1].isdecimal() or end[1].lower() in _OF_TEXTS
    return "/" in name and plain


def _renaming(folder: Path) -> str:
    """What to do with texts whose files do not end in .txt."""
    files = f"[*pathlib.Path({str(folder)!r}).rglob('*')]"
    kept = "f.is_file() and '.txt' not in f.name.lower() and not pathlib.Path(f'{f}.txt').exists()"
    line = f"import pathlib; [f.rename(f'{{f}}.txt') for f in {files} if {kept}]"
    return f"if these are texts rename them, in Python {line}"


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
    found = open_text_folder(origin)
    if found.left_out:
        warn(f"{origin.path}: {_left_out(found)}: {_renaming(found.folder)}")
    return found


def _left_out(found: TextFolder) -> str:
    """Words for files that are no texts, by their names."""
    number, example = len(found.left_out), _readable(found.left_out[0])
    return f"{counted(number, 'file')} left out, not ending in .txt, such as {example}"


def _describe(origin: Origin) -> SamplesFile:
    """Text files, and the subfolders that are their labels."""
    found = open_text_folder(origin)
    name, files = quoted(str(origin.path)), found.files
    rows = [("texts", f"{len(files):,} files")]
    if found.left_out:
        rows.append(("others", f"{_left_out(found)}: {_renaming(found.folder)}"))
    if any("/" not in file for file in files):
        return SamplesFile("a folder of texts", rows, name)
    classes = np.unique(folder_labels(origin)).tolist()
    rows.append(("labels", f"{len(classes):,} subfolders: {listed(classes)}"))
    return SamplesFile("a folder of texts, one folder for each class", rows, name, None)


FORMAT = Format((), _open, _describe, lambda origin, _: folder_labels(origin), has_columns=True)
