"""Similarities between the nodes of a graph: from arrays, edge lists and adjacency matrices."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import laplacian

from dhsk.arrays import Floats
from dhsk.errors import InputError, warn
from dhsk.kernels.rows import check_finite
from dhsk.objects.places import Place, parse_place
from dhsk.samples.dialect import is_missing, is_number
from dhsk.samples.paths import Origin

ASYMMETRY: Final = 1e-12
"""Largest difference between S_ij and S_ji, in units of the largest entry: rounding, which is
removed by their mean."""

_ENDS: Final = (
    ("source", "target"), ("src", "dst"), ("from", "to"), ("node1", "node2"),
    ("fromnodeid", "tonodeid"), ("head", "tail"),
)  # fmt: skip


class Graph(NamedTuple):
    """A symmetric matrix of a graph, and the ids of its nodes."""

    matrix: Any
    """(N, N) CSR array: adjacency, or another similarity."""
    nodes: tuple[str, ...] | None = None
    """Ids of the nodes, (N,); None if they have none."""


def read_edges(path: str | Place) -> Graph:
    r"""Read the edge list of an undirected graph.

    Parameters
    ----------
    path
        Text file of two columns, the ids of two nodes, and perhaps a third, the weight of their
        edge; separated by tabs, commas or blanks. A first row of usual names, such as "source
        target", or with a word for the weight, as "a b combined_score", is a header. Lines that
        begin with # or % are comments. It may be compressed: `.tsv.gz`.

    Returns
    -------
    Graph
        Tuple of the adjacency matrix, (N, N), a symmetric CSR array, and the ids of the nodes, in
        the order of its rows: ascending numbers if all are whole numbers, else sorted text. An edge
        without weight has 1; one that is named in both directions is one edge.

    Raises
    ------
    InputError
        The file is missing or empty, a line has other columns than the first, a weight is no finite
        number, or an edge has two weights; the message names the line.

    Examples
    --------
    >>> import dhsk
    >>> from pathlib import Path
    >>> _ = Path("edges.txt").write_text("a b\nb c\nc d\n")
    >>> adjacency, nodes = dhsk.read_edges("edges.txt")
    >>> nodes
    ('a', 'b', 'c', 'd')
    >>> adjacency.toarray()[1]
    array([1., 0., 1., 0.])
    """
    origin = Origin.of(parse_place("path", path))
    origin.refuse_key("the columns are known by their order")
    if origin.path.is_dir():
        raise InputError(f"{path} is a folder and no edge list: name a file")
    with origin.reading(), origin.open_text(newline=None) as file:
        text = file.read()
    seen: dict[tuple[str, str], tuple[float, int]] = {}
    for line, (a, b, weight) in _edges(text, str(path)):
        key = (a, b) if a <= b else (b, a)
        earlier = seen.setdefault(key, (weight, line))
        if earlier[0] != weight:
            raise InputError(
                f"line {line} of {path}: the edge of {a} and {b} has weight {weight:g}, but "
                f"{earlier[0]:g} in line {earlier[1]}: an undirected edge has one"
            )
    if not seen:
        raise InputError(f"{path} has no edges: give lines of two nodes, and perhaps a weight")
    first, *others = seen
    if others and not set(first) & {node for edge in others for node in edge}:
        names, line = " and ".join(first), seen[first][1]
        warn(
            f"line {line} of {path} is taken for an edge, but {names} are in no other line: leave "
            "it out if they name the columns"
        )
    return _of_edges(seen)


def _of_edges(seen: dict[tuple[str, str], tuple[float, int]]) -> Graph:
    found = {node for edge in seen for node in edge}
    whole = all(node.isascii() and node.isdigit() for node in found)
    nodes = tuple(sorted(found, key=_size if whole else None))
    number = {node: k for k, node in enumerate(nodes)}
    rows = np.array([number[a] for a, _ in seen], dtype=np.int64)
    cols = np.array([number[b] for _, b in seen], dtype=np.int64)
    weights: Floats = np.array([weight for weight, _ in seen.values()])
    apart = rows != cols
    entries = (
        np.concatenate([weights, weights[apart]]),
        (np.concatenate([rows, cols[apart]]), np.concatenate([cols, rows[apart]])),
    )
    return Graph(csr_array(coo_array(entries, shape=(len(nodes), len(nodes)))), nodes)


def _size(node: str) -> tuple[int, str, str]:
    """Order of whole numbers, of any number of digits: Python converts 4,300 at most."""
    digits = node.lstrip("0")
    return len(digits), digits, node


def _edges(text: str, path: str) -> Iterator[tuple[int, tuple[str, str, float]]]:
    """Lines with their numbers, from 1: two nodes and a weight."""
    width: int | None = None
    for line, cells in _rows(text):
        if width is None:
            width = len(cells)
            if width not in (2, 3):
                raise InputError(
                    f"line {line} of {path} has {width} columns: an edge list has two nodes, and "
                    "perhaps a weight"
                )
            if _is_header(cells):
                continue
        if len(cells) != width or not (cells[0] and cells[1]):
            raise InputError(
                f"line {line} of {path} has {len(cells)} columns, or an empty one, and the first "
                f"line {width}"
            )
        yield line, (cells[0], cells[1], 1.0 if width == 2 else _weight(cells[2], line, path))


def _rows(text: str) -> Iterator[tuple[int, Sequence[str]]]:
    """Cells of the lines that are neither empty nor comments."""
    for line, words in enumerate(text.split("\n"), 1):
        if not words.strip() or words.lstrip().startswith(("#", "%")):
            continue
        separator = next((sign for sign in "\t," if sign in words), None)
        cells = words.split()
        if separator is not None:
            cells = next(csv.reader([words], delimiter=separator))
        yield line, [cell.strip() for cell in cells]


def _is_header(cells: Sequence[str]) -> bool:
    """Whether a first row names the columns: two usual words, or a word for the weights.

    No edge is lost for another word.
    """
    names = [cell.lower() for cell in cells]
    word = len(cells) == 3 and len(cells[2]) > 1 and cells[2].replace("_", "").isalpha()
    no_number = word and not is_number(cells[2]) and not is_missing(cells[2])
    return tuple(names[:2]) in _ENDS or no_number or names[2:3] == ["w"]


def _weight(cell: str, line: int, path: str) -> float:
    try:
        weight = float(cell)
    except ValueError:
        weight = float("nan")
    if not np.isfinite(weight):
        raise InputError(f"line {line} of {path}: the weight {cell!r} is not a finite number")
    return weight


def similarity_of(given: Any) -> Graph:
    """Check a similarity, as CSR: a symmetric matrix, its pair with ids, or an edge list's path.

    Raises InputError that names the first pair that is not symmetric, or entry that is not finite.
    """
    if isinstance(given, Graph):
        S = _checked(given.matrix)
        return Graph(S, None if given.nodes is None else _checked_ids(given.nodes, S.shape[0]))
    if isinstance(given, str | Path) or hasattr(given, "read_bytes"):
        return read_edges(given)
    if isinstance(given, tuple) and len(given) == 2 and getattr(given[0], "ndim", 0) == 2:
        return similarity_of(Graph(*given))
    if hasattr(given, "columns") and hasattr(given, "index"):  # a data frame of pandas
        return similarity_of(Graph(given.to_numpy(), _ids_of(given)))
    return Graph(_checked(given))


def _ids_of(frame: Any) -> tuple[Any, ...] | None:
    """Ids that a square data frame gives its nodes, by its rows, its columns or both."""
    rows, columns, counted = tuple(frame.index), tuple(frame.columns), tuple(range(len(frame)))
    if rows == columns or len(rows) != len(columns) or columns == counted:
        return None if rows == counted else rows
    if rows == counted:
        return columns
    if sorted(map(str, rows)) == sorted(map(str, columns)):
        raise InputError(
            "the rows of S are nodes in another order than its columns: give S.loc[S.columns]"
        )
    raise InputError("the rows of S are named otherwise than its columns: give both the node ids")


def _checked_ids(nodes: Iterable[Any], n: int) -> tuple[str, ...]:
    """Ids as text, one for each of n nodes."""
    ids = tuple(map(str, nodes))
    if len(ids) != n or len(set(ids)) != n:
        raise InputError(
            f"there are {len(ids)} ids, {len(set(ids))} of them distinct, for the {n} nodes of S: "
            "give each node its own"
        )
    return ids


def negative_laplacian(adjacency: ArrayLike | Any) -> Any:
    """Negative Laplacian A - D of a graph, the similarity whose exponential is diffusion.

    Parameters
    ----------
    adjacency
        Symmetric weights of the edges, at least 0, (N, N), sparse or dense; or the path of an edge
        list. The diagonal does not count.

    Returns
    -------
    csr_array
        (N, N), with row sums of 0: the eigenvalues are 0 or below.

    Raises
    ------
    InputError
        The weights are not symmetric, not finite, or negative; the message names the first.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.negative_laplacian([[0, 1, 0], [1, 0, 2], [0, 2, 0]]).toarray()
    array([[-1.,  1.,  0.],
           [ 1., -3.,  2.],
           [ 0.,  2., -2.]])
    """
    return negative_laplacian_of(similarity_of(adjacency)).matrix


def negative_laplacian_of(graph: Graph) -> Graph:
    """Negative Laplacian of a checked graph, with its node ids."""
    A = coo_array(graph.matrix)
    wrong = np.flatnonzero((A.data < 0) & (A.coords[0] != A.coords[1]))
    if wrong.size:
        row, column = (int(axis[wrong[0]]) for axis in A.coords)
        raise InputError(
            f"the weight of nodes {row} and {column} (counted from 0) is {A.data[wrong[0]]:g}: a "
            "Laplacian needs weights of 0 or above"
        )
    found: Any = laplacian(csr_array(A))
    return Graph(csr_array(-found), graph.nodes)


def _checked(given: Any) -> "csr_array[Any, Any]":
    """Symmetric CSR array in float64, in canonical form."""
    if not issparse(given):
        given = np.asarray(given)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not given.shape[0]:
        raise InputError(f"S must be a square matrix of nodes, but its shape is {given.shape}")
    if given.dtype.kind not in "biuf":
        raise InputError(f"S must hold real numbers, but its dtype is {given.dtype}")
    S = csr_array(given, dtype=np.float64, copy=True)
    S.sum_duplicates()
    S.eliminate_zeros()
    check_finite(S, "S")
    return _symmetric(S)


def _symmetric(S: "csr_array[Any, Any]") -> "csr_array[Any, Any]":
    """The mean of S and its transpose, if they differ by rounding only."""
    mirror = csr_array(S.T)
    off = coo_array(S - mirror)
    allowed = ASYMMETRY * float(np.abs(S.data).max(initial=0.0))
    wrong = np.flatnonzero(np.abs(off.data) > allowed)
    if wrong.size:
        pairs = sorted(zip(*(axis[wrong].tolist() for axis in off.coords), strict=True))
        row, column = pairs[0]
        raise InputError(
            f"S is not symmetric: it is {S[row, column]:g} at row {row}, column {column} "
            f"(counted from 0), and {S[column, row]:g} at row {column}, column {row}: give "
            "(S + S.T) / 2, or the undirected graph"
        )
    found = S if not np.any(off.data) else csr_array((S + mirror) * 0.5)
    found.sum_duplicates()
    found.eliminate_zeros()
    return found
