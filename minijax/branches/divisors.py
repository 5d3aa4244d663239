"""Greatest common divisors and least common multiples.

Reference: ``jax.numpy.gcd``, ``jax.numpy.lcm``.
"""

# Made from chapters/15_branches_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax import lax
from minijax.branches.while_loops import while_loop
from minijax.core import Array
from minijax.lax.promotion import check_arraylike, promote_dtypes
from minijax.numpy.elementwise import absolute
from minijax.numpy.shapes import broadcast_arrays
from minijax.numpy.ufuncs import where
from minijax.operators.operands import as_array, kind
from minijax.typing import ArrayLike


def _euclid(pair):
    """Return the smaller of two numbers and the rest of the other; then 0 and 0."""
    x, y = pair
    going = y != 0
    return where(going, y, x), where(going, lax.rem(x, where(going, y, 1)), 0)


def _integers(name, x1, x2):
    check_arraylike(name, x1, x2)
    x1, x2 = map(as_array, promote_dtypes(x1, x2))
    if kind(x1) not in "iu":
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    return [absolute(x) for x in broadcast_arrays(x1, x2)]


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greatest common divisors of integers, by Euclid's algorithm.

    Reference: ``jax.numpy.gcd``.
    """
    pair = tuple(_integers("gcd", x1, x2))
    found = while_loop(lambda pair: (pair[1] != 0).any(), _euclid, pair)[0]
    return absolute(found)  # the least integer has no positive one, and leaves a sign


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the least common multiples of integers; 0 if one of them is 0.

    Reference: ``jax.numpy.lcm``.
    """
    x1, x2 = _integers("lcm", x1, x2)
    divisor: Any = gcd(x1, x2)
    none = divisor == 0
    return where(none, 0, x1 * (x2 // where(none, 1, divisor)))
