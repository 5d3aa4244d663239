"""Values whose derivative is taken to be zero (stop-gradient).

Reference: ``jax.lax.stop_gradient``.
"""

# Made from chapters/11_own_rules.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax.arrays.array import primitive_rules
from minijax.batching.rules import vmap_rules
from minijax.core import Primitive
from minijax.forward.rules import constant_rule, jvp_rules
from minijax.pytrees.functions import tree_map
from minijax.reverse.transposition import transpose_rules

stop_gradient_p = Primitive("stop_gradient")
primitive_rules(stop_gradient_p, lambda x: [x], lambda xp, x: x)
jvp_rules[stop_gradient_p] = constant_rule(stop_gradient_p)
vmap_rules[stop_gradient_p] = lambda axis, args, dims: (
    stop_gradient_p.bind(*args),
    list(dims),
)
transpose_rules.reasons[stop_gradient_p] = (
    "It has no tangent, so no cotangent ever arrives at it."
)


def stop_gradient(x: Any) -> Any:
    """Return the arrays of a tree as they are, without the way they were made.

    What is computed with them has no derivative with respect to what they were
    computed from.

    Args:
      x: a tree of arrays and numbers.

    Raises:
      TypeError: for a leaf that is neither.

    Reference: ``jax.lax.stop_gradient``.
    """
    return tree_map(lambda leaf: stop_gradient_p.bind(leaf)[0], x)
