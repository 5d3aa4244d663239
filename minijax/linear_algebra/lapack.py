"""Factorizations on NumPy's arrays, by LAPACK or by loops, and as rules of a CPU.

LAPACK computes what ``numpy.linalg`` hands to it; substitution and Gaussian elimination
are done here, by blocks of columns.

A CPU compiles them with the programs that they are in; larger matrices are left to
NumPy, for which machine code has to be left.

References: Golub and Van Loan, *Matrix Computations*, sections 3.1, 3.2, 3.4, Golub
and Van Loan, *Matrix Computations*, sections 3.1, 3.4, 4.2, 5.2, Anderson and others,
*LAPACK Users' Guide*; ``umath_linalg.cpp`` of NumPy, which calls the same routines.
"""

# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import math
from collections import Counter
from contextlib import suppress
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import ShapedArray
from minijax.arrays.numerics import sum_accumulator_dtype
from minijax.jitting.stages import eqn_cost
from minijax.kernels.builder import UnsupportedKernel, View, transpose_view
from minijax.kernels.lowering import StepKind, array_from_view, step_kinds
from minijax.llvm.compiler import add_symbol

# Factorizations and triangular systems on NumPy's arrays, in batches.

BLOCK = 32  # columns which are eliminated one by one, before a product of matrices


def factor_or_nan(function, x):
    """Return the factors of matrices; NaN where LAPACK finds none.

    Args:
      function: from an array of matrices to a list of arrays; NumPy computes in it.
      x: array whose last two axes are those of matrices.

    Raises:
      NotImplementedError: for dtypes of 16 bits, which LAPACK lacks.
    """
    if x.dtype.itemsize == 2:
        raise NotImplementedError(f"Unsupported dtype {x.dtype.name}.")
    try:
        return function(x)
    except np.linalg.LinAlgError:
        return _one_by_one(function, x)


def _one_by_one(function, x):
    if x.ndim > 2:
        parts = [factor_or_nan(function, matrix) for matrix in x]
        return [np.stack(part) for part in zip(*parts)]
    model = function(np.eye(*x.shape, dtype=x.dtype))
    return [np.full_like(part, np.nan) for part in model]


def back_substitution(a, b, unit_diagonal):
    """Solve ``a @ x = b`` for lower triangles `a`, whose other triangle is not read."""
    x, n = np.array(b), a.shape[-1]
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for i in range(start, stop):
            known = a[..., i : i + 1, start:i] @ x[..., start:i, :]
            x[..., i, :] -= known[..., 0, :]
            if not unit_diagonal:
                x[..., i, :] /= a[..., i, i, None]
        x[..., stop:, :] -= a[..., stop:, start:stop] @ x[..., start:stop, :]
    return x


def trsm_impl(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """Solve ``op(a) @ x = b``, or ``x @ op(a) = b``, for triangular matrices `a`.

    Reference: ``jax.lax.linalg.triangular_solve``.
    """
    dtype = b.dtype
    a = a.astype(sum_accumulator_dtype(dtype), copy=False)
    b = b.astype(sum_accumulator_dtype(dtype), copy=False)
    a = a.conj() if conjugate_a else a
    b = b if left_side else b.mT
    if transpose_a == left_side:
        a, lower = a.mT, not lower
    if lower:
        x = back_substitution(a, b, unit_diagonal)
    else:
        turned = a[..., ::-1, ::-1], b[..., ::-1, :]
        x = back_substitution(*turned, unit_diagonal)[..., ::-1, :]
    return (x if left_side else x.mT).astype(dtype, copy=False)


def getrf_impl(x):
    """Return the factors of matrices in one array, the pivots, and the permutations.

    Reference: ``jax.lax.linalg.lu``.
    """
    *batch, m, n = x.shape
    a = np.array(x).reshape(math.prod(batch), m, n)
    pivots = np.zeros((len(a), min(m, n)), np.int32)
    for start in range(0, min(m, n), BLOCK):
        stop = min(start + BLOCK, m, n)
        for j in range(start, stop):
            pivots[:, j] = _pivot(a, j)
            _eliminate(a, j, stop)
        top, left = a[:, start:stop, stop:], a[:, start:, start:stop]
        top[...] = back_substitution(left[:, : stop - start], top, True)
        a[:, stop:, stop:] -= left[:, stop - start :] @ top
    pivots = pivots.reshape(*batch, min(m, n))
    return [a.reshape(x.shape), pivots, pivots_permutation(pivots, m)]


def _pivot(a, j):
    sizes = np.abs(a[:, j:, j].real) + np.abs(a[:, j:, j].imag)
    chosen, every = j + sizes.argmax(-1), np.arange(len(a))
    a[every, j], a[every, chosen] = a[every, chosen], a[every, j]
    return chosen


def _eliminate(a, j, stop):
    column, pivot = a[:, j + 1 :, j], a[:, j, j, None]
    column /= np.where(pivot == 0, 1, pivot)
    a[:, j + 1 :, j + 1 : stop] -= column[..., None] * a[:, j, None, j + 1 : stop]


def pivots_permutation(pivots, size):
    """Return where each row comes from after exchanges of rows, one after the other.

    Rows are read and written as by an index: -1 is the last one, and of places that
    are not there the nearest is read and none is written.

    Reference: ``jax.lax.linalg.lu_pivots_to_permutation``.
    """
    *batch, count = pivots.shape
    swaps = pivots.reshape(math.prod(batch), count)
    rows = np.tile(np.arange(size, dtype=np.int32), (len(swaps), 1))
    every = np.arange(len(swaps))
    for j in range(count):
        other = np.where(swaps[:, j] < 0, swaps[:, j] + size, swaps[:, j])
        held, nearest = rows[every, j], np.clip(other, 0, size - 1)
        rows[every, j] = rows[every, nearest]
        here = nearest == other
        rows[every[here], other[here]] = held[here]
    return rows.reshape(*batch, size)


# Factorizations of small matrices, as loops of our own operations.


def loop_lowering(function, largest):
    """Return the rule by which a CPU does a primitive as a program.

    Args:
      function: from the primitive's operands and parameters to the list of its results.
      largest: how many numbers the first operand's matrices have at most.
    """

    def rule(lowering, eqn, *operands):
        count = math.prod(operands[0].shape[-2:])
        if count > largest or not eqn.outvars[0].aval.size:
            raise UnsupportedKernel("there is nothing to factor, or NumPy is faster")
        if operands[0].dtype.itemsize == 2:
            raise UnsupportedKernel("NumPy refuses it, or computes in 32 bits")
        return lowering.function(partial(function, **eqn.params), operands)

    return rule


def first_applicable(*rules):
    """Return the rule that asks others, one after the other, who can do an equation."""

    def rule(lowering, eqn, *operands):
        for each in rules[:-1]:
            with suppress(UnsupportedKernel):
                return each(lowering, eqn, *operands)
        return rules[-1](lowering, eqn, *operands)

    return rule


def _loop(count, body, state):
    if not count:
        return state
    return lax.fori_loop(jnp.int32(0), jnp.int32(count), body, state)


def _numbers(count):
    return jnp.arange(count, dtype="int32")


def _taken(x, place, axis):
    return lax.dynamic_index_in_dim(x, place, axis + x.ndim)


def to_double_precision(x):
    """Return an array with numbers of 64 bits per part."""
    return x.astype("complex128" if x.dtype.kind == "c" else "float64")


def _in_order(x, places, axis):
    return jnp.take_along_axis(x, places, axis, mode="promise_in_bounds")


def triangular_solve_loop(
    a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal
):
    """Return ``[x]`` with ``op(a) @ x = b``, or ``x @ op(a) = b``, for triangles `a`.

    Reference: ``jax.lax.linalg.triangular_solve``.
    """
    a = a.conj() if conjugate_a else a
    b = b if left_side else b.mT
    if transpose_a == left_side:
        a, lower = a.mT, not lower
    n, rows = a.shape[-1], _numbers(a.shape[-1])[:, None]

    def row(step, x):
        i = step if lower else n - 1 - step
        known, column = _taken(x, i, -2), _taken(a, i, -1)
        known = known if unit_diagonal else known / _taken(column, i, -2)
        later = rows > i if lower else rows < i
        return jnp.where(later, x - column * known, jnp.where(rows == i, known, x))

    x = _loop(n, row, b)
    return [x if left_side else x.mT]


def lu_loop(x):
    """Return the factors of matrices in one array, the pivots, and the permutations.

    Reference: ``jax.lax.linalg.lu``.
    """
    *batch, m, n = x.shape
    rows, columns, places = _numbers(m), _numbers(n), _numbers(min(m, n))

    def column(j, state):
        a, pivots, order = state
        left = _taken(a, j, -1)[..., 0]
        sizes = jnp.where(rows >= j, _sizes(left), -1)
        pivot = sizes.argmax(-1)[..., None].astype("int32")
        swap = _exchanged(rows, j, pivot)
        a = _in_order(a, swap[..., None], -2)
        top, left = _taken(a, j, -2), _taken(a, j, -1)
        corner = _taken(top, j, -1)
        left = left / jnp.where(corner == 0, 1, corner)
        inner = jnp.where(columns > j, a - left * top, a)
        a = jnp.where(rows[:, None] > j, jnp.where(columns == j, left, inner), a)
        pivots = jnp.where(places == j, pivot, pivots)
        return a, pivots, _in_order(order, swap, -1)

    pivots = jnp.zeros((*batch, min(m, n)), "int32")
    order = jnp.broadcast_to(rows, (*batch, m))
    return _loop(min(m, n), column, (x, pivots, order))


def _exchanged(rows, one, other):
    return jnp.where(rows == one, other, jnp.where(rows == other, one, rows))


def pivots_to_permutation_loop(pivots, *, permutation_size):
    """Return ``[order]``, where each row comes from after exchanges of rows.

    Reference: ``jax.lax.linalg.lu_pivots_to_permutation``.
    """
    rows, count = _numbers(permutation_size), pivots.shape[-1]
    pivots = jnp.where(pivots < 0, pivots + permutation_size, pivots)

    def exchange(j, order):
        return _in_order(order, _exchanged(rows, j, _taken(pivots, j, -1)), -1)

    order = jnp.broadcast_to(rows, (*pivots.shape[:-1], permutation_size))
    return [_loop(count, exchange, order)]


def _sizes(x):
    return jnp.abs(x.real) + jnp.abs(x.imag) if x.dtype.kind == "c" else jnp.abs(x)


def tridiagonal_solve_loop(dl, d, du, b, *, perturb_singular):
    """Return ``[x]``, the solutions of systems with tridiagonal matrices.

    Reference: ``jax.lax.linalg.tridiagonal_solve``; LAPACK's ``gtsv``.
    """
    low, pivots, up = (jnp.moveaxis(to_double_precision(x), -1, 0) for x in (dl, d, du))
    x, up = jnp.moveaxis(to_double_precision(b), -2, 0), up.at[-1].set(0)
    start, rows = (pivots[0], up[0], x[0]), (low[1:], pivots[1:], up[1:], x[1:])
    last, found = lax.scan(_eliminate_row, start, rows)
    pivot, beside, known = last
    last = pivot, beside, jnp.zeros_like(pivot), known
    *upper, x = (jnp.concatenate([y, z[None]]) for y, z in zip(found, last))
    pivots = _mended(upper, jnp.finfo(b.dtype), perturb_singular)
    rows = *upper[1:], x, pivots
    if x.dtype != b.dtype:  # no quotient of narrow numbers leaves the wide ones' range
        inverse = 1 / pivots
        rows = *[y * inverse for y in upper[1:]], x * inverse[..., None]
    none = jnp.zeros_like(x[0]), jnp.zeros_like(x[0])
    _, x = lax.scan(_substitute_row, none, rows, reverse=True)
    return [jnp.moveaxis(x, 0, -2).astype(b.dtype)]


def _eliminate_row(here, below):
    (pivot, up, x), (low, next_pivot, next_up, next_x) = here, below
    swap, none = jnp.abs(low) > jnp.abs(pivot), jnp.zeros_like(up)
    pairs = (pivot, low), (up, next_pivot), (none, next_up)
    first, second, third = (jnp.where(swap, q, p) for p, q in pairs)
    _, *rest = (jnp.where(swap, p, q) for p, q in pairs)
    ratio = jnp.where(jnp.equal(low, 0), 0, low / pivot)
    factor = jnp.where(swap, pivot / low, ratio)  # both before it is known which
    row = jnp.where(swap[..., None], next_x, x)
    other = jnp.where(swap[..., None], x, next_x) - factor[..., None] * row
    moved = rest[0] - factor * second, rest[1] - factor * third, other
    return moved, (first, second, third, row)


def _substitute_row(known, row):
    (after, later), (up, above, x, *pivot) = known, row
    x = x - above[..., None] * later - up[..., None] * after
    x = x / pivot[0][..., None] if pivot else x
    return (x, after), x


def _mended(upper, numbers, perturb_singular):
    pivots = upper[0]
    if not perturb_singular:
        return jnp.where(jnp.all(pivots, 0), pivots, jnp.nan)
    largest = jnp.max(jnp.stack([jnp.abs(x).max(0) for x in upper]), 0)
    least = jnp.maximum(float(numbers.eps) * largest, float(numbers.tiny))
    small = jnp.abs(pivots) < float(numbers.tiny)
    return jnp.where(small, jnp.copysign(least, pivots.real), pivots)


def cholesky_loop(x):
    """Return ``[l]``, the Cholesky factors of matrices; NaN where there is none.

    Reference: ``jax.lax.linalg.cholesky``.
    """
    rows = _numbers(x.shape[-1])

    def column(j, state):
        a, positive = state
        left = _taken(a, j, -1)
        corner = _taken(left, j, -2).real
        root = jnp.sqrt(corner)
        left = jnp.where(rows[:, None] == j, root, left / root)
        inner = jnp.where(rows > j, a - left * left.mT.conj(), a)
        return jnp.where(rows == j, left, inner), positive & ~(corner <= 0)

    positive = jnp.ones((*x.shape[:-2], 1, 1), bool)
    a, positive = _loop(len(rows), column, (to_double_precision(x), positive))
    factor = jnp.where(rows[:, None] >= rows, a, 0)
    return [jnp.where(positive, factor, jnp.nan).astype(x.dtype)]


def qr_loop(x, *, full_matrices, pivoting, **how):
    """Return the factors ``[q, r]`` of matrices, with LAPACK's signs.

    Reference: ``jax.lax.linalg.qr``.
    """
    if pivoting:
        raise UnsupportedKernel("columns change places")
    *batch, m, n = x.shape
    k, a = min(m, n), to_double_precision(x)
    a, taus = _loop(k, _reflect, (a, jnp.zeros((*batch, 1, k), a.dtype)))
    rows, size = _numbers(m)[:, None], m if full_matrices else k

    def turn(step, q):
        j = k - 1 - step
        v = jnp.where(rows > j, _taken(a, j, -1), (rows == j).astype(a.dtype))
        turned = q - _taken(taus, j, -1) * v * _along(v, q)
        return jnp.where((rows >= j) & (columns >= j), turned, q)

    identity, columns = jnp.eye(m, size, dtype=a.dtype), _numbers(size)
    q = _loop(k, turn, jnp.broadcast_to(identity, (*batch, m, size)))
    r = jnp.where(rows[:size] <= _numbers(n), a[..., :size, :], 0)
    return [q.astype(x.dtype), r.astype(x.dtype)]


def _reflect(j, state):
    a, taus = state
    rows, columns = _numbers(a.shape[-2])[:, None], _numbers(a.shape[-1])
    left, beta, tau = _reflection(_taken(a, j, -1), rows, j)
    moved = a - tau.conj() * left * _along(left, a)
    kept = jnp.where(rows > j, left, jnp.where(rows == j, beta, _taken(a, j, -1)))
    a = jnp.where(columns == j, kept, a)
    a = jnp.where((columns > j) & (rows >= j), moved, a)
    return a, jnp.where(_numbers(taus.shape[-1]) == j, tau, taus)


def _along(v, a):
    return (v.conj() * a).sum(-2, keepdims=True)


def _reflection(x, rows, j):
    alpha, tail = _taken(x, j, -2), jnp.where(rows > j, x, 0)
    rest = jnp.where(rows >= j, x, 0)
    largest = _sizes(rest).max(-2, keepdims=True)
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1)
    length = scale * jnp.sqrt(_along(rest / scale, rest / scale).real)
    beta = -jnp.copysign(length, alpha.real)
    moves = jnp.any(tail, -2, keepdims=True) | alpha.imag.astype(bool)
    beta = jnp.where(moves, beta, alpha.real)
    tau = jnp.where(moves, (beta - alpha) / jnp.where(moves, beta, 1), 0)
    v = jnp.where(rows > j, tail / jnp.where(moves, alpha - beta, 1), 0)
    return jnp.where(rows == j, 1, v), beta, tau


# Routines of the LAPACK in NumPy's own library, called by machine code.

SYMBOL_FORMATS = "scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_"
LAPACK_COMPLEX, LAPACK_REAL, WHOLE = map(np.dtype, ("complex128", "float64", "int64"))


@cache
def lapack_routine(name):
    """Return a routine of NumPy's LAPACK as a function of ctypes; None if hidden."""
    with suppress(ImportError, AttributeError, OSError):
        from numpy.linalg import _umath_linalg

        library = ctypes.CDLL(_umath_linalg.__file__)
        for pattern in SYMBOL_FORMATS:
            if hasattr(library, pattern.format(name)):
                return getattr(library, pattern.format(name))
    return None


def lapack_int_dtype():
    """Return the dtype of the whole numbers of NumPy's LAPACK."""
    wide = (
        lapack_routine("dpotrf") is None or "_64_" in lapack_routine("dpotrf").__name__
    )
    return np.dtype("int64" if wide else "int32")


class Workspace(NamedTuple):
    """An argument: as many bytes of memory to work in."""

    size: int


class QueriedWorkspace(NamedTuple):
    """Two arguments: memory for numbers of a dtype, and how many; the routine says."""

    dtype: np.dtype


def _cell(x):
    """Return the memory of an argument: words of 64 bits."""
    if isinstance(x, np.ndarray):
        return np.frombuffer(x.tobytes().ljust(16, b"\0"), WHOLE)
    return np.array([ord(x) if isinstance(x, str) else x], WHOLE)


def _is_cell(x):
    return isinstance(x, (str, int, np.ndarray))


def query_workspace(name, arguments):
    """Return arguments in which a routine has said how much memory it wants."""
    cells: list = []
    for x in arguments:
        if type(x) is QueriedWorkspace:
            cells += [np.zeros(1, x.dtype), _cell(-1)]
        else:
            cells.append(_cell(x) if _is_cell(x) else np.zeros(1, LAPACK_COMPLEX))
    if any(type(x) is QueriedWorkspace for x in arguments):
        lapack_routine(name)(*[ctypes.c_void_p(cell.ctypes.data) for cell in cells])
    found: list = []
    for x in arguments:
        if type(x) is QueriedWorkspace:
            count = max(int(cells[len(found)][0].real), 1)
            found += [Workspace(count * x.dtype.itemsize), count]
        else:
            found.append(x)
    return tuple(found)


class CallLapack(NamedTuple):
    """A step: call a routine of LAPACK for each matrix of a batch.

    Attributes:
      name: of the routine.
      arguments: letters, whole numbers, arrays of one number, `Workspace`, and views.
      operand: the view of the matrices, by columns.
      results: views; the first is where the routine finds a copy of the operand.
      cost: a `Counter`.
    """

    name: str
    arguments: tuple
    operand: View
    results: tuple
    cost: Counter

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        views = [x for x in self.arguments if type(x) is View]
        read = [x.source for x in views if x not in self.results]
        return [self.operand.source, *read]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [view.source for view in self.results]

    @property
    def count(self):
        """The number of matrices."""
        return math.prod(self.operand.shape[:-2])

    @property
    def places(self):
        """Where the arguments that are no views lie in the workspace; and its end."""
        ends = [0]
        for x in self.arguments:
            size = x.size if type(x) is Workspace else 16 * _is_cell(x)
            ends.append(ends[-1] + -(-size // 64) * 64)
        return ends

    @property
    def workspace(self):
        """How many bytes of memory it needs besides."""
        return self.places[-1]

    def __str__(self):
        results = " ".join(map(str, self.results))
        return f"{results} = {self.name} {self.operand}"


def call_in_python(program, step):
    """Return a function of the memory that does a `CallLapack`."""
    function, made = lapack_routine(step.name), []
    for x in step.arguments:
        room = np.empty(x.size, np.uint8) if type(x) is Workspace else None
        made.append(_cell(x) if _is_cell(x) else room)

    def run(memory):
        views = {*step.results, *(x for x in step.arguments if type(x) is View)}
        arrays = {view: array_from_view(view, memory) for view in views}
        arrays[step.results[0]][...] = array_from_view(step.operand, memory)
        flat = {view: x.reshape(step.count, -1) for view, x in arrays.items()}
        for number in range(step.count):
            pairs = zip(step.arguments, made)
            cells = [flat[x][number] if type(x) is View else y for x, y in pairs]
            function(*[ctypes.c_void_p(cell.ctypes.data) for cell in cells])

    return run


def write_routine(f, step):
    """Write a loop over matrices, with a call of the routine for each."""
    space = f.offset("%arena", f.program.locations.workspaces[id(step)])
    places, starts = {}, {x: f.address(x.source) for x in step.results}
    for number, x in enumerate(step.arguments):
        if type(x) is View:
            starts[x] = f.address(x.source)
            continue
        places[number] = f.offset(space, step.places[number])
        for word, value in enumerate(_cell(x) if _is_cell(x) else ()):
            cell = f.offset(places[number], 8 * word)
            cell = f.emit(f"bitcast i8* {cell} to i64*", "p")
            f.line(f"store i64 {value}, i64* {cell}")
    f.copy(starts[step.results[0]], f.address(step.operand.source), step.operand.source)
    name, kinds = f"lapack_{step.name}", ", ".join(["i8*"] * len(step.arguments))
    address = ctypes.cast(lapack_routine(step.name), ctypes.c_void_p).value
    add_symbol(name, address)
    f.declare(f"declare void @{name}({kinds})")

    def matrix(index, _):
        at = {x: _matrix_of(f, start, index, x, step) for x, start in starts.items()}
        given = [
            at[x] if type(x) is View else places[number]
            for number, x in enumerate(step.arguments)
        ]
        f.line(f"call void @{name}({', '.join(f'i8* {x}' for x in given)})")
        return []

    f.loop(step.count, [], matrix)


def _matrix_of(f, start, index, view, step):
    size = math.prod(view.shape) // step.count * view.dtype.itemsize
    return f.offset(start, f.emit(f"mul i64 {index}, {size}"))


def cost_of_call(step):
    """Return the costs of the equation that the step does."""
    return step.cost


step_kinds[CallLapack] = StepKind(call_in_python, cost_of_call, write_routine)


# Rules of a CPU for factorizations: loops for small matrices, LAPACK for larger ones.

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


class Call:
    """Writes the steps for one equation, around the call of a routine.

    Args:
      lowering: the `Lowering`.
      eqn: the equation.
      x: the view of the matrices in which the routine works.
      prepare: what is done to them first.

    Attributes:
      batch: the sizes of the axes in front of the matrices.
      operand: the view of the matrices as the routine gets them.
      work: the view of them after the call.
      results: views of all that the routine writes.
    """

    def __init__(self, lowering, eqn, x, prepare=lambda x: to_double_precision(x).mT):
        if x.dtype.itemsize == 2 or not math.prod(x.shape):
            raise UnsupportedKernel("NumPy refuses it, or there is nothing to do")
        self.lowering, self.eqn, self.batch = lowering, eqn, x.shape[:-2]
        self.operand, self.results = self.in_memory(x, prepare), []
        self.cost = Counter(eqn_cost(eqn))
        self.work = self.result(*self.operand.shape[-2:])

    def in_memory(self, x, prepare):
        """Return what a function makes of an array, row by row in memory of its own."""
        [x] = self.lowering.function(lambda x: [prepare(x)], [x])
        return self.lowering.in_own_buffer(x)

    def result(self, *shape, dtype=None):
        """Return the view of memory for a result, for each matrix of this shape."""
        aval = ShapedArray((*self.batch, *shape), dtype or self.operand.dtype)
        self.results.append(self.lowering.allocate(aval))
        return self.results[-1]

    def routine(self, real, complex_, *arguments):
        """Add the call of a routine, with the letter of the dtype in front.

        Args:
          real, complex_: what it is called without that letter.
          *arguments: as for `CallLapack`; views of results have been made by `result`.
        """
        name = LETTERS[self.operand.dtype.name]
        name += complex_ if self.operand.dtype.kind == "c" else real
        if lapack_routine(name) is None:
            raise UnsupportedKernel("NumPy does not show its LAPACK")
        parts = self.operand, tuple(self.results), self.cost
        step = CallLapack(name, query_workspace(name, arguments), *parts)
        self.lowering.steps.append(step)

    def finished(self, function, *views):
        """Return the views of the equation's results, by a function of arrays."""
        dtypes = [var.aval.dtype for var in self.eqn.outvars]

        def end(*xs):
            return [x.astype(dtype) for x, dtype in zip(function(*xs), dtypes)]

        return self.lowering.function(end, views)


def or_nan(failed, *xs):
    """Return arrays with NaN for the matrices where a routine has failed."""
    ranks = [(*failed.shape, *[1] * (x.ndim - failed.ndim)) for x in xs]
    fine = [(failed == 0).reshape(rank) for rank in ranks]
    return [jnp.where(good, x, jnp.nan) for good, x in zip(fine, xs)]


def by_columns(view):
    """Return a view of matrices which lie by columns."""
    *batch, m, n = range(len(view.shape))
    return transpose_view(view, [*batch, n, m])


def eigh_by_routine(lowering, eqn, x):
    """Return eigenvectors and eigenvalues of Hermitian matrices, as NumPy does it."""
    call, triangle = Call(lowering, eqn, x), "L" if eqn.params["lower"] else "U"
    n, v, dtype = x.shape[-1], call.work, call.operand.dtype
    w, failed = call.result(n, dtype=LAPACK_REAL), call.result(dtype=lapack_int_dtype())
    asked = map(
        QueriedWorkspace,
        [dtype, *[LAPACK_REAL] * (dtype == LAPACK_COMPLEX), lapack_int_dtype()],
    )
    call.routine("syevd", "heevd", "V", triangle, n, v, n, w, *asked, failed)
    return call.finished(or_nan, failed, by_columns(v), w)


def svd_by_routine(lowering, eqn, x):
    """Return singular values and vectors, as NumPy does it."""
    call, vectors = Call(lowering, eqn, x), eqn.params["compute_uv"]
    (m, n), k, full = x.shape[-2:], min(x.shape[-2:]), eqn.params["full_matrices"]
    s, (rows, columns) = call.result(k, dtype=LAPACK_REAL), (n, m) if full else (k, k)
    found = (call.result(columns, m), call.result(n, rows)) if vectors else ()
    failed = call.result(dtype=lapack_int_dtype())
    room = [Workspace(64 * k)]
    dtype = call.operand.dtype
    if dtype == LAPACK_COMPLEX:
        room.insert(0, Workspace(8 * k * max(5 * k + 7, 2 * max(m, n) + 2 * k + 1)))
    u, vt = found or (Workspace(64), Workspace(64))
    letter = "N" if not vectors else "A" if full else "S"
    arguments = (
        letter,
        m,
        n,
        call.work,
        m,
        s,
        u,
        m,
        vt,
        rows,
        QueriedWorkspace(dtype),
        *room,
    )
    call.routine("gesdd", "gesdd", *arguments, failed)
    return call.finished(or_nan, failed, s, *map(by_columns, found))


def cholesky_by_routine(lowering, eqn, x):
    """Return Cholesky factors, as NumPy does it."""
    call, n = Call(lowering, eqn, x), x.shape[-1]
    failed = call.result(dtype=lapack_int_dtype())
    call.routine("potrf", "potrf", "L", n, call.work, n, failed)
    factor = by_columns(call.work)
    return call.finished(lambda *xs: [jnp.tril(*or_nan(*xs))], failed, factor)


def qr_by_routine(lowering, eqn, x):
    """Return the factors of QR, as NumPy does it; without exchanges of columns."""
    if eqn.params["pivoting"]:
        raise UnsupportedKernel("columns change places")
    first, (m, n), k = Call(lowering, eqn, x), x.shape[-2:], min(x.shape[-2:])
    taus, failed = first.result(k), first.result(dtype=lapack_int_dtype())
    asked = QueriedWorkspace(first.operand.dtype)
    size = m if eqn.params["full_matrices"] else k
    first.routine("geqrf", "geqrf", m, n, first.work, m, taus, asked, failed)
    reflected = by_columns(first.work)

    def vectors(a):
        more = max(size - n, 0)
        return jnp.concatenate([a, jnp.zeros_like(a, shape=(*a.shape[:-1], more))], -1)

    last = Call(lowering, eqn, reflected, lambda a: vectors(a)[..., :size].mT)
    failed, last.cost = last.result(dtype=lapack_int_dtype()), Counter()
    last.routine("orgqr", "ungqr", m, size, k, last.work, m, taus, asked, failed)
    factors = by_columns(last.work), reflected
    return last.finished(lambda q, a: [q, jnp.triu(a[..., :size, :])], *factors)


def lu_by_routine(lowering, eqn, x):
    """Return factors by elimination, pivots and permutations."""
    call, (m, n) = Call(lowering, eqn, x, lambda x: x.mT), x.shape[-2:]
    pivots = call.result(min(m, n), dtype=lapack_int_dtype())
    failed = call.result(dtype=lapack_int_dtype())
    call.routine("getrf", "getrf", m, n, call.work, m, pivots, failed)

    def finish(both, pivots):
        pivots = pivots.astype("int32") - 1
        return both, pivots, *pivots_to_permutation_loop(pivots, permutation_size=m)

    return call.finished(finish, by_columns(call.work), pivots)


def triangular_by_routine(lowering, eqn, a, b):
    """Return solutions of triangular systems.

    Rows are columns for Fortran, so that its matrices are our transposes: what stands
    on the left for us is on the right there.
    """
    p = eqn.params
    alone = p["conjugate_a"] and not p["transpose_a"]
    call, (m, n) = Call(lowering, eqn, b, lambda x: x), b.shape[-2:]
    a = call.in_memory(a, lambda x: x.conj() if alone else x)
    side, triangle = "LR"[p["left_side"]], "LU"[p["lower"]]
    way = "NTC"[p["transpose_a"] * (1 + p["conjugate_a"])]
    unit, one = "NU"[p["unit_diagonal"]], np.ones(1, b.dtype)
    letters, size = (side, triangle, way, unit), a.shape[-1]
    call.routine("trsm", "trsm", *letters, n, m, one, a, size, call.work, n)
    return call.finished(lambda x: [x], call.work)


lu_on_cpu = first_applicable(
    loop_lowering(lu_loop, 12**2),
    lu_by_routine,
    loop_lowering(lu_loop, 2**16),
)
cholesky_on_cpu = first_applicable(
    loop_lowering(cholesky_loop, 5**2),
    cholesky_by_routine,
    loop_lowering(cholesky_loop, 24**2),
)
triangular_on_cpu = first_applicable(
    loop_lowering(triangular_solve_loop, 17**2),
    triangular_by_routine,
    loop_lowering(triangular_solve_loop, 2**15),
)
qr_on_cpu = first_applicable(
    loop_lowering(qr_loop, 20**2), qr_by_routine, loop_lowering(qr_loop, 32**2)
)
permuted_on_cpu = loop_lowering(pivots_to_permutation_loop, math.inf)
tridiagonal_on_cpu = loop_lowering(tridiagonal_solve_loop, math.inf)
