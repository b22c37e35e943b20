"""Files of every format, drawn by a grammar: right values, or an error that names the file."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
sys.path.insert(0, str(Path(__file__).parent))

import readers

CASES = 40


@pytest.mark.parametrize("name", readers.FORMATS)
def test_readers_give_right_values_or_an_error_that_names_the_file(name: str) -> None:
    """See readers.py, which draws as many cases as it is told to."""
    outcomes = readers.draw_cases(name, CASES)
    assert sum(outcomes.values()) >= CASES
    assert outcomes["read"] > 0
