"""A plugin by which tests run on a GPU, every block of kernel values too, however small.

``python -m pytest -p tests.devices.on_cuda tests/kernels``
"""

from collections.abc import Iterator

import cupy
import pytest

from dhsk.devices import Device, device


class EveryBlock(Device):
    """A GPU that takes every block."""

    def pays(self, multiplied: int, copied: int) -> bool:
        """Every block pays."""
        return multiplied > 0 and copied > 0


@pytest.fixture(scope="session")
def _first() -> EveryBlock:
    return EveryBlock(cupy, 0)


@pytest.fixture(autouse=True)
def on_cuda(_first: EveryBlock) -> Iterator[None]:
    """Compute on the first GPU."""
    with device(_first):
        yield
