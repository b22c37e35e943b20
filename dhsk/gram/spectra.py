"""Leading eigenpairs of Gram matrices and their views."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dhsk.arrays import Floats
from dhsk.bars import Show
from dhsk.errors import warn
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.kept_pass import KeptProducts
from dhsk.execution.limits import core_count
from dhsk.execution.memory import MemoryNeed
from dhsk.execution.run import Run
from dhsk.execution.workers import computing
from dhsk.gram.plan import LARGEST_GROUP
from dhsk.gram.tile_tasks import bytes_of_task
from dhsk.gram.tiled import TiledMatrix
from dhsk.kernels.base import positive_parameter, whole_parameter
from dhsk.objects.places import Place
from dhsk.run_progress import passes_reported
from dhsk.solvers.eigenpairs import (
    MAX_PASSES,
    Eigenpairs,
    Multiply,
    block_width,
    eigenpairs_bytes,
    is_small,
    leading_eigenpairs,
    most_blocks,
)

BASIS_SHARE = 4
"""Divisor of the memory that the user allows: the share of the Krylov basis."""


class Spectra(TiledMatrix):
    """Eigenpairs of `GramMatrix` and its views."""

    def eigh(
        self,
        k: int,
        *,
        tol: float = 1e-6,
        seed: int = 0,
        max_passes: int = MAX_PASSES,
        memory: int | str | None = None,
        journal: str | Place | None = None,
        progress: Show = None,
    ) -> tuple[Floats, Floats, Floats]:
        """Compute the k largest eigenvalues with their eigenvectors, in few passes.

        A block Krylov space [1]_ with full orthogonalisation: each pass multiplies the matrix with
        about 1.5 k vectors, on the workers of the current Dask client or on threads. On threads,
        tiles stay in memory as far as they fit. Results are the same bits on all of them. Matrices
        of at most 1,000 rows are decomposed as a whole.

        Parameters
        ----------
        k
            Number of eigenpairs.
        tol
            Upper bound on the residuals. An eigenvalue is off by at most its residual times the
            largest one. An eigenvector is off by that divided by the gap to the next eigenvalues.
        seed
            Seed of the first vectors.
        max_passes
            Most passes over the matrix.
        memory
            Upper bound on the memory of this process: a number of bytes, or a string like "2GB".
            None for half of the free memory.
        journal
            Folder or ``s3://`` prefix for a checkpoint of every pass. The same call resumes after
            an interruption, with the same bits; remove the folder when the result is saved.
        progress
            Function that is called with `Progress` events of passes and residuals; True for bars.

        Returns
        -------
        values
            Eigenvalues, descending, (k,).
        vectors
            Orthonormal eigenvectors in columns, (N, k); the largest entry of each is positive.
        residuals
            Certificate, (k,): norms of ``G v - value v`` from a new pass, divided by the largest
            absolute eigenvalue found.

        Raises
        ------
        InputError
            The matrix is rectangular, or a parameter is invalid.
        BudgetError
            The vectors need more memory than there is.

        Warns
        -----
        ConvergenceWarning
            Residuals exceed `tol`.

        References
        ----------
        .. [1] C. Musco and C. Musco, "Randomized block Krylov methods for stronger and faster
           approximate singular value decomposition", NeurIPS 28 (2015).

        Examples
        --------
        >>> import dhsk
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> G = dhsk.compute_gram(X, "heat")
        >>> values, vectors, residuals = G.centered().eigh(3)
        >>> values.round(2), vectors.shape, float(residuals.max()) < 1e-6
        (array([54.37, 52.86, 45.62]), (1797, 3), True)
        """
        seed = whole_parameter("seed", seed, 0)
        begun = Run.begun(progress, memory=memory, journal=journal, tiles=1, passes=10)
        with begun as (run, told), passes_reported(told):
            found = eigenpairs_of(self, k, run, tol=tol, seed=seed, max_passes=max_passes)
        warn_unless_converged(found)
        return found.values, found.vectors, found.residuals


def eigenpairs_of(
    G: TiledMatrix,
    k: int,
    run: Run,
    operator: Callable[[Multiply], Multiply] | None = None,
    *,
    tol: float,
    seed: int = 0,
    max_passes: int = MAX_PASSES,
) -> Eigenpairs:
    """Leading eigenpairs of a symmetric matrix, or of an operator made of its products.

    `operator` receives the products with G; it may multiply at once, and returns products that are
    symmetric too. Parameters and errors are those of `Spectra.eigh`.
    """
    n, k = G._square("decomposed").shape[0], whole_parameter("k", k, 1)
    positive_parameter("tol", tol)
    whole_parameter("max_passes", max_passes, 2)
    # By the arguments only, as results depend on it.
    blocks = most_blocks(n, k, None if run.memory is None else run.memory // BASIS_SHARE)
    parts = {"vectors": eigenpairs_bytes(n, k, blocks)}
    need = MemoryNeed(f"computing {k:,} eigenpairs of {n:,} samples", parts)
    # Small matrices are multiplied by the identity.
    width = n if is_small(n, k) else block_width(k)
    with many_products(G, need, width, run) as (_, products):
        used = products if operator is None else operator(products)
        return leading_eigenpairs(
            used, n, k, tol=tol, seed=seed, max_passes=max_passes, blocks=blocks
        )


@contextmanager
def many_products(
    G: TiledMatrix, method: MemoryNeed, width: int, run: Run
) -> Iterator[tuple[TiledMatrix, KeptProducts]]:
    """Give products with blocks of `width` vectors to a method that makes many, and the matrix.

    `method` is the memory of the method itself. On threads of this process, tiles stay in memory as
    far as they fit. The bits of the products depend neither on that nor on the number of threads or
    workers.
    """
    with computing(run.client) as client:
        need = MemoryNeed(method.name, {**method.parts, **_of_tasks(G, width, client is None)})
        need.check(run.room, "give more memory, or ask for less")
        used = G.with_tiles_held(run.room - need.total) if client is None else G
        entries = Checkpoint(run.journal, "product-")
        yield used, KeptProducts(entries, used.__matmul__, G.description)


def _of_tasks(G: TiledMatrix, width: int, here: bool) -> dict[str, int]:
    """Bytes of the tasks of a pass: tiles if they run in this process, and vectors."""
    rows = min(G.shape[0], LARGEST_GROUP * G.tiling.tile)
    vectors = 4 * 8 * rows * width
    own = bytes_of_task(G.header, rows) if here else 0
    return {"running tasks": core_count() * own + (core_count() + 1) * vectors}


def warn_unless_converged(found: Eigenpairs) -> None:
    """Warn, with numbers, where residuals exceed the bound."""
    if found.converged:
        return
    from sklearn.exceptions import ConvergenceWarning  # loading it takes a second

    open_ = int((found.residuals > found.tol).sum())
    warn(
        f"{open_} of {len(found.values)} eigenpairs did not converge: relative residual "
        f"{found.residuals.max():.3g} after {found.passes} passes, tol={found.tol:g}; raise "
        "max_passes or tol",
        ConvergenceWarning,
    )
