"""What `dhsk info` says of a file of samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dhsk.arrays import Rows
from dhsk.samples.documents import LABEL_FIELD
from dhsk.samples.looks import heavy_column, seems

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


def value_notes(
    rows: Rows, names: Sequence[str] | None, counts: str | None = None
) -> list[tuple[str, str]]:
    """What values seem to be where others would be better; `counts` is where the file has those."""
    there = f": {counts} may have counts" if counts else ""
    match seems(rows):
        case "z-scores":
            way = there or ": a Gaussian kernel takes them (--kernel gaussian)"
            return [("values", f"below 0 too, as z-scores are{way}")]
        case "logarithms":
            return [("values", f"log1p of counts, it seems{there or ': np.expm1 has counts'}")]
    heavy = heavy_column(rows)
    if heavy is None:
        return []
    column, share = heavy
    name = column if names is None else names[column]
    return [("values", f"column {name} has {share:.0%} of all: scale columns of other units")]
