"""What `cross_validate` returns: typed results that can be printed, tabled, written and read."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from dhsk.errors import InputError
from dhsk.files import parse_json
from dhsk.objects.places import Place, parse_place, written
from dhsk.report import write_report
from dhsk.report.cells import results_html
from dhsk.report.words import metric, named, score
from dhsk.results.columns import Row, flat
from dhsk.results.parts import Results
from dhsk.results.repeats import best_of_families, repeats_of, spread_of_repeats
from dhsk.results.schema import encoded, read_results
from dhsk.validation.out_of_fold import HeldOutPredictions, OutOfFold

_OF_GRID_SEARCH: Final = {
    "best_estimator_": ": it is there after cross_validate(..., refit=True) only, as the taken "
    "candidate was not fitted on all samples",
    "best_params_": ": kernel and C that were taken are in best_, a dict",
    "best_index_": ": the candidate that was taken is best_, a row of summary_",
    "cv_results_": ": summary_ has a row for each candidate, and to_frame() one for each fold",
    "predict": ": result.best_estimator_ predicts, after cross_validate(..., refit=True)",
    "score": ": result.best_estimator_ scores, after cross_validate(..., refit=True)",
}
"""Where a result has what `GridSearchCV` of scikit-learn has, by its names there."""


@dataclass(frozen=True, repr=False, kw_only=True)
class CvResult(Results):
    """Outcome of `cross_validate`: typed parts, see `Results`, and the tables made of them.

    Attributes
    ----------
    model_
        The cell that was taken, `best_`, fitted on all samples; None without ``refit``. It takes
        mapped rows: give new samples to `best_estimator_`.
    held_out_
        Predictions of all cells for held-out samples, see `out_of_fold`; None if read from a file.
    estimator_parameters_
        Parameters of `best_estimator_` that the model does not hold; None without a model.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> result = dhsk.cross_validate(X[:500], y[:500], time_scale=0.5, C=[1, 10], cv=3)
    >>> len(result.results_)
    6
    >>> round(result.best_score_, 1)
    1.0
    >>> result.report("report.html")
    """

    model_: Any = field(default=None, compare=False)
    held_out_: HeldOutPredictions | None = field(default=None, compare=False)
    estimator_parameters_: Mapping[str, Any] | None = field(default=None, compare=False)

    def __getattr__(self, name: str) -> Any:
        """Say where this result has what is asked for by a name of `GridSearchCV`."""
        has = _OF_GRID_SEARCH.get(name, "")
        raise AttributeError(f"CvResult has no {name!r}{has}", name=name, obj=self)

    @property
    def data(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and dicts: the content of results.json."""
        return encoded(self)

    @property
    def results_(self) -> list[dict[str, Any]]:
        """One row per kernel, C and fold: its score and its certificate."""
        return [flat(row) for row in self.rows]

    @property
    def summary_(self) -> list[dict[str, Any]]:
        """One row per kernel and C: mean and standard deviation of the score over the folds.

        With repeats there is also the standard deviation of their means, ``std_of_repeats``.
        """
        if self.repeats == 1:
            return [flat(cell) for cell in self.summary]
        return [
            flat(cell) | {"std_of_repeats": spread_of_repeats(self, cell)} for cell in self.summary
        ]

    @property
    def repeats_(self) -> list[dict[str, Any]]:
        """One row per kernel, C and repeat: mean and standard deviation over the repeat's folds."""
        return repeats_of(self)

    @property
    def best_by_kernel_(self) -> list[dict[str, Any]]:
        """One row per family of kernels: the mean of the repeats' best mean scores.

        This is what most papers report. ``scores`` has the best of each repeat, ``std`` their
        standard deviation, ``label`` and ``C`` the cell with the highest mean over all repeats.
        """
        return best_of_families(self)

    def out_of_fold(self, cell: Mapping[str, Any] | None = None) -> OutOfFold:
        """Return what a cell predicted for each sample while that was held out.

        Parameters
        ----------
        cell
            A row of `summary_` or `best_by_kernel_`, of which "label", "C" and "rank" are used;
            None for the cell that was taken.

        Returns
        -------
        OutOfFold
            Arrays `samples`, `true`, `predicted`, `decisions` and `fold`, and the indices
            `errors`. Decisions are kept for the best cells of each kernel, 32 MiB of them and one
            cell at least; for others they are None.

        Raises
        ------
        InputError
            The grid has no such cell, or the result was read from a file, which has none of this.

        Examples
        --------
        >>> import dhsk
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.metrics import confusion_matrix
        >>> X, y = load_digits(return_X_y=True)
        >>> result = dhsk.cross_validate(X[:500], y[:500], time_scale=0.5, C=10, cv=3)
        >>> found = result.out_of_fold()
        >>> found.errors.tolist()
        [5, 9, 37, 69, 77, 129, 291, 378, 439, 442, 480, 492]
        >>> int(confusion_matrix(found.true, found.predicted).trace())
        488
        """
        if self.held_out_ is None:
            raise InputError(
                "a result that was read from a file has no predictions: run cross_validate again"
            )
        if cell is None:
            return self.held_out_.of(self.best.point)
        return self.held_out_.named(cell["label"], cell["C"], cell.get("rank"))

    @property
    def best_estimator_(self) -> Any:
        """The cell that was taken, fitted on all samples: `HeatSVC`, of low rank `NystromSVC`.

        Needs ``refit=True``; without it there is an AttributeError, as in scikit-learn.
        """
        if self.model_ is None:
            raise AttributeError  # __getattr__ says more
        import dhsk  # estimators stand above this room; the package's front door knows them

        kind: Any = dhsk.HeatSVC if self.low_rank is None else dhsk.NystromSVC
        own = {"kernel": self.model_.kernel, "sphere_map": self.model_.map_name}
        return kind.of_model(self.model_, **own, **(self.estimator_parameters_ or {}))

    @property
    def best_(self) -> dict[str, Any]:
        """Row of `summary_` that was taken, among the cells that converged.

        The best of the simplest kernel within one standard error of the highest mean, or with
        ``Refit("best")`` the highest mean; `decision` says why.
        """
        return flat(self.best)

    @property
    def best_score_(self) -> float:
        """Mean score of the cell that was taken."""
        return self.best.mean

    def __repr__(self) -> str:
        return f"{self._line}\nadvice: {self.advice}"

    @property
    def _line(self) -> str:
        return (
            f"CvResult(taken: {named(self.best)}; mean {metric(self)} {score(self.best.mean)}; "
            f"{len(self.summary)} candidates, {self.folds.n} folds)"
        )

    def _repr_html_(self) -> str:
        """Advice, a table of the first cells and heat maps of all, for notebooks."""
        return results_html(self, self._line)

    def to_frame(self) -> Any:
        """Return `results_` as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per kernel, C and fold.

        Raises
        ------
        InputError
            pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise InputError(
                "to_frame needs pandas, which is not installed: install it, or use results_"
            ) from error
        return pandas.DataFrame(self.results_)

    def to_json(self, path: str | Place) -> None:
        """Write everything as JSON.

        Parameters
        ----------
        path
            File to write; replaced in one step if it exists.
        """
        with written(parse_place("path", path), "w", encoding="utf-8") as file:
            file.write(json.dumps(self.data, indent=1, allow_nan=False) + "\n")

    def to_csv(self, path: str | Place) -> None:
        """Write `results_` as a table.

        Parameters
        ----------
        path
            File to write; replaced in one step if it exists.
        """
        earlier = (row for one in self.rounds for row in one.rows)
        write_rows([*self.rows, *earlier], parse_place("path", path))

    def report(self, path: str | Place) -> None:
        """Write one self-contained HTML page.

        Parameters
        ----------
        path
            File to write; replaced in one step if it exists.
        """
        write_report(self, path)

    @classmethod
    def from_json(cls, path: str | Place) -> "CvResult":
        """Read what `to_json` wrote.

        Parameters
        ----------
        path
            A results.json.

        Returns
        -------
        CvResult
            The result, without its model.

        Raises
        ------
        InputError
            The file is damaged, or of another schema than this version writes.
        """
        try:
            return read_results(cls, parse_json(parse_place("path", path).read_bytes()))
        except ValueError as error:
            raise InputError(f"{path}: {error}") from error


def remove_rows(path: Place | None) -> None:
    """Remove a table that an earlier grid left, if there is one."""
    if path is not None and path.exists():  # a read-only disk fails even without the file
        path.unlink()


def write_rows(rows: Sequence[Row], path: Place) -> None:
    """Write one row of results or more as a table; replace an existing file."""
    with written(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(flat(rows[0])))
        writer.writeheader()
        writer.writerows(map(flat, rows))
