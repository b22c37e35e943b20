"""Edge lists and Laplacians."""

import codecs
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import laplacian

import dhsk

ADJACENCY = [[0, 2, 0], [2, 0, 1], [0, 1, 0]]

LISTS = {
    "tabs": "a\tb\t2\nb\tc\t1\n",
    "commas and header": "source,target,weight\na,b,2\nb,c,1\n",
    "blanks": "a b 2\n\n# a comment\nb  c 1\n",
    "comments of KONECT": "% sym weighted\n% 2 3 3\na b 2\nb c 1\n",
    "both directions": "a,b,2\nb,a,2.0\nc,b,1\n",
    "named weights": "one\tother\tWeight\na\tb\t2\nb\tc\t1\n",
    "quotes": '"a","b",2\n"b","c",1\n',
}


@pytest.mark.parametrize("name", LISTS)
def test_edge_lists(name: str, tmp_path: Path) -> None:
    """Two nodes and a weight, in any of the usual forms."""
    (tmp_path / "edges").write_text(LISTS[name])
    adjacency, nodes = dhsk.read_edges(tmp_path / "edges")
    assert nodes == ("a", "b", "c")
    assert adjacency.toarray().tolist() == ADJACENCY


def test_names_of_columns_that_are_not_usual_are_told(tmp_path: Path) -> None:
    """Beside a word for the weights they are a header; else a warning says where they are."""
    (tmp_path / "scored").write_text("protein1 protein2 combined_score\na b 2\nb c 1\n")
    assert dhsk.read_edges(tmp_path / "scored").nodes == ("a", "b", "c")
    (tmp_path / "bare").write_text("protein1 protein2\na b\nb c\n")
    with pytest.warns(
        dhsk.InputWarning, match="line 1 of .* protein1 and protein2 are in no other"
    ):
        assert len(dhsk.read_edges(tmp_path / "bare").nodes or ()) == 5


def test_edges_without_weights_and_ids_that_are_numbers(tmp_path: Path) -> None:
    """Weights of 1; numbers ascend as numbers; a loop stands on the diagonal."""
    (tmp_path / "edges").write_text("source\ttarget\n10\t9\n9\t100\n9\t9\n")
    adjacency, nodes = dhsk.read_edges(tmp_path / "edges")
    assert nodes == ("9", "10", "100")
    assert adjacency.toarray().tolist() == [[1, 1, 1], [1, 0, 0], [1, 0, 0]]


WRONG = {
    "": "has no edges",
    "a,b,2\na,c\n": "line 2 .* has 2 columns, or an empty one, and the first line 3",
    "a,b,2\na,,1\n": "line 2 .* or an empty one",
    "a,b,c,d\n": "line 1 of .* has 4 columns: an edge list has two nodes",
    "a,b,2\nb,c,x\n": "line 2 of .*: the weight 'x' is not a finite number",
    "a,b,x\nb,c,1\n": "line 1 of .*: the weight 'x' is not a finite number",
    "a,b,2\nb,c,nan\n": "line 2 of .*: the weight 'nan'",
    "a,b,2\nb,a,3\n": "line 2 of .*: the edge of b and a has weight 3, but 2 in line 1",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_lists_are_refused_by_line(text: str, tmp_path: Path) -> None:
    """Whatever is no edge."""
    (tmp_path / "edges").write_text(text)
    with pytest.raises(dhsk.InputError, match=WRONG[text]):
        dhsk.read_edges(tmp_path / "edges")


def test_nodes_of_any_number_of_digits_are_in_order(tmp_path: Path) -> None:
    """Python converts 4,300 digits at most."""
    (tmp_path / "e.txt").write_text(f"{'9' * 5000} 10\n10 9\n09 9\n")
    assert dhsk.read_edges(tmp_path / "e.txt").nodes == ("09", "9", "10", "9" * 5000)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """Also by the function that reads it on the way."""
    with pytest.raises(dhsk.InputError, match=r"there is no file .*none\.tsv"):
        dhsk.graph_gram(tmp_path / "none.tsv", beta=0.1)


def test_marks_of_the_encoding_and_compression_are_no_part_of_it(tmp_path: Path) -> None:
    """As in files of samples; a damaged file is said to be so."""
    marked = codecs.BOM_UTF8 + b"source,target\r\na,b\r\nb,c\r\n"
    (tmp_path / "edges.csv").write_bytes(marked)
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(marked))
    for name in ("edges.csv", "edges.csv.gz"):
        assert dhsk.read_edges(tmp_path / name).nodes == ("a", "b", "c")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(marked)[:-9])
    with pytest.raises(dhsk.InputError, match="is it complete"):
        dhsk.read_edges(tmp_path / "cut.csv.gz")
    with pytest.raises(dhsk.InputError, match="is a folder"):
        dhsk.read_edges(tmp_path)


def test_a_matrix_may_come_with_ids() -> None:
    """One for each node, in any sequence."""
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert dhsk.graph_gram((path, [7, 8, 9]), beta=0.1).feature_names == ("7", "8", "9")
    for wrong, said in ((["a", "b"], "2 ids, 2 of them"), (["a", "b", "a"], "3 ids, 2 of them")):
        with pytest.raises(dhsk.InputError, match=said):
            dhsk.graph_gram((path, wrong), beta=0.1)


def test_a_data_frame_has_ids() -> None:
    """Those of its rows, its columns or both; others than these are refused by what they are."""
    path, ids = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), ["u", "v", "w"]
    for named in ({"index": ids, "columns": ids}, {"index": ids}, {"columns": ids}):
        assert dhsk.graph_gram(pd.DataFrame(path, **named), beta=0.1).feature_names == tuple(ids)
    assert dhsk.graph_gram(pd.DataFrame(path), beta=0.1).feature_names is None
    frame = pd.DataFrame(path, index=ids, columns=ids)
    with pytest.raises(dhsk.InputError, match=r"another order .* give S.loc\[S.columns\]"):
        dhsk.graph_gram(frame.loc[["v", "u", "w"]], beta=0.1)
    with pytest.raises(dhsk.InputError, match="named otherwise"):
        dhsk.graph_gram(pd.DataFrame(path, index=ids, columns=list("abc")), beta=0.1)
    with pytest.raises(dhsk.InputError, match="must be a square matrix"):
        dhsk.graph_gram(frame.iloc[:2], beta=0.1)


def test_node_ids_are_kept(tmp_path: Path) -> None:
    """In the store, in the order of the rows."""
    (tmp_path / "edges.tsv").write_text(LISTS["tabs"])
    given = tmp_path / "edges.tsv"
    dhsk.graph_gram(given, beta=0.1, laplacian=True, store=tmp_path / "g")
    assert dhsk.open_gram(tmp_path / "g").feature_names == ("a", "b", "c")
    again = dhsk.graph_gram(dhsk.read_edges(given), beta=0.1, laplacian=True)
    assert again.feature_names == ("a", "b", "c")


def test_the_negative_laplacian_is_that_of_scipy() -> None:
    """With row sums of 0; loops do not count, negative weights are refused."""
    A = np.array(ADJACENCY, dtype=float)
    found = dhsk.negative_laplacian(A)
    assert (found.toarray() == -laplacian(A)).all()
    assert (found.sum(axis=1) == 0).all()
    for loops in (np.eye(3), -np.eye(3)):
        assert (dhsk.negative_laplacian(A + loops).toarray() == found.toarray()).all()
    with pytest.raises(dhsk.InputError, match=r"nodes 0 and 1 .* is -2"):
        dhsk.negative_laplacian(-A)
