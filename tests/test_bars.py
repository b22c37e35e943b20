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


def test_calls_in_a_block_use_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    """None and True are what the block shows, once; a function and False are the call's own."""
    inside: list[Progress] = []
    own: list[Progress] = []
    with dhsk.show_progress(inside.append) as show:
        for quiet in (False, own.append):
            dhsk.representatives(X, Y, 3, repeats=1, progress=quiet)
        assert not inside
        for loud in (None, True):
            dhsk.representatives(X, Y, 3, repeats=1, progress=loud)
        show(Progress("own", 1, 1))
    assert inside == [*own, *own, Progress("own", 1, 1)]
    assert own[-1] == Progress("clusterings", 3, 3)
    dhsk.representatives(X, Y, 3, repeats=1)
    assert len(inside) == 2 * len(own) + 1
    assert capsys.readouterr().err == ""


def test_a_fit_in_a_block_shows_its_own_stages_only() -> None:
    """Not the blocks of its passes, which are stages of two seconds and would restart its clock."""
    told: list[Progress] = []
    inside: list[Progress] = []
    dhsk.HeatSVC().fit(X, Y, progress=told.append)
    with dhsk.show_progress(inside.append):
        model = dhsk.HeatSVC().fit(X, Y)
        assert {event.stage for event in inside} == {event.stage for event in told}
        inside.clear()
        model.predict(X)
    assert inside[-1] == Progress("predictions", 60, 60)


def test_a_block_shows_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of a call that asks for bars itself."""
    monkeypatch.setattr("dhsk.bars.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.bars.QUIET_SHARE", 0.0)
    G = dhsk.compute_gram(X, "heat", tile=8)
    with dhsk.show_progress():
        _ = G @ np.ones(60)
        G.mean(progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" (")[0] for line in lines].count("tiles: 36 of 36") == 2


@pytest.mark.parametrize("short", [True, False])
def test_a_stage_that_begins_again_starts_its_clock(
    short: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short passes after each other say nothing, however many they are."""
    clock = iter(np.arange(30) * (0.9 if short else 3.0))
    monkeypatch.setattr("dhsk.bars.QUIET_SECONDS", 2.0)
    monkeypatch.setattr("dhsk.bars.monotonic", lambda: float(next(clock)))
    with shown(True) as show:
        for _ in range(10):
            for done in (1, 2, 3):
                show(Progress("tiles", done, 3))
    lines = capsys.readouterr().err.splitlines()
    long = ["tiles: 2 of 3 (66 %), 3 s", "tiles: 3 of 3 (100 %), 6 s"]
    assert lines == ([] if short else 10 * long)


def test_a_bar_that_begins_again_starts_its_clock() -> None:
    """Its time is that of the last pass."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    times = iter([0.0, 1.0, 2.0, 10.0, 11.0, 13.0])
    now = [0.0]
    with Bars(console=Console(quiet=True), get_time=lambda: now[0]) as bars:
        show = shown_on(bars)
        for done in (1, 2, 3, 1, 2, 3):
            now[0] = next(times)
            show(Progress("tiles", done, 3))
        assert bars.tasks[0].finished_time == 3.0
