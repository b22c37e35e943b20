"""Optuna chooses time and C of a heat kernel, and dhsk scores them on the same folds.

Run `python tune.py SAMPLES LABELS [TRIALS]`, after `pip install optuna`. The cosines of all samples
are computed once; each trial derives its kernel from them.
"""

# mypy: disable-error-code="import-not-found"

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import optuna

import dhsk


def main(samples: str, labels: str, trials: str = "30") -> None:
    """Search, and compare with the search that dhsk makes itself."""
    X = dhsk.open_samples(samples)
    y = dhsk.read_labels(labels, X.shape[0])
    with TemporaryDirectory() as folder:
        cosines = dhsk.compute_gram(X, "cosine", store=Path(folder, "cosines.gram"))

        def score(trial: Any) -> float:
            time_scale = trial.suggest_float("time_scale", 0.1, 3.0, log=True)
            C = trial.suggest_float("C", 0.1, 1000.0, log=True)
            found = dhsk.cross_validate(cosines, y, time_scale=[time_scale], C=[C], cv=5)
            return found.best_score_

        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=0)
        )
        study.optimize(score, n_trials=int(trials))
        own = dhsk.cross_validate(cosines, y, time_scale="auto", cv=5)
    print(f"Optuna, {trials} trials: {study.best_value:.4f} at {study.best_params}")
    print(f"dhsk's own search: {own.best_score_:.4f} at s = {own.best_['time_scale']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
