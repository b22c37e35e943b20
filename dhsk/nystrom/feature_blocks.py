"""Features of all samples on their way to the disk: block by block, those that are missing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dhsk.arrays import ROWS, Rows
from dhsk.errors import InputError, SamplesChangedError
from dhsk.execution.limits import core_count
from dhsk.execution.lock import sole_writer
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.threads import Threads
from dhsk.files import full_disk_is_budget
from dhsk.gram.prepare import scan_side
from dhsk.gram.row_map import BLOCK_BYTES
from dhsk.gram.storage.store import is_occupied
from dhsk.nystrom.feature_store import FeatureStore
from dhsk.nystrom.features import FeatureMap
from dhsk.nystrom.landmarks import require_room
from dhsk.progress import OnProgress, counter, ignore
from dhsk.samples import Samples, open_samples
from dhsk.samples.scan import rows_within

_CHUNK_BYTES: Final = 16 * 2**20
"""Size of a block of features, about."""

_READ_BYTES: Final = 32 * 2**20
"""Samples that a block is made of at most, unless that is less than a piece."""

_COPIES: Final = 4
"""Pieces of samples, and their kernel values, that a task holds at a time: read, mapped, cast."""


def store_features(
    samples: Samples,
    features: FeatureMap,
    path: str | Path,
    room: int,
    report: OnProgress = ignore,
) -> None:
    """Write features of samples, block by block; those that are there already are left alone.

    Parameters
    ----------
    samples
        What to read: twice, first to check and fingerprint all rows.
    features
        What gives the features.
    path
        Folder of the zarr array, on a disk of this machine.
    room
        Bytes that this process may take.
    report
        Receives progress.

    Raises
    ------
    InputError
        A row cannot be used, which is named; nothing is written then.
    BudgetError
        A block does not fit the memory, or the features the disk.
    StoreMismatchError
        The path holds features of other samples, landmarks or kernels.
    StoreError
        The path holds something else, cannot be written, or is being written.
    CorruptTileError
        The path holds features whose description is damaged.
    SamplesChangedError
        Samples changed while they were read; what this call has written is removed.
    """
    if "://" in str(path):
        raise InputError(f"{path}: object stores are not supported yet, give a local folder")
    n, width = samples.shape[0], features.width
    store = FeatureStore(Path(path), (n, width), _rows_of(samples, features), features.dtype)
    threads = _threads(samples, features, store, room)
    store.check_kind()
    # BLAS on one thread gives the same bits on any number of cores.
    with full_disk_is_budget(), sole_writer(store.path), one_blas_thread():
        store.check_disk()
        row_map = features.row_map
        found = scan_side(samples, [row_map.kernel], row_map.sphere_map, report, row_map.zero_rows)
        described = {"samples": found.fingerprint, **features.described()}
        if found.zero_rows:
            described["zero_rows"] = found.zero_rows
        new = not is_occupied(store.path)
        store.take_up(described, features.feature_names)
        try:
            _write_missing(samples, features, store, threads, report)
        except SamplesChangedError:
            if new:
                store.remove()
            raise
        store.record()


def _write_missing(
    samples: Samples, features: FeatureMap, store: FeatureStore, threads: int, report: OnProgress
) -> None:
    """Write the blocks that are missing."""
    missing = store.missing()
    store.forget(missing)
    advance = counter(report, "features", store.n_blocks)
    advance(store.n_blocks - len(missing))
    for _ in Threads(threads).run(_write_block, _tasks(samples, features, store, missing)):
        advance(1)


def _rows_of(samples: Samples, features: FeatureMap) -> int:
    """Rows of a block: whole pieces, and nothing that changes from run to run decides.

    So dense samples have the features that `FeatureMap.of` gives of all at once, to the bit.
    """
    row_bytes = features.width * features.dtype.itemsize
    most = min(_CHUNK_BYTES // row_bytes, rows_within(samples, _READ_BYTES))
    piece = _piece(samples)
    return min(samples.shape[0], max(1, most // piece) * piece)


def _piece(samples: Samples) -> int:
    """Rows that `FeatureMap.of` maps at a time."""
    return min(ROWS, rows_within(samples, BLOCK_BYTES))


def _threads(samples: Samples, features: FeatureMap, store: FeatureStore, room: int) -> int:
    """Tasks at a time, as many as fit the memory."""
    piece = _piece(samples)
    m = int(features.landmarks.shape[0])
    row_bytes = BLOCK_BYTES // rows_within(samples, BLOCK_BYTES)
    read = row_bytes * store.rows
    task = store.block_bytes + read + _COPIES * piece * (row_bytes + 8 * m)
    waiting = 2 * read  # one is being read while another waits for a thread
    what = f"{store.rows} samples and their features"
    require_room(waiting + task, room, what, "take fewer landmarks")
    return max(1, min(core_count(), (room - waiting) // task))


_Task = tuple[FeatureMap, FeatureStore, int, Rows]


def _tasks(
    samples: Samples, features: FeatureMap, store: FeatureStore, missing: list[int]
) -> Iterator[_Task]:
    """Blocks of samples whose features are missing; none is read behind the last of these."""
    if not missing:
        return
    wanted = set(missing)
    for number, block in enumerate(samples.blocks(store.rows)):
        if number in wanted:
            yield features, store, number, block
        if number == missing[-1]:
            return


def _write_block(features: FeatureMap, store: FeatureStore, number: int, block: Rows) -> None:
    """Compute the features of a block and write them: the task of a block."""
    store.write(number, features.of(open_samples(block), number * store.rows))
