"""Writing of the features of all samples to a store, block by block.

Rejected: writing on Dask's workers, for which samples would have to be staged.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import ROWS, Rows, blocks
from dhsk.errors import SamplesChangedError
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.limits import core_count
from dhsk.execution.lock import Turns, is_occupied
from dhsk.execution.memory import require_room, share_memory
from dhsk.execution.owner import one_of_several_at, sole_writer_of
from dhsk.execution.run import Run
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.threads import Threads
from dhsk.files import full_disk_is_budget
from dhsk.gram.storage.parts import forget_parts
from dhsk.nystrom.feature_store import FeatureStore
from dhsk.nystrom.features import FeatureMap
from dhsk.nystrom.held_map import drop_beside, held_beside, hold_beside
from dhsk.objects.places import Place, remove_unfinished
from dhsk.progress import counter
from dhsk.samples import Samples, Scan, open_samples
from dhsk.samples.scan import BLOCK_BYTES, rows_within

if TYPE_CHECKING:
    import dask.array as da

CHUNK_BYTES: Final = 16 * 2**20
"""Approximate size of a block of features."""

_READ_BYTES: Final = 32 * 2**20
"""Most bytes of samples that a block is computed from, unless a single piece is larger."""

_COPIES: Final = 4
"""Pieces of samples, and their kernel values, that a task has in memory: read, mapped, cast."""


def store_features(
    samples: Samples,
    features: FeatureMap,
    path: Place,
    run: Run,
) -> "tuple[da.Array, FeatureMap]":
    """Write the missing blocks of features to a zarr array in a folder or on a server.

    Samples are read twice, first to check and fingerprint all rows. The first result is read from
    the store as needed. The second are the features that it holds: where another machine began it,
    landmarks and root are those of that machine.

    Of several processes of an array job, the first makes the store, each writes the blocks of its
    own numbers, and who finds that none is missing finishes it.

    Raises
    ------
    InputError
        A row cannot be used, which is named; nothing is written.
    BudgetError
        A block does not fit in memory, or the features do not fit on disk.
    StoreMismatchError
        The path holds features of other samples, landmarks or kernels.
    StoreError
        The path holds something else, cannot be written, or is being written.
    CorruptTileError
        The path holds features whose description is damaged.
    SamplesChangedError
        Samples changed while they were read; a store that this call began is removed.
    """
    n, width = samples.shape[0], features.width
    store = FeatureStore(path, (n, width), _rows_of(samples, features), features.dtype)
    threads = _threads(samples, features, store, run.room)
    store.check_kind()
    job = run.client if isinstance(run.client, ArrayJob) else None
    locked: Any = sole_writer_of if job is None else one_of_several_at
    # BLAS on one thread gives the same bits on any number of cores.
    with full_disk_is_budget(), locked(store.path) as turns, one_blas_thread():
        store.check_disk()
        found = features.row_map.scan(samples, run)
        new = job is None and not is_occupied(store.path)
        features = _taken_up(store, features, found, job)
        try:
            _write_missing(samples, features, store, threads, run)
        except SamplesChangedError:
            if new:
                drop_beside(store.path)
                store.remove()
            raise
        if job is None or not store.missing():
            _finish(store, turns)
    return _read_lazily(store), features


def _finish(store: FeatureStore, turns: Turns | None) -> None:
    """Record the checksums of a whole store; several parts that find it whole do so in turn."""
    with nullcontext() if turns is None else turns.alone(lambda: None):
        # Of processes that were killed. A part that had its turn may be writing beside the blocks.
        remove_unfinished(store.path if turns is None else store.path / "c")
        store.record()
        forget_parts(store.path)


def _taken_up(
    store: FeatureStore, features: FeatureMap, found: Scan, job: ArrayJob | None
) -> FeatureMap:
    """Make the store or open it, unless another process makes it; the features that it holds."""
    if job is not None and job.number > 1:
        job.agreed("store", bool)
    held = held_beside(store.path, features)
    features = held or features
    described = {"samples": found.fingerprint, **features.described()}
    if found.zero_rows:
        described["zero_rows"] = found.zero_rows
    store.take_up(described, features.feature_names)
    if held is None and store.missing():
        hold_beside(store.path, features)
    if job is not None and job.number == 1:
        job.agreed("store", lambda: True)
    return features


def _read_lazily(store: FeatureStore) -> "da.Array":
    """Stored features, (N, r), by block; each process reads with its own credentials."""
    import dask.array as da  # a tenth of what a command imports, and most need none of it

    n, width = store.shape
    rows = tuple(part.stop - part.start for part in blocks(n, store.rows))
    read: da.Array = da.map_blocks(
        _read_block, store, chunks=(rows, (width,)), dtype=store.dtype, meta=np.empty((0, 0))
    )
    return read


def _read_block(store: FeatureStore, block_id: tuple[int, int]) -> NDArray[Any]:
    return store.read(block_id[0])


def _write_missing(
    samples: Samples, features: FeatureMap, store: FeatureStore, threads: int, run: Run
) -> None:
    missing, total = store.missing(), store.n_blocks
    store.forget(missing)
    if isinstance(run.client, ArrayJob):
        own = run.client.share_of(total)
        missing, total = [number for number in missing if number in own], len(own)
    advance = counter(run.report, "features", total, total - len(missing))
    for _ in Threads(threads).run(_write_block, _tasks(samples, features, store, missing)):
        advance(1)


def _rows_of(samples: Samples, features: FeatureMap) -> int:
    """Rows of a block: a multiple of `_piece`, by sizes that do not change from run to run.

    The features of dense samples are thus those of `FeatureMap.of` on all samples, to the bit.
    """
    row_bytes = features.width * features.dtype.itemsize
    most = min(CHUNK_BYTES // row_bytes, rows_within(samples, _READ_BYTES))
    piece = _piece(samples)
    return min(samples.shape[0], max(1, most // piece) * piece)


def _piece(samples: Samples) -> int:
    """Rows that `FeatureMap.of` maps at a time."""
    return min(ROWS, rows_within(samples, BLOCK_BYTES))


def _threads(samples: Samples, features: FeatureMap, store: FeatureStore, room: int) -> int:
    """Number of concurrent tasks that fit in memory."""
    piece = _piece(samples)
    m = int(features.landmarks.shape[0])
    row_bytes = BLOCK_BYTES // rows_within(samples, BLOCK_BYTES)
    read = row_bytes * store.rows
    task = store.block_bytes + read + _COPIES * piece * (row_bytes + 8 * m)
    waiting = 2 * read  # one block is being read while another waits for a thread
    what = f"{store.rows} samples and their features"
    require_room(waiting + task, room, what, "take fewer landmarks")
    return share_memory(room - waiting, task, core_count())[0]


_Task = tuple[FeatureMap, FeatureStore, int, Rows]


def _tasks(
    samples: Samples, features: FeatureMap, store: FeatureStore, missing: list[int]
) -> Iterator[_Task]:
    """Blocks of samples whose features are missing; reading stops after the last of them."""
    if not missing:
        return
    wanted = set(missing)
    for number, block in enumerate(samples.blocks(store.rows)):
        if number in wanted:
            yield features, store, number, block
        if number == missing[-1]:
            return


def _write_block(features: FeatureMap, store: FeatureStore, number: int, block: Rows) -> None:
    store.write(number, features.of(open_samples(block), number * store.rows))
