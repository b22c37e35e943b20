"""Samples that are all zero, which have no image on the sphere: the rule, a count, a warning."""

from threading import Lock
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dhsk.arrays import Indices
from dhsk.errors import ZeroRowsWarning, warn
from dhsk.kernels.base import chosen_parameter

ZeroRule: TypeAlias = Literal["center", "error"]
"""All-zero samples are mapped to the centre of the positive orthant, or refused."""


def parse_zero_rule(name: object) -> ZeroRule:
    """Return `name` if it is a rule, or raise `InputError`."""
    known: tuple[ZeroRule, ...] = get_args(ZeroRule)
    return chosen_parameter("zero_rows", name, known)


class ZeroRows:
    """The rule, "center" or "error", and the all-zero samples that were found.

    Each sample counts once, in however many passes, threads and blocks it is read.
    """

    def __init__(self, rule: ZeroRule = "center") -> None:
        self.rule = parse_zero_rule(rule)
        self._numbers: Indices = np.zeros(0, np.intp)
        self._lock = Lock()

    def __reduce__(self) -> Any:
        """Pickle the rule only: a copy has its own count."""
        return ZeroRows, (self.rule,)

    def __eq__(self, other: object) -> bool:
        """Whether the rule is the same."""
        return isinstance(other, ZeroRows) and self.rule == other.rule

    def __hash__(self) -> int:
        """Hash of the rule."""
        return hash(self.rule)

    def add(self, numbers: Indices) -> None:
        """Record all-zero samples by their indices among all samples, ascending."""
        if numbers.size:
            with self._lock:
                self._numbers = np.union1d(self._numbers, numbers)

    @property
    def numbers(self) -> Indices:
        """Indices of all-zero samples among all samples, ascending."""
        return self._numbers

    @property
    def count(self) -> int:
        """Number of all-zero samples."""
        return len(self._numbers)

    def warn(self, source: str, n_samples: int) -> None:
        """Warn if there were any; see `warn_of_zero_rows`."""
        warn_of_zero_rows([(source, self.count, n_samples)])


def warn_of_zero_rows(found: list[tuple[str, int, int]]) -> None:
    """Warn of all-zero samples, at the line that called this package.

    `found` has the source, the number of all-zero samples and the number of samples, for the rows
    and the columns.
    """
    counts = [f"{count:,} of {n:,} samples of {source}" for source, count, n in found if count]
    if counts:
        warn(
            f"{' and '.join(counts)} are all zero (texts and strings: nothing in them is known): "
            "each takes the same point, as near to every feature, which says little of its class; "
            "drop them, or refuse them in training with zero_rows='error' (--zero-rows error)",
            ZeroRowsWarning,
        )
