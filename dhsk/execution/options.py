"""Where a fit or a cross-validation computes, and what it keeps."""

from dataclasses import dataclass
from pathlib import Path

from distributed import Client

from dhsk.progress import OnProgress, ignore


@dataclass(frozen=True)
class RunOptions:
    """Where a fit or a cross-validation computes, and what it keeps.

    Attributes
    ----------
    memory
        Most bytes for all processes together; None for half of what is free, or for what the
        workers have.
    client
        Where to compute; None for threads of this process.
    store
        Folder for Gram matrices; None to store nothing.
    journal
        Folder for what is finished, so that the same call goes on where it was killed; None to
        keep nothing.
    report
        Receives progress.
    """

    memory: int | None = None
    client: Client | None = None
    store: str | Path | None = None
    journal: Path | None = None
    report: OnProgress = ignore
