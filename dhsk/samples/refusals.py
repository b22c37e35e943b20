"""Refusals of values that a map does not take: gaps, infinity, and those below 0 for counts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from dhsk.arrays import Rows
from dhsk.errors import InputError
from dhsk.kernels.rows import place_of
from dhsk.samples.images import EMBEDDED, values_of
from dhsk.samples.names import shown

_JUST_BELOW: Final = 0.1
"""Few negative values above minus this share of the largest value are probably rounding, or samples
of a scaler that was fitted to others; then the message advises to clip them."""

_FEW: Final = 0.05
"""Largest share of such values: of z-scores about half are negative."""

_ONE_TOTAL: Final = 1e-3
"""Relative difference of totals of proportions that rounding explains."""

_CLIP: Final = "clip them at 0 (MinMaxScaler(clip=True) does, of samples scaled like others)"

_CODE: Final = "if this is a code for what is missing, fill it in first; else "

_COUNTS: Final = "; if these were counts once, AnnData has them in layers/counts or raw/X"


_FINITE: Final = "but samples must be finite: drop it or fill it in"

_SCALED: Final = "on scaled columns (--map scaled, sphere_map='scaled')"

_DIRECTIONS: Final = (
    "take the projective map, for which only directions matter, as of embeddings (--map "
    "projective, sphere_map='projective')"
)

_GAUSSIAN: Final = (
    "take for z-scores and other columns a Gaussian kernel (--kernel gaussian, kernel='gaussian', "
    f"of cross_validate kernels=['gaussian']) {_SCALED}"
)

_FILLED: Final = f"; classifiers and searches put the mean of the training samples there, {_SCALED}"


def refuse_nonfinite(block: Rows, first_row: int) -> None:
    """Refuse NaN and infinity."""
    values = values_of(block)
    wrong = np.flatnonzero(~np.isfinite(values))
    if not wrong.size:
        return
    is_gap = isinstance(block, np.ndarray) and np.isnan(values.reshape(-1)[wrong[0]])
    reason = f"{_FINITE}{_FILLED if is_gap else ''}"
    raise ValueRefusedError.at(block, int(wrong[0]), first_row, reason)


def refuse_infinite(block: Rows, first_row: int) -> None:
    """Refuse what is no number and no gap: infinity, and NaN of sparse rows."""
    if not isinstance(block, np.ndarray):
        refuse_nonfinite(block, first_row)
    elif np.isinf(block).any():
        refuse_nonfinite(np.where(np.isnan(block), 0.0, block), first_row)


def refuse_negative(block: Rows, first_row: int, name: str = "hyperspherical") -> None:
    """Refuse values below 0, which a map of counts or proportions does not take."""
    values = values_of(block)
    wrong = np.flatnonzero(values < 0)
    if not wrong.size:
        return
    few = wrong.size <= max(1.0, _FEW * values.size)
    near = few and -values.min() <= _JUST_BELOW * values.max()
    below = np.unique(values.reshape(-1)[wrong])
    coded = few and below.size == 1 and below[0] % 1 == 0
    ways = [*([_CLIP] if near else []), _DIRECTIONS, _GAUSSIAN]
    if _are_columns(block):
        ways = [_GAUSSIAN, *ways[:-1]]
    raise ValueRefusedError.at(
        block,
        int(wrong[0]),
        first_row,
        f"but the {name} map needs non-negative samples: {_CODE if coded else ''}"
        f"{', or '.join(ways)}{'' if near else _COUNTS}",
    )


def _are_columns(block: Rows) -> bool:
    """Whether rows may be measurements in columns, so few that scaling suits them the most."""
    if not isinstance(block, np.ndarray) or block.shape[1] >= EMBEDDED or not (block % 1).any():
        return False
    totals = block.sum(axis=1)
    return bool(np.ptp(totals) > _ONE_TOTAL * np.abs(totals).max())  # else proportions


class NoNumbersError(InputError):
    """Columns of a table that are no numbers, and what to do where they need not be features."""

    place: str
    """The source and its columns, without what to do."""

    @classmethod
    def at(cls, place: str, ways: str) -> "NoNumbersError":
        """Refusal of what is at a place."""
        error = cls(f"{place}: {ways}")
        error.place = place
        return error


class ValueRefusedError(InputError):
    """A value of samples that cannot be mapped, with its column, counted from 0."""

    column: int

    @classmethod
    def at(cls, block: Rows, position: int, first_row: int, reason: str) -> "ValueRefusedError":
        """Refusal of the entry at a flat position of `values_of`."""
        row, column = place_of(block, position)
        value = values_of(block).reshape(-1)[position]
        place = f"row {first_row + row}, column {column} (counted from 0)"
        error = cls(f"{place} holds {value}, {reason}")
        error.column = column  # an attribute, so that workers can send it
        return error

    def of(self, names: Sequence[str] | None) -> str:
        """Message with the name of the column, if there are names."""
        place = f"column {self.column} "
        if names is None:
            return str(self)
        return str(self).replace(place, f"{place}{shown(names[self.column])} ", 1)


@contextmanager
def naming(source: str, features: Sequence[str] | None = None) -> Iterator[None]:
    """Context in which refusals name the source of samples, and the feature if it has a name."""
    try:
        yield
    except ValueRefusedError as error:
        raise InputError(f"{source}: {error.of(features)}") from None
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def in_pipelines(message: str) -> str:
    """The same message, for estimators that scale no columns: steps of a pipeline do."""
    message = message.replace(_FILLED, ", as SimpleImputer of scikit-learn does in a pipeline")
    return message.replace(_SCALED, "after StandardScaler of scikit-learn in a pipeline")
