"""Common part of trained classifiers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import ROWS, Floats, Rows, blocks
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel
from dhsk.samples import AnyVectorizer, SphereMap, ZeroRows, ZeroRule
from dhsk.samples.weighted import MapName, learnt_name
from dhsk.solvers.problems import MultiClass
from dhsk.solvers.votes import class_scores, winners

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Arrays = dict[str, NDArray[Any]]
"""Arrays of a model file by name."""


_version = cache(version)  # which reads files each time: a tenth of a fit of iris and more


def training_notes(n_samples: int, source: str | None = None) -> dict[str, Any]:
    """Notes of a model on its training: number of samples, where they came from, and version."""
    named = {} if source is None else {"source": source}
    return {"n_samples": n_samples, **named, "dhsk": _version("dhsk")}


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedModel(ABC):
    """A trained kernel classifier, with the certificates of its training."""

    format: ClassVar[str]
    """Identifies files of this kind of model."""
    kernel: Kernel
    sphere_map: SphereMap
    """Map of samples to rows of the kernel."""
    classes: NDArray[Any]
    """Class labels, ascending, (k,): integers, floats, booleans or strings."""
    rows: Rows
    """Support vectors or landmarks, mapped, (m, dim), dense or CSR, float64 or float32."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Further JSON values of the caller."""
    feature_names: tuple[str, ...] | None = None
    """Names of the features, (dim,)."""
    vectorizer: AnyVectorizer | None = None
    """How words of texts are counted, with its vocabulary; None if no texts were given."""
    zero_rows: ZeroRule = "center"
    """Treatment of samples of zeros, "center" or "error"."""
    feature_weights: Floats | None = None
    """What was learnt of the features before the map, (dim,) or (2, dim), see `weigh`."""
    n_zero_rows: int = 0
    """Number of training samples of zeros, which were mapped to the centre."""

    @property
    def marked(self) -> tuple[Any, ...]:
        """What tells it from others, for array jobs."""
        arrays = self.to_arrays()[1].values()
        return self.kernel, self.classes, self.rows, self.feature_weights, *arrays

    @property
    def dim(self) -> int:
        """Number of features of a sample."""
        return int(self.rows.shape[1])

    @property
    def row_map(self) -> RowMap:
        """Map of samples to rows, as in training."""
        zero_rows = ZeroRows(self.zero_rows)
        dtype, weights = self.rows.dtype.name, self.feature_weights
        return RowMap(self.kernel, self.sphere_map, dtype, zero_rows, weights, new=True)

    @property
    def map_name(self) -> MapName:
        """Name of the map with its weights: "tfidf" or "scaled" if there are weights."""
        learnt = self.feature_weights is not None
        return learnt_name(self.sphere_map) if learnt else self.sphere_map

    @property
    @abstractmethod
    def multi_class(self) -> MultiClass:
        """Whether decisions are of pairs of classes, or of each class against the rest."""

    @abstractmethod
    def decisions(self, rows: Rows) -> Floats:
        """Decision values of rows from `row_map`, (N, columns)."""

    @abstractmethod
    def probabilities_of(self, decisions: Floats) -> Floats:
        """Class probabilities, (N, k), from decision values.

        Raises InputError if the model was trained without them.
        """

    def labels_of(self, decisions: Floats) -> NDArray[Any]:
        """Labels, (N,), of decision values, see `dhsk.solvers.votes.winners`."""
        return np.asarray(self.classes[winners(decisions, len(self.classes), self.multi_class)])

    def scores_of(self, decisions: Floats) -> Floats:
        """Scores of the classes, (N, k), or of two (N,), see `dhsk.solvers.votes.class_scores`."""
        return class_scores(decisions, len(self.classes), self.multi_class)

    def predict(self, rows: Rows) -> NDArray[Any]:
        """Labels of mapped samples, (N,)."""
        parts = blocks(rows.shape[0], ROWS)
        return np.concatenate([self.labels_of(self.decisions(rows[p])) for p in parts])

    def probabilities(self, rows: Rows) -> Floats:
        """Class probabilities of mapped samples, (N, k); see `probabilities_of`."""
        parts = blocks(rows.shape[0], ROWS)
        return np.concatenate([self.probabilities_of(self.decisions(rows[p])) for p in parts])

    def scores(self, rows: Rows) -> Floats:
        """Scores of mapped samples; see `scores_of`."""
        return self.scores_of(self.decisions(rows))

    @abstractmethod
    def to_arrays(self) -> tuple[dict[str, Any], Arrays]:
        """JSON values and arrays of a file, besides the fields of all models."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, common: dict[str, Any], header: dict[str, Any], arrays: Arrays) -> Self:
        """Make a model of the fields of all models and of the values of `to_arrays`.

        Raises KeyError, TypeError or ValueError if one is missing or has the wrong shape.
        """


def arrays_of(part: "DataclassInstance") -> Arrays:
    """Fields of a dataclass that are arrays, by name."""
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def require_shapes(**shapes: tuple[NDArray[Any] | None, tuple[int, ...]]) -> None:
    """Raise ValueError if an array of a file, given by name, does not have the shape beside it."""
    for name, (array, shape) in shapes.items():
        if array is not None and array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, not {shape}")
