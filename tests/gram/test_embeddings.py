"""Diffusion maps, Mercer's and the empirical kernel map: closed forms and what defines them."""

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dhsk
from dhsk.solvers import eigenpairs

pytestmark = pytest.mark.threads

N, DIM = 60, 12
EPS = float(np.finfo(np.float64).eps)


def made(X: Any, kernel: Any = None, **options: Any) -> dhsk.GramMatrix:
    """A matrix of small tiles."""
    return dhsk.compute_gram(X, kernel or dhsk.HeatKernel(X.shape[1], 0.1), tile=16, **options)


def distances2(A: Any) -> Any:
    """Squared distances of all rows."""
    return ((A[:, None] - A[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("steps", [0, 1, 2.5])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_a_circle_is_mapped_to_circles(steps: float, alpha: float) -> None:
    """Points at equal angles: K is circulant, its eigenvectors are waves.

    The eigenvalues of P are the Fourier coefficients of a row over its sum, each twice, and each
    pair of waves of norm 1 gives a circle of radius sqrt(2) times l^steps.
    """
    angles = 2 * np.pi * np.arange(N) / N
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    kernel = dhsk.HeatKernel(2, 0.2)
    found = dhsk.diffusion_map(made(X, kernel, sphere_map="identity"), 4, steps, alpha)
    row = kernel.of_cosine(np.cos(angles))
    waves = np.fft.rfft(row).real / row.sum()
    for number in (1, 2):
        own = found[:, 2 * number - 2 : 2 * number]
        radii = np.linalg.norm(own, axis=1)
        assert radii == pytest.approx(np.sqrt(2) * waves[number] ** steps, rel=1e-10)
        turns = np.unwrap(np.arctan2(own[:, 1], own[:, 0]))
        assert np.abs(np.diff(turns)) == pytest.approx(2 * np.pi * number / N, rel=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_distances_are_diffusion_distances(counts: Any, alpha: float) -> None:
    """With all coordinates: chi-squared distances of the rows of P^2, as they are defined."""
    X = counts(N, DIM)
    G = made(X)
    K = G[:, :]
    q = K.sum(axis=1) ** alpha
    K = K / np.outer(q, q)
    d = K.sum(axis=1)
    walks = np.linalg.matrix_power(K / d[:, None], 2)
    expected = distances2(walks / np.sqrt(d / d.sum()))
    found = distances2(dhsk.diffusion_map(G, N - 1, steps=2, alpha=alpha))
    assert np.abs(found - expected).max() <= 1e-10 * expected.max()


def test_parts_of_a_graph_are_told_apart() -> None:
    """No walk goes from a triangle to a square: 1 is a double eigenvalue of P."""
    S = np.zeros((7, 7))
    for a, b in ((0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (5, 6), (3, 6)):
        S[a, b] = S[b, a] = 1.0
    G = dhsk.graph_gram(S, beta=0.5, laplacian=True)
    found = dhsk.diffusion_map(G, 6, alpha=0.0)
    expected = distances2(np.sqrt(7) * G[:, :])  # the degrees are all 1
    assert np.abs(distances2(found) - expected).max() <= 1e-12
    assert np.abs(found.mean(axis=0)).max() <= 1e-12


def test_samples_without_neighbours_are_named() -> None:
    """Negative values can make a row sum 0 or less."""
    G = made(
        np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]),
        dhsk.CosineKernel(),
        sphere_map="projective",
    )
    with pytest.raises(dhsk.InputError, match=r"sample 0 \(counted from 0\) sum to 0, .* 2 of 3"):
        dhsk.diffusion_map(G, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 60}, "below the number of samples, 60, not 60"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 2, "steps": -1}, "steps must be at least 0"),
        ({"n_components": 2, "alpha": "one"}, "alpha"),
        ({"n_components": 2, "alpha": -1e308}, "must be positive and finite"),
    ],
)
def test_wrong_parameters_are_refused(counts: Any, options: Any, words: str) -> None:
    """In words."""
    with pytest.raises(dhsk.InputError, match=words):
        dhsk.diffusion_map(made(counts(N, DIM)), **options)


def test_mercers_map_has_the_kernel_values_as_inner_products(counts: Any) -> None:
    """All of them with all components; the best approximation of a rank with fewer."""
    G = made(counts(N, DIM))
    K = G[:, :]
    whole = dhsk.mercer_map(G, N)
    assert np.abs(whole @ whole.T - K).max() <= N * EPS
    leading = dhsk.mercer_map(G, 5)
    values = np.linalg.eigvalsh(K)[::-1]
    assert np.linalg.norm(K - leading @ leading.T, 2) == pytest.approx(values[5], rel=1e-10)


def test_the_empirical_map_has_the_kernel_values_as_inner_products(counts: Any) -> None:
    """K^(-1/2) K is symmetric, and a sample of the fit that comes again has the same image."""
    G = made(counts(N, DIM))
    K = G[:, :]
    images = dhsk.empirical_map(G)
    assert np.abs(images @ images.T - K).max() <= N * EPS
    assert np.abs(images - images.T).max() <= N * EPS
    condition = np.linalg.cond(K)
    assert np.abs(dhsk.empirical_map(G, K[:7]) - images[:7]).max() <= condition * N * EPS


def test_the_empirical_map_of_a_singular_matrix() -> None:
    """Linear kernel of more samples than features: the pseudo-inverse keeps all that there is."""
    X = np.random.default_rng(0).standard_normal((30, 3))
    new = np.random.default_rng(1).standard_normal((4, 3))
    G = made(X, dhsk.LinearKernel())
    images, others = dhsk.empirical_map(G), dhsk.empirical_map(G, new @ X.T)
    assert np.abs(others @ others.T - new @ new.T).max() <= 1e-12
    assert np.abs(others @ images.T - new @ X.T).max() <= 1e-12


@pytest.mark.parametrize(("dtype", "small"), [("float64", 1e-4), ("float32", 1e-2)])
def test_the_empirical_map_has_the_rank_of_the_features(dtype: Any, small: float) -> None:
    """Rounding of the entries adds no coordinate, and features of little spread are kept."""
    X = np.random.default_rng(0).standard_normal((30, 3)) * [1.0, 1.0, small]
    images = dhsk.empirical_map(made(X, dhsk.LinearKernel(), dtype=dtype))
    assert np.linalg.matrix_rank(images, tol=1e-10) == 3


def test_the_empirical_map_refuses_what_it_cannot_do(counts: Any) -> None:
    """Other shapes, and matrices beyond the memory."""
    X = counts(N, DIM)
    G = made(X)
    with pytest.raises(dhsk.InputError, match="values must have 60 columns, but they have 5"):
        dhsk.empirical_map(G, np.ones((2, 5)))
    with pytest.raises(dhsk.InputError, match="needs a symmetric matrix"):
        dhsk.empirical_map(made(X, Y=X[:5]))
    with pytest.raises(dhsk.BudgetError, match="or use mercer_map"):
        dhsk.empirical_map(G, memory="1MB")


def test_maps_say_what_is_lacking_and_resume(
    counts: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As eigh does."""
    monkeypatch.setattr(eigenpairs, "SMALL", 20)
    G = made(counts(100, DIM))
    with pytest.warns(ConvergenceWarning, match="1 of 1 eigenpairs did not converge"):
        dhsk.mercer_map(G, 1, tol=1e-30)
    first = dhsk.diffusion_map(G, 1, journal=tmp_path)
    passes = len(list(tmp_path.iterdir()))
    assert passes > 3
    assert dhsk.diffusion_map(G, 1, journal=tmp_path).tobytes() == first.tobytes()
    assert len(list(tmp_path.iterdir())) == passes


@pytest.mark.parametrize("name", ["diffusion_map", "mercer_map", "empirical_map"])
def test_arrays_are_refused(name: str) -> None:
    """With what is needed."""
    options = {} if name == "empirical_map" else {"n_components": 1}
    with pytest.raises(dhsk.InputError, match="G must be a Gram matrix, as of compute_gram, but"):
        getattr(dhsk, name)(np.eye(3), **options)
