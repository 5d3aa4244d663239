"""Series and continued fractions, evaluated until no number of an array changes.

Source: W. J. Lentz, *Generating Bessel functions in Mie scattering calculations using
continued fractions*, Applied Optics 15 (1976).
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.avals import typeof
from minijax.lax.conversion import astype as as_type
from minijax.own_rules.symbolic_zeros import SymbolicZero


def repeat(step, state, like, limit):
    """Return the state when ``step(n, state)`` finds no number active.

    Args:
      step: returns booleans, for each number whether it still changes, and a state.
      state: a tuple of arrays.
      like: an array; n is a number of its dtype, and begins with 1.
      limit: the greatest n.
    """

    def body(carry):
        n, _, state = carry
        active, state = step(n + 1, state)
        return n + 1, active.any(), state

    start = lax.full((), 0, like.real.dtype), np.True_, state
    return lax.while_loop(lambda c: (c[0] < limit) & c[1], body, start)[2]


def power_series(ratio, like, limit=2000):
    """Return ``1 + t1 + t2 + ...``, where ``t_n = ratio(n) * t_(n - 1)``.

    Args:
      ratio: function of the number n of a term.
      like: an array of the shape and dtype of the sum.
      limit: the greatest number of terms.
    """
    eps = jnp.finfo(like.dtype).eps

    def step(n, state):
        term, total = state
        term = term * ratio(n)
        return abs(term) > eps * abs(total), (term, total + term)

    one = lax.full_like(like, 1)
    return repeat(step, (one, one), like, limit)[1]


def continued_fraction(terms, like, limit=2000):
    """Return ``a1 / (b1 + a2 / (b2 + ...))`` by the method of Lentz.

    Args:
      terms: function of n that returns a_n and b_n.
      like: an array of the shape and dtype of the fraction.
      limit: the greatest number of terms.
    """
    info = jnp.finfo(like.dtype)
    tiny = lax.full_like(like, float(info.tiny) ** 0.5)

    def step(n, state):
        value, c, d = state
        a, b = terms(n)
        d, c = b + a * d, b + a / c
        d, c = (jnp.where(x == 0, tiny, x) for x in (d, c))
        d = 1 / d
        return abs(c * d - 1) > info.eps, (value * (c * d), c, d)

    return repeat(step, (tiny, tiny, lax.full_like(like, 0)), like, limit)[0]


def slopes(function, *rules):
    """Give a `custom_jvp` function a derivative for each argument that has a tangent.

    Args:
      function: of arrays, to one array.
      *rules: for each argument a function ``rule(result, *primals)``, the derivative.
    """

    def jvp(primals, tangents):
        result = function(*primals)
        moved = lax.full_like(result, 0)
        for tangent, rule in zip(tangents, rules):
            if not isinstance(tangent, SymbolicZero):
                moved = moved + tangent * rule(result, *primals)
        return result, as_type(moved, result.dtype, typeof(result).weak_type)

    function.defjvp(jvp, symbolic_zeros=True)


def without_slope(name, argument):
    """Return a rule that refuses to differentiate a function in an argument."""

    def rule(result, *primals):
        raise ValueError(
            f"{name} has no derivative with respect to {argument}. Hold it fixed, as "
            "with lax.stop_gradient."
        )

    return rule


def in_float32(function, weak=True):
    """Return a function that computes numbers of 16 bits with 32 bits.

    Args:
      function: of arrays of one dtype.
      weak: whether the result is weak if all arguments are.
    """

    def wide(*args):
        dtype = args[0].dtype
        keeps = weak and all(typeof(x).weak_type for x in args)
        args = jnp.broadcast_arrays(*args)
        if dtype.itemsize <= 2:
            args = (x.astype("float32") for x in args)
        return as_type(function(*args), dtype, keeps)

    return wide
