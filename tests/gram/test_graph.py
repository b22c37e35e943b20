"""Kernels of graph nodes: values, certificates, stores, and classifiers on them."""

import html
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import expm
from sklearn.svm import SVC

import dhsk
from dhsk.gram.graph_functions import WIDTH
from dhsk.gram.storage.store import GramStore
from dhsk.kernels import NodeKernel
from dhsk.progress import Progress

TEXTBOOK = np.array(
    [[0, 0, 1, 1, 0], [0, 0, 1, 0, 1], [1, 1, 0, 1, 0], [1, 0, 1, 0, 1], [0, 1, 0, 1, 0]]
)
DIFFUSION = """.70 .01 .14 .14 .01  .01 .70 .13 .03 .14  .14 .13 .59 .13 .03
    .14 .03 .13 .59 .13  .01 .14 .03 .13 .70"""
VON_NEUMANN = """.75 .02 .11 .11 .02  .02 .74 .10 .03 .11  .11 .10 .66 .10 .03
    .11 .03 .10 .66 .10  .02 .11 .03 .10 .74"""
TOL = 1e-12  # of the issue, as a share of the kernel's largest eigenvalue


def random_graph(n: int, seed: int, degree: float = 6.0) -> Any:
    """Symmetric weights of both signs between random nodes, and on some nodes themselves."""
    rng = np.random.default_rng(seed)
    A = sparse.random_array((n, n), density=degree / 2 / n, rng=rng)
    A.data -= 0.3
    return sparse.csr_array(A + A.T)


def positive_graph(n: int, seed: int) -> Any:
    """Symmetric weights above 0."""
    return sparse.csr_array(abs(random_graph(n, seed)))


def two_communities(n: int = 60, seed: int = 0) -> tuple[Any, NDArray[Any]]:
    """Adjacency of two groups of nodes with more edges inside them, and the groups."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    chance = np.where(labels[:, None] == labels, 0.3, 0.03)
    edges = np.triu(rng.random((n, n)) < chance, 1)
    return sparse.csr_array((edges | edges.T).astype(float)), labels


def largest(K: NDArray[Any]) -> float:
    """Largest absolute eigenvalue."""
    return float(np.abs(np.linalg.eigvalsh(K)).max())


@pytest.mark.parametrize(
    ("kind", "printed"), [("exponential", DIFFUSION), ("von_neumann", VON_NEUMANN)]
)
def test_the_textbooks_example(kind: Any, printed: str) -> None:
    """Zaki & Meira, section 5.4.2: five nodes, beta = 0.2, to the printed digits."""
    G = dhsk.graph_gram(TEXTBOOK, kind, beta=0.2, laplacian=True)
    expected = np.array(printed.split(), dtype=float).reshape(5, 5)
    assert np.abs(G[:, :] - expected).max() <= 0.005 + 1e-9
    assert G.shape == (5, 5)
    assert G.symmetric


@pytest.mark.parametrize("beta", [-1.5, -0.1, 0.0, 0.2, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_tiles_are_those_of_scipys_exponential(beta: float, seed: int) -> None:
    """On random graphs, and their Laplacians, to 1e-12 of the largest eigenvalue."""
    for S in (random_graph(97, seed), dhsk.negative_laplacian(positive_graph(97, seed))):
        K = dhsk.graph_gram(S, "exponential", beta=beta, tile=40)[:, :]
        expected = expm(beta * S.toarray())
        assert np.abs(K - expected).max() <= TOL * largest(expected)
        assert (K == K.T).all()


@pytest.mark.slow
def test_a_larger_graph_goes_by_the_lanczos_method() -> None:
    """Of more than a thousand nodes, with a hub, whose circle is far from the eigenvalues."""
    S = positive_graph(1100, 3).tolil()
    S[0, 1:] = 1.0
    S[1:, 0] = 1.0
    S = sparse.csr_array(S)
    K = dhsk.graph_gram(S, "exponential", beta=0.5)[:, :]
    values, vectors = np.linalg.eigh(S.toarray())  # scipy's expm is off by 2e-12 here
    expected = (vectors * np.exp(0.5 * values)) @ vectors.T
    assert np.abs(K - expected).max() <= TOL * np.exp(0.5 * values[-1])


def test_the_lanczos_method_counts_its_products() -> None:
    """For both ends, each as some of at most so many; a store of the same bits without."""
    S = random_graph(1200, 5)
    seen: list[Progress] = []
    told = dhsk.graph_gram(S, "exponential", beta=0.1, progress=seen.append)
    products = [event for event in seen if event.stage == "products"]
    for which in ("lowest", "highest"):
        one = [event for event in products if event.detail == f"{which} eigenvalue of S"]
        assert [event.done for event in one] == sorted(event.done for event in one)
        assert all(event.done <= event.total for event in one)
        assert one[0].done == 0
        assert one[-1].done == one[-1].total >= 64
        assert len(one) > 2
    assert seen[-1].stage == "tiles"
    silent = dhsk.graph_gram(S, "exponential", beta=0.1)
    assert silent.header.graph == told.header.graph


@pytest.mark.parametrize("share", [-0.99, 0.0, 0.5, 0.999])
def test_von_neumann_is_the_inverse(share: float) -> None:
    """Also near the spectral radius, to 1e-10 of the largest eigenvalue."""
    S = random_graph(90, 5)
    beta = share / largest(S.toarray())
    K = dhsk.graph_gram(S, "von_neumann", beta=beta, tile=64)[:, :]
    expected = np.linalg.inv(np.eye(90) - beta * S.toarray())
    assert np.abs(K - expected).max() <= 1e-10 * largest(expected)


def test_powers() -> None:
    """S, and products of it."""
    S = random_graph(70, 2)
    for power in (1, 2, 5):
        K = dhsk.graph_gram(S, "power", power=power, tile=33)[:, :]
        expected = np.linalg.matrix_power(S.toarray(), power)
        assert np.abs(K - expected).max() <= TOL * largest(expected)


@pytest.mark.parametrize("n", [1, 2, WIDTH, WIDTH + 1])
def test_few_nodes_and_no_edges(n: int) -> None:
    """The identity, scaled, for matrices without entries and of a diagonal."""
    for S, value in ((np.zeros((n, n)), 0.0), (3.0 * np.eye(n), 3.0)):
        given = sparse.csr_array(S)
        diffusion = dhsk.graph_gram(given, "exponential", beta=0.1)[:, :]
        assert np.allclose(diffusion, np.exp(0.1 * value) * np.eye(n), rtol=1e-14, atol=0)
        inverse = dhsk.graph_gram(given, "von_neumann", beta=0.1)[:, :]
        assert np.allclose(inverse, np.eye(n) / (1 - 0.1 * value), rtol=1e-14, atol=0)


# Refusals


@pytest.mark.slow
def test_beta_must_be_below_the_inverse_of_the_radius() -> None:
    """On small graphs and on large ones, with the numbers."""
    for S in (TEXTBOOK, positive_graph(1500, 1)):
        dense = S if isinstance(S, np.ndarray) else S.toarray()
        radius = largest(dense)
        for factor in (1.0, 1.001, -3.0):
            with pytest.raises(dhsk.InputError, match=r"\|beta\| must be below 1/rho") as error:
                dhsk.graph_gram(S, "von_neumann", beta=factor / radius)
            assert f"1/{radius:.6g} = {1 / radius:.6g}" in str(error.value)
        assert dhsk.graph_gram(S, "von_neumann", beta=0.9 / radius).shape == dense.shape


def broken(value: float) -> NDArray[Any]:
    """The textbook's graph with another entry at (1, 2)."""
    S = TEXTBOOK.astype(float)
    S[1, 2] = value
    return S


REFUSALS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "asymmetric": (broken(2.0), {}, "not symmetric: it is 2 at row 1, column 2 .* and 1 at row 2"),
    "NaN": (broken(np.nan), {}, "S has the value nan at row 1, column 2"),
    "rectangular": (np.ones((2, 3)), {}, r"square matrix of nodes, but its shape is \(2, 3\)"),
    "empty": (np.ones((0, 0)), {}, "square matrix of nodes"),
    "text": (np.array([["a"]]), {}, "S must hold real numbers"),
    "kind": (TEXTBOOK, {"kind": "heat"}, "kind must be 'power', 'exponential' or 'von_neumann'"),
    "no beta": (TEXTBOOK, {"beta": None}, "needs beta"),
    "both": (TEXTBOOK, {"power": 2}, "has no power"),
    "power": (TEXTBOOK, {"kind": "power", "beta": None, "power": 1.5}, "power must be a whole"),
    "infinite": (TEXTBOOK, {"beta": np.inf}, "beta must be a finite number"),
    "overflow": (TEXTBOOK, {"beta": 1e4}, "may be e.* which overflows float64: take a smaller"),
    "float32": (TEXTBOOK, {"beta": 50.0, "dtype": "float32"}, "overflows float32"),
    "large power": (TEXTBOOK * 1e9, {"kind": "power", "beta": None, "power": 40}, "overflows"),
    "dtype": (TEXTBOOK, {"dtype": "int8"}, "dtype must be float32 or float64"),
    "tile": (TEXTBOOK, {"tile": 0}, "tile must be a whole number"),
    "negative": (broken(-3.0) + broken(-3.0).T, {"laplacian": True}, r"nodes 1 and 2 .* is -2"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_used_is_refused(name: str) -> None:
    """With the first entry, or the parameter."""
    S, given, said = REFUSALS[name]
    with pytest.raises(dhsk.InputError, match=said):
        dhsk.graph_gram(S, **{"kind": "exponential", "beta": 0.2, **given})


def test_too_little_memory_is_refused_before_any_work(tmp_path: Path) -> None:
    """With the numbers; no store is begun."""
    with pytest.raises(dhsk.BudgetError, match="a graph's matrix in tiles of"):
        dhsk.graph_gram(TEXTBOOK, beta=0.2, store=tmp_path / "g", memory="50MB")
    assert not (tmp_path / "g").exists()


def test_an_occupied_folder_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the spectrum, which takes a while on large graphs."""
    (tmp_path / "thesis.txt").touch()
    monkeypatch.delattr("dhsk.gram.graph.spectrum_of")
    with pytest.raises(dhsk.errors.DhskError, match=re.escape(str(tmp_path))):
        dhsk.graph_gram(TEXTBOOK, beta=0.2, store=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_rounding_makes_no_asymmetry() -> None:
    """A normalised Laplacian that is symmetric up to rounding is taken as its mean."""
    S = random_graph(40, 4)
    off = S.copy()
    off.data = off.data * (1 + 1e-15 * np.arange(off.nnz) / off.nnz)
    assert (off != off.T).nnz
    K = dhsk.graph_gram(off, beta=0.2)[:, :]
    assert np.allclose(K, dhsk.graph_gram(S, beta=0.2)[:, :], atol=1e-13)


# Definiteness


def test_odd_powers_are_flagged_unless_the_similarity_is_semidefinite(tmp_path: Path) -> None:
    """In the kernel, in the store, and after it is opened again."""
    A, labels = two_communities()
    laplacian = -dhsk.negative_laplacian(A)
    squares = sparse.csr_array(A @ A)
    for S, power, said in [
        (A, 1, False), (A, 2, True), (A, 3, False), (-laplacian, 3, False),
        (laplacian, 3, True), (squares, 1, True),
    ]:  # fmt: skip
        G = dhsk.graph_gram(S, "power", power=power)
        assert G.kernel.positive_semidefinite is said
        assert G.header.indefinite == (None if said else (0,))
        smallest = np.linalg.eigvalsh(G[:, :])[0]
        assert (smallest >= -1e-12 * largest(G[:, :])) is np.bool_(said)
    dhsk.graph_gram(A, "power", power=3, store=tmp_path / "odd.gram")
    G = dhsk.open_gram(tmp_path / "odd.gram")
    with pytest.raises(dhsk.InputError, match="graph power=3 kernel is not positive semi-definite"):
        dhsk.cross_validate(G, labels, C=1.0)
    assert (
        dhsk.cross_validate(G, labels, C=1.0, fit=dhsk.Fitting(indefinite="allow")).best_score_
        > 0.5
    )


# Stores


def test_a_store_says_that_it_is_of_a_graph(tmp_path: Path) -> None:
    """Its rows are no samples."""
    dhsk.graph_gram(TEXTBOOK, beta=0.2, store=tmp_path / "g")
    described = json.loads((tmp_path / "g" / "zarr.json").read_text())["attributes"]["dhsk"]
    assert described["graph"]["laplacian"] == 0.0  # it was given
    assert described["kernels"][0]["name"] == "graph"
    G = dhsk.open_gram(tmp_path / "g")
    assert G.kernel == NodeKernel("exponential", 0.2)
    assert G.verify() == 1
    assert (G[:, :] == dhsk.graph_gram(TEXTBOOK, beta=0.2)[:, :]).all()


def test_threads_workers_and_restarts_give_the_same_bits(tmp_path: Path) -> None:
    """Of all tiles, also where some were made again; the plan's tile does not matter to values."""
    S = positive_graph(150, 7)
    given: dict[str, Any] = {"kind": "exponential", "beta": 0.3, "tile": 40}
    dhsk.graph_gram(S, store=tmp_path / "threads", **given)
    with Client(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0",
        set_as_default=False,
    ) as client:  # fmt: skip
        dhsk.graph_gram(S, store=tmp_path / "workers", client=client, **given)
    dhsk.graph_gram(S, store=tmp_path / "again", **given)
    for place in ((0, 0), (1, 2), (3, 3)):
        (tmp_path / "again" / "gram" / "c").joinpath(*map(str, place)).unlink()
    with pytest.raises(dhsk.IncompleteStoreError):
        dhsk.open_gram(tmp_path / "again")
    dhsk.graph_gram(S, store=tmp_path / "again", **given)
    expected = files_of(tmp_path / "threads")
    assert len(expected) > 10
    assert files_of(tmp_path / "workers") == expected
    assert files_of(tmp_path / "again") == expected
    other = dhsk.graph_gram(S, **{**given, "tile": 67})[:, :]
    assert (other == dhsk.open_gram(tmp_path / "threads")[:, :]).all()


def files_of(folder: Path) -> dict[str, bytes]:
    """All files of a store."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*") if file.is_file()
    }  # fmt: skip


def test_another_graph_or_kernel_is_refused(tmp_path: Path) -> None:
    """And the store stays."""
    dhsk.graph_gram(TEXTBOOK, beta=0.2, store=tmp_path / "g")
    with pytest.raises(dhsk.StoreMismatchError, match="made with other kernel"):
        dhsk.graph_gram(TEXTBOOK, beta=0.3, store=tmp_path / "g")
    with pytest.raises(dhsk.StoreMismatchError, match="made with other samples"):
        dhsk.graph_gram(2 * TEXTBOOK, beta=0.2, store=tmp_path / "g")
    with pytest.raises(dhsk.StoreMismatchError, match="made with other"):
        dhsk.compute_gram(TEXTBOOK, "linear", store=tmp_path / "g")
    assert dhsk.open_gram(tmp_path / "g").verify() == 1


def test_damage_is_found_and_repaired(tmp_path: Path) -> None:
    """By the checksums, from the same graph."""
    S = positive_graph(100, 8)
    G = dhsk.graph_gram(S, beta=0.3, tile=30, store=tmp_path / "g")
    whole = G[:, :]
    chunk = tmp_path / "g" / "gram" / "c" / "1" / "2"
    content = bytearray(chunk.read_bytes())
    content[100] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(dhsk.CorruptTileError, match=r"\(1, 2\)"):
        dhsk.open_gram(tmp_path / "g").verify()
    with pytest.raises(dhsk.StoreMismatchError, match="made from another graph"):
        dhsk.repair_gram(tmp_path / "g", 2 * S)
    assert dhsk.repair_gram(tmp_path / "g", S) == [(1, 2)]
    again = dhsk.open_gram(tmp_path / "g")
    assert again.verify() == 10
    assert (again[:, :] == whole).all()


def test_a_graph_that_is_lost_in_the_store_is_written_again(tmp_path: Path) -> None:
    """Where tiles are missing too; the adjacency will do for its Laplacian."""
    S = positive_graph(100, 8)
    G = dhsk.graph_gram(S, beta=0.3, laplacian=True, tile=30, store=tmp_path / "g")
    whole = G[:, :]
    expected = files_of(tmp_path / "g")
    (tmp_path / "g" / "rows" / "data" / "c" / "0").unlink()
    (tmp_path / "g" / "gram" / "c" / "0" / "3").unlink()
    assert dhsk.repair_gram(tmp_path / "g", S) == [(0, 3)]
    assert (dhsk.open_gram(tmp_path / "g")[:, :] == whole).all()
    assert files_of(tmp_path / "g") == expected
    with pytest.raises(dhsk.InputError, match="give the graph alone"):
        dhsk.repair_gram(tmp_path / "g", S, S)


def test_there_are_no_samples(tmp_path: Path) -> None:
    """Whatever asks for them is refused in words."""
    A, labels = two_communities()
    G = dhsk.graph_gram(A, beta=0.3, laplacian=True, store=tmp_path / "g")
    with pytest.raises(dhsk.InputError, match="graph nodes, which have no samples"):
        G.samples([0, 1])
    with pytest.raises(dhsk.InputError, match=r"kernels of graph nodes are computed .*graph_gram"):
        G.with_kernel("heat")
    with pytest.raises(dhsk.InputError, match=r"one of graph nodes, not of samples"):
        dhsk.compute_gram(TEXTBOOK, G.kernel)
    with pytest.raises(dhsk.InputError, match="kernels of graph nodes are computed"):
        dhsk.compute_gram(TEXTBOOK, "linear").with_kernel(G.kernel)
    with pytest.raises(dhsk.InputError, match="takes no samples"):
        G.kernel(TEXTBOOK)
    with pytest.raises(dhsk.InputError, match="no samples that a model could keep"):
        dhsk.cross_validate(G, labels, refit=True)
    with pytest.raises(dhsk.InputError, match="kernels of graph nodes"):
        dhsk.cross_validate(G, labels, time_scale=1.0)
    with pytest.raises(dhsk.InputError, match="graph nodes"):
        dhsk.HeatSVC(kernel=G.kernel).fit(TEXTBOOK, [0, 0, 1, 1, 1])
    assert "picture" not in G._repr_html_()


@pytest.mark.slow
def test_cross_validation_is_that_of_scikit_learn(tmp_path: Path) -> None:
    """On the matrix in memory, fold by fold; the report is written."""
    A, labels = two_communities()
    G = dhsk.graph_gram(A, beta=0.3, laplacian=True, store=tmp_path / "g", tile=25)
    folds = [(np.delete(np.arange(60), np.arange(f, 60, 4)), np.arange(f, 60, 4)) for f in range(4)]
    found = dhsk.cross_validate(dhsk.open_gram(tmp_path / "g"), labels, C=[1.0, 10.0], cv=folds)
    K = G[:, :]
    for row in found.results_:
        train, test = folds[row["fold"]]
        own = SVC(C=row["C"], kernel="precomputed").fit(K[np.ix_(train, train)], labels[train])
        assert own.score(K[np.ix_(test, train)], labels[test]) == row["score"]
    assert found.best_score_ > 0.8
    found.report(tmp_path / "report.html")
    page = html.unescape((tmp_path / "report.html").read_text())
    (code,) = re.findall("<code>(import dhsk.*?)</code>", page, flags=re.S)
    names: dict[str, Any] = {"y": labels, "cv": folds}
    exec(code, names)
    assert names["result"].best_score_ == found.best_score_


def test_float32_stores_are_rounded(tmp_path: Path) -> None:
    """All sums are in float64."""
    K = dhsk.graph_gram(TEXTBOOK, beta=0.2)[:, :]
    G = dhsk.graph_gram(TEXTBOOK, beta=0.2, dtype="float32", store=tmp_path / "g")
    assert (G[:, :] == K.astype(np.float32)).all()
    assert np.allclose(G @ np.ones(5), K.sum(axis=1), rtol=1e-6)


def test_the_header_keeps_the_interval(tmp_path: Path) -> None:
    """So that a run on another machine goes on with the same series."""
    dhsk.graph_gram(positive_graph(80, 1), beta=0.3, store=tmp_path / "g")
    graph = GramStore.open(tmp_path / "g").header.graph
    assert graph is not None
    assert graph["lowest"] < 0.0 < graph["highest"]


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_graph import to_be_killed
to_be_killed(Path(sys.argv[1]))
"""


def to_be_killed(store: Path) -> None:
    """Write a store of 55 tiles, a column of them every few hundredths of a second."""
    dhsk.graph_gram(positive_graph(900, 9), "exponential", beta=2.0, tile=90, store=store)


@pytest.mark.slow
def test_killed_at_random_it_resumes_to_the_same_bits(tmp_path: Path) -> None:
    """Wherever it was; the files are those of a run that nobody killed."""
    to_be_killed(tmp_path / "whole")
    expected = files_of(tmp_path / "whole")
    killed, wanted = tmp_path / "killed", int(np.random.default_rng().integers(1, 40))
    command = [sys.executable, "-c", KILLED, str(killed), str(Path(__file__).parent)]
    with subprocess.Popen(command) as process:
        while process.poll() is None and tiles_in(killed) < wanted:
            time.sleep(0.002)
        process.kill()
    left = tiles_in(killed)
    assert wanted <= left < 55
    to_be_killed(killed)
    assert files_of(killed) == expected, left


def tiles_in(store: Path) -> int:
    """Tiles that are in their places."""
    return len([file for file in store.glob("gram/c/*/*") if file.name.isdigit()])
