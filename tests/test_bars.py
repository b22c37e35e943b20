"""`progress=True`: bars on terminals and in notebooks, else plain lines on standard error."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
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
        ("heat s=1", 0.41, "41 % · about 12 min left · best kernel 0.784 · KKT 0.1"),
    ]


class Shown:
    """A kernel of a notebook that keeps what is displayed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bars: list[list[str]] = []
        self.shell = SimpleNamespace(kernel=object(), execution_count=1)
        ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
        vars(ipython)["get_ipython"] = lambda: self.shell
        vars(display)["display"] = self._display
        for module in (ipython, display):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr("dhsk.bars.NotebookBar._last", (-1, None))
        monkeypatch.setattr("dhsk.bars.UPDATE_SECONDS", 0.0)

    def _display(self, shown: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        own = [shown["text/plain"]]
        self.bars.append(own)

        def update(shown: dict[str, str], *, raw: bool) -> None:
            assert raw
            own.append(shown["text/plain"])

        return SimpleNamespace(update=update)


def test_a_cell_of_a_notebook_has_one_bar(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All calls of a cell share it, and the next cell has another; nothing is printed."""
    cells = Shown(monkeypatch)
    for name in ("compute_gram", "cross_validate"):
        CALLS[name](True, tmp_path)
    (bar,) = cells.bars
    assert bar[-1].startswith("cosine (1 of 1) · 100 % · ")
    assert bar[-1].endswith(" s")  # what the call took
    cells.shell.execution_count = 2
    CALLS["HeatSVC"](True, tmp_path)
    assert len(cells.bars) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_a_notebook_shows_unasked_what_takes_over_two_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not what is shorter, is told to be silent, or is called on another thread."""
    cells, now = Shown(monkeypatch), [0.0]
    monkeypatch.setattr("dhsk.bars.QUIET_SECONDS", 2.0)
    monkeypatch.setattr("dhsk.bars.monotonic", lambda: now[0])
    with shown(None) as show:
        for now[0] in (0.5, 1.5):
            show(Progress("tiles", 1, 3))
        assert not cells.bars
        now[0] = 2.5
        with shown(None) as within:  # a part of the call, which says nothing by itself
            within(Progress("parts", 1, 1))
        show(Progress("tiles", 2, 3))
    assert cells.bars == [["tiles 2 of 3 · 66 %"]]
    cells.shell.execution_count = 2
    with dhsk.show_progress(False), shown(None) as show:
        now[0] += 5.0
        show(Progress("tiles", 2, 3))
    monkeypatch.setattr("dhsk.bars.main_thread", lambda: None)
    with shown(None) as show:
        now[0] += 5.0
        show(Progress("tiles", 2, 3))
    assert len(cells.bars) == 1


def test_a_bar_says_that_its_call_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no run that goes on."""
    cells = Shown(monkeypatch)

    def stopped() -> None:
        with shown(True) as show:
            show(Progress("tiles", 1, 3))
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        stopped()
    assert cells.bars == [["tiles 1 of 3 · 33 %", "stopped · tiles 1 of 3"]]


def test_a_real_kernel_shows_a_bar_then_table_and_picture() -> None:
    """The saved cell has these two outputs, and no line of text."""
    needed = "nbclient and ipykernel run notebooks: pip install '.[test]'"
    nbclient = pytest.importorskip("nbclient", reason=needed)
    pytest.importorskip("ipykernel", reason=needed)
    from nbformat import v4

    source = (
        "import dhsk, numpy as np\n"
        "X, y = np.random.default_rng(0).poisson(2.0, (60, 8)) + 1.0, np.arange(60) % 3\n"
        "dhsk.cross_validate(X, y, kernels=['cosine', 'heat'], progress=True)"
    )
    notebook = v4.new_notebook(cells=[v4.new_code_cell(source)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    bar, result = notebook.cells[0].outputs
    assert bar.output_type == "display_data"
    assert ' value="1.000"' in bar.data["text/html"]
    assert result.output_type == "execute_result"
    assert "<table" in result.data["text/html"]
    assert "<svg" in result.data["text/html"]


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
