"""The front door: names, lazy loading, version."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import dhsk

HEAVY = {"numpy", "scipy", "sklearn", "dask", "distributed", "zarr", "pandas", "matplotlib"}


def test_every_public_name_loads() -> None:
    """What `dir` shows can be had, and is what its home calls it."""
    for name in dir(dhsk):
        assert getattr(dhsk, name).__name__ == name


def test_unknown_name_is_an_attribute_error() -> None:
    """A wrong name fails as in any module."""
    with pytest.raises(AttributeError, match="no attribute 'HeatKernle'"):
        dhsk.HeatKernle  # noqa: B018


def test_version_is_that_of_the_distribution() -> None:
    """One place holds the version."""
    assert dhsk.__version__ == version("dhsk")


def test_importing_loads_nothing_heavy() -> None:
    """`import dhsk` alone costs no library: they load with the first name that needs them."""
    code = "import sys, dhsk; print(*{m.partition('.')[0] for m in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(run.stdout.split())
