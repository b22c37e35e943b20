"""Write one of everything that dhsk keeps for good, for `test_stored.py` to open.

    python tests/compatibility/write.py FOLDER

The folder `files` was written so: a Gram store, a feature store, both models, the results of both
cross-validations, and what was computed from them. A change of a format needs a new number of its
schema and a new folder.
"""

import argparse
from pathlib import Path
from typing import Any, Final

import numpy as np

import dhsk

GRID: Final[dict[str, Any]] = {"time_scale": [0.7, 1.4], "C": [1.0, 10.0], "cv": 3, "refit": True}
LOW_RANK: Final[dict[str, Any]] = {**GRID, "low_rank": dhsk.LowRank([4, 8])}


def samples(n: int = 48) -> tuple[Any, Any]:
    """Counts of 6 features, (n, 6), in three classes."""
    X = np.add.outer(7 * np.arange(n) ** 2, np.arange(6) ** 3) % 11 + 0.0
    y = np.array(["a", "b", "c"])[np.arange(n) * 5 % 7 % 3]
    X[y == "b", :2] += 4
    X[y == "c", 4:] += 4
    return X, y


def write(folder: Path) -> None:
    """Write everything into a new folder."""
    folder.mkdir()
    X, y = samples()
    gram = dhsk.compute_gram(X, "heat", store=folder / "gram", tile=16)
    exact = dhsk.HeatSVC(1.0, 1.0)
    exact._with_sigmoids = True  # as `dhsk train --probability`
    exact.fit(X, y).save(folder / "exact.dhsk")
    low_rank = dhsk.NystromSVC(8, 1.0, time_scale=1.0, random_state=0).fit(X, y)
    low_rank.save(folder / "low-rank.dhsk")
    features = dhsk.NystromFeatures(8, time_scale=1.0, random_state=0).fit(X)
    features.write(X, folder / "features")
    for name, options in (("cv", GRID), ("cv-rank", LOW_RANK)):
        dhsk.cross_validate(X, y, **options).to_json(folder / f"{name}.json")
    np.savez(
        folder / "values.npz",
        gram=np.asarray(gram),
        exact=exact.decision_function(X),
        probability=exact.predict_proba(X),
        low_rank=low_rank.decision_function(X),
        features=features.transform(X),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
