"""Exceptions and warnings; all exceptions are `DhskError`."""

import sys
import types
import warnings
from importlib import import_module
from typing import Final

_OWN: Final = ("dhsk", "sklearn", "click", "contextlib", "joblib", "concurrent")
"""Packages whose frames a warning is not attributed to."""


class DhskError(Exception):
    """Base of all exceptions of dhsk.

    Examples
    --------
    >>> import dhsk
    >>> try:
    ...     dhsk.open_gram("nowhere")
    ... except dhsk.DhskError as error:
    ...     print(type(error).__name__)
    StoreError
    """


class InputError(DhskError, ValueError):
    """Samples, labels or parameters are invalid; also a `ValueError`.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.HeatKernel(dim=1, time=0.1)
    Traceback (most recent call last):
    dhsk.errors.InputError: dim must be a whole number, at least 2, but it is 1
    """


class BudgetError(DhskError):
    """A computation needs more memory, room on disk or time than there is.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> dhsk.compute_gram(np.ones((1000, 5)), "heat", memory="1KB")
    Traceback (most recent call last):
    dhsk.errors.BudgetError: a Gram matrix in tiles of ... but 0.98 kiB are allowed: give more ...
    """

    needed: int = 0
    """Least bytes of memory, where they are known."""


class ClusterError(DhskError):
    """A Dask cluster lost its scheduler or its workers, or none of them makes progress.

    What is finished is kept: the same call resumes on a working cluster.

    Examples
    --------
    >>> import dhsk
    >>> issubclass(dhsk.ClusterError, dhsk.DhskError)
    True
    """


class AccuracyError(DhskError):
    """A kernel cannot be evaluated to its guaranteed accuracy at these parameters.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.HeatKernel(dim=100_000, time=1e-9).prepare()
    Traceback (most recent call last):
    dhsk.errors.AccuracyError: the heat kernel of dim=100000 at time=1e-09 takes ...
    """


class SamplesChangedError(DhskError):
    """Samples have changed since they were first read.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> X = np.eye(3)
    >>> dhsk.compute_gram(X, "cosine", progress=lambda event: X.fill(1.0))
    Traceback (most recent call last):
    dhsk.errors.SamplesChangedError: X changed while it was read: row 0 ...
    """


class StoreError(DhskError):
    """A store on disk cannot be used.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.open_gram("nowhere")
    Traceback (most recent call last):
    dhsk.errors.StoreError: nowhere does not exist: make one with dhsk gram, or check the path
    """


class StoreMismatchError(StoreError):
    """A store belongs to other samples, another kernel or another schema.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> G = dhsk.compute_gram(np.eye(3), "cosine", store="eye.gram")
    >>> dhsk.compute_gram(np.eye(3), "linear", store="eye.gram")
    Traceback (most recent call last):
    dhsk.errors.StoreMismatchError: eye.gram was made with other kernel (cosine, now linear), ...
    """


class IncompleteStoreError(StoreError):
    """A store lacks tiles: its computation has not finished.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> G = dhsk.compute_gram(np.eye(3), "cosine", store="eye.gram")
    >>> (G.path / "gram" / "c" / "0" / "0").unlink()
    >>> dhsk.open_gram("eye.gram")
    Traceback (most recent call last):
    dhsk.errors.IncompleteStoreError: eye.gram lacks 1 of 1 tiles ((0, 0)): run the command ...
    """


class CorruptTileError(StoreError):
    """A stored tile is damaged: its checksum or its size is wrong.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> G = dhsk.compute_gram(np.eye(3), "cosine", store="eye.gram")
    >>> _ = (G.path / "gram" / "c" / "0" / "0").write_bytes(bytes(76))
    >>> G.verify()
    Traceback (most recent call last):
    dhsk.errors.CorruptTileError: 1 of 1 tiles of eye.gram are damaged: (0, 0); ...
    """


class InputWarning(UserWarning):
    """Samples or labels are valid, but perhaps not used as intended.

    Examples
    --------
    >>> import warnings, dhsk
    >>> warnings.simplefilter("ignore", dhsk.InputWarning)
    >>> dhsk.hyperspherical_map([[0.0, 0.0]]).round(4)
    array([[0.7071, 0.7071]])
    """


class ZeroRowsWarning(InputWarning):
    """Samples are all zero, and are mapped to the centre of the positive orthant.

    Examples
    --------
    >>> import warnings, dhsk
    >>> warnings.simplefilter("error", dhsk.ZeroRowsWarning)
    >>> dhsk.hyperspherical_map([[0.0, 0.0], [1.0, 3.0]])
    Traceback (most recent call last):
    dhsk.errors.ZeroRowsWarning: 1 of 2 samples of X are all zero ...
    """


class ClusterWarning(UserWarning):
    """A worker of a Dask cluster makes no progress; its tasks are given to others.

    Examples
    --------
    >>> import warnings, dhsk
    >>> warnings.simplefilter("error", dhsk.ClusterWarning)  # rather end than go on without it
    """


def warn(message: str, category: type[Warning] = InputWarning) -> None:
    """Warn at the line that called this package, which may be through scikit-learn, say."""
    frame, level = sys._getframe(), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in _OWN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def optional_module(name: str, extra: str, needed: str) -> types.ModuleType:
    """A module that an extra installs; if it is missing, InputError that says what needs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f'{needed} ({error}): pip install "dhsk[{extra}]"') from error
