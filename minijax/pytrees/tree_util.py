"""Pytrees: flattening, treedefs, and maps over all leaves.

A *pytree* is a leaf, or a container of pytrees. `tree_flatten` separates the two
parts: a list of leaves, and a `PyTreeDef` that knows how to put them back.

References: ``jax.tree_util``, ``jax.tree_util.tree_map``.
"""

# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.pytrees.registry import TreeStructure, node_kind, node_kinds, subtrees

# Trees of containers: what stands at the leaves, and the shape of all the rest.


def _unflatten(treedef, leaves):
    if treedef.kind is None:
        return next(leaves)
    children = [_unflatten(child, leaves) for child in treedef._children]
    return treedef.kind.unflatten(treedef.aux, children)


class PyTreeDef(TreeStructure):
    """The structure of a tree: everything about it but the leaves.

    Attributes:
      kind: the `NodeKind` of the outermost container; None for a leaf.
      aux: what this container holds besides its children, such as dictionary keys.
      num_leaves: how many leaves there are.

    Reference: ``jax.tree_util.PyTreeDef``.
    """

    __slots__ = ("_children", "aux", "kind", "num_leaves")

    def __init__(self, kind, aux, children):
        self.kind, self.aux, self._children = kind, aux, children
        self.num_leaves = 1 if kind is None else sum([c.num_leaves for c in children])

    def unflatten(self, leaves):
        """Return the tree of this structure with the given leaves.

        Raises:
          ValueError: if their number is not `num_leaves`.
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            amount = "few" if len(leaves) < self.num_leaves else "many"
            found = f"expected {self.num_leaves}, got {len(leaves)}"
            raise ValueError(f"Too {amount} leaves for {self}: {found}.")
        return _unflatten(self, iter(leaves))


_LEAF = PyTreeDef(None, None, [])


def _flatten(tree, is_leaf, leaves):
    kind = node_kinds.get(type(tree)) or node_kind(tree)  # the first is faster
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, aux = kind.flatten(tree)
    return PyTreeDef(kind, aux, [_flatten(c, is_leaf, leaves) for c in children])


def tree_flatten(tree: Any, is_leaf: Callable | None = None) -> tuple[list, PyTreeDef]:
    """Return the leaves of a tree and its structure.

    Args:
      tree: any value; one that is no registered container is itself a leaf.
      is_leaf: a function that says of a subtree whether to stop there.

    Returns:
      The list of leaves and the `PyTreeDef`.

    Reference: ``jax.tree_util.tree_flatten``.
    """
    leaves = []
    treedef = _flatten(tree, is_leaf, leaves)
    return leaves, treedef


def _flatten_with_path(tree, stop, path, pairs):
    kind = node_kind(tree)
    if kind is None or (stop is not None and stop(path, tree)):
        pairs.append((path, tree))
        return _LEAF
    children = [
        _flatten_with_path(child, stop, (*path, key), pairs)
        for key, child in kind.keyed_children(tree)
    ]
    return PyTreeDef(kind, kind.flatten(tree)[1], children)


def tree_leaves(tree: Any, is_leaf: Callable | None = None) -> list:
    """Return the list of the leaves of a tree.

    Reference: ``jax.tree_util.tree_leaves``.
    """
    leaves = []
    _add_leaves(tree, is_leaf, leaves)
    return leaves


def _add_leaves(tree, is_leaf, leaves):
    kind = node_kinds.get(type(tree)) or node_kind(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
    else:
        for child in kind.flatten(tree)[0]:
            _add_leaves(child, is_leaf, leaves)


def tree_structure(tree: Any, is_leaf: Callable | None = None) -> PyTreeDef:
    """Return the structure of a tree, a `PyTreeDef`.

    Reference: ``jax.tree_util.tree_structure``.
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple], PyTreeDef]:
    """Return the leaves of a tree, each with its key path, and the structure.

    Args:
      tree: any tree.
      is_leaf: a function that says of a subtree whether to stop there.
      is_leaf_takes_path: call ``is_leaf(path, subtree)``.

    Returns:
      The list of pairs ``(path, leaf)``, where a path is a tuple of keys, and the
      `PyTreeDef`.

    Reference: ``jax.tree_util.tree_flatten_with_path``.
    """
    stop = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        stop = _without_path(is_leaf)
    pairs = []
    treedef = _flatten_with_path(tree, stop, (), pairs)
    return pairs, treedef


def _without_path(is_leaf):
    return lambda path, subtree: is_leaf(subtree)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable | None = None, is_leaf_takes_path: bool = False
) -> list:
    """Return the list of pairs of key path and leaf of a tree.

    Reference: ``jax.tree_util.tree_leaves_with_path``.
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# The map over all leaves of a tree, or of several side by side.


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
