"""Coordinates of samples from a Gram matrix: diffusion maps, Mercer's and the empirical map."""

import numpy as np

from dhsk.arrays import Floats
from dhsk.bars import Show
from dhsk.errors import InputError
from dhsk.execution.memory import MemoryNeed
from dhsk.execution.run import Run
from dhsk.gram.spectra import eigenpairs_of, warn_unless_converged
from dhsk.gram.tiled import TiledMatrix, checked_matrix
from dhsk.kernels.base import real_parameter, whole_parameter
from dhsk.objects.places import Place
from dhsk.progress import Progress
from dhsk.run_progress import passes_reported
from dhsk.solvers.eigenpairs import WHOLE_COPIES, Multiply


def diffusion_map(
    G: TiledMatrix,
    n_components: int,
    steps: float = 1,
    alpha: float = 1.0,
    *,
    tol: float = 1e-6,
    memory: int | str | None = None,
    journal: str | Place | None = None,
    progress: Show = None,
) -> Floats:
    """Diffusion map: coordinates whose distances are diffusion distances.

    With q the row sums of K, K / (q q')^alpha is divided by its row sums d to the transition matrix
    P of a random walk. Of its eigenvalues 1 >= l_1 >= ... and right eigenvectors psi, of norm 1
    weighted by d / sum(d), coordinate j of sample i is ``l_j**steps * psi_j(i)``; the constant
    psi_0 is left out. The squared distance of two samples is then the chi-squared distance of where
    two walks are that start there, after as many steps, up to the coordinates left out.

    Parameters
    ----------
    G
        Symmetric `GramMatrix` of a kernel without negative values, such as the heat kernel.
    n_components
        Number of coordinates.
    steps
        Number of steps of the walk, at least 0.
    alpha
        Exponent of the density by which the kernel is divided: 0 for the normalised graph
        Laplacian, 0.5 for Fokker-Planck, 1 for the Laplace-Beltrami operator, which does not depend
        on how densely the samples lie.
    tol, memory, journal, progress
        As for `GramMatrix.eigh`.

    Returns
    -------
    ndarray
        Coordinates, (N, n_components), the slowest first.

    Raises
    ------
    InputError
        The matrix is rectangular, or a row sum is not positive.

    Warns
    -----
    ConvergenceWarning
        Residuals exceed `tol`.

    References
    ----------
    .. [1] R. Coifman and S. Lafon, "Diffusion maps", Applied and Computational Harmonic Analysis 21
       (2006).

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(64, time_scale=0.4))
    >>> coordinates = dhsk.diffusion_map(G, 2)
    >>> coordinates.shape
    (1797, 2)
    """
    n, k = checked_matrix(G).shape[0], whole_parameter("n_components", n_components, 1)
    if k >= n:
        raise InputError(f"n_components must be below the number of samples, {n:,}, not {k:,}")
    real_parameter("steps", steps, 0)
    power = real_parameter("alpha", alpha)
    stationary = np.empty((n, 1))

    def operator(products: Multiply) -> Multiply:
        sums = checked_degrees(products(np.ones(n)))
        with np.errstate(over="ignore"):
            weights = checked_degrees(sums**-power)
        degrees = checked_degrees(weights * products(weights))
        scale = (weights / np.sqrt(degrees))[:, None]
        stationary[:, 0] = np.sqrt(degrees / degrees.sum())
        # Of the known pair the eigenvalue becomes 2: where 1 is a multiple eigenvalue, as of a
        # graph in parts, psi_0 would be mixed with the others.
        return lambda V: scale * products(scale * V) + stationary * (stationary.T @ V)

    begun = Run.begun(progress, memory=memory, journal=journal, tiles=2, passes=10)
    with begun as (run, told), passes_reported(told):
        found = eigenpairs_of(G, k + 1, run, operator, tol=tol)
    warn_unless_converged(found)
    psi = found.vectors[:, 1:] / stationary
    coordinates: Floats = psi * np.maximum(found.values[1:], 0.0) ** steps
    return coordinates


def checked_degrees(degrees: Floats) -> Floats:
    """Row sums of a kernel; InputError unless all are positive and finite."""
    wrong = np.flatnonzero(~((degrees > 0) & np.isfinite(degrees)))
    if wrong.size:
        raise InputError(
            f"the kernel values of sample {wrong[0]} (counted from 0) sum to "
            f"{degrees[wrong[0]]:.3g}, which must be positive and finite, as for {wrong.size} of "
            f"{len(degrees)} samples: leave them out, or choose a kernel without negative values "
            "or a longer time"
        )
    return degrees


def mercer_map(
    G: TiledMatrix,
    n_components: int,
    *,
    tol: float = 1e-6,
    memory: int | str | None = None,
    journal: str | Place | None = None,
    progress: Show = None,
) -> Floats:
    """Mercer kernel map: eigenvectors times the square roots of their eigenvalues.

    Inner products of the coordinates of all N components are the kernel values; those of the
    leading ones are the best approximation of their rank. Of a centred view they are the scores of
    kernel principal component analysis.

    Parameters
    ----------
    G
        Symmetric `GramMatrix` or view.
    n_components
        Number of coordinates, at most N.
    tol, memory, journal, progress
        As for `GramMatrix.eigh`.

    Returns
    -------
    ndarray
        Coordinates, (N, n_components), by descending eigenvalue; 0 where that is not positive.

    Warns
    -----
    ConvergenceWarning
        Residuals exceed `tol`.

    References
    ----------
    .. [1] M. Zaki and W. Meira, "Data Mining and Analysis", Cambridge University Press (2014),
       section 5.1.2.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> X = np.array([[5.9, 3.0], [6.9, 3.1], [6.6, 2.9]])
    >>> G = dhsk.compute_gram(X, "linear")
    >>> coordinates = dhsk.mercer_map(G, 2)
    >>> np.allclose(coordinates @ coordinates.T, G[:, :])
    True
    """
    k = whole_parameter("n_components", n_components, 1)
    begun = Run.begun(progress, memory=memory, journal=journal, tiles=1, passes=10)
    with begun as (run, told), passes_reported(told):
        found = eigenpairs_of(checked_matrix(G), k, run, tol=tol)
    warn_unless_converged(found)
    coordinates: Floats = found.vectors * np.sqrt(np.maximum(found.values, 0.0))
    return coordinates


def empirical_map(
    G: TiledMatrix,
    values: Floats | None = None,
    *,
    memory: int | str | None = None,
    progress: Show = None,
) -> Floats:
    """Empirical kernel map: K^(-1/2) times the kernel values with the samples of G.

    Inner products of the images of the samples of G are their kernel values. The matrix is
    decomposed in memory, so it is for some thousands of samples. Where it is singular, the inverse
    is the pseudo-inverse.

    Parameters
    ----------
    G
        Symmetric `GramMatrix`, (N, N), positive semi-definite.
    values
        Kernel values of other samples with those of G, (M, N); None for those of G.
    memory
        Upper bound on the memory of this process: a number of bytes, or a string like "2GB". None
        for half of the free memory.
    progress
        Function that is called with `Progress` events of tiles and of the decomposition, which is
        one step; True for bars.

    Returns
    -------
    ndarray
        Coordinates, (M, N) or (N, N).

    Raises
    ------
    InputError
        The matrix is rectangular, or `values` does not have N columns.
    BudgetError
        The matrix does not fit the memory.

    References
    ----------
    .. [1] M. Zaki and W. Meira, "Data Mining and Analysis", Cambridge University Press (2014),
       section 5.1.1.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> X = np.array([[5.9, 3.0], [6.9, 3.1]])
    >>> G = dhsk.compute_gram(X, "linear")
    >>> dhsk.empirical_map(G).round(3)
    array([[4.492, 4.861],
           [4.861, 5.796]])
    """
    n = checked_matrix(G).shape[0]
    if not G.symmetric or (values is not None and np.ndim(values) != 2):
        raise InputError(
            f"the empirical map needs a symmetric matrix, not {G.shape}, and values of two axes"
        )
    if values is not None and np.shape(values)[1] != n:
        raise InputError(f"values must have {n} columns, but they have {np.shape(values)[1]}")
    parts = {"matrices": WHOLE_COPIES * 8 * n * n}
    if values is not None:
        parts["values and coordinates"] = 3 * 8 * np.shape(values)[0] * n
    need = MemoryNeed(f"the empirical map of {n:,} samples", parts)
    begun = Run.begun(progress, memory=memory, tiles=1, decomposition=5)
    with begun as (run, told), passes_reported(told):
        need.check(run.room, "give more memory, or use mercer_map")
        K = G.submatrices([(slice(None), slice(None))])[0]
        told(Progress("decomposition", 0, 1))
        eigenvalues, U = np.linalg.eigh((K + K.T) / 2)
        told(Progress("decomposition", 1, 1))
        rounding = n * float(np.finfo(G.dtype).eps) * eigenvalues[-1]
        kept = eigenvalues > rounding
        roots = np.sqrt(eigenvalues[kept])
        leading = U[:, kept]
        if values is None:
            whole: Floats = (leading * roots) @ leading.T
            return whole
        others: Floats = ((np.asarray(values, np.float64) @ leading) / roots) @ leading.T
        return others
