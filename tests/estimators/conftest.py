"""Where estimators compute in the tests, and what tables they take."""

from collections.abc import Callable
from typing import Any

import pytest
import sklearn
from distributed import Client


@pytest.fixture(scope="module")
def client() -> Any:
    """Two threads of this process behind a Dask client."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0",
        set_as_default=False,
    ) as client:  # fmt: skip
        yield client


@pytest.fixture
def tables() -> Callable[[str], Any]:
    """Maker of tables of a library by its name: of columns by theirs."""

    def make(library: str) -> Any:
        found = pytest.importorskip(library, reason=f"{library} is not installed")
        version = tuple(map(int, sklearn.__version__.split(".")[:2]))
        kind = getattr(found, "DataFrame", None) or found.Table
        if version < (1, 9) and library != "pandas" and not hasattr(kind, "__dataframe__"):
            pytest.skip(f"scikit-learn {sklearn.__version__} sees no names in tables of {library}")
        return found.table if library == "pyarrow" else kind

    return make
