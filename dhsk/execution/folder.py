"""A temporary folder that is removed with the last reference to it."""

import tempfile
from pathlib import Path

from dhsk.execution.leftovers import Claim, remove_folder


class TemporaryFolder:
    """A new folder, removed with the last reference to this object or when Python ends.

    Making one also removes those that killed processes left. The default parent is the system's
    folder for temporary files.
    """

    def __init__(self, parent: Path | None = None) -> None:
        claim = Claim(parent or Path(tempfile.gettempdir()), remove_folder)
        self.path = claim.folder / claim.name
        self.remove = claim.release
        """Removes the folder earlier."""
        self._claim = claim
        self.path.mkdir(mode=0o700)
