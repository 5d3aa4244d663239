"""Rules of a CPU for factorizations: loops for small matrices, LAPACK for larger ones.

Reference: Anderson and others, *LAPACK Users' Guide*; ``umath_linalg.cpp`` of NumPy,
which calls the same routines.
"""

# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections import Counter

import numpy as np

from minijax import numpy as jnp
from minijax.arrays.avals import ShapedArray
from minijax.factorizations.loops import (
    by_loop,
    cholesky_by_loop,
    eliminated_by_loop,
    first_of,
    permuted_by_loop,
    qr_by_loop,
    substituted_by_loop,
    to_64_bits,
    tridiagonal_by_loop,
)
from minijax.jitting.costs import cost_of
from minijax.kernels.building import NoKernel
from minijax.kernels.views import permuted
from minijax.lax.linalg.routines import (
    COMPLEX,
    REAL,
    Asked,
    CallRoutine,
    Room,
    routine,
    whole,
    with_room,
)

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

    def __init__(self, lowering, eqn, x, prepare=lambda x: to_64_bits(x).mT):
        if x.dtype.itemsize == 2 or not math.prod(x.shape):
            raise NoKernel("NumPy refuses it, or there is nothing to do")
        self.lowering, self.eqn, self.batch = lowering, eqn, x.shape[:-2]
        self.operand, self.results = self.in_memory(x, prepare), []
        self.cost = Counter(cost_of(eqn))
        self.work = self.result(*self.operand.shape[-2:])

    def in_memory(self, x, prepare):
        """Return what a function makes of an array, row by row in memory of its own."""
        [x] = self.lowering.function(lambda x: [prepare(x)], [x])
        return self.lowering.in_its_buffer(x)

    def result(self, *shape, dtype=None):
        """Return the view of memory for a result, for each matrix of this shape."""
        aval = ShapedArray((*self.batch, *shape), dtype or self.operand.dtype)
        self.results.append(self.lowering.allocate(aval))
        return self.results[-1]

    def routine(self, real, complex_, *arguments):
        """Add the call of a routine, with the letter of the dtype in front.

        Args:
          real, complex_: what it is called without that letter.
          *arguments: as for `CallRoutine`; views of results have been made by `result`.
        """
        name = LETTERS[self.operand.dtype.name]
        name += complex_ if self.operand.dtype.kind == "c" else real
        if routine(name) is None:
            raise NoKernel("NumPy does not show its LAPACK")
        parts = self.operand, tuple(self.results), self.cost
        step = CallRoutine(name, with_room(name, arguments), *parts)
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
    return permuted(view, [*batch, n, m])


def eigh_by_routine(lowering, eqn, x):
    """Return eigenvectors and eigenvalues of Hermitian matrices, as NumPy does it."""
    call, triangle = Call(lowering, eqn, x), "L" if eqn.params["lower"] else "U"
    n, v, dtype = x.shape[-1], call.work, call.operand.dtype
    w, failed = call.result(n, dtype=REAL), call.result(dtype=whole())
    asked = map(Asked, [dtype, *[REAL] * (dtype == COMPLEX), whole()])
    call.routine("syevd", "heevd", "V", triangle, n, v, n, w, *asked, failed)
    return call.finished(or_nan, failed, by_columns(v), w)


def svd_by_routine(lowering, eqn, x):
    """Return singular values and vectors, as NumPy does it."""
    call, vectors = Call(lowering, eqn, x), eqn.params["compute_uv"]
    (m, n), k, full = x.shape[-2:], min(x.shape[-2:]), eqn.params["full_matrices"]
    s, (rows, columns) = call.result(k, dtype=REAL), (n, m) if full else (k, k)
    found = (call.result(columns, m), call.result(n, rows)) if vectors else ()
    failed, room, dtype = call.result(dtype=whole()), [Room(64 * k)], call.operand.dtype
    if dtype == COMPLEX:
        room.insert(0, Room(8 * k * max(5 * k + 7, 2 * max(m, n) + 2 * k + 1)))
    u, vt = found or (Room(64), Room(64))
    letter = "N" if not vectors else "A" if full else "S"
    arguments = letter, m, n, call.work, m, s, u, m, vt, rows, Asked(dtype), *room
    call.routine("gesdd", "gesdd", *arguments, failed)
    return call.finished(or_nan, failed, s, *map(by_columns, found))


def cholesky_by_routine(lowering, eqn, x):
    """Return Cholesky factors, as NumPy does it."""
    call, n = Call(lowering, eqn, x), x.shape[-1]
    failed = call.result(dtype=whole())
    call.routine("potrf", "potrf", "L", n, call.work, n, failed)
    factor = by_columns(call.work)
    return call.finished(lambda *xs: [jnp.tril(*or_nan(*xs))], failed, factor)


def qr_by_routine(lowering, eqn, x):
    """Return the factors of QR, as NumPy does it; without exchanges of columns."""
    if eqn.params["pivoting"]:
        raise NoKernel("columns change places")
    first, (m, n), k = Call(lowering, eqn, x), x.shape[-2:], min(x.shape[-2:])
    taus, failed = first.result(k), first.result(dtype=whole())
    asked, size = Asked(first.operand.dtype), m if eqn.params["full_matrices"] else k
    first.routine("geqrf", "geqrf", m, n, first.work, m, taus, asked, failed)
    reflected = by_columns(first.work)

    def vectors(a):
        more = max(size - n, 0)
        return jnp.concatenate([a, jnp.zeros_like(a, shape=(*a.shape[:-1], more))], -1)

    last = Call(lowering, eqn, reflected, lambda a: vectors(a)[..., :size].mT)
    failed, last.cost = last.result(dtype=whole()), Counter()
    last.routine("orgqr", "ungqr", m, size, k, last.work, m, taus, asked, failed)
    factors = by_columns(last.work), reflected
    return last.finished(lambda q, a: [q, jnp.triu(a[..., :size, :])], *factors)


def lu_by_routine(lowering, eqn, x):
    """Return factors by elimination, pivots and permutations."""
    call, (m, n) = Call(lowering, eqn, x, lambda x: x.mT), x.shape[-2:]
    pivots, failed = call.result(min(m, n), dtype=whole()), call.result(dtype=whole())
    call.routine("getrf", "getrf", m, n, call.work, m, pivots, failed)

    def finish(both, pivots):
        pivots = pivots.astype("int32") - 1
        return both, pivots, *permuted_by_loop(pivots, permutation_size=m)

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


lu_on_cpu = first_of(
    by_loop(eliminated_by_loop, 12**2),
    lu_by_routine,
    by_loop(eliminated_by_loop, 2**16),
)
cholesky_on_cpu = first_of(
    by_loop(cholesky_by_loop, 5**2),
    cholesky_by_routine,
    by_loop(cholesky_by_loop, 24**2),
)
triangular_on_cpu = first_of(
    by_loop(substituted_by_loop, 17**2),
    triangular_by_routine,
    by_loop(substituted_by_loop, 2**15),
)
qr_on_cpu = first_of(
    by_loop(qr_by_loop, 20**2), qr_by_routine, by_loop(qr_by_loop, 32**2)
)
permuted_on_cpu = by_loop(permuted_by_loop, math.inf)
tridiagonal_on_cpu = by_loop(tridiagonal_by_loop, math.inf)
