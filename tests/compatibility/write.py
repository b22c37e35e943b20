"""Write one of everything that dhsk keeps on disk, for `test_old_files.py` to open for ever.

    python tests/compatibility/write.py FOLDER

The folder `2026-11` was written by the first version whose formats are kept: a Gram store, a
feature store, both models, the journal and results of both cross-validations, two low-rank
trainings that were killed, one between its steps and one as it chose landmarks, and what was
computed from all of them. A feature store that was begun is of the first version whose stores hold
their landmarks. What that version called otherwise was called so for it.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
from inputs import (
    AT_ROUND,
    AT_STEP,
    GRID,
    KILLED,
    LOW_RANK,
    different_samples,
    kill,
    samples,
    train_in_rounds,
    train_in_steps,
)

import dhsk


def write(folder: Path) -> None:
    """Write everything into a new folder."""
    folder.mkdir()
    X, y = samples()
    dhsk.compute_gram(X, "heat", store=folder / "gram", tile=16)
    exact = dhsk.HeatSVC(1.0, 1.0, probability=True).fit(X, y)
    exact.save(folder / "exact.dhsk")
    low_rank = dhsk.NystromSVC(8, 1.0, time_scale=1.0, random_state=0).fit(X, y)
    low_rank.save(folder / "low-rank.dhsk")
    features = dhsk.NystromFeatures(8, time_scale=1.0, random_state=0).fit(X)
    features.write(X, folder / "features")
    shutil.copytree(folder / "features", folder / "features-begun")
    (folder / "features-begun" / "c" / "0" / "0").unlink()
    np.save(folder / "features-begun.npy", features.transform(X))
    for name, options in (("cv", GRID), ("cv-rank", LOW_RANK)):
        dhsk.cross_validate(X, y, **options, out=folder / "out").to_json(folder / f"{name}.json")
        (folder / "out" / "fits").rename(folder / f"{name}-journal")
        shutil.rmtree(folder / "out")
    kill(train_in_steps, folder / "killed", *AT_STEP)
    kill(train_in_rounds, folder / "killed-landmarks", *AT_ROUND)
    landmarks = train_in_rounds(None, None)
    np.savez(
        folder / "values.npz",
        gram=np.asarray(dhsk.open_gram(folder / "gram")),
        exact=exact.decision_function(X),
        probability=exact.predict_proba(X),
        low_rank=low_rank.decision_function(X),
        features=features.transform(X),
        killed=train_in_steps(None, None).decision_function(samples(KILLED)[0]),
        landmark_indices=landmarks.landmark_indices_,
        landmarks=landmarks.decision_function(different_samples()[0]),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
