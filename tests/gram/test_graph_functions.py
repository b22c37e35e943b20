"""Functions of a graph are right or an error, and its interval holds all eigenvalues."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dhsk
from dhsk.errors import AccuracyError
from dhsk.gram import graph_spectrum
from dhsk.gram.graph_functions import NodeColumns, NodeSpectrum
from dhsk.gram.graph_spectrum import spectrum_of
from dhsk.kernels import NodeKernel

N, BETA = 60, 20.0

ROUNDING = 1e-12
"""Of eigenvalues by numpy of matrices of some hundred rows."""


def path(n: int) -> Any:
    """Adjacency of n nodes in a row."""
    return sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n), format="csr")


@pytest.mark.parametrize("short", [0.0, 1e-9, 1e-3, 1e-2, 0.1, 0.5])
def test_an_interval_without_all_eigenvalues_is_harmless_or_an_error(short: float) -> None:
    """A series grows beyond its interval: no wrong value is given."""
    values, vectors = np.linalg.eigh(path(N).toarray())
    columns = NodeColumns(
        path(N),
        NodeKernel("exponential", BETA),
        NodeSpectrum(*(1 - short) * values[[0, -1]]),
    )
    found = np.empty((N, N))
    if short >= 1e-2:
        with pytest.raises(AccuracyError, match="an eigenvalue of S lies outside of"):
            columns.fill(slice(0, N), found)
        return
    columns.fill(slice(0, N), found)
    expected = (vectors * np.exp(BETA * values)) @ vectors.T
    assert np.abs(found - expected).max() <= 1e-12 * expected.max()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("beta", [1e100, -1e100, 1e308, 1e-320, 0.0, 0.5])
@pytest.mark.parametrize("factor", [0.0, 1.0, -5.0])
def test_multiples_of_the_identity(factor: float, beta: float) -> None:
    """Their kernels are multiples too, whatever beta; those that overflow are refused."""
    S = factor * np.eye(3)
    if factor * beta < 700:
        found = dhsk.graph_gram(S, "exponential", beta=beta)[:, :]
        np.testing.assert_array_equal(found, np.exp(factor * beta) * np.eye(3))
    else:
        with pytest.raises(dhsk.InputError, match="overflows"):
            dhsk.graph_gram(S, "exponential", beta=beta)
    if abs(factor * beta) < 1:
        found = dhsk.graph_gram(S, "von_neumann", beta=beta)[:, :]
        np.testing.assert_array_equal(found, np.eye(3) / (1 - factor * beta))
    else:
        with pytest.raises(dhsk.InputError, match="below 1/rho"):
            dhsk.graph_gram(S, "von_neumann", beta=beta)


def test_diffusion_for_very_long_is_refused() -> None:
    """Rather than a series of values that are no numbers."""
    with pytest.raises(AccuracyError, match="take a smaller"):
        dhsk.graph_gram(np.diag([1.0, 0.5]), "exponential", beta=-1e100)


def test_a_von_neumann_kernel_that_rounding_spoils_is_an_error() -> None:
    """Near the inverse of the spectral radius: residuals are measured, not believed."""
    radius = float(np.linalg.eigvalsh(path(N).toarray())[-1])
    with pytest.raises(AccuracyError, match=r"residual of .*, above 1e-10: \|beta\| is too near"):
        dhsk.graph_gram(path(N), "von_neumann", beta=(1 - 1e-6) / radius)


@pytest.mark.parametrize("name", ["random", "path"])
def test_a_rough_lanczos_method_still_bounds_all_eigenvalues(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By its residuals, but not beyond the circles, which are the better bound of a path."""
    monkeypatch.setattr(graph_spectrum, "SMALL", 100)
    monkeypatch.setattr(graph_spectrum, "TOLERANCES", (1e-2,))
    half = sparse.random_array((400, 400), density=0.02, rng=np.random.default_rng(0))
    S = path(400) if name == "path" else half + half.T
    values = np.linalg.eigvalsh(S.toarray())
    found, proven = spectrum_of(S, tight=True), graph_spectrum.circles(S)
    assert found.lowest <= values[0] + ROUNDING
    assert found.highest >= values[-1] - ROUNDING
    assert proven.lowest <= found.lowest < found.highest <= proven.highest


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, list])
def test_dense_similarities_are_those_of_sparse_ones(dtype: Any) -> None:
    """Of any real type, lists too."""
    dense = path(N).toarray()
    given = dense.tolist() if dtype is list else dense.astype(dtype)
    found, expected = (dhsk.graph_gram(S, beta=0.3)[:, :] for S in (given, path(N)))
    assert (found == expected).all()


def test_the_given_similarity_stays_as_it_is() -> None:
    """Zeros that it stores are left out of a copy."""
    given = path(N)
    given.data[0] = given.data[1] = 0.0  # both directions of the first edge
    before = given.nnz
    dhsk.graph_gram(given, beta=0.3)
    assert given.nnz == before


@pytest.mark.parametrize("n", [60, 1100])
@pytest.mark.parametrize("share", [-0.25, 0.0, 0.25])
def test_the_inverse_of_a_computed_radius_is_refused(n: int, share: float) -> None:
    """By the same error, however a processor rounds it, for few nodes and for many."""
    star = sparse.lil_array((n, n))
    star[0, 1:] = star[1:, [0]] = 1.0
    radius = np.sqrt(n - 1.0) * (1 + share * n * np.finfo(float).eps)
    with pytest.raises(dhsk.InputError, match=r"\|beta\| must be below 1/rho"):
        dhsk.graph_gram(star, "von_neumann", beta=1.0 / radius)
