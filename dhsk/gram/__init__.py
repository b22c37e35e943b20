"""Gram matrices, computed by tiles with Dask, stored in zarr, and read as needed."""

from dhsk.gram.compute import compute_gram
from dhsk.gram.discrepancy import MeanDiscrepancy, maximum_mean_discrepancy
from dhsk.gram.graph import graph_gram
from dhsk.gram.graph_similarity import negative_laplacian, read_edges
from dhsk.gram.matrix import GramMatrices, GramMatrix, open_gram
from dhsk.gram.operations import GramView
from dhsk.gram.repair import repair_gram

__all__ = [
    "GramMatrices",
    "GramMatrix",
    "GramView",
    "MeanDiscrepancy",
    "compute_gram",
    "graph_gram",
    "maximum_mean_discrepancy",
    "negative_laplacian",
    "open_gram",
    "read_edges",
    "repair_gram",
]
