"""The primitives of the simplest formulas: sums, products, tanh, comparison.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.checks import INEXACT, NUMBER, ORDERED, to_bool
from minijax.arrays.numerics import added
from minijax.lax.factories import binary, reduction, unary

add_p, add = binary("add", NUMBER, "add")
sub_p, sub = binary("sub", NUMBER, "subtract")
mul_p, mul = binary("mul", NUMBER, "multiply")


tanh_p, tanh = unary("tanh", INEXACT, "tanh")
lt_p, lt = binary("lt", ORDERED, "less", to_bool)
reduce_sum_p, reduce_sum = reduction("reduce_sum", NUMBER, added)
