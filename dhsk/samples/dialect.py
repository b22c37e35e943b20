"""Delimiter of a table, lines above it, and whether its first row is a header.

`csv.Sniffer` counts letters, and in a table of numbers chooses a point or a digit as delimiter.
These rules parse the first rows.
"""

import csv
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from threading import Lock
from typing import Final, NamedTuple

DELIMITERS: Final = (",", ";", "\t", "|", " ")
"""Letters that may divide a table."""

LOOKED_AT: Final = 20
"""Number of rows below the first that the rules look at."""

MISSING: Final = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"})
"""Spellings of an absent value, in lower case: those of pandas that are not rare, and ?."""

AS_WRITTEN: Final = frozenset({"NaN", *MISSING, *map(str.upper, MISSING), *map(str.title, MISSING)})
"""The same as they are mostly written, in which a row is looked up at once."""

LONGEST: Final = 2**27
"""Largest number of characters of a field, such as a text; Python's csv has 131,072 by default."""

_BLANK: Final = " \r\n"
"""Letters of a blank line; one of tabs is a row without values."""

_LIMIT: Final = Lock()

_TRUTH: Final = {"true": 1.0, "false": 0.0}
"""Booleans in lower case, as numbers: what pandas.get_dummies and to_csv write."""

_THOUSANDS: Final = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*")

_DECIMAL_COMMA: Final = re.compile(r"\s*[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+),\d+([eE][+-]?\d+)?\s*")

_POINTS: Final = re.compile(r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*")

_DIRECTIVE: Final = "#q2:"
"""Begin of a line of QIIME 2 metadata below the header that says what the columns are."""

_SEP: Final = re.compile(r'"?sep=([,;|\t])\W*', re.IGNORECASE)

_MOST_OF_WORDS: Final = 0.5
"""Largest share of numbers in rows that blanks do not divide: "New York", "sample 3"."""

_LONGEST_COUNT: Final = 18
"""Most characters of a number that counts columns; Python refuses to convert thousands of them."""

_FEWEST_EVEN: Final = 4
"""Least number of evenly spaced numbers of a header: a sample may be 1, 2, 3 by chance."""


def is_number(field: str) -> bool:
    """Whether Python reads a field as a number; 1_0, which it takes for 10, is none in a file."""
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def value_of(field: str) -> float | None:
    """Value of a number, and 1 or 0 of True or False in any case; None for anything else."""
    return float(field) if is_number(field) else _TRUTH.get(field.strip().lower())


def number_or_gap(field: str) -> float | None:
    """Value of a field as `value_of`, and NaN where none is there."""
    return math.nan if is_missing(field) else value_of(field)


def is_missing(field: str) -> bool:
    """Whether a field stands for an absent value."""
    return field.strip().lower() in MISSING


def is_no_label(field: str) -> bool:
    """Whether a label is absent, as NA is; people call a class none."""
    return is_missing(field) and field.strip().lower() != "none"


def has_decimal_comma(field: str) -> bool:
    """Whether a field is a number like 1,5 or 1.234,5."""
    return _DECIMAL_COMMA.fullmatch(field) is not None


def may_have_points(field: str) -> bool:
    """Whether a field may be a number like 1.234.567, whose points separate thousands."""
    return _POINTS.fullmatch(field) is not None


def has_decimal_point(field: str) -> bool:
    """Whether a field is a number like 1.5, whose point separates no thousands."""
    return "." in field and is_number(field) and not may_have_points(field)


def with_point(field: str) -> str:
    """A number with a decimal comma, or with points between thousands, as Python reads it."""
    if "," in field and has_decimal_comma(field):
        return field.replace(".", "").replace(",", ".")
    return field.replace(".", "") if "." in field and may_have_points(field) else field


def with_points(record: list[str], columns: Collection[int]) -> list[str]:
    """A row in which numbers of some columns are as `with_point` writes them."""
    if not columns:
        return record
    return [with_point(f) if c in columns else f for c, f in enumerate(record)]


def has_thousands(field: str, delimiter: str) -> bool:
    """Whether a field is a number like 1,234,567; 1,923 is one where commas divide fields too."""
    found = _THOUSANDS.fullmatch(field) is not None
    return found and (delimiter == "," or not has_decimal_comma(field))


def records_of(lines: Iterable[str], delimiter: str, *, strict: bool = True) -> Iterator[list[str]]:
    """Parse lines; blanks after a delimiter are skipped, so that a quote may follow them.

    With `strict`, a quotation mark that begins a field and does not enclose it is a `csv.Error`:
    the number of lines above the record, and the reason. Fields may have up to `LONGEST`
    characters; the limit of Python's csv, which is that of the process, is raised only while a
    record is parsed.
    """
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)
    while True:
        above = reader.line_num
        with _LIMIT:  # another thread would restore it, or keep the raised one for the former
            before = csv.field_size_limit(LONGEST)
            try:
                record = next(reader, None)
            except csv.Error as error:
                raise csv.Error(above, str(error)) from error
            finally:
                csv.field_size_limit(before)
        if record is None:
            return
        yield record


# Delimiters, comments and names of rows


class Opening(NamedTuple):
    """How a table begins."""

    lines: Sequence[str]
    """First lines of the table, without those that are none of it."""
    skipped: Sequence[int]
    """Numbers of these, from 0: comments above the table, and QIIME 2's types below a header."""
    delimiter: str
    lacks_name: bool
    """Whether the header has no name for the first column, with the names of rows, see below."""
    commas: frozenset[int]
    """Columns whose numbers may have a comma for the point, as some have: 1,5."""
    width: int | None = None
    """Columns up to the last with a name or a value; None if that is all. Excel ends rows with ;"""


def opening_of(lines: Sequence[str], own: str) -> Opening:
    """Find out how a table begins from its first lines; `own` as in `_delimiter_of`.

    A first line ``sep=;`` tells Excel the delimiter, and is none of the table.
    """
    told = _SEP.fullmatch(lines[0]) if lines else None
    if told is not None:
        begin = opening_of(lines[1:], told[1])
        return begin._replace(skipped=[0, *(k + 1 for k in begin.skipped)])
    own_lines = [k for k, line in enumerate(lines) if not line.lower().startswith(_DIRECTIVE)]
    if len(own_lines) < len(lines):
        begin = opening_of([lines[k] for k in own_lines], own)
        above = {own_lines[k] for k in begin.skipped}
        return begin._replace(skipped=sorted(above | set(range(len(lines))) - set(own_lines)))
    marked = next((k for k, line in enumerate(lines) if not is_comment(line)), len(lines))
    delimiter = _delimiter_of(lines[marked:], own)
    n_comments = _above(lines, marked, delimiter)
    kept = lines[n_comments:]
    rows = _parsed(kept, delimiter)
    lacks_name = _lacks_name(rows, 1 + (delimiter == ","))
    commas = frozenset[int]() if delimiter == "," else _with_commas(rows[lacks_name:])
    return Opening(kept, range(n_comments), delimiter, lacks_name, commas, _width(rows))


def _width(rows: Sequence[Sequence[str]]) -> int | None:
    """Columns of rows of one length up to the last that is not empty; None if that is all."""
    filled = [c for row in rows for c, field in enumerate(row) if field.strip()]
    width = max(filled, default=-1) + 1
    return width if _is_even(rows) and 0 < width < len(rows[0]) else None


def is_comment(line: str) -> bool:
    """Whether a line above a table may be none of it."""
    return line.startswith("#") or not line.strip(_BLANK)


def _above(lines: Sequence[str], marked: int, delimiter: str) -> int:
    """Number of lines above a table of which the first `marked` are blank or begin with #.

    Those of a single column are values. The header may be marked too, as BIOM's are: the last such
    line if it is as wide as the rows, and none of these is a header.
    """
    rows = _parsed(lines[marked:] or lines[-1:], delimiter)
    if not rows or len(rows[0]) < 2:
        return 0
    widths = (len(next(iter(_parsed([line], delimiter)), "")) for line in lines[:marked])
    whole = [k for k, width in enumerate(widths) if width >= max(2, len(rows[0]) - 1)]
    if marked == len(lines):
        return whole[0]
    is_last = whole and not any(line.strip(_BLANK) for line in lines[whole[-1] + 1 : marked])
    numeric = any(map(_holds_numbers, zip(*rows[1:], strict=False)))
    return whole[-1] if is_last and not (numeric and _is_of_words(rows[0])) else marked


def _with_commas(rows: Sequence[Sequence[str]]) -> frozenset[int]:
    """Columns that may have decimal commas: none without one, or beside a decimal point.

    Points separate thousands there, so that a column whose numbers all have one, as 1.100, is none.
    """
    columns = [
        [f for f in column if not is_missing(f)] for column in zip_longest(*rows, fillvalue="")
    ]
    if any(has_decimal_point(f) for row in rows for f in row) or not any(map(_has_commas, columns)):
        return frozenset()
    below = ([f for f in column[1:] if _is_written(f)] for column in columns)
    return frozenset(
        c for c, numbers in enumerate(below)
        if not numbers or any("," in f or f.count(".") != 1 for f in numbers)
    )  # fmt: skip


def _has_commas(column: Sequence[str]) -> bool:
    """Whether most are numbers, and commas in some separate no thousands."""
    return 2 * sum(map(_is_written, column)) > len(column) and any(
        has_decimal_comma(f) and (_THOUSANDS.fullmatch(f) is None or f.lstrip("+- ")[0] == "0")
        for f in column
    )


def _is_written(field: str) -> bool:
    """Whether a field is a number, with a comma or a point or points between thousands."""
    return is_number(field) or has_decimal_comma(field) or may_have_points(field)


def _lacks_name(rows: Sequence[Sequence[str]], least: int = 2) -> bool:
    """Whether the first row names all columns but that of the rows' names, as R's write.table does.

    It has `least` fields or more: of "Lee, Ann" below a name, a comma is part.
    """
    first, names = next(iter(rows), []), [row[0] for row in rows[1:]]
    return (
        least <= len(first)
        and len(names) > 1
        and {len(row) for row in rows[1:]} == {len(first) + 1}
        and len(set(names)) == len(names)
        and any(row[-1] for row in rows[1:])  # else all rows end with a delimiter
        and not all(map(is_number, first))
    )


def is_of_numbers(lines: Sequence[str]) -> bool:
    """Whether lines seem to be rows of a table, of numbers more than of words."""
    begin = opening_of(lines, ",")
    rows = _parsed(begin.lines, begin.delimiter)
    return (_is_even(rows) or begin.lacks_name) and _are_numbers(rows)


def _are_numbers(rows: Sequence[Sequence[str]]) -> bool:
    return _share_of_numbers(rows[1:] or rows) > _MOST_OF_WORDS


def _delimiter_of(lines: Sequence[str], own: str) -> str:
    """Find the delimiter of a table, one letter, from its first lines (see `read_records`).

    `own`, the delimiter of the extension, unless it gives one field per row, or different numbers
    of fields, or commas are only in numbers such as 1,5. Otherwise the one of comma, semicolon,
    tab, | and blank that gives the same number of fields, two or more, in all rows, and the largest
    share of numbers among them; the first of these if several do. Commas delimit a `.tsv` table
    only if that gives numbers, as names are often written "Lee, Ann"; blanks only if most fields
    are numbers.
    """
    rows = {letter: _parsed(lines, letter) for letter in dict.fromkeys((own, *DELIMITERS))}
    if _is_even(rows[own]) and not (own == "," and _halves_numbers(rows)):
        return own
    if _lacks_name(rows[own]):
        return own
    del rows[own]
    others = {
        letter: _share_of_numbers(found)
        for letter, found in rows.items()
        if _is_even(found) or _lacks_name(found)
    }
    if own == "\t" and others.get(",") == 0:
        del others[","]
    if " " in others and not _are_numbers(rows[" "]):
        del others[" "]
    return max(others, key=lambda letter: others[letter], default=own)


def _parsed(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Records of the first lines; the last may be cut within quotes."""
    try:
        found = [record for record in records_of(lines, delimiter, strict=False) if record]
    except csv.Error:
        return []
    is_cut = len(found) > LOOKED_AT or sum(line.count('"') for line in lines) % 2
    return found[:-1] if is_cut and len(found) > 1 else found


def _is_even(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows have the same number of fields, more than one."""
    return bool(rows) and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1


def _halves_numbers(rows: dict[str, list[list[str]]]) -> bool:
    """Whether commas split rows evenly only because they are decimal commas: 1,5;2,5."""
    others = [rows[letter] for letter in DELIMITERS[1:] if _is_even(rows[letter])]
    return any(
        all("," not in field or has_decimal_comma(field) for row in found for field in row)
        for found in others
    )


def _is_numeric(field: str) -> bool:
    return is_number(field) or has_decimal_comma(field) or is_missing(field)


def _share_of_numbers(rows: Sequence[Sequence[str]]) -> float:
    fields = [field for row in rows for field in row]
    return sum(is_number(field) or has_decimal_comma(field) for field in fields) / len(fields)


# Headers


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Decide whether the first of some rows of a table names its columns.

    The rules look at columns that have only numbers, or absent values, below the first row:

    1. If one of its fields there is text, it is a header.
    2. If a text of the row occurs again below in its column, it is a sample.
    3. If the row has no number, it is a header.
    4. If its fields there are 0, 1, 2, ..., three or more, or four or more evenly spaced whole
       numbers (years, wavelengths), and no row below is like that, it is a header.
    5. Otherwise it is a sample.
    """
    first, below = rows[0], rows[1:]
    columns = [[row[c] for row in below if c < len(row)] for c in range(len(first))]
    numeric = [c for c, column in enumerate(columns) if _holds_numbers(column)]
    if any(not _is_numeric(first[c]) for c in numeric):
        return True
    texts = (c for c, field in enumerate(first) if not _is_numeric(field))
    if any(first[c].strip() in map(str.strip, columns[c]) for c in texts):
        return False
    if _is_of_words(first):
        return not all(is_missing(field) for field in first)
    counted = numeric or [c for c, field in enumerate(first) if is_number(field)]
    if not _counts(first, counted):
        return False
    return not any(_counts(row, counted) for row in below)


def _is_of_words(row: Sequence[str]) -> bool:
    return not any(is_number(field) or has_decimal_comma(field) for field in row)


def _holds_numbers(column: Sequence[str]) -> bool:
    return all(map(_is_numeric, column)) and not all(map(is_missing, column))


def _counts(row: Sequence[str], columns: Sequence[int]) -> bool:
    """Whether a row holds 0, 1, 2, ... or whole numbers at equal steps in some columns."""
    # pandas writes an empty name for the index.
    fields = [row[c] for c in columns if c < len(row) and row[c] != ""]
    if not all(f.strip().isdecimal() and len(f) <= _LONGEST_COUNT for f in fields):
        return False
    numbers = [int(field) for field in fields]
    steps = {b - a for a, b in pairwise(numbers)}
    if len(steps) != 1 or min(steps) <= 0:
        return False
    least = 3 if numbers[:2] == [0, 1] else _FEWEST_EVEN
    return len(numbers) >= least
