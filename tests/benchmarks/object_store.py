"""Tiles to an S3-like server: the store against the client alone, on the same bytes, in turn.

Run with the variables of a server (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)::

    python tests/benchmarks/object_store.py s3://BUCKET/PREFIX [MEGABYTES_A_CHUNK] [THREADS]

The store writes chunks by `TileWriter`, with checksum, on each thread; the client alone puts the
same chunks with the same number of requests at a time. Printed is the ratio of their rates.
"""

import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
from records import parsed, parser_of, record

from dhsk import CosineKernel
from dhsk.gram.memory import UPLOADS
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tile_tasks import TileWriter
from dhsk.gram.tiles import TileValues
from dhsk.objects.path import ObjectPath
from dhsk.units import human_seconds

CHUNKS = 24
ROUNDS = 5


def seconds_of(work: Callable[[], None]) -> float:
    """Time of a call."""
    begin = perf_counter()
    work()
    return perf_counter() - begin


def main(url: str, megabytes: int, threads: int) -> None:
    """Print rates and their ratio."""
    place = ObjectPath.parse(url)
    tile = round((megabytes * 2**20 / 4) ** 0.5)
    n = tile * CHUNKS
    header = Header(
        n, tile, False, "float32", tile, "full", (CosineKernel().to_spec(),), "identity", 1,
        ("0" * 32,) * 2, (None, None), "float32",
    )  # fmt: skip
    store = GramStore(place / "store", header)
    values = np.random.default_rng(0).random((tile, tile), np.float32)
    whole = np.concatenate([values.view(np.uint8).ravel(), np.zeros(4, np.uint8)])

    def by_store() -> None:
        numbers = iter(range(CHUNKS))  # the next tile is for the thread that is ready

        def write(_: int) -> None:
            with TileWriter(store) as writer:
                for i in numbers:
                    rows = slice(i * tile, (i + 1) * tile)
                    writer.put(TileValues(i, 0, 0, rows, slice(0, tile), values))

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(write, range(threads)))

    def by_client() -> None:
        def put(i: int) -> None:
            (place / "alone" / f"{i}").write_bytes(whole.data)

        with ThreadPoolExecutor(threads * UPLOADS) as pool:
            list(pool.map(put, range(CHUNKS)))

    by_store()
    by_client()
    pairs = [(seconds_of(by_store), seconds_of(by_client)) for _ in range(ROUNDS)]
    place.remove_below()
    ratio = statistics.median(alone / ours for ours, alone in pairs)
    ours, alone = (CHUNKS * whole.size / 1e6 / min(times) for times in zip(*pairs, strict=True))
    what = f"a store on an S3 server, chunks of {whole.size / 1e6:.0f} MB"
    record("gram", what, ours, "MB/s", {"the client alone": alone}, runs=ROUNDS)
    print(
        f"{CHUNKS} chunks of {whole.size / 1e6:.1f} MB, {threads} threads x {UPLOADS} requests: "
        f"median ratio {ratio:.2f}; all in {human_seconds(sum(map(sum, pairs)))}"
    )


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("url")
    parser.add_argument("megabytes", nargs="?", type=int, default=8)
    parser.add_argument("threads", nargs="?", type=int, default=2)
    given = parsed(parser)
    main(given.url, given.megabytes, given.threads)
