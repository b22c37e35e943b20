"""A plugin by which tests run with the processor as a device that takes every block.

``python -m pytest -p tests.devices.on_host tests/kernels``
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dhsk.devices import device
from tests.devices.host import HostDevice


@pytest.fixture(scope="session")
def _host() -> Iterator[HostDevice]:
    with tempfile.TemporaryDirectory() as folder:
        yield HostDevice(Path(folder))


@pytest.fixture(autouse=True)
def on_host(_host: HostDevice) -> Iterator[None]:
    """Compute on the processor as a device."""
    with device(_host):
        yield
