"""Operations on whole trees: prefixes, reductions, maps with paths, devices.

Reference: ``jax.tree_util.tree_reduce`` and its relatives; ``jax.device_put``,
``jax.device_get``, ``jax.block_until_ready``.
"""

# Made from chapters/05_pytrees_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable, Iterable
from typing import Any

from minijax.arrays import transfer
from minijax.arrays.array import ArrayImpl
from minijax.arrays.sharding_types import completions
from minijax.errors import present, presents
from minijax.pytrees.differences import differences, subtrees
from minijax.pytrees.functions import tree_map
from minijax.pytrees.node_kinds import _promising, node_kinds
from minijax.pytrees.treedefs import (
    PyTreeDef,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_structure,
)


def broadcast_prefix(prefix_tree, full_tree, is_leaf=None):
    """Return each leaf of a tree as often as a larger tree has leaves at its place.

    Args:
      prefix_tree: a tree.
      full_tree: a tree that begins with the structure of `prefix_tree`.
      is_leaf: a function that says of a subtree of `prefix_tree` whether to stop there.

    Returns:
      A list with an entry for each leaf of `full_tree`.

    Raises:
      ValueError: if `full_tree` does not begin with the structure of `prefix_tree`; the
        message shows the paths.
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    parts = subtrees("broadcast_prefix", treedef, full_tree)
    return [leaf for leaf, part in zip(leaves, parts) for _ in tree_leaves(part)]


def kept_promises(tree):
    """Return a tree in which a container that promises an array is that array."""

    def keep(x):
        return x.__jax_array__() if promises(x) else x

    return tree_map(keep, tree, is_leaf=promises)


def promises(x):
    """Return whether `x` is a container of trees that promises an array."""
    return type(x) in _promising


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable) -> Any:
    """Return the tree with the structure `treedef` and the given leaves.

    Reference: ``jax.tree_util.tree_unflatten``.
    """
    return _structure(treedef).unflatten(leaves)


def _structure(treedef):
    """Return a structure, or raise a TypeError for anything else, such as a tree."""
    if isinstance(treedef, PyTreeDef):
        return treedef
    raise TypeError(
        f"{treedef!r} of type {type(treedef).__name__} is no structure of a tree: "
        "tree_structure(tree) returns it."
    )


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a structure has nothing inside: a leaf or an empty container.

    Reference: ``jax.tree_util.treedef_is_leaf``.
    """
    return _structure(treedef).num_nodes == 1


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of a structure, a list.

    Reference: ``jax.tree_util.treedef_children``.
    """
    return _structure(treedef).children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees with the given structures.

    Reference: ``jax.tree_util.treedef_tuple``.
    """
    return PyTreeDef(node_kinds[tuple], None, list(map(_structure, treedefs)))


_MISSING = object()


def tree_broadcast(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable | None = None
) -> Any:
    """Replace each leaf of a tree by a tree of copies, to give it a larger structure.

    Args:
      prefix_tree: a tree.
      full_tree: a tree that begins with the structure of `prefix_tree`.
      is_leaf: a function that says of a subtree of `prefix_tree` whether to stop there.

    Returns:
      A tree with the structure of `full_tree` and leaves of `prefix_tree`.

    Reference: ``jax.tree_util.tree_broadcast``.
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_structure(full_tree).unflatten(leaves)


def tree_map_with_path(
    f: Callable,
    tree: Any,
    *rest: Any,
    is_leaf: Callable | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to each leaf of a tree and its key path.

    Args:
      f: a function of a path (a tuple of keys), a leaf, and one argument for each tree
        of `rest`.
      tree: the tree whose structure the result has.
      *rest: trees that begin with this structure.
      is_leaf: a function that says of a subtree whether to stop there.
      is_leaf_takes_path: call ``is_leaf(path, subtree)``.

    Reference: ``jax.tree_util.tree_map_with_path``.
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [subtrees("tree_map_with_path", treedef, other) for other in rest]
    return treedef.unflatten(f(*pair, *args) for pair, *args in zip(pairs, *columns))


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: Callable | None = None,
) -> Any:
    """Combine the leaves of a tree, from first to last, by a function of two.

    Args:
      function: from the result so far and a leaf to the next result.
      tree: any tree.
      initializer: the first result; without it, the first leaf.
      is_leaf: a function that says of a subtree whether to stop there.

    Raises:
      TypeError: if there are no leaves and no `initializer`.

    Reference: ``jax.tree_util.tree_reduce``.
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not _MISSING:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError("The reduction of a tree without leaves needs an initializer.")
    return functools.reduce(function, leaves)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _MISSING,
    is_leaf: Callable | None = None,
) -> Any:
    """Combine the leaves of a tree by an associative function, in pairs.

    Args:
      operation: an associative function of two leaves.
      tree: any tree.
      identity: the result for a tree without leaves.
      is_leaf: a function that says of a subtree whether to stop there.

    Raises:
      TypeError: if there are no leaves and no `identity`.

    Reference: ``jax.tree_util.tree_reduce_associative``.
    """
    leaves = tree_leaves(tree, is_leaf)
    while len(leaves) > 1:
        pairs = zip(leaves[::2], leaves[1::2])
        last = leaves[-1:] if len(leaves) % 2 else []
        leaves = [operation(*pair) for pair in pairs] + last
    return leaves[0] if leaves else tree_reduce(operation, leaves, identity)


def tree_all(tree: Any, *, is_leaf: Callable | None = None) -> bool:
    """Return whether all leaves are true.

    Reference: ``jax.tree_util.tree_all``.
    """
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable, is_leaf: Callable | None = None) -> bool:
    """Return whether all values of an iterable are leaves.

    Reference: ``jax.tree_util.all_leaves``.
    """
    return all(tree_structure(x, is_leaf).kind is None for x in iterable)


def tree_transpose(
    outer_treedef: PyTreeDef,
    inner_treedef: PyTreeDef | None,
    pytree_to_transpose: Any,
) -> Any:
    """Turn a tree of trees inside out: a list of pairs becomes a pair of lists.

    Args:
      outer_treedef: the structure at the top now.
      inner_treedef: the structure at each of its leaves, which will be at the top;
        None: that of the first of them.
      pytree_to_transpose: a tree with the composition of both structures.

    Raises:
      TypeError: if the tree has another number of leaves.

    Reference: ``jax.tree_util.tree_transpose``.
    """
    leaves, actual = tree_flatten(pytree_to_transpose)
    _structure(outer_treedef)
    if inner_treedef is None:
        first = outer_treedef.flatten_up_to(pytree_to_transpose)[0]
        inner_treedef = tree_structure(first)
    if len(leaves) != outer_treedef.num_leaves * _structure(inner_treedef).num_leaves:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(
            f"tree_transpose expected a tree with as many leaves as {expected}, "
            f"{expected.num_leaves}, but got {len(leaves)}: {actual}."
        )
    width = inner_treedef.num_leaves
    columns = [leaves[i::width] for i in range(width)]
    return inner_treedef.unflatten(map(outer_treedef.unflatten, columns))


class _Leaf:
    """Stands for a leaf where only the structure is known."""

    def __repr__(self):
        return "an array"


def flatten_axes(what, axes, tree):
    """Spread axes over the leaves of a tree.

    Args:
      what: the name of `axes` for messages, such as ``"vmap in_axes"``.
      axes: a tree of integers and None that is a prefix of `tree`: one entry holds
        for the whole subtree at its place. None is an entry, not an empty tree.
      tree: a tree, or a `PyTreeDef`.

    Returns:
      A list with an entry for each leaf.

    Raises:
      ValueError: if `axes` is no prefix of `tree`; the message shows the paths.
    """
    leaves, prefix = tree_flatten(axes, _is_none)
    treedef = tree if isinstance(tree, PyTreeDef) else tree_structure(tree)
    counts = _leaves_behind(prefix, treedef)
    if counts is not None:
        return [axis for axis, count in zip(leaves, counts) for _ in range(count)]
    if tree is treedef:
        tree = tree.unflatten([_Leaf()] * tree.num_leaves)
    raise ValueError(
        f"{what} has to be a tree prefix of the values that it speaks of:\n  "
        + "\n  ".join(differences(prefix, tree, name=what.split()[-1]))
    )


def _is_none(axis):
    return axis is None


def _leaves_behind(prefix, treedef):
    """Return how many leaves stand behind each leaf of a prefix, None if it is none."""
    if prefix.kind is None:
        return [treedef.num_leaves]
    pairs = [*zip(prefix.children(), treedef.children())]
    if prefix.node_data() != treedef.node_data():
        return None
    if len(pairs) != len(prefix.children()) or len(pairs) != len(treedef.children()):
        return None
    counts = [_leaves_behind(*pair) for pair in pairs]
    return None if None in counts else sum(counts, [])


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Return a tree of arrays on a device.

    Args:
      x: a tree of arrays and scalars.
      device: a `Device`, a `Sharding`, a `PartitionSpec` for the mesh around, or
        a tree of them that is a prefix of `x`; by default, or for None, each array
        stays where it is.
      src: where the arrays are now; they know it themselves.
      donate: whether the arrays of `x` may be given up, or a prefix of `x`. Those that
        move to another device are deleted.
      may_alias: False gives each result numbers of its own, or a prefix of `x`.

    Raises:
      TypeError: if a leaf is no array or scalar.
      ValueError: if `device` is no device, or no prefix of `x`, if there is no mesh for
        a specification, or if an array is to be given up and shared.

    Reference: ``jax.device_put``.
    """
    leaves, treedef = tree_flatten(x)
    given = {"device": device, "donate": donate, "may_alias": may_alias}
    devices, *wishes = (
        tuple(flatten_axes(f"device_put {name}", given[name], x)) for name in given
    )
    devices, how = tuple(map(_completed, devices)), tuple(map(_semantics, *wishes))
    params = {"devices": devices, "srcs": (None,) * len(leaves), "copy_semantics": how}
    results = transfer.device_put_p.bind(*leaves, **params) if leaves else leaves
    return treedef.unflatten(results)


def _completed(where):
    if type(where) not in completions:
        return where
    try:
        return completions[type(where)]("device_put", where)
    except RuntimeError as error:  # in JAX it is a ValueError here
        raise ValueError(str(error)) from None


def _semantics(donate, may_alias):
    """Return what becomes of the buffers of an array that is put somewhere."""
    if donate and may_alias:
        raise ValueError("may_alias and donate cannot be True at the same time.")
    if donate:
        return transfer.ArrayCopySemantics.DONATE_INPUT
    copy = may_alias is not None and not may_alias
    semantics = transfer.ArrayCopySemantics
    return semantics.ALWAYS_COPY if copy else semantics.REUSE_INPUT


def copy_to_host_async(x: Any) -> Any:
    """Begin to copy all arrays of a tree to the host, and return the tree.

    Reference: ``jax.copy_to_host_async``.
    """
    for leaf in tree_leaves(x):
        if isinstance(leaf, ArrayImpl):
            leaf.copy_to_host_async()
    return x


def device_get(x: Any) -> Any:
    """Return a tree with each array as a read-only NumPy array.

    Reference: ``jax.device_get``.
    """
    return tree_map(transfer.device_get, x)


@presents
def block_until_ready(x: Any) -> Any:
    """Return a tree when the numbers of all its arrays are there.

    Reference: ``jax.block_until_ready``.
    """
    try:
        if type(x) is ArrayImpl:
            x.placement.device.wait(x._buffer)
            return x
        for leaf in tree_leaves(x):
            if isinstance(leaf, ArrayImpl):
                leaf.placement.device.wait(leaf._buffer)
        return x
    except Exception as error:
        present(error)
        raise
