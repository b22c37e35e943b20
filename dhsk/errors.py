"""One tree of exceptions: catch `DhskError` to catch everything the project raises on purpose."""


class DhskError(Exception):
    """Base of every error that dhsk raises on purpose."""


class InputError(DhskError, ValueError):
    """Samples, labels or parameters that cannot be used; also a `ValueError`."""


class BudgetError(DhskError):
    """The work does not fit the memory or the disk it was given."""


class AccuracyError(DhskError):
    """A kernel cannot be evaluated to its promised accuracy at these parameters."""


class SamplesChangedError(DhskError):
    """Samples are not what they were when they were first read."""


class StoreError(DhskError):
    """A store on disk cannot be used."""


class StoreMismatchError(StoreError):
    """A store belongs to other samples, another kernel or another schema."""


class IncompleteStoreError(StoreError):
    """A store lacks tiles: the computation that fills it has not finished."""


class CorruptTileError(StoreError):
    """A stored tile is damaged: its checksum or its size is wrong."""


class InputWarning(UserWarning):
    """Samples or labels can be used, but perhaps not in the way that was meant."""


class ZeroRowsWarning(InputWarning):
    """Samples are all zero, and take the centre of the positive orthant as their image."""
