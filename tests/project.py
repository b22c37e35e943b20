"""What pyproject.toml says, for tests that compare it with other files."""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())

ABOUT: dict[str, Any] = PROJECT["project"]


def bounds(requirements: list[str]) -> dict[str, str]:
    """Lower bounds by name of requirements such as `name>=1.2`."""
    found = [re.fullmatch(r"([\w.-]+) ?>=([\d.]+)", one) for one in requirements]
    assert all(found)
    return {one[1]: one[2] for one in found if one}
