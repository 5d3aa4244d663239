"""Barriers: values that no optimisation sees through (optimization barrier).

Reference: ``jax.lax.optimization_barrier``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax.arrays.array import asarray_impl, shape_rules
from minijax.batching.rules import vmap_rules
from minijax.core import Primitive, impl_rules
from minijax.forward.rules import jvp_rules
from minijax.pytrees.treedefs import tree_flatten
from minijax.reverse.transposition import transpose_rules

optimization_barrier_p = Primitive("optimization_barrier")
impl_rules[optimization_barrier_p] = lambda *xs: list(map(asarray_impl, xs))
shape_rules[optimization_barrier_p] = lambda *avals: list(avals)
vmap_rules[optimization_barrier_p] = lambda axis, args, dims: (
    optimization_barrier_p.bind(*args),
    list(dims),
)


def optimization_barrier(operand: Any) -> Any:
    """Return a tree of arrays as it is; all of it is there before any of it is used.

    Reference: ``jax.lax.optimization_barrier``.
    """
    leaves, tree = tree_flatten(operand)
    return tree.unflatten(_behind(leaves))


def _behind(values):
    """Put one barrier in front of all values that are not None."""
    held = [value for value in values if value is not None]
    found = iter(optimization_barrier_p.bind(*held) if held else [])
    return [None if value is None else next(found) for value in values]


jvp_rules[optimization_barrier_p] = lambda primals, tangents: (
    _behind(primals),
    _behind(tangents),
)
transpose_rules[optimization_barrier_p] = lambda cts, *operands: _behind(cts)
