"""Arguments of `cross_validate` that go in the next release, and what takes their place."""

import warnings
from collections.abc import Mapping
from typing import Any, Final

from dhsk.errors import InputError
from dhsk.objects.places import Place, parse_place
from dhsk.results.parts import LowRank
from dhsk.samples.zeros import frames_inside

_LOW_RANK: Final = ("rank", "selection", "oversampling", "loss")

_PLACES: Final = {"store": "fits/gram", "journal": "fits", "table": "results.csv"}
"""Where `out` has them."""


def without_old_names(
    low_rank: LowRank | None, out: Any, old: Mapping[str, Any]
) -> tuple[LowRank | None, dict[str, Place | None]]:
    """Take arguments by their new names and by their old ones, of which it warns.

    Returns
    -------
    LowRank
        The new one, or one made of the old arguments; None for exact classifiers.
    dict
        Paths of store, journal and table; None for none.
    """
    unknown = [name for name in old if name not in (*_LOW_RANK, "journal", "table", "seed")]
    if unknown:
        raise TypeError(f"cross_validate() got an unexpected keyword argument {unknown[0]!r}")
    options = {name: old[name] for name in _LOW_RANK if name in old}
    if options:
        new = ", ".join(f"{name}={value!r}" for name, value in options.items())
        _warn(options, f"low_rank=dhsk.LowRank({new})", given=low_rank)
        low_rank = None if options.get("rank") is None else LowRank(**options)
    folder = None if out is None else parse_place("out", out)
    places = {name: None if folder is None else folder / kept for name, kept in _PLACES.items()}
    for name in [name for name in ("journal", "table") if old.get(name) is not None]:
        _warn([name], f"out=FOLDER, which has it as {_PLACES[name]}", given=out)
        places[name] = parse_place(name, old[name])
    return low_rank, places


def random_state_of(random_state: int, old: Mapping[str, Any]) -> int:
    """Take the seed by its new name, or by its old one, of which it warns."""
    if "seed" not in old:
        return random_state
    _warn(["seed"], f"random_state={old['seed']!r}", given=random_state or None)
    seed: int = old["seed"]
    return seed


def _warn(names: Any, instead: str, *, given: object) -> None:
    listed = ", ".join(names)
    if given is not None:
        raise InputError(f"{instead.split('=')[0]} takes the place of {listed}: give one of them")
    warnings.warn(
        f"{listed} of cross_validate will go in the next release: give {instead}",
        FutureWarning,
        stacklevel=frames_inside(),
    )
