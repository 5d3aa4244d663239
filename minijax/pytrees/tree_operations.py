"""Operations on whole trees, classes registered as containers, raveling.

References: ``jax.tree_util.register_dataclass``, ``register_pytree_node_class``,
``Partial`` and their relatives, ``jax.tree_util.tree_reduce`` and its relatives;
``jax.device_put``, ``jax.device_get``, ``jax.block_until_ready``,
``jax.flatten_util``.
"""

# Made from chapters/05_pytrees_rest.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from minijax import lax
from minijax.arrays import transfer
from minijax.arrays.array import ArrayImpl, typeof
from minijax.arrays.devices import sharding_converters
from minijax.core import Array
from minijax.errors import format_for_user, presents_own_errors
from minijax.lax.reductions import promote_types
from minijax.pytrees.registry import (
    GetAttrKey,
    _promising,
    node_kind,
    node_kinds,
    register_pytree_node,
    structure_differences,
    subtrees,
)
from minijax.pytrees.tree_util import (
    PyTreeDef,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
)
from minijax.typing import ArrayLike

# More types that are containers of trees: classes of the user's own.

_Class = TypeVar("_Class", bound=type)  # a class goes in, the same comes out


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable,
    unflatten_func: Callable,
    flatten_func: Callable | None = None,
) -> None:
    """Make a type a container of trees whose children have names.

    Args:
      nodetype: a class.
      flatten_with_keys: from an instance to ``([(key, child), ...], aux)``.
      unflatten_func: from ``aux, children`` to an instance.
      flatten_func: from an instance to ``(children, aux)``, if there is a quicker way.

    Reference: ``jax.tree_util.register_pytree_with_keys``.
    """

    def without_keys(tree):
        pairs, aux = flatten_with_keys(tree)
        return [child for _, child in pairs], aux

    register_pytree_node(
        nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys
    )


def register_pytree_node_class(cls: _Class) -> _Class:
    """Decorate a class with ``tree_flatten(self)`` and ``tree_unflatten(cls, ...)``.

    Reference: ``jax.tree_util.register_pytree_node_class``.
    """
    register_pytree_node(cls, lambda tree: tree.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """Decorate a class with ``tree_flatten_with_keys`` and ``tree_unflatten``.

    Reference: ``jax.tree_util.register_pytree_with_keys_class``.
    """
    register_pytree_with_keys(
        cls,
        lambda tree: tree.tree_flatten_with_keys(),
        cls.tree_unflatten,
        getattr(cls, "tree_flatten", None),
    )
    return cls


def register_static(cls: _Class) -> _Class:
    """Decorate a class whose instances are structure, and hold no leaves.

    Reference: ``jax.tree_util.register_static``.
    """
    register_pytree_node(cls, lambda tree: ((), tree), lambda aux, _: aux)
    return cls


def register_dataclass(
    nodetype: _Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _Class:
    """Make a class whose instances are fields and nothing more a container of trees.

    Args:
      nodetype: a dataclass, or a class that takes its fields as keyword arguments.
      data_fields: names of the fields that are children; for a dataclass, by default
        those not marked by ``field(metadata={"static": True})``.
      meta_fields: names of the fields that are part of the structure; they can be
        compared and hashed.
      drop_fields: names of fields that are left out, and take their default values.

    Raises:
      TypeError: if the fields are not given, and `nodetype` is no dataclass.
      ValueError: if a field of the dataclass is not named, not known or named twice.

    Reference: ``jax.tree_util.register_dataclass``.
    """
    if data_fields is None and meta_fields is None:
        data_fields, meta_fields = _fields_of(nodetype)
    _check_fields(nodetype, data_fields, meta_fields, drop_fields)
    data_fields, meta_fields = tuple(data_fields or ()), tuple(meta_fields or ())
    keys = [GetAttrKey(name) for name in data_fields]

    def flatten(tree):
        children = [getattr(tree, name) for name in data_fields]
        return children, tuple([getattr(tree, name) for name in meta_fields])

    def unflatten(aux, children):
        names = (*data_fields, *meta_fields)
        return nodetype(**dict(zip(names, (*children, *aux))))

    def flatten_with_keys(tree):
        children, aux = flatten(tree)
        return list(zip(keys, children)), aux

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def _fields_of(nodetype):
    """Return the names of the fields of a dataclass: data, and those marked static."""
    if not dataclasses.is_dataclass(nodetype):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields are required when "
            f"nodetype is not a dataclass. Got nodetype={nodetype}."
        )
    fields = [field for field in dataclasses.fields(nodetype) if field.init]
    static = [field.name for field in fields if field.metadata.get("static", False)]
    return [field.name for field in fields if field.name not in static], static


def _check_fields(nodetype, data_fields, meta_fields, drop_fields):
    """Raise unless each field that the constructor takes is named exactly once."""
    if data_fields is None or meta_fields is None:
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified "
            f"when either is specified. Got data_fields={data_fields} "
            f"meta_fields={meta_fields}."
        )
    named = [*data_fields, *meta_fields, *drop_fields]
    fields = set(named)
    if dataclasses.is_dataclass(nodetype):
        fields = {field.name for field in dataclasses.fields(nodetype) if field.init}
    twice = {name for name in named if named.count(name) > 1}
    wrong = {"Missing": fields.difference(named), "Unexpected": set(named) - fields}
    if twice:
        raise ValueError(
            "data_fields and meta_fields must not overlap, nor have a field twice. "
            f"Overlapping fields: {_set_text(twice)}."
        )
    if any(wrong.values()):
        found = [f"{k} fields: {_set_text(v)}." for k, v in wrong.items() if v]
        raise ValueError(
            "data_fields and meta_fields must include all dataclass fields of "
            f"{nodetype.__name__} with init=True and only them, but for those in "
            f"drop_fields. {' '.join(found)}"
        )


def _set_text(names):
    return f"{{{', '.join(map(repr, sorted(names)))}}}"


def tree_static(**kwargs):
    """Return a field of a dataclass that belongs to the structure.

    Args:
      **kwargs: those of ``dataclasses.field``.

    Reference: ``jax.tree.static``.
    """
    marks = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=marks, **kwargs)


def is_tree_node(typ: type) -> bool:
    """Return whether a class is one of containers: registered, or of named tuples.

    Reference: ``jax.tree_util.is_tree_node``.
    """
    return default_registry.is_node(typ)


def flatten_one_level(tree: Any) -> tuple[Sequence, Any]:
    """Return the children of a container, and what is not a child.

    Args:
      tree: a container.

    Returns:
      A pair ``(children, aux)``. For named tuples `aux` is their class.

    Raises:
      ValueError: if it is a leaf.

    Reference: ``jax.tree_util.flatten_one_level``.
    """
    return _apart(tree, default_registry.flatten_one_level(tree))


def flatten_one_level_with_keys(tree: Any) -> tuple[Sequence, Any]:
    """Return pairs of key and child of a container, and what is not a child.

    Raises:
      ValueError: if it is a leaf.

    Reference: ``jax.tree_util.flatten_one_level_with_keys``.
    """
    return _apart(tree, default_registry.flatten_one_level_with_keys(tree))


def _apart(tree, parts):
    if parts is None:
        raise ValueError(
            f"can't tree-flatten type: {type(tree)}. It is a leaf: is_tree_node tells "
            "before, and register_pytree_node would make it a container."
        )
    return parts


class _PyTreeRegistry:
    """The table of types that are containers, as an object.

    Reference: ``jax.tree_util.default_registry``.
    """

    def is_node(self, nodetype: type) -> bool:
        """Return whether a class is one of containers."""
        named = issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")
        return nodetype in node_kinds or named

    def flatten_one_level(self, tree: Any) -> tuple | None:
        """Return ``(children, aux)`` of a container, or None for a leaf."""
        kind = node_kind(tree)
        if kind is None:
            return None
        children, aux = kind.flatten(tree)
        whole = type(children) in (list, tuple)
        return children if whole else tuple(children), _aux_of(kind, aux)

    def flatten_one_level_with_keys(self, tree: Any) -> tuple | None:
        """Return ``([(key, child), ...], aux)`` of a container, or None for a leaf."""
        kind = node_kind(tree)
        if kind is None:
            return None
        return kind.keyed_children(tree), _aux_of(kind, kind.flatten(tree)[1])

    def flatten(self, tree: Any, leaf_predicate: Callable | None = None) -> tuple:
        """Return the leaves and the structure of a tree."""
        return tree_flatten(tree, leaf_predicate)

    def flatten_with_path(self, tree: Any, leaf_predicate: Any = None) -> tuple:
        """Return the pairs of path and leaf, and the structure of a tree."""
        return tree_flatten_with_path(tree, leaf_predicate)

    def register_node(
        self,
        type: type,
        to_iterable: Callable,
        from_iterable: Callable,
        to_iterable_with_keys: Callable | None = None,
    ) -> None:
        """Make a type a container, as `register_pytree_node` does."""
        register_pytree_node(type, to_iterable, from_iterable, to_iterable_with_keys)

    def register_dataclass_node(
        self, type: type, data_fields: Sequence, meta_fields: Sequence
    ) -> None:
        """Make a type a container, as `register_dataclass` does."""
        register_dataclass(type, data_fields, meta_fields)


def _aux_of(kind, aux):
    """Return what a container is besides its children; for named tuples its class."""
    return aux if kind.type in node_kinds else kind.type


default_registry = _PyTreeRegistry()


class Partial(functools.partial):
    """A ``functools.partial`` that is a tree: its bound arguments are its leaves.

    Args:
      func: the function; it is part of the structure, compared by identity.
      *args: the first positional arguments.
      **kw: keyword arguments.

    Reference: ``jax.tree_util.Partial``.
    """

    def __new__(cls, func, *args, **kw):
        """Bind; a `func` that is itself partial is kept whole, and not merged."""
        if isinstance(func, functools.partial):
            func = _Whole(func)
        return super().__new__(cls, func, *args, **kw)


class _Whole:
    """A callable that ``functools.partial`` does not look into."""

    def __init__(self, func):
        self.func = func

    def __call__(self, *args, **kw):
        return self.func(*args, **kw)

    def __hash__(self):
        return hash(self.func)

    def __eq__(self, other):
        return self.func == (other.func if isinstance(other, _Whole) else other)

    def __repr__(self):
        return repr(self.func)


register_pytree_node(
    Partial,
    lambda tree: ((tree.args, tree.keywords), tree.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)


# Operations on whole trees: prefixes, reductions, maps with paths, devices.


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


def resolve_promises(tree):
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
            f"Mismatch: tree_transpose expected a tree with as many leaves as "
            f"{expected}, {expected.num_leaves}, but got {len(leaves)}: {actual}."
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
    found = structure_differences(prefix, tree, name=what.split()[-1])
    raise ValueError(
        f"{what} specification must be a tree prefix of the corresponding value; it "
        f"is not.\nMismatch details ({len(found)} found), places of different types "
        "or lengths:\n  " + "\n  ".join(found)
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


# A tree of arrays as one long vector, and back.


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[ArrayLike], Any]]:
    """Lay all numbers of a tree of arrays in a row.

    Args:
      pytree: a tree of arrays and scalars.

    Returns:
      A vector of the dtype that the leaves have together, and a function that turns a
      vector of this shape back into a tree of the same structure, shapes and dtypes.

    Reference: ``jax.flatten_util.ravel_pytree``.
    """
    leaves, treedef = tree_flatten(pytree)
    avals = [typeof(leaf) for leaf in leaves]
    shapes, kinds = zip(*((x.shape, x.dtype) for x in avals)) if avals else ((), ())
    if not leaves:
        return lax.full((0,), 0.0, float), _Unravel(treedef, shapes)
    whole, mixed = functools.reduce(promote_types, kinds), len(set(kinds)) > 1
    if mixed:
        leaves = [lax.convert_element_type(x, whole) for x in leaves]
    rows = [lax.reshape(x, (math.prod(shape),)) for x, shape in zip(leaves, shapes)]
    types = (kinds, whole) if mixed else ()
    return lax.concatenate(rows, 0), _Unravel(treedef, shapes, *types)


@dataclass(frozen=True)
class _Unravel:
    """The way back from a vector to a tree; equal for trees of equal structure.

    Attributes:
      treedef: the structure.
      shapes: of the leaves.
      dtypes: of the leaves; empty if they have one, and then any vector will do.
      dtype: of the vector, or None.
    """

    treedef: PyTreeDef
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...] = ()
    dtype: np.dtype | None = None

    def __call__(self, vector):
        """Return the tree whose numbers are those of a vector.

        Raises:
          ValueError: if the vector has another length.
          TypeError: if the leaves have several dtypes, and it is not of their common
            one.
        """
        return self.treedef.unflatten(self._leaves(vector) if self.shapes else ())

    def _leaves(self, vector):
        given = typeof(vector)
        ends = [*itertools.accumulate(map(math.prod, self.shapes))]
        if given.shape != (ends[-1],):
            raise ValueError(
                f"The tree takes a vector of {ends[-1]} numbers, one for each element "
                f"of its leaves, but got an array of shape {given.shape}."
            )
        if self.dtype is not None and given.dtype != self.dtype:
            raise TypeError(
                "The leaves of the tree have several dtypes, and its vector has to be "
                f"of dtype {self.dtype.name}, which holds them all; got "
                f"{given.dtype.name}."
            )
        rows = [lax.slice(vector, [i], [j]) for i, j in zip([0, *ends], ends)]
        leaves = [lax.reshape(*pair) for pair in zip(rows, self.shapes)]
        return list(map(_cast, leaves, self.dtypes)) if self.dtypes else leaves


def _cast(x, dtype):
    if typeof(x).dtype.kind == "c" and dtype.kind != "c":
        x = lax.real(x)
    return lax.convert_element_type(x, dtype)


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
    if type(where) not in sharding_converters:
        return where
    try:
        return sharding_converters[type(where)]("device_put", where)
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

    An array is a leaf with a method of this name; other leaves are let alone.

    Reference: ``jax.copy_to_host_async``.
    """
    for leaf in tree_leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def device_get(x: Any) -> Any:
    """Return a tree with each array as a read-only NumPy array.

    Reference: ``jax.device_get``.
    """
    return tree_map(transfer.device_get_leaf, x)


@presents_own_errors
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
        format_for_user(error)
        raise
