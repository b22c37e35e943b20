"""Docstrings that share descriptions show all of them, as `help`, numpydoc and Sphinx read them."""

import inspect
import re
from typing import Any

import pytest

import dhsk
from dhsk.estimators.documentation import SHARED, described

CLASSES = [
    getattr(dhsk, name)
    for name in dhsk.__all__
    if hasattr(getattr(dhsk, name), "get_params") and inspect.isclass(getattr(dhsk, name))
]

SECTIONS = ("Parameters", "Attributes", "Returns", "Raises")


def entries(doc: str) -> dict[str, str]:
    """Descriptions by name, of all sections that have some."""
    found: dict[str, str] = {}
    for head, body in re.findall(r"^(\w+)\n-+\n((?:.+\n?)+)", doc, re.MULTILINE):
        names: list[str] = []
        for line in body.splitlines() if head in SECTIONS else ():
            if not line.startswith(" "):
                names = line.split(", ")
                found |= dict.fromkeys(names, "")
            else:
                found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def doors(cls: type[Any]) -> list[Any]:
    """The class and its own public methods and those of its bases in this package."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("dhsk")]
    names = {name for base in own for name in vars(base) if not name.startswith("_")}
    found = [inspect.unwrap(inspect.getattr_static(cls, name)) for name in sorted(names)]
    return [cls, *(one for one in found if inspect.isfunction(one))]


@pytest.mark.parametrize("cls", CLASSES)
def test_every_parameter_is_described(cls: type[Any]) -> None:
    """Of constructors and methods; nothing that a docstring names is without words."""
    for door in doors(cls):
        known = entries(inspect.getdoc(door) or "")
        assert all(known.values()), (door, known)
        wanted = set(inspect.signature(door).parameters) - {"self", "cls"}
        assert wanted <= {name.lstrip("*") for name in known}, door


def test_names_without_words_get_the_shared_ones() -> None:
    """In the sections of parameters, attributes and so on; those with words keep their own."""
    doc = (
        "What.\n\n    Parameters\n    ----------\n    dtype\n        Mine.\n    X, y\n\n    Notes\n"
    )
    dense, ignored = SHARED["X"], SHARED["y"]
    assert described(doc) == doc.replace(
        "    X, y\n", f"    X\n        {dense}\n    y\n        {ignored}\n"
    )
    assert described(described(doc)) == described(doc)


def test_a_name_that_nobody_describes_is_refused() -> None:
    """When the class is made."""
    with pytest.raises(KeyError, match="unheard_of"):
        described("What.\n\nParameters\n----------\nunheard_of\n")
