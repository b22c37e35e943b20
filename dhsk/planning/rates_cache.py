"""Measured rates, kept in the user's cache folder for each machine and version."""

import dataclasses
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from platformdirs import user_cache_path

from dhsk.execution.limits import core_count
from dhsk.files import parse_json, written_beside
from dhsk.planning.rates import Line, Rates, measure_rates

QUICK_REPEATS: Final = 2
"""Repeats of each product if no rates are kept: a quarter of a second in all."""


def known_rates() -> Rates:
    """Rates kept by `dhsk plan --measure`; else processor measured now, disk assumed."""
    return load_rates() or measure_rates(None, repeats=QUICK_REPEATS)


def cache_file() -> Path:
    """Path of the cache: ``dhsk/rates.json`` where this system keeps a user's caches."""
    return user_cache_path("dhsk") / "rates.json"


def load_rates() -> Rates | None:
    """Rates of this machine, measured by this version; None if there are none."""
    try:
        return _rates(_read(cache_file())[_key()])
    except (KeyError, TypeError, ValueError):
        return None


def save_rates(rates: Rates) -> None:
    """Keep rates for this machine and version, beside those of others; may raise OSError."""
    file = cache_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_read(file) | {_key(): dataclasses.asdict(rates)}, indent=1)
    with written_beside(file, "w") as opened:
        opened.write(text)


def _key() -> str:
    return f"{platform.node()}, {core_count()} cores, dhsk {version('dhsk')}"


def _read(file: Path) -> dict[str, Any]:
    """Content of the cache; empty if it is absent or damaged, as it can be measured again."""
    try:
        found = parse_json(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _rates(found: dict[str, Any]) -> Rates:
    lines = {name: Line(**found[name]) for name in ("float64", "float32", "sparse")}
    return Rates(**(found | lines))
