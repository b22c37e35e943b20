"""What the tests do to model files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def rewritten() -> Callable[..., None]:
    """Change parts of a model file."""

    def rewrite(path: Path, header: dict[str, Any], **arrays: Any) -> None:
        with np.load(path) as archive:
            parts = {name: archive[name] for name in archive.files}
        found = json.loads(parts["header"].tobytes()) | header
        parts |= arrays | {"header": np.frombuffer(json.dumps(found).encode(), np.uint8)}
        with path.open("wb") as file:
            np.savez(file, **parts)

    return rewrite
