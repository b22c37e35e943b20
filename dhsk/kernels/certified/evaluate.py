"""Evaluation of certified profiles: one pass, compiled.

The formula is written for blocks of eight vector registers, in LLVM's own vector type, and an array
goes through block by block, its end padded. Eight registers hide each other's latency and share the
loads of the coefficients: with AVX-512 that takes 13 to 33 % off numba's loop over single entries,
which LLVM compiles to one register at a time, 30 % in float32, and 10 to 20 % with AVX2. Every
multiply-add is LLVM's fma and nothing may be reassociated, so results have the same bits on every
machine, at every length.

Compiling a pass takes a third of a second and is kept on disk (numba's cache: beside this file, or
in the user's cache folder where that cannot be written), so each machine compiles it once and later
processes load it in milliseconds. Few entries share a pass, see `passes`.

Blocks of four registers take 10 % longer, and those of twelve spill.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import count, islice
from typing import Any, Final, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dhsk.compiled import compiled
from dhsk.simd import Vector, VectorCode, cgutils

Reals: TypeAlias = NDArray[np.float64] | NDArray[np.float32]
"""An array of float64 or of float32."""

_Pass: TypeAlias = Callable[..., None]

_BLOCK_BYTES: Final = 512  # eight registers of AVX-512; also faster than fewer with AVX2


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """What the evaluation needs to know about a floating-point type."""

    unit: float
    """Largest relative error of a rounding, u = eps/2."""
    shifter: float
    """1.5 · 2^mantissa bits: adding it rounds to a whole number, in the low bits of the sum."""
    mantissa_bits: int
    exp2: Reals
    """2^r = Σ e_k r^k on [-1/2, 1/2], e_0 = 1."""
    exp2_error: float
    """Bound of its relative error, rounding included."""


EXPM1_ERROR: Final = 4.0 * 2.0**-53
"""Bound of the relative error of 2^E - 1 in float64, given E <= 0, rounding included.

(2^r - 1)/r is off by 0.4 u itself; Horner's rule adds 1.3 u and the product with r one more. With
E = k + r the sum 2^k (2^r - 1) + (2^k - 1) is rounded once, and is nowhere less than 0.7 times its
larger part; for k = 0 it is the first part alone.
"""


# Coefficients: (2^r - 1)/r interpolated at Chebyshev nodes. Their own relative errors are 2.6e-17
# and 9.2e-9; evaluation adds at most Σ_k |Σ_{i>=k} e_i r^i| u / 2^r < 1.6 u.
DOUBLE: Final = Arithmetic(
    unit=2.0**-53,
    shifter=1.5 * 2.0**52,
    mantissa_bits=52,
    exp2=np.array(
        [
            1.0, 0.6931471805599453, 0.24022650695910097, 0.0555041086648216,
            0.009618129107606888, 0.0013333558146416936, 0.0001540353044173605,
            1.525273382983612e-05, 1.321544258792169e-06, 1.0178062445845774e-07,
            7.072585949269223e-09, 4.4549605981865186e-10,
        ]
    ),
    exp2_error=1.9 * 2.0**-53,
)  # fmt: skip
SINGLE: Final = Arithmetic(
    unit=2.0**-24,
    shifter=1.5 * 2.0**23,
    mantissa_bits=23,
    exp2=np.array(
        [
            1.0, 0.6931471824645996, 0.24022650718688965, 0.055503569543361664,
            0.009618083015084267, 0.0013390863314270973, 0.00015453163359779865,
        ],
        dtype=np.float32,
    ),
    exp2_error=1.8 * 2.0**-24,
)  # fmt: skip


def polynomial(coefficients: Sequence[Vector], y: Vector) -> Vector:
    """Horner's rule."""
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = value.times_plus(y, coefficient)
    return value


def _kernel_values(
    c: Vector,
    form: Iterator[Vector],
    sizes: Sequence[int],
    arithmetic: Arithmetic,
    constant: Callable[[float], Vector],
) -> Vector:
    """K at a block of cosines, from the numbers of a form in the order of `compiled_pass`."""
    floor, lowest = islice(form, 2)
    _, _, value = _unbounded(c, form, sizes, arithmetic, constant)
    return value.where(floor < value, value.where(value < lowest, lowest))


def _time_derivatives(
    c: Vector,
    form: Iterator[Vector],
    sizes: Sequence[int],
    arithmetic: Arithmetic,
    constant: Callable[[float], Vector],
) -> Vector:
    """dK/dt = K (1-c) R at a block of cosines; the coefficients of R end the form."""
    y, d, value = _unbounded(c, form, sizes, arithmetic, constant)
    rate_p, rate_q = (list(islice(form, size)) for size in sizes[3:])
    # 0 - d, which is +0 at c = 1 where -d would be -0.
    return value * (_quotient(rate_p, rate_q, y) * (constant(0.0) - d))


def _unbounded(
    c: Vector,
    form: Iterator[Vector],
    sizes: Sequence[int],
    arithmetic: Arithmetic,
    constant: Callable[[float], Vector],
) -> tuple[Vector, Vector, Vector]:
    """Distances from the left end, c - 1, and K before it is bounded from below."""
    left, offset = islice(form, 2)
    counts = (*sizes[:3], sizes[2])
    p, q, slopes, starts = (list(islice(form, size)) for size in counts)
    y, d, rest, shifted = _exponent(c, left, offset, p, q, arithmetic, constant)
    power = polynomial([constant(e) for e in arithmetic.exp2.tolist()], rest)
    for slope, start in zip(slopes, starts, strict=True):
        power = power * y.times_plus(slope, start)
    return y, d, power.times_power_of_2(shifted, arithmetic.mantissa_bits)


def _differences(
    c: Vector,
    form: Iterator[Vector],
    sizes: Sequence[int],
    arithmetic: Arithmetic,
    constant: Callable[[float], Vector],
) -> Vector:
    """Give scale (K - 1) + shift at a block of cosines; the form begins with scale and shift.

    Nothing cancels: 2^E - 1 and, of factors 1 - u_j d, their product less 1 are both below 0.
    """
    scale, shift, left, offset = islice(form, 4)
    p, q, slopes = (list(islice(form, size)) for size in sizes[:3])
    _, d, rest, shifted = _exponent(c, left, offset, p, q, arithmetic, constant)
    one = constant(1.0)
    whole = one.times_power_of_2(shifted, arithmetic.mantissa_bits)
    below = polynomial([constant(e) for e in arithmetic.exp2.tolist()[1:]], rest) * rest
    below = below.times_plus(whole, whole - one)
    if slopes:
        product = d * slopes[0]
        for slope in slopes[1:]:
            product = (d * slope).times_plus(one + product, product)
        below = product.times_plus(one + below, below)
    return below.times_plus(scale, shift)


def _exponent(
    c: Vector,
    left: Vector,
    offset: Vector,
    p: Sequence[Vector],
    q: Sequence[Vector],
    arithmetic: Arithmetic,
    constant: Callable[[float], Vector],
) -> tuple[Vector, Vector, Vector, Vector]:
    """y, c - 1, and the exponent as a rest in [-1/2, 1/2] and a whole number in low bits."""
    one, shifter = constant(1.0), constant(arithmetic.shifter)
    c = left.where(c < left, c)
    c = c.where(c < one, one)
    y, d = c - left, c - one
    exponent = d * (_quotient(p, q, y) + offset)
    shifted = exponent + shifter
    return y, d, exponent - (shifted - shifter), shifted


def _quotient(p: Sequence[Vector], q: Sequence[Vector], y: Vector) -> Vector:
    """P/Q; `q` is empty for Q = 1."""
    value = polynomial(p, y)
    return value / polynomial(q, y) if q else value


FORMULAS: Final = _kernel_values, _differences, _time_derivatives
"""In the order of what a pass computes; also those of `dhsk.kernels.cuda`."""

VALUES, LESS_ONE, TIME_DERIVATIVE = range(3)
"""What a compiled pass computes: K, scale (K - 1) + shift, or dK/dt."""


def _type_block(
    _context: Any,
    cosines: Any,
    out: Any,
    start: Any,
    form: Any,
    p: Any,
    q: Any,
    factors: Any,
    what: Any,
    rate_p: Any,
    rate_q: Any,
) -> Any:
    """Values at a block of cosines from `start` on, rounded to the type of `out`."""
    assert cosines.layout == out.layout == form.layout == "C"
    sizes = [size.literal_value for size in (p, q, factors, rate_p, rate_q)]
    formula = FORMULAS[what.literal_value]
    arithmetic = DOUBLE if cosines.dtype == types.float64 else SINGLE

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        element = context.get_value_type(cosines.dtype)
        code = VectorCode(context, builder, _BLOCK_BYTES // arithmetic.exp2.itemsize)
        source, target, numbers = (
            code.pointer(array, arg)
            for array, arg in ((cosines, args[0]), (out, args[1]), (form, args[3]))
        )
        form_entries = (
            code.repeated(builder.load(cgutils.gep_inbounds(builder, numbers, i))) for i in count()
        )
        constant = partial(code.constant, element=element)
        c = code.load(source, args[2])
        code.store(formula(c, form_entries, sizes, arithmetic, constant), target, args[2])
        return context.get_dummy_value()

    return types.void(cosines, out, start, form, p, q, factors, what, rate_p, rate_q), generate


_block: Any = intrinsic(prefer_literal=True)(_type_block)


@cache
def compiled_pass(
    p: int, q: int, factors: int, what: int = VALUES, rate_p: int = 0, rate_q: int = 0
) -> _Pass:
    """Compiled loop for `p` coefficients of P, `q` of Q, 0 for Q = 1, and some factors.

    Its arguments: cosines (1-D, contiguous); where the values go, of the same shape and any type,
    the same array too; and as one array, of the type of the cosines, the scalars floor, lowest,
    left and offset, P, Q, and the factors' slopes and starts. If `what` is `LESS_ONE`, the values
    are scale (K - 1) + shift, for float64 cosines, and scale and shift take the places of floor and
    lowest. If it is `TIME_DERIVATIVE`, these two are left out, and `rate_p` and `rate_q`
    coefficients of R = P/Q follow.
    """

    @compiled(error_model="numpy")
    def run(cosines: Any, out: Any, form: Any) -> None:
        entries = _BLOCK_BYTES // cosines.itemsize
        whole = cosines.size - cosines.size % entries
        for i in range(0, whole, entries):
            _block(cosines, out, i, form, p, q, factors, what, rate_p, rate_q)
        if whole < cosines.size:
            rest = np.ones(entries, cosines.dtype)
            for i in range(whole, cosines.size):
                rest[i - whole] = cosines[i]
            values = np.empty(entries, out.dtype)
            _block(rest, values, 0, form, p, q, factors, what, rate_p, rate_q)
            for i in range(whole, cosines.size):
                out[i] = values[i - whole]

    return run
