"""Elementary functions of floats, each the float next to the exact value.

The system's own functions differ in the last bit between its versions and processors. Where the
coefficients of kernels come from them, kernels would differ too. flint's precision belongs to the
process: hold `profile.building`, but for `log_of_whole`.
"""

from collections.abc import Iterable
from decimal import Context, Decimal
from functools import reduce
from operator import add
from typing import Final

from flint import arb, ctx

_BITS: Final = 128
"""A value is within 2^-128 of its size: no float is missed but once in 2^75."""

_DIGITS: Final = 40


def total(terms: Iterable[float]) -> float:
    """Sum from the left; Python's own `sum` has other last digits from Python 3.12 on."""
    return reduce(add, terms, 0.0)


def exps(numbers: Iterable[float]) -> list[float]:
    """E to the power of each."""
    with ctx.workprec(_BITS):
        return [float(arb(x).exp()) for x in numbers]


def exp2(x: float) -> float:
    """2 to the x."""
    return power(2.0, x)


def log(x: float) -> float:
    """Natural logarithm of a number above 0."""
    with ctx.workprec(_BITS):
        return float(arb(x).log())


def cos(x: float) -> float:
    """Cosine."""
    with ctx.workprec(_BITS):
        return float(arb(x).cos())


def power(base: float, exponent: float) -> float:
    """A power of a number above 0."""
    with ctx.workprec(_BITS):
        return float(arb(base) ** arb(exponent))


def log_of_whole(n: int) -> float:
    """Natural logarithm of a whole number above 0; any thread may ask."""
    return float(Decimal(n).ln(Context(prec=_DIGITS)))
