"""`dhsk gram --graph` and what the other commands say of its stores."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk

EDGES = "".join(f"{i}\t{(i + step) % 12}\n" for i in range(12) for step in (1, 2))


@pytest.fixture
def gram(run: Any, monkeypatch: Any) -> Any:
    """Run `dhsk gram` on an edge list."""
    Path("edges.tsv").write_text(EDGES)
    given = ("gram", "edges.tsv", "--out", "g")
    return lambda *words: run(*given, *words)


@pytest.mark.slow
def test_an_edge_list_becomes_a_store(gram: Any, run: Any, cv: Any) -> None:
    """That of `graph_gram`; info, verify and cv take it, repair takes the edges."""
    code, said, error = gram("--graph", "exponential", "--beta", 0.2, "--laplacian")
    assert code == 0, error
    assert "12 x 12 float64 of graph exponential beta=0.2" in said
    assert "in the order 0, 1, 2, 3, 4, ..., as labels must be" in said
    own = dhsk.graph_gram("edges.tsv", "exponential", beta=0.2, laplacian=True)
    assert (dhsk.open_gram("g")[:, :] == own[:, :]).all()
    words = " ".join(run("info", "g")[1].split())
    assert "graph 12 nodes, negative Laplacian of 60 entries, hash" in words
    code, _, error = gram("--graph", "exponential", "--beta", 0.3, "--verbose")
    assert code == 2
    assert "matrix of the graph (negative Laplacian, now similarity), kernel (graph" in error
    assert "(graph exponential 0.2, now graph exponential 0.3)" in error
    assert "nodes 0, 1, 2, 3, 4, ... (12)" in words
    assert json.loads(run("info", "--json", "g")[1])["graph"]["highest"] >= 0.0
    Path("y.txt").write_text("a\n" * 6 + "b\n" * 6)
    code, _, error = cv("g", "--labels", "y.txt", "--folds", 3, "--C", 10)
    assert code == 0, error
    Path("g/gram/c/0/0").unlink()
    assert run("verify", "g")[0] == 4
    assert run("verify", "g", "--repair", "edges.tsv")[0] == 0
    assert run("verify", "g")[0] == 0


@pytest.mark.slow
def test_labels_of_nodes_are_taken_by_their_names(gram: Any, run: Any) -> None:
    """Whatever the order of their table; a store of samples has no names, which is said."""
    assert gram("--graph", "exponential", "--beta", 0.2, "--laplacian")[0] == 0
    words = ("--folds", 3, "--C", 10, "--out")
    rows = [f"{k},{'ab'[k > 5]}" for k in range(12)]
    for name, order in (("rows", range(12)), ("shuffled", (7, 2, 11, 0, 5, 9, 1, 3, 8, 10, 4, 6))):
        text = "\n".join(["node,label", *(rows[k] for k in order)]) + "\n"
        Path(f"{name}.csv").write_text(text)
        code, _, error = run("cv", "g", "--labels", f"{name}.csv:label", *words, name)
        assert code == 0, error
        by_name = "dhsk: rows of shuffled.csv are taken by column node" in error
        assert by_name == (name == "shuffled")
        assert "row by row" not in error
    one, other = (json.loads(Path(f"{n}/results.json").read_text()) for n in ("rows", "shuffled"))
    assert [row["gap"] for row in one["rows"]] == [row["gap"] for row in other["rows"]]
    np.save("x.npy", np.arange(24.0).reshape(12, 2) + 1)
    assert run("gram", "x.npy", "--out", "s")[0] == 0
    code, _, error = run("cv", "s", "--labels", "shuffled.csv:label", *words, "samples")
    assert code == 0, error
    assert "dhsk: shuffled.csv is taken row by row: a store has no sample names" in error


@pytest.mark.slow
@pytest.mark.parametrize(("power", "option"), [(2, ""), (3, " --indefinite allow")])
def test_the_next_command_allows_what_it_needs(gram: Any, cv: Any, power: int, option: str) -> None:
    """SVMs refuse odd powers of a matrix that is not positive semi-definite."""
    code, said, error = gram("--graph", "power", "--power", power)
    assert code == 0, error
    assert f"dhsk cv g --labels LABELS --C 0.1,1,10{option} --out DIR" in said
    Path("y.txt").write_text("a\n" * 6 + "b\n" * 6)
    code, _, error = cv("g", "--labels", "y.txt", "--folds", 3, "--C", 1, *option.split())
    assert code == 0, error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--graph", "von_neumann", "--beta", 5], "|beta| must be below 1/rho(S)"),
        (["--graph", "exponential"], "needs beta"),
        (["--graph", "power", "--power", 2, "--sigma", 3], "--sigma is not for --graph"),
        (["--graph", "power", "--power", 2, "--part", "1/2"], "--part is not for --graph"),
        (["--beta", 2], "--beta is for --graph: give --graph too"),
    ],
)
def test_what_does_not_go_together_is_refused(gram: Any, words: list[Any], said: str) -> None:
    """In words, before a store is begun."""
    code, _, error = gram(*words)
    assert code == 2
    assert said in error
    assert not Path("g").exists()
