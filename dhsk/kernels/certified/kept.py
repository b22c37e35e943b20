"""Profiles of heat kernels in the user's cache folder: proving one takes tenths of a second.

The name of a file tells the kernel and the code that has proven it, so that other code, also a
change of a line, proves anew. A file that is damaged, by its checksum, counts as absent.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import flint
import numpy as np
from platformdirs import user_cache_path

from dhsk.caching import cached_value
from dhsk.files import parse_json, written_beside
from dhsk.kernels.certified.certify import ErrorBound
from dhsk.kernels.certified.form import Form
from dhsk.kernels.certified.profile import HeatProfile, heat_profile, single_form

MOST_KEPT: Final = 4096
"""Files above which the older half is removed: some 12 MB."""

_ARRAYS: Final = ("numerator", "denominator", "slopes", "starts")


@dataclass(frozen=True, eq=False)
class KeptProfile(HeatProfile):
    """A profile whose forms are in files."""

    folder: Path

    @cached_value
    def single(self) -> Form:
        """The form in float32, from a file or proven at its first use."""

        def prove() -> Mapping[str, Any]:
            return {"single": single_form(self.dim, self.time)}

        found: Form = _kept(self.folder, (self.dim, self.time.hex(), "float32"), prove)["single"]
        return found


def kept_profile(dim: int, time: float, folder: Path | None = None) -> HeatProfile:
    """Profile of a heat kernel, from a file of an earlier process or proven now and kept.

    Parameters
    ----------
    dim, time
        Dimension and time of the kernel.
    folder
        Where files are; by default ``dhsk/kernels`` where this system keeps a user's caches.

    Raises
    ------
    AccuracyError
        See `dhsk.kernels.certified.profile.heat_profile`. A folder that cannot be read or written
        raises nothing.
    """
    folder = user_cache_path("dhsk") / "kernels" if folder is None else folder
    found = _kept(folder, (dim, time.hex()), lambda: _parts(heat_profile(dim, time)))
    return KeptProfile(**found, folder=folder)


def _parts(profile: HeatProfile) -> Mapping[str, Any]:
    return {each.name: getattr(profile, each.name) for each in fields(profile)}


def _kept(
    folder: Path, name: tuple[object, ...], prove: Callable[[], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """What was proven of a name, forms and numbers, from its file or now."""
    file = folder / f"{_digest(_code(), *name)}.json"
    found = _read(file)
    if found is None:
        found = prove()
        if file.is_absolute():  # not "~", of users without a home
            with suppress(OSError):
                _write(file, found)
    return found


@cache
def _code() -> str:
    """Digest of the code that proves."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return _digest(flint.__version__, *(source.read_text(encoding="utf-8") for source in sources))


def _digest(*parts: object) -> str:
    return blake2b("\n".join(map(str, parts)).encode(), digest_size=16).hexdigest()


def _read(file: Path) -> Mapping[str, Any] | None:
    try:
        kept = parse_json(file.read_bytes())
        if kept["checksum"] != _digest(json.dumps(kept["proven"])):
            return None
        return {name: _read_value(value, name) for name, value in kept["proven"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_value(kept: Any, name: str) -> Any:
    """A number, or a form of the type that its name says."""
    if not isinstance(kept, dict):
        return kept
    number = np.float64 if name == "double" else np.float32
    arrays = {part: np.array(kept[part], number) for part in _ARRAYS}
    return Form(**{**kept, **arrays, "error": ErrorBound(**kept["error"])})


def _write(file: Path, proven: Mapping[str, Any]) -> None:
    content = {name: _written_value(value) for name, value in proven.items()}
    checksum = _digest(json.dumps(content))
    file.parent.mkdir(parents=True, exist_ok=True)
    with written_beside(file, "w") as opened:
        json.dump({"checksum": checksum, "proven": content}, opened)
    _tidy(file.parent)


def _written_value(value: Any) -> Any:
    """A number as it is, a form by its parts; a float of Python has all digits of either type."""
    if not isinstance(value, Form):
        return value
    return asdict(value) | {part: getattr(value, part).tolist() for part in _ARRAYS}


def _tidy(folder: Path) -> None:
    """Remove the older half of the files if they are many."""
    with os.scandir(folder) as found:
        files = [entry for entry in found if entry.name.endswith(".json")]
    if len(files) <= MOST_KEPT:
        return
    files.sort(key=lambda entry: entry.stat().st_mtime)
    for entry in files[: len(files) // 2]:
        with suppress(FileNotFoundError):  # another process tidies up too
            Path(entry.path).unlink()
