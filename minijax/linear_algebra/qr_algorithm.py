"""Householder reflections and the implicit QR algorithm on NumPy's arrays.

A reflection is ``1 - tau v v^H``, where `v` begins with a one that is not stored.

References: Golub and Van Loan, *Matrix Computations*, sections 5.1 to 5.4, 7.4, 8.3;
LAPACK's ``larfg``, ``geqrf``, ``geqp3``, ``gehrd``, ``sytrd``, ``orgqr``, ``ormqr``,
Golub and Van Loan, *Matrix Computations*, sections 7.4.6 and 7.5; LAPACK's ``gees``,
``lahqr``, ``lanv2``.
"""

# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

# Householder reflections on NumPy's arrays, in batches, with the signs of LAPACK.


def double_precision_copy(x):
    """Return a copy of an array, with numbers of 64 bits per part."""
    return np.array(x, np.result_type(x.dtype, np.float64))


def power_of_two_below(x, axes):
    """Return the power of two at or below the largest size along axes, which stay."""
    largest = np.abs(x).max(axes, keepdims=True, initial=0)
    return np.ldexp(0.5, np.frexp(largest)[1])


def householder_reflector(x):
    """Return `v`, `tau` and `beta`; the adjoint reflection sends `x` to ``beta e1``.

    Args:
      x: vectors, of shape ``[..., n]``.
    """
    scale = power_of_two_below(x, -1)
    x = x / scale  # so that squares neither overflow nor vanish
    first, length = x[..., 0], np.linalg.norm(x[..., 1:], axis=-1)
    still = (length == 0) & (first.imag == 0)
    size = -np.copysign(np.hypot(np.abs(first), length), first.real)
    beta = np.where(still, first.real, size)
    tau = np.where(still, 0, beta - first) / np.where(still, 1, beta)
    v = x / np.where(still, 1, first - beta)[..., None]
    v[..., 0] = 1
    return v, tau, beta * scale[..., 0]


def apply_reflector_left(x, v, tau):
    """Multiply matrices by reflections from the left, in place."""
    x -= (tau[..., None] * v)[..., None] * (v.conj()[..., None, :] @ x)


def apply_reflector_right(x, v, tau):
    """Multiply matrices by reflections from the right, in place."""
    apply_reflector_left(x.mT, v.conj(), tau)


def _vector(a, j):
    """Return the stored vector of the reflection that begins at place `j`."""
    v = np.array(a[..., j:, j])
    v[..., 0] = 1
    return v


def triangularized(x, pivoting):
    """Return R, with the reflections below it; their taus, and the order of columns.

    Args:
      x: matrices, of shape ``[..., m, n]``.
      pivoting: whether the longest remaining column comes next.
    """
    *batch, m, n = x.shape
    a = double_precision_copy(x).reshape(math.prod(batch), m, n)
    taus = np.zeros((len(a), min(m, n)), a.dtype)
    order = np.tile(np.arange(n, dtype=np.int32), (len(a), 1))
    for j in range(min(m, n)):
        if pivoting:
            _bring_longest(a, order, j)
        v, taus[:, j], beta = householder_reflector(a[:, j:, j])
        apply_reflector_left(a[:, j:, j + 1 :], v, taus[:, j].conj())
        a[:, j:, j], a[:, j, j] = v, beta
    shaped = a.reshape(x.shape), taus.reshape(*batch, min(m, n))
    return [*(y.astype(x.dtype) for y in shaped), order.reshape(*batch, n)]


def _bring_longest(a, order, j):
    rest = a[:, j:, j:]
    lengths = np.linalg.norm(rest / power_of_two_below(rest, (-2, -1)), axis=-2)
    chosen, every = j + lengths.argmax(-1), np.arange(len(a))
    a[every, :, j], a[every, :, chosen] = a[every, :, chosen], a[every, :, j]
    order[every, j], order[every, chosen] = order[every, chosen], order[every, j]


def qr_with_pivoting(x, full_matrices):
    """Return the factors q and r of matrices with sorted columns, and their order."""
    *_, m, n = x.shape
    both, taus, order = triangularized(x, True)
    width = m if full_matrices else min(m, n)
    room = np.zeros((*x.shape[:-1], width), x.dtype)
    room[..., : min(n, width)] = both[..., : min(n, width)]
    return [householder_product_impl(room, taus), np.triu(both[..., :width, :]), order]


def hessenberg_reduction(x):
    """Return Hessenberg forms, with the reflections below them, and their taus."""
    a, n = double_precision_copy(x), x.shape[-1]
    taus = np.zeros((*x.shape[:-2], n - 1), a.dtype)
    for j in range(n - 1):
        v, tau, beta = householder_reflector(a[..., j + 1 :, j])
        apply_reflector_right(a[..., :, j + 1 :], v, tau)
        apply_reflector_left(a[..., j + 1 :, j + 1 :], v, tau.conj())
        a[..., j + 1 :, j], a[..., j + 1, j], taus[..., j] = v, beta, tau
    return [a.astype(x.dtype), taus.astype(x.dtype)]


def tridiagonal_reduction(x, lower):
    """Return tridiagonal forms of Hermitian matrices, of which one triangle is read.

    Returns:
      A list of matrices, with the reflections in that triangle; the diagonals, the
      numbers beside them, and the taus.
    """
    if not lower:  # the same from the other end: both axes are turned around
        a, *parts = tridiagonal_reduction(x[..., ::-1, ::-1], True)
        return [a[..., ::-1, ::-1], *(part[..., ::-1] for part in parts)]
    a, n = double_precision_copy(x), x.shape[-1]
    full = np.tril(a) + np.tril(a, -1).conj().mT
    every = np.arange(n)
    full[..., every, every] = full[..., every, every].real
    taus, beside = (np.zeros((*x.shape[:-2], n - 1), a.dtype) for _ in range(2))
    for j in range(n - 1):
        v, tau, beta = householder_reflector(full[..., j + 1 :, j])
        rest = full[..., j + 1 :, j + 1 :]
        apply_reflector_right(rest, v, tau)
        apply_reflector_left(rest, v, tau.conj())
        a[..., j + 1 :, j], a[..., j + 1, j], taus[..., j] = v, beta, tau
        beside[..., j] = beta
    diagonal = a[..., every, every] = full[..., every, every].real
    results = zip((a, diagonal, beside.real, taus), (x, x.real, x.real, x))
    return [part.astype(model.dtype) for part, model in results]


def householder_product_impl(a, taus):
    """Return the first columns of products of reflections, as many as `a` has."""
    q = np.zeros(a.shape, np.result_type(a.dtype, np.float64))
    q[...] = np.eye(*a.shape[-2:])
    for j in reversed(range(taus.shape[-1])):
        apply_reflector_left(q[..., j:, j:], _vector(a, j), taus[..., j])
    return q.astype(a.dtype)


def ormqr_impl(a, taus, c, left, transpose):
    """Multiply `c` by a product of reflections or its adjoint, from one side."""
    if not left:
        turned = ormqr_impl(a, taus, c.conj().mT, True, not transpose)
        return turned.conj().mT
    x, count = double_precision_copy(c), range(taus.shape[-1])
    for j in count if transpose else reversed(count):
        tau = taus[..., j].conj() if transpose else taus[..., j]
        apply_reflector_left(x[..., j:, :], _vector(a, j), tau)
    return x.astype(c.dtype)


# Schur forms on NumPy's arrays: the implicit QR algorithm, and its shifts.


def schur_form(x):
    """Return Schur forms of matrices, and their unitary matrices.

    Args:
      x: matrices, of shape ``[..., n, n]``; of real ones the forms are real, with
        blocks of two rows for pairs of complex eigenvalues.

    Returns:
      A list of two arrays like `x`; NaN where a matrix has such numbers, and where the
      iteration does not come to an end.
    """
    forms, unitary = (np.empty_like(x) for _ in range(2))
    for place in np.ndindex(x.shape[:-2]):
        one = _schur_form(double_precision_copy(x[place]), np.finfo(x.dtype).eps)
        forms[place], unitary[place] = one
    return [forms, unitary]


def _schur_form(x, eps):
    if not np.isfinite(x).all():
        return np.full_like(x, np.nan), np.full_like(x, np.nan)
    scale = power_of_two_below(x, (-2, -1))
    h, q = x / scale, np.eye(len(x), dtype=x.dtype)
    if len(x) > 1:
        a, taus = hessenberg_reduction(h)
        h, q[1:, 1:] = np.triu(a, -1), householder_product_impl(a[1:, :-1], taus)
    last, tries = len(h) - 1, 0
    while last >= 0:
        first = _beginning(h, last, eps)
        if first == last or (h.dtype.kind == "f" and first == last - 1):
            if first < last:
                _standardize(h, q, first, eps)
            last, tries = first - 1, 0
            continue
        tries += 1
        if tries > 30 * max(10, len(h)):
            return np.full_like(x, np.nan), np.full_like(x, np.nan)
        start = _real_start if h.dtype.kind == "f" else _complex_start
        _sweep(h, q, first, last, start(h, first, last, tries))
    return scale * np.triu(h, -1 if h.dtype.kind == "f" else 0), q


def _size(z):
    return abs(z.real) + abs(z.imag)


def _beginning(h, last, eps):
    """Return the first row of the block that ends at `last`, and cut it off."""
    floats = np.finfo(np.float64)
    negligible = floats.tiny * len(h) / floats.eps  # of a matrix of numbers around 1
    for k in range(last, 0, -1):
        below, above = _size(h[k, k - 1]), _size(h[k - 1, k])
        here, before = _size(h[k, k]), _size(h[k - 1, k - 1])
        around = here + before
        if around == 0:
            around = _size(h[k - 1, max(k - 2, 0)]) + _size(h[min(k + 1, last), k])
        if below <= negligible:
            break
        if below <= eps * around:
            gap = _size(h[k - 1, k - 1] - h[k, k])
            large, small = max(here, gap), min(here, gap)
            total = large + max(below, above)
            least = max(negligible, eps * (small * (large / total)))
            if below * (above / total) <= least:
                break
    else:
        return 0
    h[k, k - 1] = 0
    return k


def _real_start(h, first, last, tries):
    """Return the beginning of the first column of a product of two shifted matrices."""
    p, q, r, s = h[last - 1 : last + 1, last - 1 : last + 1].ravel()
    if tries % 10 == 0:  # shifts of another kind, against an iteration in a circle
        r = abs(r) + abs(h[last - 1, last - 2])
        p = s = 0.75 * r + s
        q = -0.4375 * r
    scale = abs(p) + abs(q) + abs(r) + abs(s)  # not 0, or the block had been cut
    p, q, r, s = p / scale, q / scale, r / scale, s / scale
    middle = (p + s) / 2
    gap = (p - middle) * (s - middle) - q * r
    shift = middle + 1j * np.sqrt(abs(gap))
    if gap < 0:  # two real eigenvalues: twice the one that is nearer to the corner
        ends = middle + np.sqrt(-gap), middle - np.sqrt(-gap)
        shift = min(ends, key=lambda end: abs(end - s))
    shift = shift * scale
    (a, b, _), (c, d, _), (_, e, _) = h[first : first + 3, first : first + 3]
    size = abs(a - shift) + abs(c)  # the column is divided by it
    c = c / size
    top = ((a - shift) / size * (a - np.conj(shift))).real + b * c
    return _scaled(np.array([top, c * (a + d - 2 * np.real(shift)), c * e]))


def _complex_start(h, first, last, tries):
    """Return the beginning of the first column of a shifted matrix (Wilkinson)."""
    (p, q), (r, s) = h[last - 1 : last + 1, last - 1 : last + 1]
    if tries % 10 == 0:
        s = s + 0.75 * abs(r)
    elif q != 0:
        u, half = np.sqrt(q) * np.sqrt(r), (p - s) / 2
        scale = max(_size(u), _size(half))
        u, half = u / scale, half / scale
        root = np.sqrt(half * half + u * u)
        if (half.conj() * root).real < 0:
            root = -root
        s = s - scale * u * (u / (half + root))
    return _scaled(np.array([h[first, first] - s, h[first + 1, first]]))


def _scaled(v):
    return v / _size(v).sum()


def _sweep(h, q, first, last, v):
    """Begin a bulge with the reflection of `v`, and chase it to the bottom."""
    width = len(v)
    for k in range(first, last):
        rows = slice(k, min(k + width, last + 1))
        v, tau, beta = householder_reflector(
            v[: rows.stop - k] if k == first else h[rows, k - 1]
        )
        if k > first:
            h[rows, k - 1], h[k, k - 1] = 0, beta
        apply_reflector_left(h[rows, k:], v, tau.conj())
        apply_reflector_right(h[: min(k + width, last) + 1, rows], v, tau)
        apply_reflector_right(q[:, rows], v, tau)


def _standardize(h, q, k, eps):
    """Turn two rows: to a triangle, or to equal numbers on the diagonal."""
    rows = slice(k, k + 2)
    c, s, pair = _rotation(h[rows, rows], eps)
    turn = np.array([[c, s], [-s, c]])
    h[rows, k:] = turn @ h[rows, k:]
    h[: k + 2, rows] = h[: k + 2, rows] @ turn.T
    q[:, rows] = q[:, rows] @ turn.T
    if pair:
        h[k, k] = h[k + 1, k + 1] = (h[k, k] + h[k + 1, k + 1]) / 2
    else:
        h[k + 1, k] = 0


def _rotation(block, eps):
    """Return cosine and sine, and whether the eigenvalues are complex."""
    (a, b), (c, d) = block
    gap = a - d
    if c == 0 or b == 0 or (gap == 0 and np.sign(b) != np.sign(c)):
        return (0, 1, False) if c != 0 and b == 0 else (1, 0, c != 0)
    p, large = gap / 2, max(abs(b), abs(c))
    scale = max(abs(p), large)
    z = p / scale * p + large / scale * min(abs(b), abs(c)) * np.sign(b) * np.sign(c)
    if z >= 4 * eps:
        z = p + np.copysign(np.sqrt(scale) * np.sqrt(z), p)
        return z / np.hypot(c, z), c / np.hypot(c, z), False
    tau = np.hypot(b + c, gap)
    cosine = np.sqrt((1 + abs(b + c) / tau) / 2)
    sine = -p / (tau * cosine) * np.copysign(1, b + c)
    turn = np.array([[cosine, sine], [-sine, cosine]])
    (_, b), (c, _) = turn @ block @ turn.T
    if c == 0 or np.sign(b) == -np.sign(c):
        return cosine, sine, c != 0
    more = np.sqrt([abs(b), abs(c)] / abs(b + c))
    return *(turn.T @ more * [1, 1]), False
