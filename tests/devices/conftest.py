"""Devices for tests: the processor in the place of one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dhsk.devices import device
from tests.devices.host import COMPILER, HostDevice


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostDevice]:
    """Code runs on a device that is the processor, which takes every block."""
    if COMPILER is None:
        pytest.skip("there is no C++ compiler, which the device of these tests needs")
    (tmp_path / "device").mkdir()
    found = HostDevice(tmp_path / "device")
    with device(found):
        yield found
