"""A grid and its model in MLflow: parameters, score, the page, and the model as dhsk's own file.

Run `python track.py SAMPLES LABELS [URI]`, after `pip install mlflow`. The model is logged as its
file of arrays and JSON and `served.py`, which reads it: no pickle is written, none is loaded.
"""

# mypy: disable-error-code="import-not-found"

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import mlflow

import dhsk


def log(result: dhsk.CvResult) -> str:
    """Log the cell that was taken, its page and its model; return where the model is."""
    best = result.best_
    mlflow.log_params({"kernel": best["kernel"], "time_scale": best["time_scale"], "C": best["C"]})
    mlflow.log_metric("accuracy", result.best_score_)
    with TemporaryDirectory() as folder:
        result.report(Path(folder, "report.html"))
        mlflow.log_artifact(str(Path(folder, "report.html")))
        result.best_estimator_.save(Path(folder, "model.dhsk"))
        logged = mlflow.pyfunc.log_model(
            name="model",
            python_model=str(Path(__file__).with_name("served.py")),
            artifacts={"model": str(Path(folder, "model.dhsk"))},
            pip_requirements=["dhsk"],
        )
    return str(logged.model_uri)


def main(samples: str, labels: str, uri: str = "sqlite:///mlflow.db") -> None:
    """Cross-validate, log, and predict by the logged model."""
    mlflow.set_tracking_uri(uri)
    X = dhsk.open_samples(samples)
    y = dhsk.read_labels(labels, X.shape[0])
    with mlflow.start_run() as run:
        result = dhsk.cross_validate(X, y, time_scale=[0.3, 0.5, 1.0], C=[1, 10, 100], refit=True)
        where = log(result)
    (block,) = X.blocks(X.shape[0])
    right = (mlflow.pyfunc.load_model(where).predict(block) == y).mean()
    print(f"run {run.info.run_id}: {result.best_score_:.4f} over 5 folds")
    print(f"{where} on its own samples: {right:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
