"""Where tasks run in the tests of the Gram engine."""

from typing import Any

import pytest
from distributed import Client


@pytest.fixture
def client() -> Any:
    """A cluster of two threads in this process."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as started:
        yield started
