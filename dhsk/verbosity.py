"""How much the commands say."""

from enum import IntEnum


class Verbosity(IntEnum):
    """What is said, each with all before it; warnings and errors always are."""

    SILENT = 0
    """Nothing."""
    RESULTS = 1
    """Results."""
    USUAL = 2
    """Progress, files, and what comes next."""
    VERBOSE = 3
    """Versions, the time of each stage, and where in the code an error arose."""


_now = Verbosity.USUAL


def verbosity() -> Verbosity:
    """What the running command says."""
    return _now


def set_verbosity(value: Verbosity) -> None:
    """Choose what is said from here on."""
    global _now  # noqa: PLW0603  # there is one standard output
    _now = value
