"""Which compiled pass evaluates a form: its own, or one with room for more coefficients.

A pass of the form's own sizes is the fastest, and takes a third of a second to compile where none
is kept on disk; a Gaussian process of 178 samples took eight of them, 4.7 of its 10 s. Zeros in
place of the coefficients that a form lacks change no bit: fma(0, y, c) = c, x/1 = x and 1 x = x. So
few entries are evaluated by the few passes of `ROOMS`, which all forms share.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dhsk.caching import cached_value
from dhsk.compiled import is_at_hand
from dhsk.kernels.certified.evaluate import Reals, compiled_pass

PAYS: Final = 2**26
"""Entries of a form from which on its own pass is compiled. In the wider room an entry takes up to
1.7 ns more, together a third of what compiling takes."""

_FEW: Final = 8, 0, 0
_MANY: Final = 16, 17, 4
ROOMS: Final = _FEW, _MANY, (*_MANY, 16, 17)
"""Numbers of coefficients, as `compiled_pass` takes them, of passes that all forms share."""


@dataclass(eq=False)
class Passes:
    """Passes of a form for one kind of values."""

    what: int
    sizes: tuple[int, ...]
    numbers: Reals
    """As `compiled_pass` takes them."""
    entries: int = 0
    """Number of entries so far."""
    own_is_kept: bool | None = None
    """Whether the form's own pass was compiled before the first call; None before that."""

    def __call__(self, cosines: Reals, out: Reals, *head: float) -> None:
        """Evaluate cosines, (size,), into `out`; `head` takes the place of the first numbers."""
        run, numbers = _run(self.sizes, self.what), self.numbers
        if self.own_is_kept is None:
            self.own_is_kept = is_at_hand(run, cosines, out, numbers)
        self.entries += cosines.size
        if self.room and self.entries <= PAYS and not self.own_is_kept:
            run, numbers = _run(self.room, self.what), self._widened
        run(cosines, out, with_head(numbers, *head) if head else numbers)

    def __reduce__(self) -> Any:
        """Counts and what is kept on disk are of one process."""
        return Passes, (self.what, self.sizes, self.numbers)

    @cached_value
    def room(self) -> tuple[int, ...] | None:
        """Sizes of the smallest of `ROOMS` for the form; None if it fits none."""
        alike = (room for room in ROOMS if len(room) == len(self.sizes))
        return next((room for room in alike if np.less_equal(self.sizes, room).all()), None)

    @cached_value
    def _widened(self) -> Reals:
        assert self.room is not None
        return widened(self.numbers, self.sizes, self.room)


def _run(sizes: tuple[int, ...], what: int) -> Any:
    return compiled_pass(*sizes[:3], what, *sizes[3:])


def with_head(numbers: Any, *head: float) -> Any:
    """Put other numbers in place of the first ones."""
    return np.concatenate([head, numbers[len(head) :]])


def widened(numbers: Reals, sizes: tuple[int, ...], room: tuple[int, ...]) -> Reals:
    """Numbers of a form, (size,), as a pass of larger sizes takes them: with the same values."""
    own, wide = _counts(sizes), _counts(room)
    lead = numbers.size - sum(own)
    parts: list[Any] = [numbers[:lead]]
    start = lead
    # Of P, Q, slopes and starts of factors, and of P and Q of a rate.
    for size, most, fill in zip(own, wide, (0.0, 0.0, 0.0, 1.0, 0.0, 0.0), strict=False):
        part = np.full(most, fill, numbers.dtype)
        part[:size] = numbers[start : start + size]
        parts.append(part)
        start += size
    for place in (1, 5):  # Q = 1 has no coefficients of its own
        if place < len(own) and not own[place] and wide[place]:
            parts[1 + place][0] = 1.0
    found: Reals = np.concatenate(parts)
    return found


def _counts(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of each part of a form: slopes and starts are as many as factors."""
    return (*sizes[:3], sizes[2], *sizes[3:])
