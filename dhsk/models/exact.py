"""Trained exact SVM: model and certificates."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import ROWS, SUPPORT, Codes, Floats, Indices, Rows, blocks
from dhsk.caching import cached_value
from dhsk.errors import InputError
from dhsk.kernels.base import positive_parameter
from dhsk.kernels.centre import marked_rows
from dhsk.kernels.on_device import device_for
from dhsk.models.base import Arrays, TrainedModel, arrays_of, require_shapes
from dhsk.models.on_device import combined_on_device
from dhsk.models.rescaling import kernel_in
from dhsk.results.examined import ClassWeights
from dhsk.samples.weighted import SCALED
from dhsk.solvers.dual import Fit
from dhsk.solvers.platt import class_probabilities
from dhsk.solvers.problems import (
    REST,
    MultiClass,
    classes_of_problems,
    members_of_classes,
    problems_of_classes,
)

NORMALS_BYTES: Final = 1 << 26
"""Bytes that normal vectors of linear kernels may always take."""


@dataclass(frozen=True, eq=False)
class Certificates:
    """Certificates of the solutions of all problems, see `Fit`; arrays are (problems,).

    The tolerance is that of the violation, and C bounds the dual coefficients before weights.
    """

    violation: Floats
    gap: Floats
    objective: Floats
    norm2: Floats
    steps: Indices
    converged: NDArray[np.bool_]
    tol: float
    C: float

    @property
    def unconverged(self) -> str | None:
        """How many fits did not converge, and what helps; None if all did."""
        left = int(np.count_nonzero(~self.converged))
        if not left:
            return None
        return (
            f"{left} of {len(self.converged)} fits of classes did not converge: the greatest KKT "
            f"violation is {self.violation.max():.2e} after {self.steps.max():,} steps, above "
            f"tol={self.tol:g}; raise tol, lower C, or use dtype='float64' where it is float32"
        )

    @classmethod
    def of(cls, fits: Sequence[Fit], tol: float, C: float) -> "Certificates":
        """Collect the certificates of a fit for each pair."""
        names = [f.name for f in fields(cls) if f.name not in ("tol", "C")]
        found: Arrays = {name: np.array([getattr(fit, name) for fit in fits]) for name in names}
        return cls(**found, tol=tol, C=C)


@dataclass(frozen=True, eq=False)
class Expansion:
    """Support vectors and coefficients of all problems, one-vs-one in LIBSVM's layout."""

    support: Indices
    """Indices of the support vectors among the training samples, class by class, (n_sv,)."""
    n_support: Indices
    """Number of support vectors of each class, (k,)."""
    dual_coef: Floats
    """s_i alpha_i, positive for the first class of the problem. One-vs-one, (k - 1, n_sv): for a
    support vector of class a, row b - 1 is of the pair with a class b above a, row b of one below.
    One-vs-rest, (k, n_sv): row c is of class c against the rest."""
    intercepts: Floats
    """Intercepts of the problems, (problems,)."""

    @classmethod
    def of(cls, fits: Sequence[Fit], codes: Codes, multi_class: MultiClass) -> "Expansion":
        """Join a fit for each problem; codes are the classes of all samples from 0, (N,)."""
        classes = members_of_classes(codes)
        k, sizes, samples = len(classes), np.array([*map(len, classes)]), np.concatenate(classes)
        pairs = np.array(classes_of_problems(k, multi_class))
        first, second = pairs.repeat([len(fit.support) for fit in fits], axis=0).T
        row, used = first, np.concatenate([fit.support for fit in fits])
        if multi_class == "ovo":  # samples of the first class of a pair, and then of the second
            inside = used < sizes[first]
            starts = np.cumsum(sizes) - sizes
            used = used + np.where(inside, starts[first], starts[second] - sizes[first])
            row = np.where(inside, second - 1, first)
        places, used = np.unique(used, return_inverse=True)
        support = samples[places]
        dual_coef = np.zeros((k if multi_class == "ovr" else k - 1, len(support)))
        dual_coef[row, used] = np.concatenate([fit.coef for fit in fits])
        return cls(
            support=support,
            n_support=np.bincount(codes[support], minlength=k),
            dual_coef=dual_coef,
            intercepts=np.array([fit.intercept for fit in fits]),
        )

    @property
    def multi_class(self) -> MultiClass:
        """Which problems: with two classes one pair."""
        return "ovr" if len(self.dual_coef) == len(self.n_support) else "ovo"

    @cached_value
    def problems(self) -> Indices:
        """Problems of each class, by the row of its coefficients, see `problems_of_classes`."""
        return problems_of_classes(len(self.n_support), self.multi_class)

    @property
    def by_problem(self) -> Floats:
        """Coefficients of all support vectors in each problem, (problems, n_sv)."""
        found = np.zeros((len(self.intercepts), len(self.support)))
        own_class = np.repeat(np.arange(len(self.n_support)), self.n_support)
        for row, coef in enumerate(self.dual_coef):
            found[self.problems[own_class, row], np.arange(len(own_class))] = coef
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class SvcModel(TrainedModel):
    """An exact SVM, one-vs-one or one-vs-rest; its rows are the support vectors."""

    format = "dhsk svm model"
    expansion: Expansion
    certificates: Certificates
    sigmoids: Floats | None = None
    """Platt's A and B of every problem, (problems, 2); None without probabilities."""
    unit: float = 1.0
    """Unit of kernel differences in decision values, see `dhsk.models.rescaling`: 1 unless the
    kernel is nearly constant."""

    def to_arrays(self) -> tuple[dict[str, Any], Arrays]:
        """JSON values and arrays of its file."""
        header = {"tol": self.certificates.tol, "C": self.certificates.C, "unit": self.unit}
        arrays = {**arrays_of(self.expansion), **arrays_of(self.certificates)}
        return header, arrays if self.sigmoids is None else {**arrays, "sigmoids": self.sigmoids}

    @classmethod
    def from_arrays(cls, common: dict[str, Any], header: dict[str, Any], arrays: Arrays) -> Self:
        """Make a model of a file."""
        stored = {f.name: arrays[f.name] for f in fields(Certificates) if f.name not in header}
        model = cls(
            **common,
            expansion=Expansion(**{f.name: arrays[f.name] for f in fields(Expansion)}),
            certificates=Certificates(tol=header["tol"], C=header["C"], **stored),
            sigmoids=arrays.get("sigmoids"),
            unit=positive_parameter("unit", header["unit"]),
        )
        k, n_sv = len(model.classes), model.rows.shape[0]
        expansion = model.expansion
        rows = len(expansion.dual_coef)
        if rows not in (k - 1, k):
            raise ValueError(f"dual_coef has {rows} rows for {k} classes")
        problems = k if rows == k else k * (k - 1) // 2
        require_shapes(
            support=(expansion.support, (n_sv,)),
            n_support=(expansion.n_support, (k,)),
            dual_coef=(expansion.dual_coef, (rows, n_sv)),
            intercepts=(expansion.intercepts, (problems,)),
            violation=(model.certificates.violation, (problems,)),
            sigmoids=(model.sigmoids, (problems, 2)),
        )
        if expansion.n_support.sum() != n_sv:
            raise ValueError(f"n_support sums to {expansion.n_support.sum()}, not {n_sv}")
        return model

    @property
    def width(self) -> int:
        """Number of decision values of a sample: of all problems."""
        return len(self.expansion.intercepts)

    @property
    def multi_class(self) -> MultiClass:
        """Whether decisions are of pairs of classes, or of each class against the rest."""
        return self.expansion.multi_class

    @property
    def has_probabilities(self) -> bool:
        """Whether the model was trained with probabilities."""
        return self.sigmoids is not None

    def decisions(self, rows: Rows) -> Floats:
        """Decision values of rows from `row_map`, (N, problems), positive for the first class."""
        if self._normals is not None and marked_rows(rows) is None:
            return np.asarray(rows @ self._normals) + self.expansion.intercepts
        n, n_sv = rows.shape[0], self.rows.shape[0]
        # By problem: sums into a few rows of this array take half the time of sums into columns.
        found = np.repeat(self.expansion.intercepts[:, None], n, axis=1)
        kernel = kernel_in(self.kernel, self.unit)
        if device_for(rows, self.rows, fetched=len(self.expansion.intercepts)) is not None:
            coef = self.expansion.by_problem.T * self.unit
            on_device = combined_on_device(kernel, rows, self.rows, coef)
            if on_device is not None:
                return on_device + self.expansion.intercepts
        ends = np.cumsum(self.expansion.n_support)
        problems = self.expansion.problems
        room = np.empty(min(n, ROWS) * min(n_sv, SUPPORT), self.rows.dtype)
        wide = np.empty(0 if room.dtype == np.float64 else room.size)
        for some in blocks(n_sv, SUPPORT):
            support = self.rows[some]
            for part in blocks(n, ROWS):
                shape = part.stop - part.start, some.stop - some.start
                size = shape[0] * shape[1]
                K = kernel.of_rows(rows[part], support, room[:size].reshape(shape))
                if wide.size:
                    wide[:size] = K.reshape(-1)
                    K = wide[:size].reshape(shape)
                for c in range(np.searchsorted(ends, some.start, side="right"), len(ends)):
                    start = max(ends[c] - self.expansion.n_support[c], some.start)
                    if start >= some.stop:
                        break
                    own = slice(start, min(ends[c], some.stop))
                    coef = self.expansion.dual_coef[:, own] * self.unit
                    inside = slice(own.start - some.start, own.stop - some.start)
                    found[problems[c], part] += coef @ K[:, inside].T
        return found.T

    @property
    def is_linear(self) -> bool:
        """Whether decisions are linear in mapped samples, so that features have weights."""
        return self.kernel.bilinear and self.unit == 1.0 and marked_rows(self.rows) is None

    @property
    def normals(self) -> Floats:
        """Normal vectors of the hyperplanes of all problems, (dim, problems), if it `is_linear`."""
        rows: Any = self.rows
        return np.asarray(rows.T @ self.expansion.by_problem.T)

    def class_weights(self, most: int = 6) -> tuple[ClassWeights, ...]:
        """Features that speak most for each class; empty without weights, or names.

        A weight is the mean over the problems that the class is in. Of scaled columns, which have
        means, those that speak most against the class are named too.
        """
        rows, names, k = self.rows, self.feature_names, len(self.classes)
        if not self.is_linear or names is None:
            return ()
        coef, found = np.zeros((k, rows.shape[0])), list[ClassWeights]()
        problems = classes_of_problems(k, self.multi_class)
        for own, (first, second) in zip(self.expansion.by_problem, problems, strict=True):
            coef[first] += own
            if second != REST:
                coef[second] -= own
        for label, one in zip(self.classes.tolist(), coef, strict=True):
            weights = np.asarray(rows.T @ one) / (1 if self.multi_class == "ovr" else k - 1)
            size = np.abs(weights) if self.map_name == SCALED else weights
            top = [j for j in np.argsort(-size, kind="stable")[:most].tolist() if size[j] > 0]
            chosen = tuple(names[j] for j in top), tuple(weights[top].tolist())
            found.append(ClassWeights(label, *chosen))
        return tuple(found)

    @cached_value
    def _normals(self) -> Floats | None:
        """The normal vectors, unless they take more memory than the support vectors."""
        rows: Any = self.rows
        held = rows.nbytes if isinstance(rows, np.ndarray) else 12 * rows.nnz
        fits = 8 * max(rows.shape) * self.width <= max(held, NORMALS_BYTES)
        return self.normals if self.is_linear and fits else None

    def probabilities_of(self, decisions: Floats) -> Floats:
        """Class probabilities, (N, k), from decision values, (N, problems).

        Raises InputError if the model was trained without them.
        """
        if self.sigmoids is None:
            raise InputError(
                "the model has no probabilities: train it with --probability, or fit "
                "CalibratedClassifierCV(HeatSVC(...), ensemble=False)"
            )
        return class_probabilities(decisions, self.sigmoids, len(self.classes), self.multi_class)
