"""Small fits of `dhsk.SVC`, and fits of many small classes, beside scikit-learn's `SVC`.

Run as ``python tests/benchmarks/small_fits.py``: prints the shortest seconds of several fits with
the parameters as they come, each pair of fits one after the other, and of how many samples both
predict the same class.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dhsk

REPEATS: Final = 5


def sets() -> Iterator[tuple[str, NDArray[np.float64], NDArray[Any]]]:
    """Name, scaled samples and classes of each set."""
    for name, load in (
        ("iris", load_iris),
        ("breast cancer", load_breast_cancer),
        ("digits", load_digits),
    ):
        X, y = load(return_X_y=True)
        yield name, StandardScaler().fit_transform(X), y
    rng = np.random.default_rng(0)
    for classes, each in ((20, 50), (100, 10), (300, 6)):
        centres = rng.normal(scale=1.5, size=(classes, 20))
        X = np.repeat(centres, each, axis=0) + rng.normal(size=(classes * each, 20))
        yield f"{classes} classes of {each}", X, np.repeat(np.arange(classes), each)


def main() -> None:
    """Print and record all sets."""
    parsed(parser_of(__doc__))
    for name, X, y in sets():
        models: tuple[Any, ...] = (dhsk.SVC(), SVC())
        seconds: list[list[float]] = [[], []]
        for _ in range(1 + REPEATS):  # the first loads and compiles
            for model, own in zip(models, seconds, strict=True):
                begin = time.perf_counter()
                model.fit(X, y)
                own.append(time.perf_counter() - begin)
        ours, peer = (min(own[1:]) for own in seconds)
        same = np.mean(models[0].predict(X) == models[1].predict(X))
        record("svc", f"{name}, {X.shape[0]:,} x {X.shape[1]}", ours, "s", {"SVC": peer})
        print(f"  {same:.2%} of the predictions are the same")


if __name__ == "__main__":
    main()
