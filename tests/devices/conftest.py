"""Devices for tests: the processor in the place of one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dhsk.devices import device
from tests.devices.host import HostDevice


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostDevice]:
    """Code runs on a device that is the processor, which takes every block."""
    (tmp_path / "device").mkdir()
    found = HostDevice(tmp_path / "device")
    with device(found):
        yield found
