"""Entries of a checkpoint for finished fits."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.solvers.dual import Fit

_ARRAYS = ("support", "coef", "outside")

Entry: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""Arrays and JSON values."""


def entry_of_fits(fits: Sequence[Fit], rest: Any) -> Entry:
    """Entry of fits and another JSON value."""
    arrays = {
        "support": np.concatenate([np.empty(0, np.int64), *(fit.support for fit in fits)]),
        "coef": np.concatenate([np.empty(0), *(fit.coef for fit in fits)]),
        "lengths": np.array([len(fit.support) for fit in fits], dtype=np.int64),
    }
    known = [fit.outside for fit in fits if fit.outside is not None]
    if len(known) == len(fits):
        arrays["outside"] = np.concatenate([np.empty(0), *known])
        arrays["others"] = np.array([len(own) for own in known], dtype=np.int64)
    numbers = [{k: v for k, v in vars(fit).items() if k not in _ARRAYS} for fit in fits]
    return arrays, {"numbers": numbers, "rest": rest}


def fits_of_entry(kept: dict[str, Any]) -> tuple[list[Fit], Any]:
    """Fits and value of an entry."""
    numbers = kept["numbers"]
    support, coef = (_parts_of(kept[key], kept["lengths"]) for key in ("support", "coef"))
    outside: list[Any] = [None] * len(numbers)
    if "outside" in kept:
        outside = _parts_of(kept["outside"], kept["others"])
    return [
        Fit(support=rows, coef=values, outside=others, **own)
        for rows, values, others, own in zip(support, coef, outside, numbers, strict=True)
    ], kept["rest"]


def _parts_of(values: NDArray[Any], lengths: NDArray[Any]) -> list[NDArray[Any]]:
    """Parts of these lengths of an array."""
    ends = np.cumsum(lengths.astype(np.int64))
    return [values[end - size : end] for end, size in zip(ends, lengths, strict=True)]
