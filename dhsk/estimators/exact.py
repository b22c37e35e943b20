"""What the exact classifiers share: training, probabilities, and fitted attributes."""

from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats, Rows
from dhsk.estimators.classifier import HeatClassifier
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.kernels.centre import with_all_entries
from dhsk.models.doubts import doubt_of_exact
from dhsk.models.exact import SvcModel
from dhsk.models.problem import Problem
from dhsk.models.train_exact import train_svc
from dhsk.samples import Samples

FOLDS: Final = 5
"""Number of folds of the held-out decisions to which sigmoids are fitted, as in LIBSVM."""


class ExactClassifier(HeatClassifier[SvcModel]):
    """Base of classifiers with exact one-vs-one SVMs."""

    _model_type = SvcModel
    _with_sigmoids = False
    """Whether a fit makes sigmoids, as `dhsk train --probability` asks."""
    _seed_of_folds: Any = None
    """Seed, or a `RandomState`, that shuffles their folds."""

    def _train(self, problem: Problem, samples: Samples, row_map: RowMap, run: Run) -> SvcModel:
        return train_svc(problem, samples, row_map, run)

    @property
    def _sigmoid_folds(self) -> dict[str, Any]:
        if not self._with_sigmoids:
            return {}
        return {"folds": FOLDS, "random_state": self._seed_of_folds}

    def _check_probabilities(self) -> None:
        fitted = getattr(self, "model_", None)
        if not (self._with_sigmoids if fitted is None else fitted.has_probabilities):
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

    @property
    def coef_(self) -> Any:
        """Weights of the features, mapped and scaled or weighted as they are, (problems, dim).

        Signs are those of `dual_coef_`. AttributeError unless the kernel is linear or cosine.
        """
        model = self._fitted
        if not model.is_linear:
            raise AttributeError(
                f"coef_ is for linear and cosine kernels, and this one is {model.kernel.label}"
            )
        return (-1.0 if len(model.classes) == 2 else 1.0) * model.normals.T

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
