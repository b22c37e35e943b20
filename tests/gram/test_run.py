"""What travels from a public function to all that it calls is one argument."""

import ast
from collections.abc import Iterator
from pathlib import Path

import dhsk
from tests.parsed import parsed

ROOM = Path(dhsk.__file__).parent / "gram"

IN_A_RUN = {"memory", "client", "progress", "report", "journal", "scratch", "zero_rows"}
"""Fields of a `Run`, what it is made of, and the rule of `Data`."""


def functions() -> Iterator[tuple[str, set[str]]]:
    """Names of all functions and methods of the room, and of their parameters."""
    for file in ROOM.rglob("*.py"):
        for node in parsed(file):
            if isinstance(node, ast.FunctionDef):
                own = node.args
                yield node.name, {one.arg for one in (*own.posonlyargs, *own.args, *own.kwonlyargs)}


def test_only_public_functions_take_the_parts_of_a_run() -> None:
    """They begin it, and what they call is given it."""
    public = {name for name in (*dir(dhsk), *dir(dhsk.GramMatrix)) if not name.startswith("_")}
    taken = {name: found & IN_A_RUN for name, found in functions() if found & IN_A_RUN}
    assert {"compute_gram", "eigh"} < taken.keys()
    assert not {name: found for name, found in taken.items() if name not in public}
