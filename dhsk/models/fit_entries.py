"""Entries of a checkpoint for finished fits."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from dhsk.solvers.dual import Fit

_ARRAYS = ("support", "coef")

Entry: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""Arrays and JSON values."""


def entry_of_fits(fits: Sequence[Fit], rest: Any) -> Entry:
    """Entry of fits and another JSON value."""
    arrays = {
        "support": np.concatenate([np.empty(0, np.int64), *(fit.support for fit in fits)]),
        "coef": np.concatenate([np.empty(0), *(fit.coef for fit in fits)]),
        "lengths": np.array([len(fit.support) for fit in fits], dtype=np.int64),
    }
    numbers = [{k: v for k, v in vars(fit).items() if k not in _ARRAYS} for fit in fits]
    return arrays, {"numbers": numbers, "rest": rest}


def fits_of_entry(kept: dict[str, Any]) -> tuple[list[Fit], Any]:
    """Fits and value of an entry."""
    lengths = kept["lengths"].astype(np.int64)
    parts = [slice(end - size, end) for end, size in zip(np.cumsum(lengths), lengths, strict=True)]
    return [
        Fit(**{key: kept[key][part] for key in _ARRAYS}, **own)
        for part, own in zip(parts, kept["numbers"], strict=True)
    ], kept["rest"]
