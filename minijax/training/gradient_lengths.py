"""Norms of trees, clipping of gradients, and states of optimizers as trees.

Reference: ``jax.example_libraries.optimizers``.
"""

# Made from chapters/39_training_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax import numpy as jnp
from minijax.pytrees.functions import tree_map
from minijax.pytrees.operations import tree_unflatten
from minijax.pytrees.treedefs import tree_flatten, tree_leaves
from minijax.training.tree_optimizers import OptimizerState
from minijax.typing import Array


def l2_norm(tree: Any) -> Array:
    """Return the Euclidean length of all leaves together.

    Reference: ``jax.example_libraries.optimizers.l2_norm``.
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Return gradients that are at most `max_norm` long, with the same direction.

    Reference: ``jax.example_libraries.optimizers.clip_grads``.
    """
    norm = l2_norm(grad_tree)
    return tree_map(
        lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree
    )


class JoinPoint:
    """A leaf that holds a tree: the state of one parameter.

    Args:
      subtree: the tree.

    Reference: ``jax.example_libraries.optimizers.JoinPoint``.
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        """The state itself, once, so that a caller may unpack it."""
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Return a state as a tree like the parameters, with `JoinPoint`s for leaves.

    Reference: ``jax.example_libraries.optimizers.unpack_optimizer_state``.
    """
    pairs = zip(opt_state.subtree_defs, opt_state.packed_state, strict=True)
    points = [JoinPoint(tree_unflatten(*pair)) for pair in pairs]
    return tree_unflatten(opt_state.tree_def, points)


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Return the state of an optimizer, from a tree whose leaves are `JoinPoint`s.

    Raises:
      TypeError: if a leaf is not.

    Reference: ``jax.example_libraries.optimizers.pack_optimizer_state``.
    """
    points, tree = tree_flatten(marked_pytree)
    for k, point in enumerate(points):
        if not isinstance(point, JoinPoint):
            raise TypeError(
                f"pack_optimizer_state takes a tree of JoinPoints, as unpack returns; "
                f"leaf {k} is a {type(point).__name__}."
            )
    flat = [tree_flatten(point.subtree) for point in points]
    packed, subtrees = tuple([x for x, _ in flat]), tuple([t for _, t in flat])
    return OptimizerState(packed, tree, subtrees)
