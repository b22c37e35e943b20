"""How much the commands say, and whether one is at work."""

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
_works = False


def verbosity() -> Verbosity:
    """What the running command says."""
    return _now


def set_verbosity(value: Verbosity) -> None:
    """Choose what is said from here on."""
    global _now  # noqa: PLW0603  # there is one standard output
    _now = value


def at_work() -> bool:
    """Whether the running command computes what may be kept, no longer loads and checks."""
    return _works


def set_at_work(value: bool) -> None:
    """Note that what may be kept is computed from here on, or that a command begins."""
    global _works  # noqa: PLW0603  # one command runs
    _works = value
