"""Disk of the inner products of a grid: whether they may be stored, before anything is written."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dhsk.errors import BudgetError
from dhsk.execution.resources import Resources
from dhsk.gram.plan import make_plan
from dhsk.gram.sides import GramSides
from dhsk.objects.places import Place, bytes_below, free_bytes, remove_below
from dhsk.samples import Samples
from dhsk.units import counted, format_bytes
from dhsk.validation.engine import CvOptions

SHARE: Final = 0.5
"""Share of the free disk that products may take unasked."""

UNASKED: Final = 10**9
"""Most bytes of it. Searches with values computed when they were needed, and with them stored:
12,000 images of ten classes 34 s and 24 s (0.6 GB), 20,000 images 65 s and 59 s (1.6 GB), 20,000
samples of 12 columns and two classes 20 s and 40 s, of 100 counts and three classes 11 to 20 s and
29 s; 39,774 samples of 10 entries and 20 classes 94 s and 141 s (6.3 GB)."""


@dataclass(frozen=True)
class DiskNeed:
    """Bytes of all products of a grid, which are there until it ends."""

    stored: int
    """Bytes of the stores."""
    samples: int
    """Bytes of the mapped samples alone, from which values are computed on demand."""
    fits: bool
    """Whether the stores fit; else nothing but samples is written."""


def disk_need(samples: Samples, matrices: int, options: CvOptions) -> DiskNeed:
    """Disk of a number of matrices of some samples.

    They fit if they take no more than `options.disk`, or by default `UNASKED` and half of what is
    free; if a store was asked for, all of it. Raises BudgetError if such a store does not fit, or
    if not even the samples do.
    """
    assert options.store is not None  # `cross_validate` makes a temporary one
    stored, mapped = (
        matrices * _bytes_of(samples, options.resources, layout) for layout in ("triangle", "none")
    )
    what = f"{counted(matrices, 'matrix', 'matrices')} of {samples.shape[0]:,} samples"
    if not options.on_demand:
        allowed = _allowed(options.store, options.disk, 1.0)
        if allowed is not None and stored > allowed:
            raise BudgetError(
                f"the stored inner products take {format_bytes(stored)} of disk ({what}) but "
                f"{format_bytes(allowed)} are allowed: choose a store on another disk or allow "
                "more; without a store kernel values are computed when they are needed"
            )
        return DiskNeed(stored, mapped, fits=True)
    allowed = _allowed(options.store, options.disk, SHARE)
    limit = UNASKED if options.disk is None else options.disk
    if stored <= (limit if allowed is None else min(limit, allowed)):
        return DiskNeed(stored, mapped, fits=True)
    scratch = Path(tempfile.gettempdir()) if options.scratch is None else options.scratch
    allowed = options.disk or _share_of(free_bytes(scratch), SHARE)
    if allowed is not None and mapped > allowed:
        raise BudgetError(
            f"the mapped samples of {what} take {format_bytes(mapped)} of disk in {scratch} but "
            f"{format_bytes(allowed)} are allowed: allow more (--disk), or choose a low rank "
            "(--rank), which needs none"
        )
    return DiskNeed(stored, mapped, fits=False)


def remove_stores(options: CvOptions) -> None:
    """Remove the products of a run, unless a store was asked for."""
    if options.on_demand and options.store is not None:
        remove_below(options.store)


def _bytes_of(samples: Samples, resources: Resources, layout: str) -> int:
    return make_plan(GramSides.of([samples]), resources, layout=layout).disk_bytes


def _allowed(store: Place, given: int | None, share: float) -> int | None:
    """Bytes that may be below a place: those given, or a share of what is free or there already.

    None for a server, which does not say what is free.
    """
    if given is not None:
        return given
    free = free_bytes(store)
    return None if free is None else _share_of(free + bytes_below(store), share)


def _share_of(free: int | None, share: float) -> int | None:
    return None if free is None else int(share * free)
