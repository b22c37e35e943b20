"""Seconds of a grid, with those before an interrupt."""

from pathlib import Path
from time import sleep

import pytest

from dhsk.validation.spent import spent


def interrupted(journal: Path | None) -> None:
    """A call of some time."""
    with spent(journal):
        sleep(0.05)
        raise KeyboardInterrupt


def test_an_interrupted_call_counts(tmp_path: Path) -> None:
    """Each adds its own; one that ends keeps nothing, and without a journal none does."""
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            interrupted(tmp_path)
    with spent(tmp_path) as seconds:
        assert 0.1 <= seconds() < 5.0
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        interrupted(None)
    with spent(None) as seconds:
        assert seconds() < 0.05
