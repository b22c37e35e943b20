"""Where estimators compute in the tests."""

from typing import Any

import pytest
from distributed import Client


@pytest.fixture(scope="module")
def client() -> Any:
    """Two threads of this process behind a Dask client."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0",
        set_as_default=False,
    ) as client:  # fmt: skip
        yield client
