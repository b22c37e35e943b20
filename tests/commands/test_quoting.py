"""Commands that are proposed can be typed as they are, in the shells of Windows too."""

from typing import Any

import numpy as np
import pytest

from dhsk.errors import InputError, optional_module


def test_the_most_different_samples_are_opened_by_no_command(run: Any) -> None:
    """Windows has no head."""
    run("--version")
    rows = np.random.default_rng(0).random((60, 3))
    np.save("a.npy", rows[:30])
    np.save("b.npy", rows[30:])
    out = run("compare", "a.npy", "b.npy", "--out", "d")[1]
    assert "or:     open d/witness.csv\n" in out


def test_extras_are_in_double_quotes() -> None:
    """Which every shell takes off, as zsh would look for files of that pattern."""
    with pytest.raises(InputError, match=r'pip install "dhsk\[s3\]"$'):
        optional_module("dhsk_lacks_this", "s3", "it needs more")
