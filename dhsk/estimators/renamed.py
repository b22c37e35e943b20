"""Former names of parameters and fitted attributes, which warn for one release."""

import warnings
from typing import Any, Final

from dhsk.samples.zeros import frames_inside

RENAMED: Final = "deprecated"
"""Default of a parameter under its former name, as in scikit-learn."""


def former_attribute(old: str, new: str) -> property:
    """Property for an attribute's former name, with a `FutureWarning`."""

    def value(estimator: Any) -> Any:
        found = getattr(estimator, new)
        _warn(estimator, old, new)
        return found

    return property(value, doc=f"Former name of `{new}`.")


def parameter(estimator: Any, new: str, old: str) -> Any:
    """Value of a parameter, with a `FutureWarning` if it was given by its former name."""
    given = getattr(estimator, old)
    if given == RENAMED:
        return getattr(estimator, new)
    _warn(estimator, old, new)
    return given


def _warn(estimator: Any, old: str, new: str) -> None:
    warnings.warn(
        f"{old} of {type(estimator).__name__} is now called {new}: the next release removes the "
        "former name",
        FutureWarning,
        stacklevel=frames_inside(),
    )
