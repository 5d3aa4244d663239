"""More types that are containers of trees: classes of the user's own.

Reference: ``jax.tree_util.register_dataclass``, ``register_pytree_node_class``,
``Partial`` and their relatives.
"""

# Made from chapters/05_pytrees_rest.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from minijax.pytrees.key_paths import GetAttrKey
from minijax.pytrees.node_kinds import node_kind, node_kinds, register_pytree_node
from minijax.pytrees.treedefs import tree_flatten, tree_flatten_with_path

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
            f"{nodetype} is not a dataclass, so register_dataclass needs data_fields "
            "and meta_fields."
        )
    fields = [field for field in dataclasses.fields(nodetype) if field.init]
    static = [field.name for field in fields if field.metadata.get("static", False)]
    return [field.name for field in fields if field.name not in static], static


def _check_fields(nodetype, data_fields, meta_fields, drop_fields):
    """Raise unless each field that the constructor takes is named exactly once."""
    if data_fields is None or meta_fields is None:
        raise TypeError(
            "register_dataclass needs both data_fields and meta_fields, or neither; "
            f"got data_fields={data_fields}, meta_fields={meta_fields}."
        )
    named = [*data_fields, *meta_fields, *drop_fields]
    fields = set(named)
    if dataclasses.is_dataclass(nodetype):
        fields = {field.name for field in dataclasses.fields(nodetype) if field.init}
    wrong = {
        "missing": fields.difference(named),
        "unknown": set(named) - fields,
        "named twice": {name for name in named if named.count(name) > 1},
    }
    if any(wrong.values()):
        found = "; ".join(f"{k}: {sorted(v)}" for k, v in wrong.items() if v)
        raise ValueError(
            f"data_fields, meta_fields and drop_fields must share out the fields of "
            f"{nodetype.__name__} that its constructor takes. {found}."
        )


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
