"""What the exact classifiers share: training, probabilities, and fitted attributes."""

import warnings
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats, Rows
from dhsk.estimators.classifier import HeatClassifier
from dhsk.estimators.saving import DEPRECATED
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.kernels.centre import with_all_entries
from dhsk.models.doubts import doubt_of_exact
from dhsk.models.exact import SvcModel
from dhsk.models.problem import Problem
from dhsk.models.train_exact import train_svc
from dhsk.samples import Samples
from dhsk.samples.zeros import frames_inside

FOLDS: Final = 5
"""Number of folds of the held-out decisions to which sigmoids are fitted, as in LIBSVM."""


class ExactClassifier(HeatClassifier[SvcModel]):
    """Base of classifiers with exact one-vs-one SVMs."""

    _model_type = SvcModel
    _with_sigmoids = False
    """Whether a fit makes sigmoids for a file of a model, as `dhsk train --probability` asks."""
    probability: bool | str
    random_state: Any

    def _train(self, problem: Problem, samples: Samples, row_map: RowMap, run: Run) -> SvcModel:
        return train_svc(problem, samples, row_map, run)

    @property
    def _sigmoid_folds(self) -> dict[str, Any]:
        wanted = self._with_sigmoids
        if self.probability != DEPRECATED:
            wanted, name = bool(self.probability), type(self).__name__
            warnings.warn(
                f"probability of {name} is a parameter that is deprecated, as in scikit-learn's "
                "SVC, and the next release removes it: for probabilities fit "
                f"CalibratedClassifierCV({name}(), ensemble=False)",
                FutureWarning,
                stacklevel=frames_inside(),
            )
        return {"folds": FOLDS, "random_state": self.random_state} if wanted else {}

    def _check_probabilities(self) -> None:
        asked = self.probability is True or self._with_sigmoids
        fitted = getattr(self, "model_", None)
        if not (asked if fitted is None else fitted.has_probabilities):
            name = type(self).__name__
            raise AttributeError(
                f"{name} has no predict_proba, as its decisions are no probabilities: fit "
                f"CalibratedClassifierCV({name}(...), ensemble=False) of sklearn.calibration, "
                "which makes them of decisions in held-out folds"
            )

    @property
    def support_vectors_(self) -> Rows:
        """Support vectors, mapped to the sphere, (n_sv, dim)."""
        return with_all_entries(self._fitted.rows)

    def _doubt(self, model: SvcModel, sample_weights: Floats) -> str | None:
        return doubt_of_exact(model, int(np.count_nonzero(sample_weights)))

    def _take(self, model: SvcModel) -> None:
        sign = -1.0 if len(model.classes) == 2 else 1.0
        self.support_ = model.expansion.support
        self.n_support_ = model.expansion.n_support
        self.dual_coef_ = sign * model.expansion.dual_coef
        self.intercept_ = sign * model.expansion.intercepts
        self.kkt_violation_ = float(model.certificates.violation.max())
        self.duality_gap_ = float(model.certificates.gap.max())
        self.n_iter_ = model.certificates.steps
        self.converged_ = bool(model.certificates.converged.all())
