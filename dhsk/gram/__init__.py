"""Gram matrices: planned, computed by tiles on Dask, stored in zarr, read as needed."""

from dhsk.gram.compute import compute_gram
from dhsk.gram.matrices import GramMatrices
from dhsk.gram.matrix import GramMatrix, open_gram
from dhsk.gram.repair import repair_gram

__all__ = ["GramMatrices", "GramMatrix", "compute_gram", "open_gram", "repair_gram"]
