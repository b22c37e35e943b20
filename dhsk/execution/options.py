"""Options that fits and cross-validations share."""

from dataclasses import dataclass

from distributed import Client

from dhsk.objects.places import Place
from dhsk.progress import OnProgress, ignore


@dataclass(frozen=True)
class RunOptions:
    """Where a fit or a cross-validation computes, and what it writes."""

    memory: int | None = None
    """Most bytes for all processes; None for half of the free memory, or that of the workers."""

    client: Client | None = None
    """Dask client; None for threads of this process."""

    store: Place | None = None
    """Place of Gram matrices; None to store none."""

    journal: Place | None = None
    """Place of checkpoints, from which a killed call resumes; None for no checkpoints."""

    scratch: Place | None = None
    """Prefix on a server for temporary files that workers read; None for a temporary folder."""

    report: OnProgress = ignore
    """Called with each event of progress."""
