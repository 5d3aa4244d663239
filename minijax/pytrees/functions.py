"""The map over all leaves of a tree, or of several side by side.

Reference: ``jax.tree_util.tree_map``.
"""

# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.pytrees.differences import subtrees
from minijax.pytrees.treedefs import tree_flatten


def tree_map(f: Callable, tree: Any, *rest: Any, is_leaf: Any = None) -> Any:
    """Apply a function to each leaf of a tree, and to what stands there in others.

    Args:
      f: a function of ``1 + len(rest)`` arguments.
      tree: the tree whose structure the result has.
      *rest: trees that begin with this structure; `f` gets their subtrees at its
        leaves.
      is_leaf: a function that says of a subtree of `tree` whether to stop there.

    Returns:
      A tree of the results.

    Raises:
      ValueError: if a tree of `rest` does not begin with the structure of `tree`; the
        message shows the paths.

    Reference: ``jax.tree_util.tree_map``.
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [subtrees("tree_map", treedef, other) for other in rest]
    return treedef.unflatten(map(f, leaves, *columns))
