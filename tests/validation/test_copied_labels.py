"""A column that is the labels, under whatever name and in whatever numbers, is named."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer

import dhsk
from dhsk.commands.cli import commands
from dhsk.errors import InputWarning
from dhsk.samples import open_samples
from dhsk.samples.looks import warn_of_copied_labels

X, Y = load_breast_cancer(return_X_y=True)
QUICK: dict[str, Any] = {"kernels": "cosine", "C": 1.0, "cv": 2}


def told(samples: Any, y: Any) -> list[str]:
    """Our warnings of a look at samples and classes."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_copied_labels(open_samples(samples), np.asarray(y))
    return [str(one.message) for one in found if issubclass(one.category, InputWarning)]


def test_the_command_names_the_column(tmp_path: Path) -> None:
    """The labels are in a file of their own, and so are taken for a feature in the table."""
    names = [*(f"f{i}" for i in range(30)), "target"]
    rows = [",".join(map(repr, [*x, y])) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    (tmp_path / "bc.csv").write_text("\n".join([",".join(names), *rows]))
    (tmp_path / "y.csv").write_text("\n".join(["target", *map(str, Y)]))
    words = ["cv", str(tmp_path / "bc.csv"), "--labels", f"{tmp_path / 'y.csv'}:target"]
    words += ["--kernel", "linear", "--C", "1e-4", "--folds", "2", "--out", str(tmp_path / "o")]
    for more in ([], ["--drop-column", "target", "--overwrite"]):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            CliRunner().invoke(commands, [*words, *more], catch_exceptions=False)
        said = [str(one.message) for one in found if "alone tells" in str(one.message)]
        assert len(said) == (0 if more else 1)
        if said:
            assert "column target alone tells every label: is it a copy of the labels?" in said[0]
            assert "--drop-column target" in said[0]


def test_a_search_in_python_says_so_once() -> None:
    """Without names the column has its number."""
    copied = np.column_stack([X, np.where(Y == 1, 7.5, 3.0)])
    with pytest.warns(InputWarning, match="alone tells") as found:
        dhsk.cross_validate(copied, Y, **QUICK)
    (said,) = (str(one.message) for one in found if "alone tells" in str(one.message))
    assert "column 30 (counted from 0)" in said
    assert "--drop-column" not in said


@pytest.mark.parametrize("y", [np.repeat(np.arange(3), 700), np.arange(2100) % 3])
def test_all_rows_are_looked_at(y: Any) -> None:
    """Sorted by class or not; a single other value is enough for silence."""
    table = np.random.default_rng(0).random((2100, 4))
    table[:, 2] = np.array([5.0, 0.0, 2.0])[y]
    table[:, 3] = 1.0
    assert len(told(table, y)) == 1
    assert "column 2 " in told(table, y)[0]
    table[-1, 2] = 9
    assert told(table, y) == []
    table[:, 2] = np.minimum(y, 1)  # two classes have one value
    assert told(table, y) == []


def test_samples_of_no_class_do_not_count() -> None:
    """Those of classes that are left out have any value."""
    y = np.r_[np.arange(40) % 2, -1, -1]
    table = np.random.default_rng(0).random((42, 3))
    table[:, 1] = np.where(y < 0, 17, y)
    assert len(told(table, y)) == 1
    assert told(table[:10], y[:10]) == []
    assert told(np.zeros((42, 3)), y) == []


def test_repeated_samples_are_warned_of() -> None:
    """Twice the same, and in other folds; not where groups keep them together, nor of categories.

    The accuracy of labels by chance is above chance then.
    """
    rng = np.random.default_rng(0)
    X, y = np.tile(rng.random((40, 5)), (2, 1)), np.tile(rng.integers(0, 2, 40), 2)
    grid: dict[str, Any] = {"kernels": "linear", "C": 1.0, "cv": 2}
    with pytest.warns(dhsk.InputWarning, match=r"80 of 80 samples equal others") as said:
        dhsk.cross_validate(X, y, **grid)
    assert len(said) == 1
    groups = np.unique(X, axis=0, return_inverse=True)[1]
    dhsk.cross_validate(X, y, groups=groups, **grid)
    few_counts = np.tile(rng.multinomial(4, [0.3, 0.3, 0.4], 40), (2, 1))
    dhsk.cross_validate(few_counts / 4.0, y, **grid)
    few = np.concatenate([X[:40], X[:1] + 0.1, X[:1]])
    dhsk.cross_validate(few, np.arange(42) % 2, **grid)
    assert open_samples(few).n_repeated == 0  # none was read
