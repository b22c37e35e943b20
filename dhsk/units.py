"""Sizes in bytes and durations, as people write and read them."""

import math

from dhsk.errors import InputError

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}


def parse_bytes(text: str | int) -> int:
    """Read a size such as "2GB", "512MiB" or 1000000.

    Parameters
    ----------
    text
        A number of bytes, or a number followed by a unit.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    InputError
        Not a positive size.
    """
    cleaned = str(text).strip().upper()
    digits = cleaned.rstrip("BKMGTI ")
    unit = cleaned[len(digits) :].strip()
    try:
        size = float(digits) * _UNITS[unit]
    except (ValueError, KeyError):
        size = math.nan
    if not 0 < size < math.inf:
        raise InputError(f"memory must be a positive size such as 2GB or 512MiB, got {text!r}")
    return int(size)


def human_bytes(size: float) -> str:
    """Write a size for people, for instance 2.35 GB."""
    for unit in ("B", "KB", "MB", "GB"):
        if abs(size) < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"


def human_seconds(seconds: float) -> str:
    """Write a duration for people, for instance 3 min 20 s."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours / 24:,.1f} days"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
