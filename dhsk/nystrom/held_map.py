"""Landmarks and normalization beside stored features, by which another machine goes on.

The last bits of a normalization are those of one BLAS, and its columns turn where eigenvalues are
near: features of two machines do not go together, though their inner products are the same.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats, Rows, arrays_of_rows, rows_of_arrays
from dhsk.execution.checkpoint import Checkpoint
from dhsk.nystrom.features import FeatureMap
from dhsk.objects.places import Place

_ENTRY: Final = "map"


def held_beside(path: Place, features: FeatureMap) -> FeatureMap | None:
    """The features that a store is of, if those are the given ones up to rounding; None if not."""
    found = Checkpoint(path).get(_ENTRY, _map_of_arrays)
    if found is None:
        return None
    held = replace(features, landmarks=found[0], root=found[1])
    return held if _same_to_rounding(held, features) else None


def hold_beside(path: Place, features: FeatureMap) -> None:
    """Write landmarks and normalization into a store, over older ones."""
    arrays = {**arrays_of_rows("landmarks", features.landmarks), "root": features.root}
    Checkpoint(path).put(_ENTRY, arrays)


def drop_beside(path: Place) -> None:
    """Remove what `hold_beside` wrote."""
    Checkpoint(path).drop(_ENTRY)


def _map_of_arrays(arrays: dict[str, Any]) -> tuple[Rows, Floats]:
    return rows_of_arrays("landmarks", arrays), arrays["root"]


def _same_to_rounding(one: FeatureMap, other: FeatureMap) -> bool:
    """Whether landmarks and their approximate kernel matrices are the same.

    What is below m eps of the diagonal is rounding to a choice of landmarks, so that features may
    be off by its square root. From one BLAS to another 1e-13 was measured, and 5e-6 in float32.
    """
    if one.landmarks.shape != other.landmarks.shape or one.root.shape != other.root.shape:
        return False
    tol = float(np.sqrt(one.landmarks.shape[0] * np.finfo(one.dtype).eps))
    off: Any = one.landmarks - other.landmarks
    if abs(off).max() > tol:
        return False
    matrices = [_at_landmarks(features) for features in (one, other)]
    return bool(np.abs(matrices[0] - matrices[1]).max() <= tol * np.abs(matrices[1]).max())


def _at_landmarks(features: FeatureMap) -> Floats:
    """Approximate kernel matrix of the landmarks, (m, m)."""
    values = features.row_map.kernel.of_rows(features.landmarks).astype(np.float64)
    Z = values @ features.root
    return np.asarray(Z @ Z.T)
