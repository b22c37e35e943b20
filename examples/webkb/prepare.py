"""Turn the raw WebKB pages into word counts for `dhsk cv`.

The pages are the "World Wide Knowledge Base (4 Universities)" data set of CMU's theo-20 project,
laid out as `webkb/<class>/<university>/<page>`. The features are those of Zhao & Song (2017): words
of letters and digits in lower case, every digit written "#", that occur more than N/10 (N/20, ...)
times on all N pages together. Run with `--help` for the options.
"""

import argparse
import html
import os
import re
import sys
import tarfile
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import TypeAlias, TypeVar

import numpy as np
from scipy.sparse import csr_array, save_npz

T = TypeVar("T")

Counts: TypeAlias = "csr_array[np.int64, tuple[int, int]]"
"""How often each word (column) occurs on each page (row)."""

CLASSES = {"student": 1641, "faculty": 1124, "course": 930, "project": 504}
"""The four classes of the experiment, each with its number of pages in the complete data set."""

ARCHIVES = ("webkb_raw_html.tar.gz", "webkb-data.gtar.gz")
ORIGIN = (
    "the pages are CMU's World Wide Knowledge Base (4 Universities) data set of the theo-20 project"
    ", http://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-20/www/data/webkb-data.gtar.gz"
)

# A few pages came without a header: they begin with a tag.
HEADER = re.compile(r"\A(?!\s*<).*?\r?\n\r?\n", re.DOTALL)
# "<" before a space or digit is text; "<!" without "--" is how some pages write a comment.
MARKUP = re.compile(
    r"<(script|style)\b.*?</\1\s*> | <!--.*?--> | <[/!?a-z][^>]*>",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
DIGITS = str.maketrans("#0123456789", " ##########")
WORD = re.compile(r"[a-z#]+")


class DataError(OSError):
    """The pages cannot be found or used."""


def find_source(data: Path) -> Path:
    """Return the archive, or the folder with one folder per class, that lies in or under `data`."""
    for place in (data, data / "webkb", data / "webkb" / "webkb"):
        if all((place / label).is_dir() for label in CLASSES):
            return place
        for name in ARCHIVES:
            if (place / name).is_file():
                return place / name
    raise DataError(
        f"{data} holds neither webkb/{ARCHIVES[0]} nor a folder webkb with the folders "
        f"{', '.join(CLASSES)}: {ORIGIN}"
    )


def page_path(path: PurePath) -> str:
    """Return "class/university/page"; copies that passed through Windows write ":" as U+F03A."""
    return "/".join(path.parts[-3:]).replace("\uf03a", ":")


def label_of(page: str) -> str:
    """Return the class of "class/university/page"."""
    return page.partition("/")[0]


def read_archive(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the pages of the four classes in a .tar.gz file."""
    with tarfile.open(path) as archive:
        for member in archive:
            page = page_path(PurePath(member.name))
            if member.isfile() and label_of(page) in CLASSES:
                stream = archive.extractfile(member)
                assert stream is not None  # it is None only for what is no file
                yield page, stream.read()


def read_folder(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the pages of the four classes in an unpacked folder."""
    for label in CLASSES:
        for file in (path / label).glob("*/*"):
            if file.is_file():
                yield page_path(file), file.read_bytes()


def read_pages(source: Path) -> list[tuple[str, str]]:
    """Read the pages of the four classes from an archive or a folder.

    Returns
    -------
    list of (str, str)
        Path "class/university/page" and raw text of each page, sorted by path.

    Raises
    ------
    DataError
        If the source is damaged or a class has no pages.
    """
    files = read_folder(source) if source.is_dir() else read_archive(source)
    try:
        # latin-1: the encoding of HTTP in 1997, and one that no byte can break.
        pages = [(page, raw.decode("latin-1")) for page, raw in with_progress(files, "read")]
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise DataError(f"{source} cannot be read ({error}), get it again: {ORIGIN}") from error
    missing = CLASSES.keys() - {label_of(page) for page, _ in pages}
    if missing:
        raise DataError(f"{source} has no pages of class {', '.join(sorted(missing))}: {ORIGIN}")
    return sorted(pages)


def words_of(text: str, headers: bool = False) -> list[str]:
    """Split a raw page into words, leaving out its HTML and, without `headers`, its HTTP header.

    A word is a run of the letters a-z and digits, in lower case, each digit written "#".
    """
    plain = html.unescape(MARKUP.sub(" ", text if headers else HEADER.sub("", text)))
    return WORD.findall(plain.lower().translate(DIGITS))


def count_words(pages: Iterable[Sequence[str]]) -> tuple[Counts, list[str]]:
    """Count every word of every page.

    Returns
    -------
    counts
        Shape (pages, words).
    words
        The word of each column, in order of first occurrence.
    """
    ids: dict[str, int] = {}
    columns: list[int] = []
    starts = [0]
    for words in pages:
        columns.extend(ids.setdefault(word, len(ids)) for word in words)
        starts.append(len(columns))
    counts = csr_array(
        (np.ones(len(columns), np.int64), columns, starts), shape=(len(starts) - 1, len(ids))
    )
    counts.sum_duplicates()
    return counts, list(ids)


def keep_frequent(counts: Counts, words: list[str], divisor: int) -> tuple[Counts, list[str]]:
    """Keep the words that occur more than (number of pages) / `divisor` times, in word order."""
    frequent = np.flatnonzero(counts.sum(axis=0) > counts.shape[0] / divisor)
    columns = sorted(frequent, key=lambda column: words[column])
    if not columns:
        raise DataError(f"no word occurs more than {counts.shape[0]}/{divisor} times: {ORIGIN}")
    return counts[:, columns], [words[column] for column in columns]


def read_words(data: Path | None) -> tuple[Counts, list[str], list[str]]:
    """Return counts of all words on all pages, the words, and the class of each page."""
    if data is None:
        raise DataError(f"give --data DIR or set DHSK_DATA: {ORIGIN}")
    names, texts = zip(*read_pages(find_source(data)), strict=True)
    return *count_words(map(words_of, texts)), list(map(label_of, names))


def fill_empty(counts: Counts) -> tuple[Counts, list[int]]:
    """Give every row that has no word one count of each word.

    An empty row has no image on the sphere. Its image under the smoothed map of Lafferty & Lebanon
    (2002, section 2), sqrt((x + alpha) / sum(x + alpha)), is that of equal counts at any alpha > 0.

    Returns
    -------
    counts
        The same shape, without empty rows.
    empty
        Numbers of the rows that were empty, 0-based.
    """
    empty = np.flatnonzero(np.diff(counts.indptr) == 0)
    n_words = counts.shape[1]
    cells = (np.repeat(empty, n_words), np.tile(np.arange(n_words), empty.size))
    ones = csr_array((np.ones(cells[0].size, np.int64), cells), shape=counts.shape)
    return csr_array(counts + ones), empty.tolist()


def with_progress(items: Iterable[T], done: str, seconds: float = 2.0) -> Iterator[T]:
    """Pass on `items`, saying every `seconds` on stderr how many there were."""
    last = time.monotonic()
    for number, item in enumerate(items):
        if time.monotonic() - last > seconds:
            print(f"  {number} pages {done}", file=sys.stderr, flush=True)
            last = time.monotonic()
        yield item


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write one line for each string."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def prepare(data: Path, out: Path, divisor: int, headers: bool = False) -> None:
    """Read the pages under `data`, write counts and names to the folder `out`, say what was done.

    Raises
    ------
    DataError
        If the pages are not found, damaged or incomplete.
    """
    source = find_source(data)
    out.mkdir(parents=True, exist_ok=True)
    print(f"Reading {source}")
    names, texts = zip(*read_pages(source), strict=True)
    labels = [label_of(name) for name in names]
    report_classes(labels)
    counts, words = count_words(
        words_of(text, headers) for text in with_progress(texts, "split into words")
    )
    n_all = len(words)
    counts, words = keep_frequent(counts, words, divisor)
    print(f"{len(words)} of {n_all} words occur more than {len(names)}/{divisor} times")
    counts, empty = fill_empty(counts)
    for row in empty:
        print(f"Row {row} (0-based) has none of them and gets one count of each: {names[row]}")
    save_npz(out / "counts.npz", counts)
    write_lines(out / "labels.txt", labels)
    write_lines(out / "vocabulary.txt", words)
    write_lines(out / "pages.txt", names)


def report_classes(labels: Sequence[str]) -> None:
    """Print how many pages each class has, and has in the complete data set if that differs."""
    found = {label: labels.count(label) for label in CLASSES}
    print(f"{len(labels)} pages: " + ", ".join(f"{label} {n}" for label, n in found.items()))
    if found != CLASSES:
        complete = ", ".join(f"{label} {n}" for label, n in CLASSES.items())
        print(f"Note: the complete data set has {sum(CLASSES.values())} pages: {complete}")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; `--data` falls back on the environment variable DHSK_DATA."""
    parser = argparse.ArgumentParser(description="Turn the raw WebKB pages into word counts.")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("DHSK_DATA"),
        help=f"folder that holds webkb/{ARCHIVES[0]} or the unpacked folder webkb "
        "(default: the environment variable DHSK_DATA)",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument(
        "--divisor",
        type=int,
        choices=(10, 20, 30, 40),
        default=10,
        help="keep words that occur more than N/DIVISOR times on N pages (default: 10)",
    )
    parser.add_argument("--headers", action="store_true", help="keep the words of HTTP headers")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit code: 0 done, 2 bad usage or input."""
    options = parse_arguments(argv)
    try:
        if options.data is None:
            raise DataError(f"give --data DIR or set DHSK_DATA: {ORIGIN}")
        prepare(options.data, options.out, options.divisor, options.headers)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    out = options.out
    print(f"Written to {out}: counts.npz, labels.txt, vocabulary.txt, pages.txt")
    print(
        f"Next:\n  dhsk cv {out}/counts.npz --labels {out}/labels.txt"
        f" --time-scale 0.7,1,1.4 --C 1,10,100 --out {out}/cv"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
