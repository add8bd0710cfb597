"""``exp`` and ``log``, written so that the compiler turns loops into vectors.

Range reduction and a polynomial each, no table and no branch. The polynomials of float32 are least
maximum relative errors, fitted to below 1e-8 on the reduced range, so that rounding is what is
left; float64 takes the first terms of the series. The library functions that LLVM would call
instead take one number at a time.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import int32, int64, types
from numba.extending import intrinsic

from priorshift.risk.compiled._njit import exact, summing

_f = np.float32
_LOG2_E = _f(1.4426950408889634)
# ln 2 in two pieces: the first has few bits, so that its multiples are exact.
_LN2_HIGH, _LN2_LOW = _f(0.693359375), _f(-2.1219444e-4)
# Adding this number rounds to the nearest whole one, and leaves that in the lowest bits.
_ROUNDER = _f(12582912.0)
_LN2_HIGH64, _LN2_LOW64 = 0.693145751953125, 1.42860682030941723212e-6
_ROUNDER64 = 6755399441055744.0
# 1 / n! from n = 13 down: at ln(2) / 2 the next term is below the rounding.
_SERIES = tuple(1.0 / factorial(n) for n in range(13, -1, -1))
# Smaller exponentials would become subnormal once they are weighed, and those are slow; next to
# the largest term of a softmax, which is one, they are nothing.
_SMALLEST = _f(-60.0)


def _reading(old: Any, new: Any, kind: Any) -> Any:
    """A function that reads the bits of a number as those of another type."""

    @intrinsic
    def read(context: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], kind)

        return new(old), generate

    return read


_bits_to_float = _reading(types.int32, types.float32, ir.FloatType())
_float_to_bits = _reading(types.float32, types.int32, ir.IntType(32))
_bits_to_double = _reading(types.int64, types.float64, ir.DoubleType())
_double_to_bits = _reading(types.float64, types.int64, ir.IntType(64))


@exact
def exp64(x: Any) -> Any:
    """Return ``exp(x)`` in float64 for ``x`` up to 700; below -700 it stays at ``exp(-700)``.

    Examples
    --------
    >>> bool(abs(exp64(1.0) - np.e) < 1e-15)
    True
    """
    x = max(x, -700.0)
    shifted = x * 1.4426950408889634 + _ROUNDER64
    whole = shifted - _ROUNDER64
    r = x - whole * _LN2_HIGH64
    r = r - whole * _LN2_LOW64
    p = _SERIES[0]
    for i in range(1, len(_SERIES)):
        p = p * r + _SERIES[i]
    return p * _bits_to_double(int64((_double_to_bits(shifted) + int64(1023)) << int64(52)))


@exact
def exp32(x: Any) -> Any:
    """Return ``exp(x)``; below -60 it stays at ``exp(-60)``.

    Examples
    --------
    >>> bool(abs(exp32(np.float32(1.0)) - np.e) < 1e-6)
    True
    """
    x = max(x, _SMALLEST)
    shifted = x * _LOG2_E + _ROUNDER
    whole = shifted - _ROUNDER
    power = _float_to_bits(shifted)
    r = x - whole * _LN2_HIGH
    r = r - whole * _LN2_LOW
    p = _f(1.3814598474e-3)
    p = p * r + _f(8.3687168873e-3)
    p = p * r + _f(4.1668388049e-2)
    p = p * r + _f(1.6666520632e-1)
    p = p * r + _f(4.9999993448e-1)
    y = p * (r * r) + r + _f(1.0)
    return y * _bits_to_float(int32((power + int32(127)) << int32(23)))


@exact
def log32(x: Any) -> Any:
    """Return ``log(x)`` for a normal, positive ``x``.

    Examples
    --------
    >>> bool(abs(log32(np.float32(10.0)) - np.log(10.0)) < 1e-6)
    True
    """
    bits = _float_to_bits(x)
    power = int32((bits >> int32(23)) - int32(126))
    m = _bits_to_float(int32((bits & int32(0x007FFFFF)) | int32(0x3F000000)))
    small = m < _f(0.70710678)
    whole = _f(power) - (_f(1.0) if small else _f(0.0))
    m = (m + m - _f(1.0)) if small else (m - _f(1.0))
    square = m * m
    p = _f(-7.6344965346e-2)
    p = p * m + _f(1.2761577048e-1)
    p = p * m - _f(1.3160182395e-1)
    p = p * m + _f(1.4201757999e-1)
    p = p * m - _f(1.6623357344e-1)
    p = p * m + _f(2.0001226876e-1)
    p = p * m - _f(2.5000821034e-1)
    p = p * m + _f(3.3333331708e-1)
    y = p * m * square
    y = y + whole * _LN2_LOW
    y = y - _f(0.5) * square
    return m + y + whole * _LN2_HIGH


@summing
def dot(x: Any, y: Any, m: int) -> Any:
    """Sum of the products of the first ``m`` entries.

    Examples
    --------
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 2)
    11.0
    """
    total = x[0] * y[0]
    for s in range(1, m):
        total += x[s] * y[s]
    return total
