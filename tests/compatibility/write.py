"""Write one of everything that dhsk keeps on disk, for `test_old_files.py` to open for ever.

    python tests/compatibility/write.py FOLDER

The folder `2026-11` was written by the first version whose formats are kept: a Gram store, a
feature store, both models, the journal and results of both cross-validations, a low-rank training
that was killed half-way, and what was computed from all of them.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from inputs import GRID, KILLED, LOW_RANK, samples

import dhsk


class Killed(BaseException):
    """The training is ended here."""


def write(folder: Path) -> None:
    """Write everything into a new folder."""
    folder.mkdir()
    X, y = samples()
    dhsk.compute_gram(X, "heat", store=folder / "gram", tile=16)
    exact = dhsk.HeatSVC(probability=True).fit(X, y)
    exact.save(folder / "exact.dhsk")
    low_rank = dhsk.NystromSVC(8, random_state=0).fit(X, y)
    low_rank.save(folder / "low-rank.dhsk")
    features = dhsk.NystromFeatures(8, random_state=0).fit(X)
    features.write(X, folder / "features")
    for name, options in (("cv", GRID), ("cv-rank", LOW_RANK)):
        dhsk.cross_validate(X, y, **options, out=folder / "out").to_json(folder / f"{name}.json")
        (folder / "out" / "fits").rename(folder / f"{name}-journal")
        shutil.rmtree(folder / "out")
    np.savez(
        folder / "values.npz",
        gram=np.asarray(dhsk.open_gram(folder / "gram")),
        exact=exact.decision_function(X),
        probability=exact.predict_proba(X),
        low_rank=low_rank.decision_function(X),
        features=features.transform(X),
        killed=killed(folder / "killed"),
    )


def killed(folder: Path) -> Any:
    """Leave the checkpoint of a training in a folder; decisions of one that ran to its end."""
    X, y = samples(KILLED)

    def end(progress: dhsk.Progress) -> None:
        kept = list(folder.glob("newton-*.npz"))
        if kept:
            shutil.copytree(folder, folder.with_name("copy"))
            raise Killed

    def train(progress: Any) -> Any:
        model = dhsk.NystromSVC(60, C=100.0, random_state=0, memory="1GB")
        return model.fit_samples(X, y, progress, journal=folder)

    try:
        train(end)
    except Killed:
        shutil.rmtree(folder)
        folder.with_name("copy").rename(folder)
    else:
        raise AssertionError("it ended before a step was kept")
    return train(None).decision_function(X)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
