"""A temporary folder that lives as long as something refers to it."""

import shutil
import tempfile
import weakref
from pathlib import Path


class TemporaryFolder:
    """A new folder, removed with the last reference to this object or when Python ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="dhsk-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
