"""Fourier transforms of lengths with small prime factors, as kernels.

A CPU compiles them with the programs that they are in; other lengths are left to
NumPy, for which machine code has to be left.

Reference: C. Van Loan, *Computational Frameworks for the Fast Fourier Transform*
(1992), section 1.7, the algorithm of Stockham.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import numpy as jnp
from minijax.arrays.array import ShapedArray
from minijax.arrays.dtypes import enable_x64
from minijax.kernels.builder import (
    ComplexNode,
    KernelBuilder,
    UnsupportedKernel,
    broadcast_scalar_view,
    real_and_imag_views,
    reshape_view,
    slice_view,
)
from minijax.kernels.lowering import cpu_rules
from minijax.numpy.fft.primitive import FftType, fft_p

RADICES = 8, 4, 2, 3, 5, 7, 11, 13
MAX_FFT_LENGTH = (
    2**18
)  # the tables of a program take about twenty bytes for each number


def roots_of_one(n):
    """Return the `n` powers of exp(-2i pi / n), complex128; quarter turns are exact."""
    eighths, rest = np.divmod(8 * np.arange(n), n)
    odd = eighths % 2 == 1
    angles = np.where(odd, n - rest, rest) * (np.pi / (4 * n))
    x, y = np.cos(angles), np.sin(angles)
    y = np.where(odd & (rest == 0), x, y)  # an eighth of a turn: one number
    x, y = np.where(odd, y, x), np.where(odd, x, y)
    return (x - 1j * y) * np.array([1, -1j, -1, 1j])[eighths // 2]


def radices_of(n):
    """Return the factors of a length, the largest powers of two first.

    Raises:
      NoKernel: for lengths that are left to NumPy.
    """
    found, rest = [], n
    for radix in RADICES:
        while rest % radix == 0:
            found.append(radix)
            rest //= radix
    if rest > 1 or n > MAX_FFT_LENGTH:
        raise UnsupportedKernel("a large prime factor, or large tables")
    return found or [1]


def few_transformed(k, xs):
    """Write the transform of a few numbers.

    Args:
      k: the `KernelBuilder`.
      xs: list of `ComplexNode`.

    Returns:
      A list of `ComplexNode`.
    """
    half, roots = len(xs) // 2, roots_of_one(len(xs))
    if len(xs) == 1:
        return xs
    if len(xs) % 2:
        return _of_odd_length(k, xs, half, roots)
    even, odd = few_transformed(k, xs[::2]), few_transformed(k, xs[1::2])
    odd = [_times_root(k, x, root) for x, root in zip(odd, roots)]
    sums = [k.add(*pair) for pair in zip(even, odd)]
    return sums + [k.sub(*pair) for pair in zip(even, odd)]


def _of_odd_length(k, xs, half, roots):
    pairs = [(xs[j], xs[-j]) for j in range(1, half + 1)]
    sums, gaps = ([op(*pair) for pair in pairs] for op in (k.add, k.sub))
    first, last, total = [], [], xs[0]
    for x in sums:
        total = k.add(total, x)
    for i in range(1, half + 1):
        level, turn = xs[0], None
        for j, (x, gap) in enumerate(zip(sums, gaps), 1):
            root = roots[i * j % len(xs)]
            level = k.add(level, _scaled(k, x, root.real))
            more = _scaled(k, gap, -root.imag)
            turn = k.add(turn, more) if turn else more
        turn = ComplexNode(turn.imag, k.neg(turn.real))
        first.append(k.add(level, turn))
        last.insert(0, k.sub(level, turn))
    return [total, *first, *last]


def _scaled(k, x, factor):
    return ComplexNode(*[k.mul(part, float(factor)) for part in x])


def _times_root(k, x, root):
    if root == 1:
        return x
    if root == -1j:
        return ComplexNode(x.imag, k.neg(x.real))
    if abs(root.real) == -root.imag:  # one or three eighths of a turn
        x = ComplexNode(k.add(*x), k.sub(x.imag, x.real))
        x = x if root.real > 0 else ComplexNode(x.imag, k.neg(x.real))
        return _scaled(k, x, -root.imag)
    return k.mul(x, k.constant(root, np.dtype("complex128")))


WIDE = np.dtype("float64")


def along_axis(lowering, x, n, out=None, scale=1.0):
    """Add the steps that transform the middle axis; return the views of the results.

    Args:
      lowering: the `Lowering`.
      x: views of real and imaginary parts, of shape (batch, n, inner).
      n: the length.
      out: views for the results, of the same shape, or None for new memory.
      scale: a number by which the results are multiplied.
    """
    batch, _, inner = x[0].shape
    done, rest = 1, n
    for r in radices_of(n):
        rest //= r
        to = out if rest == 1 and out else _pair(lowering, (batch, n, inner))
        _stage(lowering, x, to, (r, rest, done * inner), scale if rest == 1 else 1)
        x, done = to, done * r
    return x


def _pair(lowering, shape):
    return [lowering.allocate(ShapedArray(shape, WIDE)) for _ in range(2)]


def _stage(lowering, x, out, sizes, scale):
    batch, (r, m, inner) = x[0].shape[0], sizes
    k = KernelBuilder(f"fft{r}", (batch, m, inner))
    x = [reshape_view(part, (batch, r, m, inner)) for part in x]
    out = [reshape_view(part, (batch, m, r, inner)) for part in out]
    ys = few_transformed(k, [_loaded(k, [_at(v, 1, j) for v in x]) for j in range(r)])
    if m > 1:
        powers = np.outer(np.arange(r), np.arange(m)) % (r * m)
        tables = _table(lowering, roots_of_one(r * m)[powers])
        for j in range(1, r):
            rows = [_at(table, 0, j) for table in tables]
            rows = [v.replace((batch, m, inner), (0, *v.strides, 0)) for v in rows]
            ys[j] = k.mul(ys[j], _loaded(k, rows))
    for j, y in enumerate(ys):
        y = y if scale == 1 else _scaled(k, y, scale)
        _stored(k, [_at(v, 2, j) for v in out], y)
    lowering.run(k)


def _table(lowering, numbers):
    aval = ShapedArray(numbers.shape, WIDE)
    halves = numbers.real, numbers.imag
    return [lowering.constant(jnp.asarray(x), aval) for x in halves]


def _loaded(k, views):
    return ComplexNode(*[k.convert(k.load(view), WIDE) for view in views])


def _stored(k, views, x):
    for view, part in zip(views, x):
        k.store(view, k.convert(part, view.dtype))


def _at(view, axis, j):
    view = _part(view, axis, j, 1)
    kept = [i for i in range(len(view.shape)) if i != axis]
    return view.replace([view.shape[i] for i in kept], [view.strides[i] for i in kept])


def _part(view, axis, start, size, step=1):
    axes = range(len(view.shape))
    starts = [start if i == axis else 0 for i in axes]
    shape = [size if i == axis else view.shape[i] for i in axes]
    return slice_view(view, starts, shape, [step if i == axis else 1 for i in axes])


def of_real(lowering, x, n, out):
    """Add the steps that write half the spectrum of real numbers.

    Args:
      lowering: the `Lowering`.
      x: view of shape (batch, n, 1).
      n: the length.
      out: views of the parts of the spectrum, of shape (batch, n // 2 + 1, 1).
    """
    half, batch = n // 2, x.shape[0]
    if n % 2:
        zero = broadcast_scalar_view(x.dtype.type(0), x.shape)
        z = along_axis(lowering, [x, zero], n)
        _moved(lowering, [_part(v, 1, 0, half + 1) for v in z], out)
        return
    z = along_axis(lowering, [_part(x, 1, start, half, 2) for start in (0, 1)], half)
    k = KernelBuilder("rfft_ends", (batch,))
    x = _loaded(k, [_at(v, 1, 0) for v in _rows(z)])
    zero = k.constant(0, WIDE)
    _stored(k, [_at(v, 1, 0) for v in _rows(out)], ComplexNode(k.add(*x), zero))
    _stored(k, [_at(v, 1, half) for v in _rows(out)], ComplexNode(k.sub(*x), zero))
    lowering.run(k)
    if half > 1:
        k = KernelBuilder("rfft", (batch, half - 1))
        even, odd = _sum_and_difference(k, z, half)
        odd = k.mul(ComplexNode(odd.imag, k.neg(odd.real)), _twists(lowering, k, n))
        _stored(k, _inner(out, half), _scaled(k, k.add(even, odd), 0.5))
        lowering.run(k)


def to_real(lowering, x, n, out):
    """Add the steps that write the real numbers of which half a spectrum is known.

    Args:
      lowering: the `Lowering`.
      x: views of the parts of the spectrum, of shape (batch, n // 2 + 1, 1).
      n: the length.
      out: view of shape (batch, n, 1).
    """
    half, batch = n // 2, out.shape[0]
    z = _pair(lowering, (batch, half if n % 2 == 0 else n, 1))
    k = KernelBuilder("irfft_ends", (batch,))
    first = _loaded(k, [_at(v, 1, 0) for v in _rows(x)]).real
    if n % 2:
        _stored(
            k, [_at(v, 1, 0) for v in _rows(z)], ComplexNode(first, k.constant(0, WIDE))
        )
        lowering.run(k)
        _mirrored(lowering, x, z, half)
        scratch = lowering.allocate(ShapedArray(out.shape, WIDE))
        along_axis(lowering, z[::-1], n, [scratch, out], 1 / n)
        return
    last = _loaded(k, [_at(v, 1, half) for v in _rows(x)]).real
    ends = ComplexNode(k.add(first, last), k.sub(first, last))
    _stored(k, [_at(v, 1, 0) for v in _rows(z)], ends)
    lowering.run(k)
    if half > 1:
        k = KernelBuilder("irfft", (batch, half - 1))
        even, odd = _sum_and_difference(k, x, half)
        odd = k.mul(odd, k.conj(_twists(lowering, k, n)))
        turned = ComplexNode(k.neg(odd.imag), odd.real)
        _stored(k, _inner(z, half), k.add(even, turned))
        lowering.run(k)
    results = [_part(out, 1, start, half, 2) for start in (1, 0)]
    along_axis(lowering, z[::-1], half, results, 1 / n)


def _mirrored(lowering, x, z, half):
    if half:
        k = KernelBuilder("irfft_sides", (x[0].shape[0], half))
        y = _loaded(k, _inner(x, half + 1))
        _stored(k, _inner(z, half + 1), y)
        n = z[0].shape[1]
        _stored(k, [_part(v, 1, n - 1, half, -1) for v in _rows(z)], k.conj(y))
        lowering.run(k)


def _sum_and_difference(k, x, half):
    there = _loaded(k, _inner(x, half))
    back = k.conj(_loaded(k, [_part(v, 1, half - 1, half - 1, -1) for v in _rows(x)]))
    return k.add(there, back), k.sub(there, back)


def _twists(lowering, k, n):
    tables = _table(lowering, roots_of_one(n)[1 : n // 2])
    return _loaded(k, [v.replace(k.sizes, (0, *v.strides)) for v in tables])


def _rows(views):
    return [_at(view, 2, 0) for view in views]


def _inner(views, end):
    return [_part(view, 1, 1, end - 1) for view in _rows(views)]


def _moved(lowering, x, out):
    k = KernelBuilder("copy", x[0].shape)
    _stored(k, out, _loaded(k, x))
    lowering.run(k)


def lower_fft(lowering, eqn, operand):
    """Lower a transform to kernels.

    Raises:
      NoKernel: if a length has a large prime factor, or there are no numbers.
    """
    kind, lengths = eqn.params["fft_type"], eqn.params["fft_lengths"]
    aval, of_reals = eqn.outvars[0].aval, kind in (FftType.RFFT, FftType.IRFFT)
    if not aval.size or 0 in operand.shape:
        raise UnsupportedKernel("there is nothing to transform")
    for n in lengths:
        radices_of(n)
    axes = [*range(aval.ndim - len(lengths), aval.ndim)]
    if kind is FftType.RFFT:
        axes = axes[-1:] + axes[:-1]
    if reshape_view(operand, _around(operand.shape, axes[0])) is None:
        operand = lowering.copy(operand)
    out = lowering.allocate(aval)
    x = [operand] if kind is FftType.RFFT else real_and_imag_views(operand)
    with enable_x64():  # between the axes, too, are numbers of 64 bits
        for axis in axes:
            n = lengths[axis - aval.ndim]
            real = of_reals and axis == aval.ndim - 1
            shape = aval.shape if real else x[0].shape
            if axis != axes[-1]:
                to = _pair(lowering, shape)
            else:
                to = real_and_imag_views(out) if aval.dtype.kind == "c" else [out]
            flat = [reshape_view(v, _around(v.shape, axis)) for v in x]
            ends = [reshape_view(v, _around(v.shape, axis)) for v in to]
            _one_axis(lowering, flat, n, ends, kind, real)
            x = to
    return [out]


def _around(shape, axis):
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _one_axis(lowering, x, n, out, kind, real):
    if real and kind is FftType.RFFT:
        of_real(lowering, x[0], n, out)
    elif real:
        to_real(lowering, x, n, out[0])
    elif kind in (FftType.FFT, FftType.RFFT):
        along_axis(lowering, x, n, out)
    else:
        along_axis(lowering, x[::-1], n, out[::-1], 1 / n)


cpu_rules[fft_p] = lower_fft
