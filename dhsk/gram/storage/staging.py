"""Stages samples: maps them to the sphere and writes them into a store, block by block."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from dhsk.arrays import Rows, numbered
from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.run import Run
from dhsk.gram.storage.staged import Side
from dhsk.gram.storage.store import GramStore
from dhsk.progress import Progress
from dhsk.samples import Samples, Spectrum, apply_map, vectorizer_of
from dhsk.samples.names import in_order
from dhsk.samples.scan import rows_within

BLOCK_BYTES = 8_000_000
"""Approximate size of the blocks in which samples are mapped; two of them are in memory."""


def in_order_of(store: GramStore, sides: Sequence[Samples]) -> Sequence[Samples]:
    """Put features in the order of a store's, if both have names.

    Raises StoreMismatchError if the names differ.
    """
    if not store.has_sound_names():  # the fingerprint shows whether they are in its order
        return sides
    names = store.feature_names
    for side in sides:
        _check_counts(store, side)
    try:
        return [in_order(side, names, str(store.path), warn=False) for side in sides]
    except InputError as error:
        raise StoreMismatchError(
            f"{store.path} was made with other features: {error}; or choose another path"
        ) from error


def _check_counts(store: GramStore, side: Samples) -> None:
    """Refuse counts of other substrings: the list of their names would not say why."""
    made, now = vectorizer_of(store.header.vectorizer, ()), side.vectorizer
    if isinstance(made, Spectrum) and isinstance(now, Spectrum) and made.label != now.label:
        raise StoreMismatchError(
            f"{store.path} was made with {made.label}, and now they are {now.label}: choose "
            "another path, or count the same"
        )


def stage_samples(store: GramStore, sides: Sequence[Samples], run: Run) -> Iterator[int]:
    """Write the mapped samples of sides that the store lacks.

    Yields the number of stored samples of the last side whenever it has grown.
    """
    names: tuple[Side, Side] = ("rows", "cols")
    for name, side in zip(names, sides, strict=False):
        n_samples = side.shape[0]
        last = side is sides[-1]
        if not store.samples.has(name):
            for staged in _stage_side(store, name, side):
                run.report(Progress("staging", staged, n_samples))
                if last:
                    yield staged
        elif last:
            yield n_samples


def _stage_side(store: GramStore, name: Side, side: Samples) -> Iterator[int]:
    store.samples.start(name)
    first = entry = 0
    for mapped in _one_ahead(_mapped(store, side)):
        store.samples.write(name, first, entry, mapped)
        first += mapped.shape[0]
        entry += getattr(mapped, "nnz", 0)
        if first == side.shape[0]:
            store.samples.finish(name)
        yield first


def _mapped(store: GramStore, side: Samples) -> Iterator[Rows]:
    for first, block in numbered(side.blocks(_stage_rows(store, side))):
        yield apply_map(store.header.sphere_map, block, first)


def _one_ahead(blocks: Iterator[Rows]) -> Iterator[Rows]:
    """The same blocks, each made by another thread while the previous one is used."""
    with ThreadPoolExecutor(1) as other:
        following = other.submit(next, blocks, None)
        while (block := following.result()) is not None:
            following = other.submit(next, blocks, None)
            yield block


def _stage_rows(store: GramStore, side: Samples) -> int:
    """Rows to stage at a time, about `BLOCK_BYTES`; dense ones in whole chunks."""
    if side.is_sparse:
        return rows_within(side, BLOCK_BYTES)
    fitting = BLOCK_BYTES // (8 * side.shape[1])
    return max(fitting // store.samples.chunk_rows, 1) * store.samples.chunk_rows
