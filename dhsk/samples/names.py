"""Feature names: columns are put in the order of known names, or refused.

Names are no part of the fingerprint, as the same values may come from a file without names.
Rejected: leaving out unknown columns, as a wrong file with more names would pass.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Indices, Rows
from dhsk.errors import InputError, warn
from dhsk.samples.base import Samples, WrappedSamples, csr_block
from dhsk.units import counted

_NAMED: Final = 5
"""Largest number of names in a message, as in scikit-learn."""

_LISTED: Final = 10
"""Largest number of columns of a file in a message."""

_WIDEST: Final = 40
"""Largest number of characters of a name or value in a message."""


@dataclass(frozen=True, eq=False)
class ReorderedSamples(WrappedSamples):
    """Samples with their columns in another order; takes the memory of one more block."""

    columns: Indices = field(repr=False)
    """Column of each feature in `samples`, (dim,)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "vectorizer", None)  # its vocabulary has the other order

    def _blocks(self, rows: int) -> Iterator[Rows]:
        dim = self.shape[1]
        places = np.empty(dim, np.intp)  # new position of each column of the source
        places[self.columns] = np.arange(dim)
        for block in self.samples.blocks(rows):
            if isinstance(block, csr_array):
                yield csr_block(block.data, places[block.indices], block.indptr, dim)
            else:
                yield np.take(block, self.columns, axis=1)


def in_order(
    samples: Samples,
    names: Sequence[str] | None,
    of: str,
    dim: int | None = None,
    *,
    warn: bool = True,
) -> Samples:
    """Put columns in the order of `names`; without names on either side, change nothing.

    `of` says where the names come from. If only one side has names, this warns (`InputWarning`) as
    scikit-learn does, unless `warn` is False. Raises `InputError` if a name is missing, unknown, or
    occurs twice in another order, and lists the first ones; without names if there are not `dim`.
    """
    own = samples.feature_names
    if names is None or own is None:
        if dim not in (None, samples.shape[1]):
            raise InputError(
                f"{samples.source} has {samples.shape[1]:,} features, not the {dim:,} of {of}: "
                "give the same features in the same order"
            )
        if warn and (names is None) != (own is None):
            _warn_of_one_side(samples.source, of, is_known=names is not None)
        return samples
    if tuple(names) == own:
        return samples
    refuse_others(samples.source, own, names, of)
    twice = [name for name, count in Counter(own).items() if count > 1]
    if twice:
        raise InputError(
            f"{samples.source} has the features of {of} in another order, and {listed(twice)} "
            "more than once: make the names unique before training"
        )
    place = {name: column for column, name in enumerate(own)}
    columns = np.array([place[name] for name in names], dtype=np.intp)
    return ReorderedSamples(samples, columns, feature_names=tuple(names))


def refuse_others(source: str, own: Sequence[str], names: Sequence[str], of: str) -> None:
    """InputError that lists the first ones if `own` names are not `names`, those of `of`."""
    missing, unknown = _beyond(names, own), _beyond(own, names)
    if missing or unknown:
        said = _difference(source, of, len(names), missing, unknown)
        way = _of_words(missing, unknown, own) or _like(missing, unknown)
        raise InputError(f"{said}{way}")


def table_in_order(X: Any, names: Sequence[str] | None) -> Any:
    """Put the columns of a table in the order of `names`, if they are the same.

    Anything else is returned as it is.
    """
    own = names_in(columns_of(X))
    if own is None or names is None or own == tuple(names) or len(set(own)) < len(own):
        return X
    return X if _beyond(names, own) or _beyond(own, names) else some_columns(X, names)


def columns_of(X: Any) -> tuple[Any, ...]:
    """Names of the columns of a pandas, polars or Arrow table; empty for anything else."""
    # What Arrow's tables call columns are their values.
    found = getattr(X, "column_names", None)
    return tuple(getattr(X, "columns", ()) if found is None else found)


def some_columns(X: Any, names: Sequence[Any]) -> Any:
    """Columns of a table, in this order."""
    return X.select(list(names)) if hasattr(X, "select") else X[list(names)]


def names_in(columns: Iterable[Any]) -> tuple[str, ...] | None:
    """Names of a table's columns in memory; None unless all are text, as in scikit-learn."""
    found = tuple(columns)
    return tuple(map(str, found)) if found and all(isinstance(c, str) for c in found) else None


def _warn_of_one_side(source: str, of: str, *, is_known: bool) -> None:
    named, bare = (of, source) if is_known else (source, of)
    warn(
        f"{named} has feature names and {bare} has none: only the number of features is compared, "
        "so make sure that they are in the same order",
    )


def _beyond(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Names that are missing, or less frequent, among others; in their order."""
    left = Counter(names) - Counter(others)
    return [name for name in dict.fromkeys(names) if left[name]]


def _difference(
    source: str, of: str, dim: int, missing: Sequence[str], unknown: Sequence[str]
) -> str:
    parts, ways = [], []
    if missing:
        parts.append(f"lacks {len(missing):,} of the {dim:,} features of {of} ({listed(missing)})")
        ways.append("give those that it lacks, in any order, or leave them out of both")
    if unknown:
        parts.append(
            f"has {counted(len(unknown), 'feature')} that {of} does not know ({listed(unknown)})"
        )
        ways.append(
            "leave others out: with --drop-column NAME of a table, as adata[:, names] of AnnData"
        )
    return f"{source} {' and '.join(parts)}: {'; '.join(ways)}"


def _like(missing: Sequence[str], unknown: Sequence[str]) -> str:
    """A question where a missing name is written otherwise."""
    for name in missing[:_LISTED]:
        near = _nearest(name, unknown)
        if near is not None:
            return f". Is {shown(near)} its {shown(name)}?"
    return ""


def is_it(name: str, names: Iterable[str]) -> str:
    """Question whether another name is meant, or several, in brackets; empty if none is near."""
    names = list(names)
    if "," in name and {part.strip() for part in name.split(",")} <= set(names):
        return " (these are several: give each by itself)"
    near = _nearest(name, names)
    return "" if near is None else f" (is it {shown(near)}?)"


def _nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that is written nearly the same, in any case; None if there is none."""
    known = {other.casefold(): other for other in names}
    near = get_close_matches(name.casefold(), known, 1, 0.8)
    return known[near[0]] if near else None


def _of_words(missing: Sequence[str], unknown: Sequence[str], own: Sequence[str]) -> str:
    """What to do about columns of pandas.get_dummies, of which new samples have others or none."""
    raw = [name for name in unknown if any(other.startswith(f"{name}_") for other in missing)]
    if raw:
        return f". Make columns of words as in training: pandas.get_dummies(table, columns={raw!r})"
    words = {name.rpartition("_")[0] for name in own if "_" in name}
    if not missing or not all(name.rpartition("_")[0] in words for name in missing):
        return ""
    new = [name for name in unknown if name.rpartition("_")[0] in words]
    beside = f" and leave out {listed(new)}, which no training sample had" if new else ""
    return (
        ". pandas.get_dummies makes no columns for words that no sample has: add them, as "
        f"table[{missing[0]!r}] = 0{beside}"
    )


def shown(text: str) -> str:
    """Quote a name or value from a file, shortened if it is long."""
    return repr(text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}...")


def listed(names: Sequence[str], most: int = _NAMED) -> str:
    """The first names."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def listed_names(names: Sequence[str]) -> str:
    """List the first names of columns, each shortened if it is long."""
    return listed([shown(name)[1:-1] for name in names[: _LISTED + 1]], _LISTED)


def as_text(names: NDArray[Any]) -> tuple[str, ...]:
    """Names as strings; bytes are decoded as UTF-8, invalid ones as hexadecimal escapes."""
    return tuple(
        n.decode("utf-8", "backslashreplace") if isinstance(n, bytes) else str(n)
        for n in names.tolist()
    )
