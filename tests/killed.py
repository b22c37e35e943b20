"""Ends a run at one of the entries of its journal."""

from typing import Any

import pytest

from dhsk.execution.checkpoint import Checkpoint


class KilledError(BaseException):
    """Stands for the end of a process."""


def kill_after(monkeypatch: pytest.MonkeyPatch, last: int) -> list[str]:
    """End at the entry of that number; names of the entries that are written until then."""
    put, names = Checkpoint.put, list[str]()

    def counted(self: Checkpoint, name: str, *given: Any) -> None:
        put(self, name, *given)
        if self.folder is not None:
            names.append(name)
            if len(names) == last:
                raise KilledError

    monkeypatch.setattr(Checkpoint, "put", counted)
    return names
