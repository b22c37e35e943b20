"""Options that fits and cross-validations share."""

from dataclasses import dataclass
from pathlib import Path

from distributed import Client

from dhsk.progress import OnProgress, ignore


@dataclass(frozen=True)
class RunOptions:
    """Where a fit or a cross-validation computes, and what it writes."""

    memory: int | None = None
    """Most bytes for all processes; None for half of the free memory, or that of the workers."""

    client: Client | None = None
    """Dask client; None for threads of this process."""

    store: str | Path | None = None
    """Folder for Gram matrices; None to store none."""

    journal: Path | None = None
    """Folder for checkpoints, from which a killed call resumes; None for no checkpoints."""

    report: OnProgress = ignore
    """Called with each event of progress."""
