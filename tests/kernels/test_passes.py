"""Passes with room for more coefficients than a form has: the same bits, and nothing compiled."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.compiled import is_at_hand
from dhsk.kernels.certified.derivative import heat_derivative_profile
from dhsk.kernels.certified.evaluate import LESS_ONE, VALUES, compiled_pass
from dhsk.kernels.certified.passes import PAYS, ROOMS, Passes, widened, with_head
from dhsk.kernels.certified.profile import heat_profile

RNG = np.random.default_rng(0)
COSINES = np.concatenate([RNG.uniform(-1, 1, 2000), 1 - np.logspace(-16, 0, 200), [-1, 1, 0]])

KERNELS = [
    (2, 0.05),  # factors and a denominator
    (3, 0.08),
    (3, 3.0),
    (12, 0.06),
    (54, 0.05),
    (784, 0.004),  # polynomials of few coefficients
    (784, 5.0),  # flat
    (20_862, 0.0005),
]


def passes_of(dim: int, time: float) -> list[tuple[Passes, Any, tuple[float, ...]]]:
    """All passes of a kernel and its derivative, with the type of cosines and a head."""
    kernel, derivative = heat_profile(dim, time), heat_derivative_profile(dim, time)
    found: list[tuple[Passes, Any, tuple[float, ...]]] = []
    for name, dtype in (("double", np.float64), ("single", np.float32)):
        form, rate = getattr(kernel, name), getattr(derivative, name)
        found.append((Passes(VALUES, form.sizes, form.packed), dtype, ()))
        found.append((rate._derivatives, dtype, ()))
    less_one = Passes(LESS_ONE, kernel.double.sizes, kernel.double.packed)
    return [*found, (less_one, np.float64, (-3.0, 0.5))]


def values_of(
    sizes: tuple[int, ...], one: Passes, numbers: Any, cosines: Any, head: tuple[float, ...]
) -> bytes:
    """Bits of the values by a pass of some sizes."""
    run = compiled_pass(*sizes[:3], one.what, *sizes[3:])
    out = np.empty_like(cosines)
    run(cosines, out, with_head(numbers, *head) if head else numbers)
    return out.tobytes()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_room_changes_no_bit(kernel: tuple[int, float]) -> None:
    """Zeros in place of the coefficients that a form lacks, at all cosines."""
    compared = 0
    for one, dtype, head in passes_of(*kernel):
        cosines = COSINES.astype(dtype)
        expected = values_of(one.sizes, one, one.numbers, cosines, head)
        for room in ROOMS:
            if len(room) == len(one.sizes) and np.less_equal(one.sizes, room).all():
                wide = widened(one.numbers, one.sizes, room)
                found = values_of(room, one, wide, cosines, head)
                assert found == expected, (one.what, one.sizes, room)
                compared += 1
    assert compared > 3


FEW = """
import numpy as np
from dhsk.kernels.certified.derivative import heat_derivative_profile
from dhsk.kernels.certified.evaluate import compiled_pass
cosines, compiled, sizes = np.linspace(-1, 1, 100), 0, set()
for time in (0.05, 0.08, 0.12, 0.3, 1.0):
    form = heat_derivative_profile(12, time).double
    form.apply(cosines.copy(), cosines.copy())
    sizes.add(form.sizes)
    *own, p, q = form.sizes
    compiled += len(compiled_pass(*own, 2, p, q).signatures)
print(len(sizes), compiled)
"""


def test_few_entries_compile_no_pass_of_their_own(tmp_path: Path) -> None:
    """Forms of several sizes, where nothing is kept yet."""
    done = subprocess.run(
        [sys.executable, "-c", FEW], capture_output=True, text=True, check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    sizes, compiled = map(int, done.stdout.split())
    assert sizes >= 3
    assert compiled == 0


def test_many_entries_have_a_pass_of_their_own() -> None:
    """From `PAYS` on, and at once where it is kept."""
    form = heat_profile(12, 0.0612)
    passes = Passes(VALUES, form.double.sizes, form.double.packed)
    own: Any = compiled_pass(*passes.sizes, VALUES)
    assert isinstance(passes.room, tuple)
    few, many = np.empty_like(COSINES), np.empty_like(COSINES)
    passes(COSINES, few)
    passes.entries = PAYS
    passes(COSINES, many)
    assert own.signatures
    assert is_at_hand(own, COSINES, many, passes.numbers)
    assert few.tobytes() == many.tobytes()


def test_kernels_are_the_same_after_many_entries() -> None:
    """As users see it."""
    kernel = dhsk.HeatKernel(12, 0.0613)
    rows = dhsk.hyperspherical_map(RNG.random((30, 12)))
    before = kernel(rows)
    kernel._profile.double._values.entries = PAYS
    assert kernel(rows).tobytes() == before.tobytes()


def test_another_process_counts_anew() -> None:
    """And looks for itself which passes are kept on disk."""
    form = heat_profile(12, 0.0614).double
    form.apply(COSINES, values := np.empty_like(COSINES))
    again = pickle.loads(pickle.dumps(form._values))
    assert (again.entries, again.own_is_kept) == (0, None)
    again(COSINES, other := np.empty_like(COSINES))
    assert values.tobytes() == other.tobytes()
