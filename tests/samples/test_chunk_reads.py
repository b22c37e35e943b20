"""How often the chunks of an array are read."""

from typing import Any

import numpy as np
import pytest

from dhsk.errors import InputError
from dhsk.samples import chunked, open_samples

N_SAMPLES, DIM = 23, 7
X = np.random.default_rng(11).poisson(0.7, (N_SAMPLES, DIM)).astype(np.float64)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: Any) -> None:
    """No more than a chunk is read at a time."""
    monkeypatch.setattr(chunked, "PIECE_BYTES", 1)


class CountingArray:
    """An array that counts how often each of its chunks is read."""

    def __init__(self, values: Any, chunks: tuple[int, ...]) -> None:
        self.values, self.chunks = values, chunks
        self.shape, self.dtype = values.shape, values.dtype
        self.reads = np.zeros(-(-len(values) // chunks[0]), dtype=int)
        self.most = 0

    def __getitem__(self, part: slice) -> Any:
        rows = self.values[part]
        self.most = max(self.most, len(rows))
        self.reads[part.start // self.chunks[0] : -(-part.stop // self.chunks[0])] += 1
        return rows


@pytest.mark.parametrize("rows", [1, 4, 5, 7, 100])
def test_no_chunk_is_read_twice(rows: int) -> None:
    """Blocks that end inside of chunks take the rest from memory; opening reads no values."""
    array = CountingArray(X, (5, 3))
    samples = open_samples(array)
    assert not array.reads.any()
    for _ in samples.blocks(rows):
        pass
    assert array.reads.tolist() == [1] * 5
    assert array.most == 5


def test_many_small_chunks_are_read_at_once(monkeypatch: Any) -> None:
    """A piece takes as many whole chunks as fit into it."""
    monkeypatch.setattr(chunked, "PIECE_BYTES", 11 * DIM * 8)
    array = CountingArray(X, (2, DIM))
    assert np.concatenate(list(open_samples(array).blocks(3))).shape == X.shape
    assert array.most == 10


def test_wide_rows_of_chunks_are_read_by_parts(monkeypatch: Any) -> None:
    """Where the chunks side by side exceed the memory for them, they are read more than once."""
    monkeypatch.setattr(chunked, "_BAND_BYTES", 10 * DIM * 8)
    array = CountingArray(X, (N_SAMPLES, 1))
    np.testing.assert_array_equal(np.concatenate(list(open_samples(array).blocks(6))), X)
    assert (array.most, array.reads.tolist()) == (10, [3])


def test_arrays_that_shrink_are_refused() -> None:
    """An array of the caller's that has lost rows is an error, never fewer samples."""
    array = CountingArray(X, (5, 3))
    samples = open_samples(array)
    array.values = X[:9]
    with pytest.raises(InputError, match=r"X cannot be read.*ends after 9"):
        list(samples.blocks(5))
