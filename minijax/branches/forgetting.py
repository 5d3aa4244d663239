# Made from chapters/15_branches_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Values whose derivative is taken to be zero (stop-gradient).

Reference: ``jax.lax.stop_gradient``.
"""

from typing import Any

from minijax.branches.conditional_rules import stop_gradient_p
from minijax.tree_util import tree_map


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
