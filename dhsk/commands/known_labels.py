"""What `dhsk predict` says of its predictions where the labels of the samples are known."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.commands.console import print_table, say
from dhsk.models.problem import coded

_SHOWN: Final = 30
"""Most classes that the table has."""


class KnownLabels:
    """Numbers of samples of each label, predicted or known, and of those that are right.

    Parameters
    ----------
    labels
        Labels of all samples, (N,).
    classes
        Labels that are predicted, of the same kind.
    """

    def __init__(self, labels: NDArray[Any], classes: NDArray[Any]) -> None:
        self._classes, codes = coded(np.concatenate([classes, labels]))
        self._labels = codes[len(classes) :]
        self._done = 0
        self._of, self._taken, self._right = np.zeros((3, len(self._classes)), np.int64)

    def add(self, predicted: NDArray[Any]) -> None:
        """Count the predictions of the next samples."""
        known = self._labels[self._done : self._done + len(predicted)]
        found = np.searchsorted(self._classes, predicted)
        self._of += self._counted(known)
        self._taken += self._counted(found)
        self._right += self._counted(known[known == found])
        self._done += len(predicted)

    def _counted(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(codes, minlength=len(self._classes))

    def say(self) -> None:
        """Print scores, as scikit-learn defines them, and a line for each class."""
        right, of, taken = self._right, self._of, self._taken
        n, hits = self._done, int(right.sum())
        say(f"accuracy {hits / n:.4f}: {hits:,} of {n:,} labels are right")
        f1, some = 2 * right / np.maximum(1, of + taken), of > 0
        recall, precision = right / np.maximum(1, of), right / np.maximum(1, taken)
        mean = f1[some | (taken > 0)].mean()
        say(f"balanced accuracy {recall[some].mean():.4f}, macro F1 {mean:.4f}")
        rows = [
            (
                self._classes[k],
                f"{of[k]:,}",
                f"{recall[k]:.3f}" if of[k] else "–",
                f"{precision[k]:.3f}" if taken[k] else "–",
                f"{f1[k]:.3f}",
            )
            for k in np.argsort(-of, kind="stable")
            if of[k] or taken[k]
        ]
        print_table(["class", "samples", "recall", "precision", "F1"], rows[:_SHOWN])
        if len(rows) > _SHOWN:
            say(f"(the {_SHOWN} largest of {len(rows):,} classes)")
