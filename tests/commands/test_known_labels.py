"""Scores of predictions whose labels are known, beside scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    precision_recall_fscore_support,
)

from dhsk.commands.known_labels import KnownLabels


def test_scores_are_those_of_scikit_learn(capsys: pytest.CaptureFixture[str]) -> None:
    """Also of a label that is no class, and of a class that no label is."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["a", "b", "c", "other"], 200, p=[0.5, 0.3, 0.15, 0.05])
    predicted = np.where(rng.random(200) < 0.7, truth, rng.choice(["a", "b", "d"], 200))
    predicted = np.where(predicted == "other", "c", predicted)
    known = KnownLabels(truth, np.array(["a", "b", "c", "d", "never"]))
    known.add(predicted[:70])
    known.add(predicted[70:])
    known.say()
    first, second, head, *lines = capsys.readouterr().out.splitlines()
    right = int((truth == predicted).sum())
    assert (
        first == f"accuracy {accuracy_score(truth, predicted):.4f}: {right} of 200 labels are right"
    )
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true"):
        balanced = balanced_accuracy_score(truth, predicted)
    macro = f1_score(truth, predicted, average="macro")
    assert second == f"balanced accuracy {balanced:.4f}, macro F1 {macro:.4f}"
    assert head.split() == ["class", "samples", "recall", "precision", "F1"]
    names = ["a", "b", "c", "other", "d"]
    assert [line.split()[0] for line in lines] == names
    by_class = precision_recall_fscore_support(truth, predicted, labels=names, zero_division=0)
    for line, precision, recall, f1, of in zip(lines, *by_class, strict=True):
        name, samples, *scores = line.split()
        expected = [f"{recall:.3f}", f"{precision:.3f}", f"{f1:.3f}"]
        expected[1] = "–" if name == "other" else expected[1]
        expected[0] = "–" if name == "d" else expected[0]
        assert (samples, scores) == (f"{of}", expected)
