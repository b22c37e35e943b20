"""Methods of many passes over one matrix: memory shared with its tiles, and a checkpoint."""

from collections.abc import Iterator
from contextlib import contextmanager

from dhsk.execution.checkpoint import Checkpoint, KeptProducts
from dhsk.execution.limits import core_count, own_room
from dhsk.execution.memory import MemoryNeed
from dhsk.execution.workers import computing
from dhsk.gram.plan import LARGEST_GROUP
from dhsk.gram.tile_tasks import bytes_of_task
from dhsk.gram.tiled import TiledMatrix
from dhsk.objects.places import Place, parse_place
from dhsk.units import parse_bytes


@contextmanager
def many_products(
    G: TiledMatrix,
    method: MemoryNeed,
    width: int,
    memory: int | str | None,
    journal: str | Place | None,
) -> Iterator[KeptProducts]:
    """Give products with a matrix to a method that makes many, with BLAS on one thread.

    On threads of this process, tiles stay in memory as far as they fit. The bits of the products
    depend neither on that nor on the number of threads or workers.

    Parameters
    ----------
    G
        Matrix or view.
    method
        Memory of the method itself.
    width
        Vectors of a block.
    memory
        Upper bound on the memory of this process; None for half of what is free.
    journal
        Folder for the products; None to store none.
    """
    limit = None if memory is None else parse_bytes(memory)
    folder = None if journal is None else parse_place("journal", journal)
    with computing() as client:
        room = own_room(limit)
        need = MemoryNeed(method.name, {**method.parts, **_of_tasks(G, width, client is None)})
        need.check(room, "give more memory, or ask for less")
        used = G.with_tiles_held(room - need.total) if client is None else G
        yield Checkpoint(folder, "product-").replay(used.__matmul__, G.description)


def _of_tasks(G: TiledMatrix, width: int, here: bool) -> dict[str, int]:
    """Bytes of the tasks of a pass: tiles if they run in this process, and vectors."""
    rows = min(G.shape[0], LARGEST_GROUP * G.tiling.tile)
    vectors = 4 * 8 * rows * width
    own = bytes_of_task(G.header, rows) if here else 0
    return {"running tasks": core_count() * own + (core_count() + 1) * vectors}
