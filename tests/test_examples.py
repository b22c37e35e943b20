"""The examples in the docstrings of public names run, and give what they show."""

import doctest
import inspect
import io
import warnings
from pathlib import Path
from typing import Any

import pytest

import dhsk

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def documented(thing: Any) -> list[Any]:
    """A function, or a class with the methods and properties that it has of this package."""
    if not inspect.isclass(thing):
        return [thing]
    own = [base for base in thing.__mro__ if base.__module__.startswith("dhsk")]
    members = [member for base in own for name, member in vars(base).items() if name[0] != "_"]
    return [thing, *members]


def examples_of(thing: Any, name: str) -> doctest.DocTest:
    """What the docstring of one thing shows, with nothing imported but what it imports."""
    text = inspect.getdoc(thing) or ""
    return doctest.DocTestParser().get_doctest(text, {}, name, None, 0)


SLOW = {"CvResult", "GramMatrix", "HeatGaussianProcessRegressor", "HeatSVC",
        "HeatSpectralClustering", "connect"}  # fmt: skip
"""Names whose examples take more than a second."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in dhsk.__all__]
)
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in an empty folder of its own; a name without an example fails."""
    thing = getattr(dhsk, name)
    found = [examples_of(one, name) for one in documented(thing)]
    assert found[0].examples, f"dhsk.{name} has no example"
    assert "\nExamples\n--------\n" in inspect.getdoc(thing)
    for number, test in enumerate(one for one in found if one.examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        said = io.StringIO()
        with warnings.catch_warnings():
            result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.write)
        assert not result.failed, said.getvalue()


def test_a_wrong_example_is_seen() -> None:
    """An output that is not what the code gives fails."""
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "sum", None, 0)
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test, out=lambda _: None).failed == 1
