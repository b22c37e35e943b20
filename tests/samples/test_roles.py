"""What columns of tables are guessed to be for takes time in proportion to their number."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dhsk.samples.paths import Origin
from dhsk.samples.readers import describe


def calls_of(path: Path) -> int:
    """Number of calls of Python functions by which a table is described."""
    count = 0

    def counted(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        describe(Origin.of(str(path)))
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("kind", ["words", "gaps"])
def test_work_is_in_proportion_to_the_columns(tmp_path: Path, kind: str) -> None:
    """What is guessed of all columns is computed once, and the file's beginning is parsed once."""
    rng = np.random.default_rng(0)
    found = []
    for n in (4, 16):
        values = rng.integers(0, 3, (30, n)).astype(float)
        values[rng.random(values.shape) < 0.1] = np.nan
        if kind == "words":
            values = np.array(["low", "mid", "high"])[np.nan_to_num(values).astype(int)]
        table = pd.DataFrame(values).add_prefix("q").assign(y=["u", "v"] * 15)
        table.to_csv(tmp_path / f"{n}.csv", index=False)
        found.append(calls_of(tmp_path / f"{n}.csv"))
    assert found[1] < 4.5 * found[0]  # 4 times the columns
