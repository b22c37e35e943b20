"""Dual problems whose matrix is on a device: steps of two variables, all problems at a time.

The steps are those of `dhsk.solvers.smo`. Each problem has its own samples of one matrix, and one
block of threads or, where problems are few, several that wait for one another at each step. Of
equal gains the first sample's is taken, and no sum depends on the number of threads: so steps are
the same on every device, and from run to run.

Rejected: working sets in the memory of a block, as other solvers on GPUs have [1]_: they were made
for matrices that do not fit.

References
----------
.. [1] Z. Wen et al., "ThunderSVM: a fast SVM library on GPUs and CPUs", JMLR 19 (2018).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.devices import Device, DeviceArray
from dhsk.solvers.cuda import GROWS, PART_BYTES, SHRINKS, THREADS, gradients_code, steps_code
from dhsk.solvers.newton import newton_steps, steps_between
from dhsk.solvers.smo import padded, rounding_of, settle, type_of_state

STEPS_OF_LAUNCH: Final = 1 << 14
"""Most steps of a launch, which nothing interrupts."""

_MOST_FREE: Final = 1 << 28
"""Most entries of the free coefficients that Newton steps take from the device."""


class WholeOnDevice(NamedTuple):
    """The matrix of some samples, which fits on a device."""

    device: Device
    samples: Indices
    values: Callable[[], DeviceArray]
    """Computes the matrix, (n, n), within a turn."""


class DeviceProblem(NamedTuple):
    """A problem of some variables, as of `dhsk.solvers.smo`; b and f are changed in place."""

    places: Indices
    """Its variables among the rows of the matrix, (n,)."""
    linear: Floats
    """s, (n,)."""
    lower: Floats
    upper: Floats
    b: Floats
    """Coefficients, (n,)."""
    f: Floats
    """Gradient s - K b, (n,)."""


class DeviceMatrix:
    """A symmetric matrix on a device, (n, n), for the steps of problems; used within a turn."""

    def __init__(self, device: Device, values: DeviceArray) -> None:
        self.device, self._values = device, values
        xp = device.xp
        self._diagonal = xp.ascontiguousarray(xp.diagonal(values))
        found = np.empty(2)
        device.get(
            xp.stack([xp.abs(one).max() for one in (self._diagonal, values[0])]).astype(np.float64),
            found,
        )
        self.entry: float = float(found.max())
        """About the largest entry, see `dhsk.solvers.smo.largest_entry`."""

    def improve(
        self,
        problems: Sequence[DeviceProblem],
        tol: float,
        told: Callable[[Floats, int], None],
    ) -> tuple[Indices, Indices]:
        """Improve problems by steps to a violation of tol, or `steps_between` Newton steps.

        After each launch `told` is called with their violations and the number of support vectors.
        Returns the steps of each, and the numbers of those that need more. The gradients are those
        of `recompute` in the end.
        """
        device, sizes = self.device, [len(one.b) for one in problems]
        kinds = [type_of_state(self._values.dtype, one.f, tol) for one in problems]
        kind = np.result_type(*kinds)
        places, _, lower, upper, b, f = map(np.concatenate, zip(*problems, strict=True))
        gates = GROWS * (b < upper) + SHRINKS * (b > lower)
        goals, parts = np.array([self._goal(one, tol) for one in problems]), _ends(sizes)
        coefficients = device.put(b)
        arrays = [
            self._diagonal.astype(kind, copy=False),
            *self._put(places.astype(np.int32), parts, lower, upper),
            coefficients,
            *self._put(f.astype(kind), gates.astype(np.uint8), goals),
        ]
        across = max(1, min(device.blocks // len(sizes), max(sizes) // THREADS))
        parts_of_blocks = device.xp.zeros(2 * PART_BYTES * across * len(sizes), np.uint8)
        arrived = device.xp.zeros(len(sizes), np.uint32)
        code = steps_code(self._values.dtype.name, np.dtype(kind).name)
        left, shape = np.array([steps_between(n) for n in sizes]), (len(sizes), len(self._values))
        steps, results = np.zeros(len(sizes), np.int64), np.zeros((len(sizes), 4))
        while (open_ := (results[:, 0] == 0) & (steps < left)).any():
            given = np.where(open_, np.minimum(STEPS_OF_LAUNCH, left - steps), 0)
            results[:, 1] = given
            on_device = device.put(results)
            given_arrays = [self._values, *arrays, on_device, parts_of_blocks, arrived]
            device.launch(code, shape, given_arrays, together=(across, THREADS))
            device.get(on_device, results)
            steps += given - results[:, 1].astype(np.int64)
            told(results[:, 2], int(device.xp.count_nonzero(coefficients)))
        found = np.empty(parts[-1])
        device.get(coefficients, found)
        for one, first in zip(problems, parts, strict=False):
            one.b[:] = found[first : first + len(one.b)]
            settle(one.b, one.lower, one.upper)
        self.recompute(problems)
        return steps, np.flatnonzero(results[:, 0] == 0)

    def _goal(self, one: DeviceProblem, tol: float) -> float:
        """Violation at which the steps of a problem end."""
        return max(tol, rounding_of(np.abs(one.f).max(), self.entry, np.abs(one.b).sum()))

    def recompute(self, problems: Sequence[DeviceProblem]) -> None:
        """Compute the gradients of problems anew, in float64."""
        device, parts = self.device, _ends([len(one.b) for one in problems])
        support = [np.flatnonzero(one.b) for one in problems]
        pairs = list(zip(problems, support, strict=True))
        arrays = self._put(
            np.concatenate([one.places for one in problems]).astype(np.int32),
            parts,
            np.concatenate([one.places[own] for one, own in pairs]).astype(np.int32),
            _ends([len(own) for own in support]),
            np.concatenate([one.b[own] for one, own in pairs]),
        )
        f = device.put(np.concatenate([one.linear for one in problems]))
        code, shape = gradients_code(self._values.dtype.name), (len(problems), len(self._values))
        device.launch(code, shape, [self._values, *arrays, f])
        found = np.empty(parts[-1])
        device.get(f, found)
        for one, first in zip(problems, parts, strict=False):
            one.f[:] = found[first : first + len(one.f)]

    def _put(self, *arrays: NDArray[Any]) -> list[DeviceArray]:
        return [self.device.put(array) for array in arrays]

    def newton(self, one: DeviceProblem) -> int:
        """Newton steps of a problem in its free coefficients, see `dhsk.solvers.newton`.

        Returns their number; the gradient is to be computed anew.
        """
        device = self.device
        free = np.flatnonzero((one.lower < one.b) & (one.b < one.upper))
        if len(free) < 2 or len(free) ** 2 > _MOST_FREE:
            return 0
        places = device.put(one.places[free])
        own = np.empty((len(free), len(free)), self._values.dtype)
        device.get(device.xp.ascontiguousarray(self._values[places][:, places]), own)
        K = np.zeros((len(free), padded(len(free))), own.dtype)
        K[:, : len(free)] = own
        b, f = one.b[free], one.f[free]
        bounds = one.lower[free], one.upper[free]
        steps = newton_steps(K, bounds, b, f, 0.0, len(one.b))
        one.b[free] = b
        settle(one.b, one.lower, one.upper)
        return steps


def _ends(sizes: Sequence[int]) -> Indices:
    """Where each part begins, and the end of the last one."""
    return np.cumsum([0, *sizes], dtype=np.int64)
