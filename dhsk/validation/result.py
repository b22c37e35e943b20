"""What a cross-validation found: rows, summary, winner; written as JSON, CSV and a report page."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dhsk.errors import InputError
from dhsk.files import parse_json, written_beside
from dhsk.models.exact import SvcModel
from dhsk.report import write_report

SCHEMA = 2

CELL = ("kernel", "label", "time_scale", "time", "sigma", "C")
"""Columns that name a cell of the grid."""


OF_SOME = ("C_scaled", "rank", "trace_error")
"""More such columns: C in units of the spread of the samples, None where it was not chosen so, and
those that only fits of low rank have."""


@dataclass(frozen=True)
class CvResult:
    """Outcome of `cross_validate`.

    Attributes
    ----------
    data
        Everything, as written to results.json: plain numbers, strings, lists and dicts.
    model_
        The best cell fitted on all samples, if that was asked for.

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

    data: Mapping[str, Any]
    model_: SvcModel | None = None

    @property
    def results_(self) -> list[dict[str, Any]]:
        """One row per kernel, C and fold: score, and what proves and bounds it."""
        return list(self.data["rows"])

    @property
    def summary_(self) -> list[dict[str, Any]]:
        """One row per kernel and C: mean and standard deviation of the score over the folds."""
        return list(self.data["summary"])

    @property
    def best_(self) -> dict[str, Any]:
        """Row of `summary_` that won, among the cells that converged.

        That with the highest mean score, of equals the first; with ``time_scale="auto"`` that with
        the fewest support vectors within one standard error of it. ``data["choice"]`` says which.
        """
        return dict(self.data["best"])

    @property
    def best_score_(self) -> float:
        """Mean score of the best cell."""
        return float(self.data["best"]["mean"])

    def to_json(self, path: str | Path) -> None:
        """Write everything as JSON.

        Parameters
        ----------
        path
            File to write; replaced in one step if it exists.
        """
        _replace(Path(path), json.dumps(self.data, indent=1, allow_nan=False) + "\n")

    def to_csv(self, path: str | Path) -> None:
        """Write `results_` as a table.

        Parameters
        ----------
        path
            File to write; replaced in one step if it exists.
        """
        write_rows(self.data["rows"], Path(path))

    def report(self, path: str | Path) -> None:
        """Write one self-contained HTML page.

        Parameters
        ----------
        path
            File to write; replaced in one step if it exists.
        """
        write_report(self.data, path)

    @classmethod
    def from_json(cls, path: str | Path) -> "CvResult":
        """Read what `to_json` wrote.

        Parameters
        ----------
        path
            A results.json.

        Returns
        -------
        CvResult
            The result.

        Raises
        ------
        InputError
            The file is of another schema.
        """
        data = parse_json(Path(path).read_text())
        if data.get("schema") != SCHEMA:
            raise InputError(f"{path} has schema {data.get('schema')}, this version reads {SCHEMA}")
        return cls(data)


def remove_rows(path: Path | None) -> None:
    """Remove a table that an earlier grid left, if there is one."""
    if path is not None and path.exists():  # a read-only disk refuses to remove even what is not
        path.unlink()


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows of results as a table.

    Parameters
    ----------
    rows
        At least one, all with the same columns.
    path
        File to write; replaced in one step if it exists.
    """
    with written_beside(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def summarise(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Gather rows of the same cell over the folds.

    Parameters
    ----------
    rows
        One per cell and fold.

    Returns
    -------
    list of dict
        One per cell, in order of first appearance.
    """
    cells: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault(tuple(row[name] for name in CELL), []).append(row)
    return [
        dict(zip(CELL, cell, strict=True)) | _over_folds(members) for cell, members in cells.items()
    ]


def _over_folds(rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    scores = np.array([row["score"] for row in rows])
    return {
        "mean": float(scores.mean()),
        "std": float(scores.std()),
        "n_support": float(np.mean([row["n_support"] for row in rows])),
        "kkt": float(max(row["kkt"] for row in rows)),
        "gap": float(max(row["gap"] for row in rows)),
        "converged": all(row["converged"] for row in rows),
        "margin": min(_known(rows, "margin"), default=None),
        "vc": max(_known(rows, "vc"), default=None),
        "effective": min(_known(rows, "effective"), default=None),
        "seconds": float(sum(row["seconds"] for row in rows)),
    } | {name: rows[0][name] for name in OF_SOME if name in rows[0]}


def _known(rows: list[Mapping[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def _replace(path: Path, text: str) -> None:
    with written_beside(path, "w", encoding="utf-8") as file:
        file.write(text)
