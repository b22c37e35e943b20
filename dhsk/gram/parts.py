"""Several parts of one computation make one store: the first one stages the samples."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dhsk.errors import SamplesChangedError, StoreError
from dhsk.execution.lock import TURN_SECONDS, Turns, is_occupied
from dhsk.execution.owner import OwnedTurns
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.parts import TilePart, note_parts, share_of
from dhsk.gram.storage.staging import stage_samples
from dhsk.gram.storage.store import GramStore
from dhsk.objects.places import Place, remove_unfinished
from dhsk.progress import OnProgress, Progress
from dhsk.samples import Samples

PATIENCE_SECONDS: Final = 3600.0
"""Time for which a part waits for the first one, where there are no locks to see it by."""


def prepare_store(
    turns: Turns | OwnedTurns,
    path: Place,
    header: Header,
    sides: list[Samples],
    part: TilePart,
    report: OnProgress,
) -> GramStore:
    """Make a store and stage its samples, or open that of the same samples and options.

    One part does it while the others wait; without locks that is part 1. Raises
    StoreMismatchError if the store is of other samples or options.
    """

    def waiting() -> None:
        report(Progress("waiting", 0, 1, "another part stages the samples"))

    if not turns.has_locks and part.number > 1:
        _await_first(path, waiting)
    with turns.alone(waiting):
        note_parts(path, part.count)
        if not _is_prepared(path):
            _prepare(path, header, sides, report)
        store = GramStore.open(path)
        store.check_same(header)
        share = share_of(store.header.tiling, part)
        store.forget([tile for tile in store.missing_tiles() if tile in share])
    return store


def _prepare(path: Place, header: Header, sides: list[Samples], report: OnProgress) -> None:
    remove_unfinished(path)  # of a part that was killed while it made the store
    with removed_if_samples_change(path):
        store = GramStore.create(path, header, sides[0].feature_names)
        deque(stage_samples(store, sides, report), maxlen=0)


def _is_prepared(path: Place) -> bool:
    """Whether a store has all that its tiles are computed from."""
    if not (path / "zarr.json").is_file():
        return False
    store = GramStore.open(path)
    arrays = all((array.folder / "zarr.json").is_file() for array in store.arrays)
    return arrays and store.has_sound_names() and all(map(store.samples.has, store.samples.sides))


def _await_first(path: Place, waiting: Callable[[], None]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _is_prepared(path):
        if time.monotonic() > deadline:
            raise StoreError(
                f"{path} has no locks and is not prepared after {PATIENCE_SECONDS:.0f} s: part 1 "
                "stages the samples for all others, start it"
            )
        waiting()
        time.sleep(TURN_SECONDS)


@contextmanager
def removed_if_samples_change(path: Place) -> Iterator[None]:
    """Remove a new store, but not an older one, if its samples change."""
    new = not is_occupied(path)
    try:
        yield
    except SamplesChangedError:
        if new:
            GramStore.open(path).remove()
        raise
