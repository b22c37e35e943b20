"""A grid and its model in MLflow: parameters, score, the page, and the model as dhsk's own file.

Run `python track.py SAMPLES LABELS [URI]`, after `pip install mlflow`. The model is an artifact of
arrays and JSON: no pickle is written, and none is run when it is loaded.
"""

# mypy: disable-error-code="import-not-found"

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import mlflow

import dhsk


def log(result: dhsk.CvResult) -> None:
    """Log the cell that was taken, and what is needed to look at it and to use it."""
    best = result.best_
    mlflow.log_params({"kernel": best["kernel"], "time_scale": best["time_scale"], "C": best["C"]})
    mlflow.log_metric("accuracy", result.best_score_)
    with TemporaryDirectory() as folder:
        result.report(Path(folder, "report.html"))
        result.best_estimator_.save(Path(folder, "model.dhsk"))
        mlflow.log_artifacts(folder)


def load(run_id: str) -> dhsk.HeatSVC:
    """Read the model of a run."""
    path = mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path="model.dhsk")
    return dhsk.HeatSVC.load(path)


def main(samples: str, labels: str, uri: str = "sqlite:///mlflow.db") -> None:
    """Cross-validate, log, and predict by the logged model."""
    mlflow.set_tracking_uri(uri)
    X = dhsk.open_samples(samples)
    y = dhsk.read_labels(labels, X.shape[0])
    with mlflow.start_run() as run:
        result = dhsk.cross_validate(X, y, time_scale=[0.3, 0.5, 1.0], C=[1, 10, 100], refit=True)
        log(result)
    (block,) = X.blocks(X.shape[0])
    right = (load(run.info.run_id).predict(block) == y).mean()
    print(f"run {run.info.run_id}: {result.best_score_:.4f} over 5 folds")
    print(f"the logged model on its own samples: {right:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
