"""What `dhsk info` says of a file of samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dhsk.samples.documents import LABEL_FIELD

LABELS: Final = (LABEL_FIELD, "labels", "class", "target", "category", "y")
"""Usual names of a column of labels."""

_SHOWN: Final = 8


@dataclass(frozen=True)
class SamplesFile:
    """What a file of samples seems to be, by its name and its first rows."""

    words: str
    rows: Sequence[tuple[str, str]] = ()
    """What and value, for people."""
    samples: str = ""
    """The samples on a command line: FILE or FILE:COLUMN."""
    labels: str | None = "LABELS"
    """The labels on a command line; None if they need no option."""
    options: str = ""
    """Options on reading, with a blank before each."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def following(self) -> list[str]:
        """Commands that come next."""
        labels = "" if self.labels is None else f" --labels {self.labels}"
        return [
            f"dhsk cv {self.samples}{labels}{self.options} --out found",
            f"dhsk plan {self.samples}{labels if self.labels != 'LABELS' else ''}{self.options}",
        ]


def listed(names: Sequence[str]) -> str:
    """The first names."""
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
