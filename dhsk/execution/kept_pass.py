"""Passes over a matrix that a killed run goes on with where it was.

Products are operators, which have no argument for a checkpoint: whoever makes one says where its
sums are kept, and the pass finds it in its context, as it finds whom to tell in
`dhsk.run_progress`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from operator import itemgetter
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.devices import current_device
from dhsk.execution.checkpoint import NOWHERE, Checkpoint, KeptState, digest_of

UNKEPT_SECONDS: Final = 15.0
"""Seconds of a pass before its first entry."""


class _PassSums:
    """Sums of a pass, and how many of its tasks, in their order, are in them."""

    def __init__(self, sums: Sequence[Floats]) -> None:
        self.done = 0
        self._sums = sums

    def entry(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The sums, and the number of tasks."""
        return {f"sums-{k}": own for k, own in enumerate(self._sums)}, {"done": self.done}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from an entry of the same pass."""
        found = [kept[f"sums-{k}"] for k in range(len(self._sums))]
        if any(a.shape != b.shape for a, b in zip(found, self._sums, strict=True)):
            raise ValueError("another shape")
        for own, values in zip(self._sums, found, strict=True):
            own[...] = values
        self.done = kept["done"]


class KeptPass:
    """A pass, whose sums are kept from time to time."""

    def __init__(self, sums: Sequence[Floats], entries: Checkpoint, name: str) -> None:
        self._sums = _PassSums(sums)  # not this object: in a cycle they would stay in memory
        self._kept: KeptState = entries.state(self._sums, name, UNKEPT_SECONDS)

    @property
    def done(self) -> int:
        """Number of tasks that are in the sums."""
        return self._sums.done

    def advance(self) -> None:
        """One more task is in the sums."""
        self._sums.done += 1
        self._kept.keep()


class _Passes:
    """Numbers the passes of a call, and knows where they are kept."""

    def __init__(self, entries: Checkpoint, name: str) -> None:
        self.entries, self._name, self.names = entries, name, list[str]()

    def next_name(self) -> str:
        """Name of the entry of the next pass."""
        self.names.append(f"{self._name}-pass-{len(self.names) + 1}")
        return self.names[-1]


_KEPT: ContextVar[_Passes | None] = ContextVar("_KEPT", default=None)


@contextmanager
def passes_kept(entries: Checkpoint, *what: Any) -> Iterator[list[str]]:
    """Keep the sums of the passes that are made here; a repeated call goes on with them.

    Arrays and JSON values tell the matrix and the vectors. The caller drops the entries, whose
    names are in the list afterwards, once it has kept what it makes of the passes.
    """
    if entries.folder is None:
        yield []
        return
    device = current_device()  # its tasks are others
    passes = _Passes(entries, digest_of(*what, *([] if device is None else [device.name])))
    token = _KEPT.set(passes)
    try:
        yield passes.names
    finally:
        _KEPT.reset(token)


def pass_of_call(*sums: Floats) -> KeptPass:
    """Sums of a pass that begins, from its entry if an earlier run has left one."""
    passes = _KEPT.get()
    if passes is None:
        return KeptPass(sums, NOWHERE, "")
    return KeptPass(sums, passes.entries, passes.next_name())


class KeptProducts:
    """Product of a matrix with vectors, (N,) or (N, b), that keeps each and finds it again.

    Each has the name of a hash of its vectors; `matrix` is a JSON value that tells the matrix, and
    how it is multiplied.

    A killed run that is repeated asks for the same products and ends with the same bits. Vectors
    that differ in one bit are others. `passes` is the number of products that were computed.
    """

    def __init__(
        self, entries: Checkpoint, multiply: Callable[[Floats], Floats], matrix: Any
    ) -> None:
        self._entries, self._multiply, self._matrix = entries, multiply, matrix
        self.passes = 0

    def __call__(self, V: Floats) -> Floats:
        """Product with V, read if it is stored, else computed and stored."""
        if self._entries.folder is None:
            self.passes += 1
            return self._multiply(V)
        name = digest_of(self._matrix, V)
        product: Floats | None = self._entries.get(name, itemgetter("product"))
        if product is None:
            self.passes += 1
            with passes_kept(self._entries, name) as begun:
                product = np.ascontiguousarray(self._multiply(V))  # the layout that an entry keeps
            self._entries.put(name, {"product": product})
            self._entries.drop(*begun)
        return product
