"""Support vector machines on Gram matrices, exact.

Names are loaded when first used: workers need the solver, not scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dhsk.svm.result import CvResult

_HOME = {"CvResult": "result"}

__all__ = ["CvResult"]


def __getattr__(name: str) -> Any:
    """Load a public name from its home at first use."""
    if name in _HOME:
        return getattr(import_module(f"dhsk.svm.{_HOME[name]}"), name)
    raise AttributeError(f"module 'dhsk.svm' has no attribute {name!r}")
