"""Attributes that are computed once, and what other threads have to do with it."""

import ast
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dhsk
from dhsk.caching import CachedValue, cached_value
from tests.parsed import parsed

pytestmark = pytest.mark.threads

PATIENCE_SECONDS = 20.0


class Node:
    """Its value is that of the next one, which another thread computes, and one more."""

    def __init__(self, following: "Node | None", pool: ThreadPoolExecutor) -> None:
        self.following = following
        self.pool = pool
        self.computed = 0

    @cached_value
    def depth(self) -> int:
        """Nodes behind this one."""
        self.computed += 1
        if self.following is None:
            return 0
        other = self.pool.submit(getattr, self.following, "depth")
        return other.result(PATIENCE_SECONDS) + 1


def test_an_object_may_wait_for_a_thread_that_computes_another() -> None:
    """With a lock of the class, as `functools.cached_property` has before 3.12, both wait."""
    with ThreadPoolExecutor(1) as pool:
        node = Node(Node(None, pool), pool)
        assert node.depth == 1


def test_a_value_is_computed_once_and_may_be_set_before() -> None:
    """It lies in the object, as with `functools.cached_property`."""
    with ThreadPoolExecutor(1) as pool:
        node = Node(None, pool)
        assert [node.depth, node.depth, node.computed] == [0, 0, 1]
        node.__dict__["depth"] = 7
        assert node.depth == 7
    assert isinstance(Node.depth, CachedValue)
    assert Node.depth.__doc__ == "Nodes behind this one."


def test_a_kernel_takes_its_profile_along() -> None:
    """A pickled kernel is its parameters and its profile: workers do not build it again."""
    kernel = dhsk.HeatKernel(dim=10, time=0.1)
    assert kernel.of_cosine(1.0) == 1.0
    assert "_profile" in vars(pickle.loads(pickle.dumps(kernel)))


def imported(file: Path) -> set[str]:
    """Names that a module takes from `functools`."""
    nodes: list[Any] = parsed(file)
    named = {
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        for alias in node.names
    }
    return named | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def test_nothing_is_cached_under_the_lock_of_a_class() -> None:
    """README promises Python 3.11, whose `cached_property` has one."""
    package = Path(dhsk.__file__).parent
    assert not [f for f in package.rglob("*.py") if "cached_property" in imported(f)]
