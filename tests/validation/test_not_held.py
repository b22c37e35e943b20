"""Grids whose stored values do not fit the memory: the rows of those that keep them in it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.models.fit_plan import plan_fits

SIZES = [160, 90, 50, 20]
GRID: dict[str, Any] = {"time_scale": [0.7, 1.2], "C": [1.0, 10.0], "cv": 3}


@pytest.fixture
def texts() -> tuple[Any, Any]:
    """Sparse counts of four classes of different sizes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), SIZES)
    words = rng.dirichlet(np.full(200, 0.1), 4)
    X = np.stack([rng.multinomial(12, 0.6 * words[c] + 0.4 * words.mean(axis=0)) for c in y])
    order = rng.permutation(len(y))
    return csr_array(X[order].astype(float)), y[order]


def without_seconds(result: dhsk.CvResult) -> list[dict[str, Any]]:
    """The table, but for what a clock said."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in result.results_]


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan holds stored values, and only small pairs fit beside the largest."""

    def planned(*args: Any, **options: Any) -> Any:
        plan = plan_fits(*args, **options)
        return replace(plan, held=False, at_once=2, shared=plan.room + 12 * 120 * 120)

    monkeypatch.setattr("dhsk.validation.exact.plan_fits", planned)


@pytest.mark.slow
def test_rows_are_those_of_values_in_memory(texts: Any, tight: None, tmp_path: Path) -> None:
    """On threads that share the memory, and resumed after one of the pairs was lost."""
    found = dhsk.cross_validate(*texts, **GRID, out=dhsk.Output(store=tmp_path / "store"))
    with pytest.MonkeyPatch.context() as usual:
        usual.setattr("dhsk.validation.exact.plan_fits", plan_fits)
        held = dhsk.cross_validate(*texts, **GRID, out=dhsk.Output(store=tmp_path / "store"))
    assert without_seconds(found) == without_seconds(held)
    assert found.data["confusion"] == held.data["confusion"]
