"""What trained classifiers of every kind have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Rows
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel
from dhsk.samples import SphereMap, ZeroRows, ZeroRule

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Arrays = dict[str, NDArray[Any]]
"""Arrays of a model file by their names."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedModel(ABC):
    """A classifier on rows of a kernel: what prediction needs, and what proves the training.

    Attributes
    ----------
    format
        What tells files of this kind of model from others.
    kernel
        The kernel.
    sphere_map
        How samples become its rows.
    classes
        Labels, ascending, (k,): whole numbers, floats, booleans or strings.
    rows
        Mapped rows that decisions are sums over, (m, dim), dense or CSR, float64 or float32.
    notes
        What else the maker wants to keep with it, as JSON.
    feature_names
        Names of the features, (dim,), in the order of the columns; None if they have none.
    zero_rows
        What becomes of samples of zeros, "center" or "error".
    n_zero_rows
        How many of the training samples were of zeros, and took the centre.
    """

    format: ClassVar[str]
    kernel: Kernel
    sphere_map: SphereMap
    classes: NDArray[Any]
    rows: Rows
    notes: Mapping[str, Any] = field(default_factory=dict)
    feature_names: tuple[str, ...] | None = None
    zero_rows: ZeroRule = "center"
    n_zero_rows: int = 0

    @property
    def dim(self) -> int:
        """Number of features of a sample."""
        return int(self.rows.shape[1])

    @property
    def row_map(self) -> RowMap:
        """What turns samples into rows, as in training."""
        zero_rows = ZeroRows(self.zero_rows)
        return RowMap(self.kernel, self.sphere_map, self.rows.dtype.name, zero_rows)

    @abstractmethod
    def to_arrays(self) -> tuple[dict[str, Any], Arrays]:
        """What a file keeps besides the fields of all models: JSON values, and arrays."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, common: dict[str, Any], header: dict[str, Any], arrays: Arrays) -> Self:
        """Make a model of the fields of all models, and of what `to_arrays` gave.

        Raises
        ------
        KeyError, TypeError, ValueError
            Something is missing, or of the wrong shape.
        """


def arrays_of(part: "DataclassInstance") -> Arrays:
    """Fields of a dataclass that are arrays, by their names."""
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def require_shapes(**shapes: tuple[NDArray[Any] | None, tuple[int, ...]]) -> None:
    """Refuse arrays of a file, by their names, that do not have the shapes given with them.

    Raises
    ------
    ValueError
        One has not.
    """
    for name, (array, shape) in shapes.items():
        if array is not None and array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, not {shape}")
