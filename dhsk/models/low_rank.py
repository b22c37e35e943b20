"""A trained low-rank classifier: what prediction needs, and what proves the training."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, softmax

from dhsk.arrays import ROWS, SUPPORT, Floats, Indices, Rows, blocks
from dhsk.errors import InputError
from dhsk.models.base import Arrays, TrainedModel, arrays_of, require_shapes


@dataclass(frozen=True, eq=False)
class LowRankCertificates:
    """What the solutions are worth; arrays are (J,), one a column.

    Attributes
    ----------
    objective
        Value of what is minimised.
    gradient_norm
        Length of its gradient.
    relative
        What had to come below the tolerance: the length as a part of that at 0.
    gap
        Bound of the objective's excess over its least value: half the squared length, as it is
        strongly convex.
    converged
        Whether it came below the tolerance.
    loss
        Name of the loss.
    C
        Factor of the losses, before weights.
    tol
        Part of the gradient at 0 that counted as converged, see `dhsk.linear.newton.Newton`.
    steps
        Most Newton steps of a column.
    passes
        Passes over the features.
    width
        Number of features.
    trace_error
        Trace norm of what the features leave of the kernel matrix, as a part of its trace.
    """

    objective: Floats
    gradient_norm: Floats
    relative: Floats
    gap: Floats
    converged: NDArray[np.bool_]
    loss: str
    C: float
    tol: float
    steps: int
    passes: int
    width: int
    trace_error: float

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
    """A linear classifier on Nyström features, as sums of kernel values with the landmarks.

    Its rows are the landmarks.

    Attributes
    ----------
    indices
        Numbers of the landmarks among the training samples, (m,); None if they are no samples.
    coef
        Coefficients of the landmarks, (m, J), float64: J is 1 for two classes, else k, one against
        the rest.
    intercepts
        One a column, (J,).
    certificates
        What the solutions are worth.
    """

    format = "dhsk low-rank model"
    indices: Indices | None
    coef: Floats
    intercepts: Floats
    certificates: LowRankCertificates

    def to_arrays(self) -> tuple[dict[str, Any], Arrays]:
        """What its file keeps besides the fields of all models."""
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

    @property
    def has_probabilities(self) -> bool:
        """Whether its loss is that of probabilities."""
        return self.certificates.loss == "logistic"

    def decisions(self, rows: Rows) -> Floats:
        """Decisions of all columns, block by block.

        Parameters
        ----------
        rows
            Mapped samples, from `row_map`, (N, dim).

        Returns
        -------
        Floats
            Above 0 for the column's class, (N, J); for two classes, for the second.
        """
        found = np.tile(self.intercepts, (rows.shape[0], 1))
        for some in blocks(self.rows.shape[0], SUPPORT):
            for part in blocks(rows.shape[0], ROWS):
                # In float64 throughout: the coefficients nearly cancel where landmarks are near.
                found[part] += self.kernel.of_rows(rows[part], self.rows[some]) @ self.coef[some]
        return found

    def predict(self, rows: Rows) -> NDArray[Any]:
        """Label of each mapped sample, (N,)."""
        return self.labels_of(self.decisions(rows))

    def probabilities(self, rows: Rows) -> Floats:
        """Class probabilities of mapped samples, (N, k); see `probabilities_of`."""
        return self.probabilities_of(self.decisions(rows))

    def labels_of(self, decisions: Floats) -> NDArray[Any]:
        """Labels, (N,): of the greatest decision, the first of equal ones, as `LinearSVC`."""
        if len(self.classes) == 2:
            return np.asarray(self.classes[(decisions[:, 0] > 0).astype(np.intp)])
        return np.asarray(self.classes[decisions.argmax(axis=1)])

    def scores_of(self, decisions: Floats) -> Floats:
        """The same decisions, (N, k), or of two classes (N,), above 0 for the second."""
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def probabilities_of(self, decisions: Floats) -> Floats:
        """Class probabilities, (N, k), from decisions, (N, J).

        Of several classes, each one's against the rest, scaled to sum to 1, as in a one-vs-rest
        `LogisticRegression`.

        Raises
        ------
        InputError
            The loss is another than the logistic one.
        """
        if not self.has_probabilities:
            raise InputError(
                f"a model of loss {self.certificates.loss!r} has no probabilities: train it with "
                "loss='logistic'"
            )
        if len(self.classes) == 2:
            decisions = np.hstack([-decisions, decisions])
        return np.asarray(softmax(log_expit(decisions), axis=1))
