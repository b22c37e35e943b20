"""A temporary folder that lives as long as something refers to it."""

import tempfile
from pathlib import Path

from dhsk.execution.leftovers import Claim, remove_folder


class TemporaryFolder:
    """A new folder, removed with the last reference to this object or when Python ends.

    Those of processes that were killed are removed when the next one is made.

    Parameters
    ----------
    parent
        Folder to make it in; None for the system's one for temporary files.
    """

    def __init__(self, parent: Path | None = None) -> None:
        claim = Claim(parent or Path(tempfile.gettempdir()), remove_folder)
        self.path = claim.folder / claim.name
        self.remove = claim.release
        """Removes it before that."""
        self._claim = claim
        self.path.mkdir(mode=0o700)
