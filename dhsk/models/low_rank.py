"""Trained low-rank classifier: model and certificates."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_expit, softmax

from dhsk.arrays import ROWS, SUPPORT, Floats, Indices, Rows, blocks
from dhsk.errors import InputError
from dhsk.linear.newton import ColumnProofs
from dhsk.models.base import Arrays, TrainedModel, arrays_of, require_shapes
from dhsk.solvers.problems import MultiClass


@dataclass(frozen=True, eq=False)
class LowRankCertificates(ColumnProofs):
    """Certificates of the solutions; arrays are (J,), one entry a column."""

    loss: str
    """Name of the loss."""
    C: float
    """Factor of the losses, before weights."""
    tol: float
    """Tolerance of the relative gradient, see `dhsk.linear.newton.Newton`."""
    steps: int
    """Newton steps of the slowest batch of columns."""
    passes: int
    """Passes over the features."""
    width: int
    """Number of features."""
    trace_error: float
    """Trace norm of the error of the approximation, relative to the trace of the kernel matrix."""

    @property
    def unconverged(self) -> str | None:
        """How many classes did not converge, and what helps; None if all did."""
        left = int(np.count_nonzero(~self.converged))
        if not left:
            return None
        return (
            f"{left} of {len(self.converged)} classes did not converge to tol={self.tol:g} in "
            f"{self.steps:,} steps: gradients of {self.relative.max():.1e} of those at 0; "
            "raise tol, lower C, or use dtype='float64'"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class LowRankModel(TrainedModel):
    """A linear classifier on Nyström features; its rows are the landmarks."""

    format = "dhsk low-rank model"
    indices: Indices | None
    """Indices of the landmarks among the training samples, (m,); None for cluster centres."""
    coef: Floats
    """Coefficients of the landmarks, (m, J), float64; J is 1 for two classes, else k."""
    intercepts: Floats
    """Intercepts of the columns, (J,)."""
    certificates: LowRankCertificates

    def to_arrays(self) -> tuple[dict[str, Any], Arrays]:
        """JSON values and arrays of its file."""
        proof = vars(self.certificates)
        arrays = arrays_of(self.certificates)
        header = {name: value for name, value in proof.items() if name not in arrays}
        arrays |= {"coef": self.coef, "intercepts": self.intercepts}
        return header, arrays if self.indices is None else {**arrays, "indices": self.indices}

    @classmethod
    def from_arrays(cls, common: dict[str, Any], header: dict[str, Any], arrays: Arrays) -> Self:
        """Make a model of a file."""
        names = [f.name for f in fields(LowRankCertificates)]
        proof: dict[str, Any] = {n: arrays[n] if n in arrays else header[n] for n in names}
        found = LowRankCertificates(**proof)
        model = cls(
            **common,
            indices=arrays.get("indices"),
            coef=arrays["coef"],
            intercepts=arrays["intercepts"],
            certificates=found,
        )
        k, m = len(model.classes), model.rows.shape[0]
        columns = 1 if k == 2 else k
        require_shapes(
            indices=(model.indices, (m,)),
            coef=(model.coef, (m, columns)),
            intercepts=(model.intercepts, (columns,)),
            **{name: (array, (columns,)) for name, array in arrays_of(found).items()},
        )
        return model

    multi_class: ClassVar[MultiClass] = "ovr"

    @property
    def width(self) -> int:
        """Number of decision values of a sample."""
        return len(self.intercepts)

    @property
    def stopped(self) -> str | None:
        """When its time was over, and how good it is, in words; None if it was not."""
        if not self.notes.get("stopped"):
            return None
        found = self.certificates
        least = found.objective - found.gap
        if (least > 0).all():
            bound = f"at most {100 * (found.gap / least).max():.2g} % above the optimum"
        else:
            bound = (
                f"not yet bounded, with a gradient of {found.relative.max():.1e} of that at 0 "
                f"(tol {found.tol:g})"
            )
        return f"after {found.steps:,} Newton steps: the objective is {bound}"

    @property
    def has_probabilities(self) -> bool:
        """Whether the loss is logistic."""
        return self.certificates.loss == "logistic"

    def decisions(self, rows: Rows) -> Floats:
        """Decision values of rows from `row_map`, (N, J), positive for the column's class.

        For two classes it is the second.
        """
        found = np.tile(self.intercepts, (rows.shape[0], 1))
        for some in blocks(self.rows.shape[0], SUPPORT):
            for part in blocks(rows.shape[0], ROWS):
                # In float64 throughout: the coefficients of close landmarks nearly cancel.
                found[part] += self.kernel.of_rows(rows[part], self.rows[some]) @ self.coef[some]
        return found

    def probabilities_of(self, decisions: Floats) -> Floats:
        """Class probabilities, (N, k), from decision values, (N, J).

        Those of several classes are one-vs-rest probabilities, scaled to sum to 1, as in a
        one-vs-rest `LogisticRegression`. Raises InputError if the loss is not logistic.
        """
        if not self.has_probabilities:
            raise InputError(
                f"a model of loss {self.certificates.loss!r} has no probabilities: train it with "
                "loss='logistic'"
            )
        if len(self.classes) == 2:
            decisions = np.hstack([-decisions, decisions])
        return np.asarray(softmax(log_expit(decisions), axis=1))
