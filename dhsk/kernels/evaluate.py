"""Evaluation of certified profiles: one pass, in place, compiled.

Every multiply-add is LLVM's fma and nothing may be reassociated, so results have the same bits on
every machine, in every loop, at every length. An array goes through at one to three nanoseconds an
entry, whatever the number of levels (tests/benchmarks/kernel.py).

Compiling a form takes a quarter of a second and is kept on disk (numba's cache: beside this file,
or in the user's cache folder where that cannot be written), so each machine compiles a form once
and later processes load it in milliseconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.float64] | NDArray[np.float32]
"""An array of float64 or of float32."""

_Pass: TypeAlias = Callable[..., None]


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


# Coefficients: (2^r - 1)/r interpolated at Chebyshev nodes. Their own relative errors are 2.6e-17
# and 9.2e-9; evaluation adds at most Σ_k |Σ_{i>=k} e_i r^i| u / 2^r < 1.6 u.
DOUBLE: Final = Arithmetic(
    unit=2.0**-53,
    shifter=1.5 * 2.0**52,
    mantissa_bits=52,
    exp2=np.array(
        [
            1.0,
            0.6931471805599453,
            0.24022650695910097,
            0.0555041086648216,
            0.009618129107606888,
            0.0013333558146416936,
            0.0001540353044173605,
            1.525273382983612e-05,
            1.321544258792169e-06,
            1.0178062445845774e-07,
            7.072585949269223e-09,
            4.4549605981865186e-10,
        ]
    ),
    exp2_error=1.9 * 2.0**-53,
)
SINGLE: Final = Arithmetic(
    unit=2.0**-24,
    shifter=1.5 * 2.0**23,
    mantissa_bits=23,
    exp2=np.array(
        [
            1.0,
            0.6931471824645996,
            0.24022650718688965,
            0.055503569543361664,
            0.009618083015084267,
            0.0013390863314270973,
            0.00015453163359779865,
        ],
        dtype=np.float32,
    ),
    exp2_error=1.8 * 2.0**-24,
)


def _type_fma(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """LLVM's fma: a b + c, rounded once."""

    def generate(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return a(a, b, c), generate


def _type_scaled(_context: Any, power: Any, shifted: Any) -> Any:
    """Multiply by 2^k, with k in the low bits of `shifted`: add k to the bits of the exponent."""
    mantissa_bits = DOUBLE.mantissa_bits if power == types.float64 else SINGLE.mantissa_bits
    whole = types.int64 if power == types.float64 else types.int32

    def generate(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = ctx.get_value_type(whole)
        k = builder.shl(builder.bitcast(args[1], bits), bits(mantissa_bits))
        total = builder.add(builder.bitcast(args[0], bits), k)
        return builder.bitcast(total, ctx.get_value_type(signature.return_type))

    return power(power, shifted), generate


_fma: Any = intrinsic(_type_fma)
_scaled: Any = intrinsic(_type_scaled)


@cache
def compiled_pass(size: int, n_factors: int, degree: int) -> _Pass:
    """Compiled loop for `size` coefficients of P and of Q and `n_factors` factors.

    Its arguments: values (1-D, in place), P, Q, the factors' slopes and starts, exp2 coefficients,
    and the scalars offset, left, snap, floor, lowest, one and shifter, all of the values' type.
    """

    @numba.njit(error_model="numpy", nogil=True, cache=True)
    def run(
        values: Any,
        numerator: Any,
        denominator: Any,
        slopes: Any,
        starts: Any,
        exp2: Any,
        offset: Any,
        left: Any,
        snap: Any,
        floor: Any,
        lowest: Any,
        one: Any,
        shifter: Any,
    ) -> None:
        for i in range(values.size):
            c = values[i]
            c = left if c < left else c
            c = one if c >= snap else c
            d, y = one - c, c - left
            p, q = numerator[size - 1], denominator[size - 1]
            for k in range(size - 2, -1, -1):
                p = _fma(p, y, numerator[k])
                q = _fma(q, y, denominator[k])
            exponent = -d * (p / q + offset)
            shifted = exponent + shifter
            r = exponent - (shifted - shifter)
            power = exp2[degree]
            for k in range(degree - 1, -1, -1):
                power = _fma(power, r, exp2[k])
            for k in range(n_factors):
                power = power * _fma(y, slopes[k], starts[k])
            value = _scaled(power, shifted)
            values[i] = value if value > floor else min(value, lowest)

    return run
