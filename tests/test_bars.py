"""`progress=True`: bars on terminals and in notebooks, else plain lines on standard error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.bars import shown, shown_on
from dhsk.progress import Progress

rng = np.random.default_rng(0)
X = rng.poisson(2.0, size=(60, 8)) + 1.0
Y = np.repeat([0, 1, 2], 20)

CALLS: dict[str, Callable[[Any, Path], Any]] = {
    "compute_gram": lambda show, path: dhsk.compute_gram(
        X, "cosine", store=path / "gram", progress=show
    ),
    "cross_validate": lambda show, _: dhsk.cross_validate(
        X, Y, kernels="cosine", C=1, progress=show
    ),
    "learning_curve": lambda show, _: dhsk.learning_curve(
        X, Y, kernels="cosine", C=1, progress=show
    ),
    "representatives": lambda show, _: dhsk.representatives(X, Y, 3, progress=show),
    "HeatSVC": lambda show, _: dhsk.HeatSVC().fit_samples(X, Y, progress=show),
    "NystromSVC": lambda show, _: dhsk.NystromSVC(10).fit_samples(X, Y, progress=show),
    "NystromFeatures": lambda show, path: (
        dhsk.NystromFeatures(10).fit(X).write(X, path / "features", progress=show)
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_true_shows_what_a_function_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every stage that a function hears of is a line, if lines may come at once."""
    monkeypatch.setattr("dhsk.bars.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.bars.QUIET_SHARE", 0.0)
    events: list[Progress] = []
    CALLS[name](events.append, tmp_path / "one")
    assert capsys.readouterr().err == ""
    CALLS[name](True, tmp_path / "two")
    said = capsys.readouterr()
    lasting = {event.stage for event in events if event.total > 1}
    assert lasting <= {line.partition(":")[0] for line in said.err.splitlines()}
    assert said.out == ""


@pytest.mark.parametrize("name", ["compute_gram", "cross_validate", "representatives"])
@pytest.mark.parametrize("quiet", [None, False])
def test_none_and_false_show_nothing(
    name: str, quiet: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default is silence."""
    CALLS[name](quiet, tmp_path)
    assert capsys.readouterr().err == ""


def test_bars_count_the_units_of_each_stage() -> None:
    """A stage is a bar, whose total and detail follow the events."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(quiet=True)) as bars:
        show = shown_on(bars)
        show(Progress("tiles", 0, 3))
        show(Progress("fits", 1, 10, "KKT 0.1"))
        show(Progress("tiles", 3, 3))
        found = [(t.description, t.completed, t.total, t.fields["detail"]) for t in bars.tasks]
    assert found == [("tiles", 3, 3, ""), ("fits", 1, 10, "KKT 0.1")]


def test_errors_pass_through_the_bars() -> None:
    """What goes wrong under a bar is raised."""
    with pytest.raises(ValueError, match="here"), shown(True):
        raise ValueError("here")
