"""Gaussians of distances, from inner products and squared norms: one pass, compiled.

Per entry: -2 <x, y> + (|x|² + |y|²) by one fma, negative ones set to 0; times the rate
-log2(e)/(2 sigma²); 2 to that power, as `dhsk.kernels.certified.evaluate` has it. Given the squared
distance d², the relative error of K is below `exp2_error` + 2 u d²/(2 sigma²), as rate and product
are rounded once each; the squared distance itself is off by at most 2 u (|x|² + |y|²), besides the
errors of its terms. Values below 2^-1021, in float32 2^-125, come out as 0.

Results have the same bits on every machine and at every place in a block.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from typing import Any, Final, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic

from dhsk.compiled import compiled
from dhsk.kernels.certified.evaluate import DOUBLE, SINGLE, Arithmetic, Reals, polynomial
from dhsk.simd import Vector, VectorCode, cgutils

_Pass: TypeAlias = Callable[..., None]
Constant: TypeAlias = Callable[[float], Vector]

_LOWEST: Final = {DOUBLE.mantissa_bits: -1021.0, SINGLE.mantissa_bits: -125.0}
"""Exponents down to which powers, of any rest, are normal numbers, by mantissa bits."""

_BLOCK_BYTES: Final = 512
"""Eight registers of AVX-512, see `dhsk.kernels.certified.evaluate`."""
_REGISTER_BYTES: Final = 64
"""What is left of a row goes through register by register, and its end entry by entry."""
_ONE: Final = 1


def gaussians(product: Reals, row_norms2: Reals, col_norms2: Reals, twice_variance: float) -> None:
    """Replace inner products, (a, b), with the Gaussians of the distances, in place.

    The arrays are contiguous and of one type; the norms are (a,) and (b,).
    """
    _run(0, product, row_norms2, col_norms2, gaussian_numbers(product.dtype, twice_variance))


def gaussians_less_one(
    product: Reals,
    row_norms2: Reals,
    col_norms2: Reals,
    twice_variance: float,
    scale: float,
    shift: float,
) -> None:
    """Replace inner products with scale (K - 1) + shift; K - 1 without cancellation."""
    numbers = gaussian_numbers(product.dtype, twice_variance, scale, shift)
    _run(1, product, row_norms2, col_norms2, numbers)


def _run(
    less_one: int, product: Reals, row_norms2: Reals, col_norms2: Reals, numbers: Reals
) -> None:
    """Run a pass; a single column as a row, which goes register by register."""
    if product.shape[1] == 1:
        product, row_norms2, col_norms2 = product.reshape(1, -1), col_norms2, row_norms2
    _compiled_pass(less_one)(product, row_norms2, col_norms2, numbers)


def gaussian_numbers(dtype: Any, twice_variance: float, *others: float) -> Reals:
    """Numbers of a pass, in the type of the products: room for a norm, the rate, and others."""
    largest = float(np.finfo(dtype).max)  # infinity times a distance of 0 is no number
    rate = -min(float(np.log2(np.e)) / twice_variance, largest)
    numbers: Any = np.array([0.0, rate, *others], dtype)
    return np.asarray(numbers)


def gaussian_value(
    product: Vector,
    norms2: Vector,
    form: Iterator[Vector],
    less_one: int,
    arithmetic: Arithmetic,
    constant: Constant,
) -> Vector:
    """Gaussian of an inner product and the sum of two squared norms.

    With `less_one` it is scale (K - 1) + shift. The form is that of `gaussian_numbers`, without the
    first.
    """
    rate, zero = next(form), constant(0.0)
    distance2 = product.times_plus(constant(-2.0), norms2)
    exponent = zero.where(distance2 < zero, distance2) * rate
    if not less_one:
        return _power_of_2(exponent, arithmetic, constant)
    return _less_one(exponent, arithmetic, constant).times_plus(next(form), next(form))


def _power_of_2(exponent: Vector, arithmetic: Arithmetic, constant: Constant) -> Vector:
    """2 to an exponent of at most 0; 0 where that is below the lowest."""
    lowest = constant(_LOWEST[arithmetic.mantissa_bits])
    rest, shifted = _parts(exponent, arithmetic, constant)
    value = polynomial([constant(e) for e in arithmetic.exp2.tolist()], rest)
    value = value.times_power_of_2(shifted, arithmetic.mantissa_bits)
    return constant(0.0).where(exponent < lowest, value)


def _less_one(exponent: Vector, arithmetic: Arithmetic, constant: Constant) -> Vector:
    """2 to an exponent of at most 0, less 1: nothing cancels."""
    rest, shifted = _parts(exponent, arithmetic, constant)
    one = constant(1.0)
    whole = one.times_power_of_2(shifted, arithmetic.mantissa_bits)
    value = polynomial([constant(e) for e in arithmetic.exp2.tolist()[1:]], rest) * rest
    return value.times_plus(whole, whole - one)


def _parts(exponent: Vector, arithmetic: Arithmetic, constant: Constant) -> tuple[Vector, Vector]:
    """Rest of an exponent in [-1/2, 1/2], and its whole number, in low bits; not below lowest."""
    lowest, shifter = constant(_LOWEST[arithmetic.mantissa_bits]), constant(arithmetic.shifter)
    exponent = lowest.where(exponent < lowest, exponent)
    shifted = exponent + shifter
    return exponent - (shifted - shifter), shifted


def _type_block(
    _context: Any, products: Any, norms2: Any, at: Any, numbers: Any, size: Any, less_one: Any
) -> Any:
    """Values in place of `size` bytes of products of one row.

    `at` is the place of the first product, and that of its column in `norms2`. The numbers are the
    norm of the row, the rate and, for K - 1, scale and shift.
    """
    assert products.layout == norms2.layout == numbers.layout == "C"
    arithmetic = DOUBLE if products.dtype == types.float64 else SINGLE

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        element = context.get_value_type(products.dtype)
        code = VectorCode(context, builder, max(1, size.literal_value // arithmetic.exp2.itemsize))

        def constant(value: float) -> Vector:
            return code.constant(value, element)

        target, norms, scalars = (
            code.pointer(kind, args[k]) for kind, k in ((products, 0), (norms2, 1), (numbers, 3))
        )
        place, column = (builder.extract_value(args[2], k) for k in range(2))
        given = (
            code.repeated(builder.load(cgutils.gep_inbounds(builder, scalars, k))) for k in count()
        )
        total = next(given) + code.load(norms, column)
        product, what = code.load(target, place), less_one.literal_value
        value = gaussian_value(product, total, given, what, arithmetic, constant)
        code.store(value, target, place)
        return context.get_dummy_value()

    signature = types.void(products, norms2, at, numbers, size, less_one)
    return signature, generate


_block: Any = intrinsic(prefer_literal=True)(_type_block)


@cache
def _compiled_pass(less_one: int) -> _Pass:
    """Loop over the rows of products; its numbers are those of `gaussian_numbers`."""

    @compiled(error_model="numpy")
    def run(product: Any, row_norms2: Any, col_norms2: Any, numbers: Any) -> None:
        rows, columns = product.shape
        products = product.reshape(rows * columns)
        wide, narrow = _BLOCK_BYTES // product.itemsize, _REGISTER_BYTES // product.itemsize
        in_blocks, in_registers = columns - columns % wide, columns - columns % narrow
        for i in range(rows):
            first, numbers[0] = i * columns, row_norms2[i]
            for j in range(0, in_blocks, wide):
                _block(products, col_norms2, (first + j, j), numbers, _BLOCK_BYTES, less_one)
            for j in range(in_blocks, in_registers, narrow):
                _block(products, col_norms2, (first + j, j), numbers, _REGISTER_BYTES, less_one)
            for j in range(in_registers, columns):
                _block(products, col_norms2, (first + j, j), numbers, _ONE, less_one)

    return run
