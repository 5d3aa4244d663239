"""Complex numbers by their parts, where NumPy and XLA differ.

A quotient is said in operations on real numbers, which `k` holds by their names: it
does them to arrays, or writes them into a kernel.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

from types import SimpleNamespace

import numpy as np


def parts_of_quotient(k, a, b, c, d):
    """Return the parts of (a + ib) / (c + id), without squares that could overflow.

    Reference: R. L. Smith, *Algorithm 116: Complex division* (CACM 5, 1962).
    """
    flip = k.lt(k.abs(c), k.abs(d))
    large, small = k.select(flip, d, c), k.select(flip, c, d)
    ratio = k.div(small, large)
    scale = k.add(large, k.mul(small, ratio))
    x, y = k.select(flip, b, a), k.select(flip, a, b)
    turned = k.mul(x, ratio)
    imag = k.select(flip, k.sub(turned, y), k.sub(y, turned))
    parts = k.div(k.add(x, k.mul(y, ratio)), scale), k.div(imag, scale)
    lost = _both(k, *[k.ne(part, part) for part in parts])
    ends = _quotient_at_ends(k, a, b, c, d)
    return [k.select(lost, end, part) for end, part in zip(ends, parts)]


def parts_of_square(k, x, y):
    """Return the parts of (x + iy)²; x² - y² as a product, which keeps the digits."""
    real, product = k.mul(k.sub(x, y), k.add(x, y)), k.mul(x, y)
    sizes = k.abs(x), k.abs(y)  # if they are equal, their sum may overflow
    return k.select(k.eq(*sizes), k.sub(*sizes), real), k.add(product, product)


def _quotient_at_ends(k, a, b, c, d):
    """Return the quotient of or by infinities, or by 0; of other numbers, NaN.

    Reference: annex G of the C standard, in XLA's reading.
    """
    infinity, zero = k.number(np.inf, a), k.eq(k.add(k.abs(c), k.abs(d)), 0)
    by_zero = [k.mul(k.copysign(infinity, c), part) for part in (a, b)]
    vast = getattr(k, "or")(_is_infinite(k, c), _is_infinite(k, d))
    p, q = [_direction(k, k.select(vast, *parts)) for parts in ((c, a), (d, b))]
    r, s = [k.select(vast, *parts) for parts in ((a, c), (b, d))]
    x, y = k.mul(q, r), k.mul(p, s)
    imag = k.sub(k.select(vast, y, x), k.select(vast, x, y))
    size = k.select(vast, k.number(0, infinity), infinity)
    ends = [k.mul(size, part) for part in (k.add(k.mul(p, r), k.mul(q, s)), imag)]
    return [k.select(zero, *parts) for parts in zip(by_zero, ends)]


def _both(k, x, y):
    return getattr(k, "and")(x, y)


def _is_infinite(k, x):
    return k.eq(k.abs(x), k.number(np.inf, x))


def _direction(k, x):
    """Return 1 for infinity and 0 for other numbers, with the sign of `x`."""
    return k.copysign(k.select(_is_infinite(k, x), k.number(1, x), k.number(0, x)), x)


def on_arrays(xp):
    """Return the operations on real numbers, as an array module does them."""
    names = {
        "div": "divide", "sub": "subtract", "mul": "multiply", "select": "where",
        "lt": "less", "eq": "equal", "ne": "not_equal", "and": "logical_and",
        "or": "logical_or", "abs": "abs", "add": "add", "copysign": "copysign",
    }  # fmt: skip
    operations = {name: getattr(xp, other) for name, other in names.items()}
    return SimpleNamespace(number=lambda x, like: like.dtype.type(x), **operations)


def complex_number(xp, x, y):
    """Return x + iy, exactly, infinities and zeros of either sign included."""
    shape = xp.broadcast_shapes(x.shape, y.shape)
    result = xp.empty(shape, "complex64" if x.dtype.itemsize == 4 else "complex128")
    result.real, result.imag = x, y
    return result


def unit(xp, x):
    """Return complex numbers over their size; those of few bits are scaled first."""
    size = xp.abs(x)
    few = (size < np.finfo(size.dtype).tiny) & (size > 0)
    if xp.any(few):
        x = xp.array(x)
        factor = xp.where(few, size.dtype.type(2.0**64), size.dtype.type(1))
        x.real *= factor
        x.imag *= factor
        size = xp.abs(x)
    return x / size


def divide_inexact(xp, x, y):
    """Divide floats or complex numbers; NumPy loses what infinities and 0 leave."""
    result = xp.divide(x, y)
    if x.dtype.kind != "c" or xp.isfinite(xp.sum(result)):
        return result
    parts = parts_of_quotient(on_arrays(xp), x.real, x.imag, y.real, y.imag)
    return xp.where(xp.isfinite(result), result, complex_number(xp, *parts))


def square_of(xp, x):
    """Return the square of numbers."""
    if x.dtype.kind != "c":
        return x * x
    return complex_number(xp, *parts_of_square(on_arrays(xp), x.real, x.imag))


def angle(xp, y, x):
    """Return the angle of the point (x, y), continued to complex coordinates."""
    if x.dtype.kind != "c":
        return xp.arctan2(y, x)
    return -1j * xp.log((x + 1j * y) / xp.sqrt(x * x + y * y))


def exp_minus_one(xp, x):
    """Return exp(x) - 1; of a complex number that is real, without imaginary part."""
    result = xp.expm1(x)
    if x.dtype.kind != "c":
        return result
    power = xp.exp(x)  # may be finite where the power of the real part is not
    far = (x.real > 80) & (x.real < np.inf)
    real = xp.where(far, power.real - 1, result.real)
    imag = xp.where(far, power.imag, result.imag)
    imag = xp.where(x.imag == 0, 0, imag)
    return xp.where(x == 0, 0, complex_number(xp, real, imag))


def log_one_plus(xp, x):
    """Return log(1 + x); of complex numbers near 0 without loss of digits.

    NumPy's takes the logarithm of |1 + x|, rounded. Near 1 it is computed from
    |1 + x|**2 - 1, of floats in 64 bits.
    """
    if x.dtype.kind != "c":
        return xp.log1p(x)
    result = xp.log(complex_number(xp, x.real + 1, x.imag))
    real, imag = x.real.astype(np.float64), x.imag.astype(np.float64)
    half = 0.5 * xp.log1p(real * (real + 2) + imag * imag)
    near = xp.where(xp.abs(result.real) < 0.5, half, result.real)
    return complex_number(xp, near, result.imag)


def running_logarithms(xp, x, axis):
    """Return the logarithms of running sums of exponentials of complex numbers."""
    totals, reach = xp.moveaxis(x, axis, 0).astype(np.complex128), 1
    while reach < len(totals):
        totals[reach:] = log_add_exp(xp, totals[:-reach], totals[reach:])
        reach *= 2
    return xp.moveaxis(totals, 0, axis)


def log_add_exp(xp, x, y):
    """Return log(exp(x) + exp(y)) of complex numbers."""
    peak = xp.maximum(x.real, y.real)
    peak = xp.where(xp.isfinite(peak), peak, 0)
    return xp.log(xp.exp(x - peak) + xp.exp(y - peak)) + peak
