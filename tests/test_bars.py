"""`progress=True`: bars on terminals and in notebooks, else plain lines on standard error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.bars import ToldIfLong, shown, shown_on
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
    """Every event that a function hears of is a line, if lines may come at once."""
    monkeypatch.setattr("dhsk.bars.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.bars.QUIET_SHARE", 0.0)
    events: list[Progress] = []
    CALLS[name](events.append, tmp_path / "one")
    assert capsys.readouterr().err == ""
    CALLS[name](True, tmp_path / "two")
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert len(lines) == len(events)
    assert lines[-1].partition(" · ")[2].startswith("100 %")
    assert said.out == ""


@pytest.mark.parametrize("name", ["compute_gram", "cross_validate", "representatives"])
@pytest.mark.parametrize("quiet", [None, False])
def test_none_and_false_show_nothing(
    name: str, quiet: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default is silence."""
    CALLS[name](quiet, tmp_path)
    assert capsys.readouterr().err == ""


def test_all_stages_are_one_bar() -> None:
    """It says what is done, how far all is, the time that is left, and the best so far."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(quiet=True)) as bars:
        show, found = shown_on(bars), []
        for event in (
            Progress("tiles", 0, 3, share=0.0),
            Progress("fits", 1, 10, "KKT 0.1", what="heat s=1", share=0.41, left=700.0, best=0.784),
        ):
            show(event)
            (task,) = bars.tasks
            found.append((task.description, task.completed, task.fields["rest"]))
    assert found == [
        ("tiles 0 of 3", 0.0, "0 %"),
        ("heat s=1", 0.41, "41 % · about 12 min left · best 0.784 · KKT 0.1"),
    ]


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
    assert lines.count("tiles 36 of 36 · 100 %") == 2


@pytest.mark.parametrize("short", [True, False])
def test_calls_after_each_other_are_runs_of_their_own(
    short: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short ones say nothing, however many they are; the time that is left is that of the call."""
    clock = iter(np.arange(300) * (0.3 if short else 3.0))
    now = [0.0]
    monkeypatch.setattr("dhsk.bars.QUIET_SECONDS", 2.0)
    for name in ("monotonic", "working_seconds"):
        monkeypatch.setattr(f"dhsk.bars.{name}", lambda: now[0])
    with shown(True) as show:
        for _ in range(10):
            with shown(show) as call:
                for done in (1, 2, 3):
                    now[0] = float(next(clock))
                    call(Progress("tiles", done, 3))
    lines = capsys.readouterr().err.splitlines()
    long = ["tiles 2 of 3 · 66 % · some seconds left", "tiles 3 of 3 · 100 %"]
    assert lines == ([] if short else 10 * long)


def test_a_silent_fit_that_takes_long_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When that is likely, after some seconds; not of one that ends soon."""
    now = [0.0]
    for name in ("monotonic", "working_seconds"):
        monkeypatch.setattr(f"dhsk.bars.{name}", lambda: now[0])

    def told(seconds: float) -> list[str]:
        caplog.clear()
        now[0], tell = 0.0, ToldIfLong("HeatSVC.fit")
        for done in range(101):
            now[0] = seconds * done / 100
            tell(Progress("columns", done, 100, "9 support vectors"))
        return [record.getMessage() for record in caplog.records]

    (line,) = told(600.0)
    assert line.startswith("HeatSVC.fit: columns ")
    assert "9 support vectors" in line
    assert "10 min left" in line
    assert line.endswith("; progress=True shows how far it is")
    assert not told(50.0)


@pytest.mark.parametrize("silent", [True, False])
def test_fits_say_it(
    silent: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that were told to show progress, or not to, say nothing more."""
    monkeypatch.setattr("dhsk.bars.LONG_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.bars.SURE_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.bars.FIRST_SECONDS", 0.0)
    rng = np.random.default_rng(0)
    X, y = rng.random((5_000, 3)), rng.integers(0, 2, 5_000)
    model = dhsk.SVC(tol=0.1)
    model.fit(X, y, progress=None if silent else (lambda _: None))
    assert len(caplog.records) == silent
    model.fit(X, y, progress=False)
    assert len(caplog.records) == silent
