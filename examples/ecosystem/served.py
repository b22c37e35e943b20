"""A model file of dhsk as MLflow loads and serves it: this code and arrays, no pickle."""

# mypy: disable-error-code="import-not-found"

from typing import Any

import mlflow
import numpy as np

import dhsk


class Served(mlflow.pyfunc.PythonModel):  # type: ignore[misc]  # mlflow may not be installed
    """Labels of samples, by the artifact ``model``."""

    def load_context(self, context: Any) -> None:
        """Read the file."""
        self.model = dhsk.HeatSVC.load(context.artifacts["model"])

    # MLflow would check input by a type hint.
    def predict(self, model_input):  # type: ignore[no-untyped-def]
        """Labels of rows, of an array or of a frame of pandas."""
        return self.model.predict(np.asarray(model_input))


mlflow.models.set_model(Served())
