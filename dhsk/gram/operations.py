"""Operations on Gram matrices: their centred and normalised views, which have all of them."""

from abc import abstractmethod
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.arrays import Floats
from dhsk.caching import cached_value
from dhsk.errors import InputError
from dhsk.gram.diversity import Diversity
from dhsk.gram.features import FeatureGeometry
from dhsk.gram.passes import checked_vectors
from dhsk.gram.storage.store import GramStore
from dhsk.gram.views import ViewSource, centred, multiply_by_products, subtract_sums

ROUNDING: Final = 16 * float(np.finfo(np.float64).eps)
"""Bound on the relative error of the few additions in an entry of a centred matrix."""


class Operations(Diversity):
    """Operations of `GramMatrix` and of its views."""

    def centered(self) -> "GramView":
        """Gram matrix of the features less their mean, (I - 11'/N) K (I - 11'/N).

        It is a view: nothing is stored again, and entries are centred when they are read. The means
        of the rows take one pass over the matrix, made when they are first needed, and are kept. A
        product needs no means: it takes one pass, between two centrings of vectors.

        Returns
        -------
        GramView
            A view of this matrix, whose rows sum to 0 up to rounding.

        Raises
        ------
        InputError
            The matrix is rectangular.

        References
        ----------
        B. Schölkopf, A. Smola, K.-R. Müller, "Nonlinear component analysis as a kernel eigenvalue
        problem", Neural Computation 10 (1998).

        Examples
        --------
        >>> import numpy as np, dhsk
        >>> X = np.array([[5.9, 3.0], [6.9, 3.1], [6.6, 2.9]])
        >>> C = dhsk.compute_gram(X, "linear").centered()
        >>> C[:, :].round(4)
        array([[ 0.3211, -0.2456, -0.0756],
               [-0.2456,  0.1978,  0.0478],
               [-0.0756,  0.0478,  0.0278]])
        >>> C @ np.ones(3)
        array([0., 0., 0.])
        """
        return CenteredView(self._square("centred"))

    def normalized(self) -> "GramView":
        """Gram matrix of the features scaled to norm 1, K(x, y) / sqrt(K(x, x) K(y, y)).

        It is a view: nothing is stored again, and entries are scaled when they are read.

        Returns
        -------
        GramView
            A view of this matrix, whose diagonal is exactly 1.

        Raises
        ------
        InputError
            The matrix is rectangular; or, when values are first read, a sample has norm 0.

        Examples
        --------
        >>> import numpy as np, dhsk
        >>> G = dhsk.compute_gram(np.array([[5.9, 3.0], [6.9, 3.1]]), "linear")
        >>> G.normalized()[:, :].round(4)
        array([[1.    , 0.9988],
               [0.9988, 1.    ]])
        """
        return NormalizedView(self._square("normalised"))


class GramView(Operations):
    """A symmetric Gram matrix, centred or normalised: values of another one, adjusted on reading.

    `GramMatrix.centered` and `GramMatrix.normalized` return it. It is read and multiplied as a
    `GramMatrix` is and has the same operations, so that there are views of views.

    Parameters
    ----------
    base
        The matrix that is viewed.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> C = dhsk.compute_gram(np.eye(4), "heat").centered()
    >>> C
    <centered view of <GramMatrix 4 x 4 float64 of heat t=0.3466, ...>>
    >>> C.normalized()[:2, :].round(4)
    array([[ 1.    , -0.3333, -0.3333, -0.3333],
           [-0.3333,  1.    , -0.3333, -0.3333]])
    """

    name: ClassVar[str]

    def __init__(self, base: Operations) -> None:
        self.base = base

    def __getstate__(self) -> dict[str, Any]:
        """The matrix and the numbers of its samples, so that no worker makes a pass for them."""
        return {"base": self.base, "_margin": self._margin}

    def _marks(self) -> NDArray[np.uint64]:
        return self.base._marks()

    def __repr__(self) -> str:
        """What it is a view of."""
        return f"<{self.name} view of {self.base!r}>"

    @property
    def description(self) -> Any:
        """JSON value that tells the bits of this view from those of another."""
        return [self.name, self.base.description]

    def with_tiles_held(self, room: int) -> Self:
        """Return this view of the matrix with its tiles in memory."""
        view = type(self)(self.base.with_tiles_held(room))
        if "_margin" in self.__dict__:
            view._margin = self._margin
        return view

    @property
    def _store(self) -> GramStore:  # type: ignore[override]  # read only
        return self.base._store

    @cached_value
    def _margin(self) -> Floats:
        """One number a sample, by which entries are adjusted."""
        raise NotImplementedError

    @abstractmethod
    def _product(self, V: Floats) -> Floats:
        """Product with V, (N,) or (N, k), from one of the matrix that is viewed."""

    def diagonal(self) -> NDArray[Any]:
        """Diagonal entries, (N,)."""
        return self._exact_diagonal()[0].astype(self.dtype)

    def __matmul__(self, V: ArrayLike) -> NDArray[Any]:
        """Product with a vector (N,) or matrix (N, k), in one pass, with sums in float64."""
        vectors = checked_vectors(self.tiling, V)
        product = self._product(vectors.astype(np.result_type(vectors.dtype, np.float64)))
        return product.astype(np.result_type(self.dtype, vectors.dtype), copy=False)

    def __rmatmul__(self, V: ArrayLike) -> NDArray[Any]:
        """Product ``V @ G`` of a vector (N,) or matrix (k, N), in one pass."""
        return np.asarray((self @ np.asarray(V).T).T)


class CenteredView(GramView):
    """View of the features less their mean."""

    name: ClassVar[str] = "centered"

    @cached_value
    def _margin(self) -> Floats:
        means = self.base._row_means
        margin: Floats = means - means.mean() / 2
        return margin

    @cached_value
    def source(self) -> ViewSource:
        """Source of the tiles, here or on a worker."""
        return ViewSource(self.base.source, subtract_sums, (self._margin, self._margin))

    def _exact_diagonal(self) -> tuple[Floats, Floats]:
        diagonal, error = self.base._exact_diagonal()
        error = error + ROUNDING * (np.abs(diagonal) + 2 * np.abs(self._margin))
        return diagonal - (self._margin + self._margin), error

    def _product(self, V: Floats) -> Floats:
        return centred(self.base @ centred(V))

    def _translated(self) -> FeatureGeometry:
        translated: FeatureGeometry = self.base._translated()
        return translated

    def centered(self) -> GramView:
        """Return this view, as centring is idempotent."""
        return self


class NormalizedView(GramView):
    """View of the features scaled to norm 1."""

    name: ClassVar[str] = "normalized"

    @cached_value
    def _margin(self) -> Floats:
        diagonal, error = self.base._exact_diagonal()
        wrong = np.flatnonzero(~(diagonal > np.maximum(error, np.finfo(np.float64).tiny)))
        if wrong.size:
            first = wrong[0]
            raise InputError(
                f"sample {first} (counted from 0) has "
                f"{'norm 0' if diagonal[first] >= -error[first] else 'no norm'} in "
                f"{self.base!r}: K(x, x) = "
                f"{diagonal[first]:.3g}, so it has no direction; {wrong.size} of {len(diagonal)} "
                "samples are such, leave them out"
            )
        return 1 / np.sqrt(diagonal)

    @cached_value
    def source(self) -> ViewSource:
        """Source of the tiles, here or on a worker."""
        margins = self._margin, self._margin
        return ViewSource(self.base.source, multiply_by_products, margins, unit_diagonal=True)

    def _exact_diagonal(self) -> tuple[Floats, Floats]:
        _ = self._margin  # refuses samples of norm 0
        return np.ones(self.shape[0]), np.zeros(self.shape[0])

    def _product(self, V: Floats) -> Floats:
        scale = self._margin if V.ndim == 1 else self._margin[:, None]
        return np.asarray(scale * (self.base @ (scale * V)))

    def normalized(self) -> GramView:
        """Return this view, as its features have norm 1."""
        return self
