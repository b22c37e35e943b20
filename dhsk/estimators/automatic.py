"""Time scales and C that were not given: by the spread of some samples, without any fit.

Both make the kernel and the SVM independent of units. The time is the one at which the mean of
1 - K over pairs of samples is `SPREAD`, and C is `STRENGTH` over the variance of the samples in
feature space, half the mean squared distance of two. `tests/benchmarks/defaults.py` compares rules.

Rejected: a spread of 0.4 with a strength of 2 (half a point better on average of 18 data sets, by
tumours and microbiomes, but 0.4 to 0.8 points worse on digits, MNIST and iris); a grid inside
`fit`.
"""

from dataclasses import replace
from typing import Final, Literal, TypeAlias

import numpy as np

from dhsk.arrays import Floats, Indices, Rows
from dhsk.errors import InputError
from dhsk.gram.row_map import RowMap
from dhsk.kernels import (
    CosineKernel,
    HeatKernel,
    Kernel,
    ParametrixKernel,
    parse_kernel,
    time_at_scale,
    unit_of,
)
from dhsk.kernels.base import positive_parameter
from dhsk.kernels.duplicates import row_hashes
from dhsk.models.rescaling import kernel_in
from dhsk.samples import Samples
from dhsk.validation.start import MOST_FEATURES, few_of, heat_spread, rounded, scale_at

Auto: TypeAlias = Literal["auto"]

AUTO: Final = "auto"

SPREAD: Final = 0.6
"""Mean of 1 - K over pairs of samples at the time that is chosen."""

STRENGTH: Final = 3.0
"""C times the variance of the samples."""

LOGISTIC_STRENGTH: Final = 60.0
"""The same for the logistic loss, which no sample leaves at 0: in three folds with 200 features, of
digits, breast cancer, 1,500 posts of 20 groups and 1,500 web pages by 375 words, accuracy is 0.980,
0.961, 0.510 and 0.903 at 30, 0.982, 0.960, 0.521 and 0.905 at 90, and 0.968, 0.949, 0.437 and 0.885
at 3; the log loss falls by more than half on digits, and by a fifth to a third on the others."""

DIGITS: Final = 3
"""Digits of both: at 20,000 features a tenth of the time scale is half of the spread."""

LEAST_C: Final = 1e-30
"""Least C, and the inverse of the largest, that both classifiers take."""

LARGEST_C: Final = 1 / LEAST_C
"""The C that stands for an infinite one."""


def check_auto(name: str, value: object) -> None:
    """Raise InputError unless a parameter is a number above 0 or "auto"."""
    if isinstance(value, str):
        if value != AUTO:
            raise InputError(f'{name} must be "auto" or a number, but it is {value!r}')
    else:
        positive_parameter(name, value)


def is_auto(value: object) -> bool:
    """Whether a parameter is chosen by the samples."""
    return isinstance(value, str)  # others are refused


def time_scale_of(kernel: Kernel, dim: int) -> float | None:
    """Time of a kernel in units of log(dim)/dim; None for kernels without one."""
    if not isinstance(kernel, HeatKernel | ParametrixKernel) or dim < 2:
        return None
    found = kernel.time / time_at_scale(dim, 1.0)
    typed = float(f"{found:.12g}")  # 0.65 rather than 0.6500000000000001
    return typed if time_at_scale(dim, typed) == kernel.time else found


class SamplePairs:
    """At most 512 samples of a fit, read once if they are needed, and the pairs of them.

    A sample of weight 2 is as two equal ones, and pairs of equal samples do not count: what is
    chosen is the same for weights as for repeated samples.
    """

    def __init__(self, samples: Samples, weights: Floats | None = None) -> None:
        self.samples, self.weights = samples, weights
        self._chosen = few_of(samples.shape[0])
        if weights is not None and not weights.all():
            used: Indices = np.flatnonzero(weights)
            self._chosen = used[few_of(len(used))]
        self._weights = np.ones(len(self._chosen)) if weights is None else weights[self._chosen]
        self._rows: Rows | None = None

    def kernel_at_spread(self, row_map: RowMap) -> Kernel:
        """The heat or parametrix kernel of a map, at the time of the spread."""
        name, dim = row_map.kernel.name, self.samples.shape[1]
        if dim > MOST_FEATURES:
            return row_map.kernel
        rows, (i, j), weights = self._pairs(row_map)
        cosines = np.asarray(CosineKernel().of_rows(rows), dtype=np.float64)[i, j]
        if not len(cosines):
            return row_map.kernel

        def parametrix_spread(scale: float) -> float:
            values = ParametrixKernel(time_at_scale(dim, scale)).of_cosine(cosines)
            return 1.0 - float(np.average(values, weights=weights))

        heat = name == HeatKernel.name
        spread = heat_spread(cosines, dim, weights) if heat else parametrix_spread
        return parse_kernel(name, dim, rounded(scale_at(spread, SPREAD, dim), DIGITS))

    def C(self, row_map: RowMap, strength: float = STRENGTH) -> float:
        """C for the kernel of a map: `strength` over the variance of the samples."""
        rows, (i, j), weights = self._pairs(row_map)
        if not len(i):
            return strength
        unit = unit_of(row_map.kernel, rows) or 1.0  # a nearly constant kernel keeps its digits
        K = np.asarray(kernel_in(row_map.kernel, unit).of_rows(rows), dtype=np.float64)
        own = K.diagonal()
        variance = unit * float(np.average((own[i] + own[j]) / 2 - K[i, j], weights=weights))
        if not variance > 0:
            return strength
        return rounded(float(np.clip(strength / variance, LEAST_C, 1 / LEAST_C)), DIGITS)

    def _pairs(self, row_map: RowMap) -> tuple[Rows, tuple[Indices, Indices], Floats]:
        """Mapped samples, indices of pairs of different ones, and the weights of these."""
        if self._rows is None:
            self._rows = replace(row_map, dtype="float64").some_of(self.samples, self._chosen)
        marks = row_hashes(self._rows)
        i, j = np.triu_indices(len(marks), 1)
        different = marks[i] != marks[j]
        i, j = i[different], j[different]
        return self._rows, (i, j), self._weights[i] * self._weights[j]
