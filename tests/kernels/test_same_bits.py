"""Values of the heat kernel have the same bits on every processor and under every system.

``heat_bits.json`` has their SHA-256. Run as a program this file prints it anew.
"""

import json
import math
import re
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

from dhsk.kernels.certified import certify, exponent, profile, rational, rounded, series
from dhsk.kernels.certified.evaluate import _BLOCK_BYTES as BLOCK_BYTES
from dhsk.kernels.certified.evaluate import compiled_pass
from dhsk.kernels.certified.form import Form
from dhsk.kernels.certified.profile import HeatProfile, heat_profile

GOLDEN = Path(__file__).with_name("heat_bits.json")

COUNT = 100_000

KERNELS = [
    (2, 0.004), (2, 0.5), (3, 0.1), (5, 0.25), (9, 1.0), (20, 0.15), (64, 0.065), (375, 0.0158),
    (64, 0.032491274088747434), (1000, 0.0069), (42_000, 0.00025), (42_000, 0.0004), (10, 90.0),
]  # fmt: skip
"""Dimensions and times: forms of all kinds, from many factors to a constant."""


def cosines(dtype: Any) -> Any:
    """From -1 to 1, half of them evenly and half near 1: whole numbers over a power of 2."""
    bits = np.finfo(dtype).nmant
    numbers = range(COUNT // 2)
    even = [(i << (bits + 1)) // (COUNT // 2 - 1) - (1 << bits) for i in numbers]
    near = [(1 << bits) - ((i * i << 20) >> (52 - bits)) for i in numbers]
    return np.ldexp(np.array(even + near, dtype=np.int64).astype(dtype), -bits)


def digests(found: HeatProfile) -> dict[str, str]:
    """SHA-256 of all values, in little-endian order."""
    digest = {}
    for form, dtype in ((found.double, np.float64), (found.single, np.float32)):
        values = cosines(dtype)
        form.apply(values, values)
        ordered = values.astype(values.dtype.newbyteorder("<"))
        digest[np.dtype(dtype).name] = sha256(ordered.tobytes()).hexdigest()
    return digest


def written() -> str:
    """The file."""
    kernels = [
        {"dim": dim, "time": time, **digests(heat_profile(dim, time))} for dim, time in KERNELS
    ]
    return json.dumps(kernels, indent=1) + "\n"


def test_cosines_are_all_over_the_interval() -> None:
    """Each is a number of its type, none is beyond 1, and many are where kernels are steep."""
    for dtype in (np.float64, np.float32):
        c = cosines(dtype)
        assert (c.dtype, c.size, c.min(), c.max()) == (dtype, COUNT, -1.0, 1.0)
        assert 20_000 < (c > 0.9).sum() < 80_000
        assert len(np.unique(c)) > 0.9 * COUNT


@pytest.mark.parametrize(
    "kernel", json.loads(GOLDEN.read_text()), ids=lambda one: f"{one['dim']}, {one['time']}"
)
def test_values_have_the_bits_of_every_machine(kernel: dict[str, Any]) -> None:
    """Of float64 and of float32."""
    found = digests(heat_profile(kernel["dim"], kernel["time"]))
    assert found == {name: kernel[name] for name in ("float64", "float32")}


ARM = "aarch64-unknown-linux-gnu"
OPERATIONS = {
    "fmul": r"\tfmul\t", "fadd": r"\tfadd\t", "fsub": r"\tfsub\t", "fdiv": r"\tfdiv\t",
    "call <.*@llvm.fma": r"\tf(?:mla|mls|n?madd|n?msub)\t",
}  # fmt: skip
"""Operations of LLVM, and ARM's instructions for them."""

REGISTER_BYTES = 16
"""Of ARM's vectors."""


def for_arm(code: str) -> str:
    """Assembly for ARM of what numba has compiled for this processor."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    code = re.sub(
        r"(?:tail )?call i8 @llvm\.x86\.atomic[^\n]*", "add i8 0, 0", code
    )  # no arithmetic
    code = re.sub(r"target datalayout = [^\n]*", "", code)
    code = re.sub(r'"target-(cpu|features)"="[^"]*"', "", code)
    code = re.sub(r"target triple = [^\n]*", f'target triple = "{ARM}"', code)
    machine = llvm.Target.from_triple(ARM).create_target_machine(opt=3)
    return str(machine.emit_assembly(llvm.parse_assembly(code)))


@pytest.mark.parametrize("kernel", [(2, 0.004), (20, 0.15)], ids=str)
@pytest.mark.parametrize("precision", ["double", "single"])
def test_arm_rounds_where_others_do(kernel: tuple[int, float], precision: str) -> None:
    """Each operation on a block is one instruction a register: no two become one rounding."""
    form: Form = getattr(heat_profile(*kernel), precision)
    values = np.zeros(1, form.numerator.dtype)
    made: Any = compiled_pass(*form.sizes)
    made(values, values, form.packed)
    again = numba.njit(made.py_func)  # what came from the cache has no code of LLVM's
    again.compile(made.signatures[-1])
    (code,) = again.inspect_llvm().values()
    assembly = for_arm(code)
    found = {name: len(re.findall(f"= (?:tail )?{name}", code)) for name in OPERATIONS}
    each = BLOCK_BYTES // REGISTER_BYTES
    for name, instructions in OPERATIONS.items():
        assert len(re.findall(instructions, assembly)) == each * found[name], name
    assert found["call <.*@llvm.fma"] > 15
    assert not re.search(r"= f(mul|add|sub|div) (fast|contract|reassoc)", code)


# Of the system's own functions nobody knows the last bit

NUDGED = ("exp", "exp2", "expm1", "log", "log1p", "log2", "pow", "power", "cos", "sin", "tan")


class Nudged:
    """A module whose elementary functions return the next float above or below."""

    def __init__(self, module: ModuleType, towards: float) -> None:
        self._module, self._towards = module, towards

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return partial(nudged, found, self._towards) if name in NUDGED else found


def nudged(function: Any, towards: float, *given: Any) -> Any:
    """Value of a function, one float off; those that are exact everywhere stay."""
    value = function(*given)
    moved = np.where(np.isin(value, (0.0, 1.0)), value, np.nextafter(value, towards))
    return moved if isinstance(value, np.ndarray) else float(moved)


def bits_of(found: HeatProfile) -> list[bytes]:
    """All numbers of both forms."""
    parts = ("numerator", "denominator", "slopes", "starts", "left", "offset")
    return [
        np.asarray(getattr(form, part)).tobytes()
        for form in (found.double, found.single)
        for part in parts
    ]


@pytest.mark.parametrize("towards", [-math.inf, math.inf], ids=["below", "above"])
@pytest.mark.parametrize("kernel", [(2, 0.5), (20, 0.15), (375, 0.0158)], ids=str)
def test_kernels_do_not_hang_on_the_last_bit_of_the_system(
    kernel: tuple[int, float], towards: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every function of the system one float off, the coefficients are the same."""
    expected = bits_of(heat_profile(*kernel))
    exponent.heat_exponent.cache_clear()
    for module in (certify, exponent, profile, rational, series):
        for name in ("math", "np"):
            if hasattr(module, name):
                changed = Nudged(getattr(module, name), towards)
                monkeypatch.setattr(module, name, changed)
    assert bits_of(heat_profile.__wrapped__(*kernel)) == expected


def test_functions_are_rounded_to_nearest() -> None:
    """As mpmath has them with 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    numbers = (np.random.default_rng(0).integers(1, 2**40, 2000) / 2**36).tolist()
    with mpmath.workdps(60):
        for n in (2, 9170, *range(3, 10**6, 997)):
            assert rounded.log_of_whole(n) == float(mpmath.log(n))
        powers = rounded.exps(-x for x in numbers)
        assert powers == [float(mpmath.exp(-x)) for x in numbers]
        for x in numbers:
            assert rounded.exp2(-x) == float(mpmath.mpf(2) ** -x)
            assert rounded.log(x) == float(mpmath.log(x))
            assert rounded.cos(x) == float(mpmath.cos(x))
            assert rounded.power(x, -0.175) == float(mpmath.power(x, mpmath.mpf(-0.175)))


if __name__ == "__main__":
    sys.stdout.write(written())


def test_sums_of_floats_are_those_of_all_pythons() -> None:
    """Each sum is rounded; Python's own `sum` keeps what was lost from Python 3.12 on."""
    assert rounded.total([2.0**53, 1.0, -(2.0**53)]) == 0.0
