"""Which Python types are containers of a tree, and how each comes apart.

A value whose type stands in `node_kinds` is a container; any other value is a leaf.

Reference: ``jax.tree_util.register_pytree_node``.
"""

# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.

import copyreg
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from functools import cache, wraps
from typing import NamedTuple

from minijax.pytrees.key_paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
)


class NodeKind(NamedTuple):
    """A row of the table: how containers come apart, and what messages say of them.

    Attributes:
      type: the class of the containers.
      flatten: from a container to ``(children, aux)``; what is not a child is in
        `aux`, which can be compared and hashed.
      unflatten: from ``aux, children`` to a container.
      flatten_with_keys: from a container to ``([(key, child), ...], aux)``, or None.
      spell: from ``aux`` and the children's texts to the text of a structure, or None.
    """

    type: type
    flatten: Callable
    unflatten: Callable
    flatten_with_keys: Callable | None = None
    spell: Callable | None = None

    def keyed_children(self, tree):
        """Return the pairs of key and child of a container, in flattening order."""
        if self.flatten_with_keys is not None:
            return list(self.flatten_with_keys(tree)[0])
        children, _ = self.flatten(tree)
        return [(FlattenedIndexKey(i), child) for i, child in enumerate(children)]

    def text(self, aux, children):
        """Return the text of a structure, given the texts of its children."""
        if self.spell is not None:
            return self.spell(aux, children)
        return f"CustomNode({self.type.__name__}[{aux}], [{', '.join(children)}])"


node_kinds: dict[type, NodeKind] = {}


def _whole(tree):
    return tree, None


def _counted(tree):
    return [(SequenceKey(i), child) for i, child in enumerate(tree)], None


node_kinds[tuple] = NodeKind(
    tuple,
    _whole,
    lambda _, children: tuple(children),
    _counted,
    lambda _, texts: f"({', '.join(texts)}{',' * (len(texts) == 1)})",
)
node_kinds[type(None)] = NodeKind(
    type(None),
    lambda _: ((), None),
    lambda _, children: None,
    spell=lambda _, texts: "None",
)
node_kinds[list] = NodeKind(
    list,
    _whole,
    lambda _, children: list(children),
    _counted,
    lambda _, texts: f"[{', '.join(texts)}]",
)


def _sorted_keys(mapping):
    """Return the keys in an order that does not depend on how they came in."""
    try:
        return tuple(sorted(mapping))
    except TypeError as error:
        raise ValueError(
            f"A dictionary in a tree has its keys sorted, and {list(mapping)!r} cannot "
            f"be: {error}. Use keys of one type, or an OrderedDict, which keeps the "
            "order of its items."
        ) from None


def _flatten_dict(mapping):
    keys = _sorted_keys(mapping)
    return [mapping[key] for key in keys], keys


def _keyed(flatten, keys_of=lambda aux: aux):
    """Return the keyed version of a `flatten` of mappings."""

    def flatten_with_keys(mapping):
        children, aux = flatten(mapping)
        return list(zip(map(DictKey, keys_of(aux)), children)), aux

    return flatten_with_keys


def _braced(keys, texts):
    items = (f"{key!r}: {text}" for key, text in zip(keys, texts))
    return "{" + ", ".join(items) + "}"


def _flatten_ordered(mapping):
    return list(mapping.values()), tuple(mapping)


def _flatten_default(mapping):
    children, keys = _flatten_dict(mapping)
    return children, (mapping.default_factory, keys)


node_kinds[dict] = NodeKind(
    dict,
    _flatten_dict,
    lambda keys, children: dict(zip(keys, children)),
    _keyed(_flatten_dict),
    _braced,
)
node_kinds[OrderedDict] = NodeKind(
    OrderedDict,
    _flatten_ordered,
    lambda keys, children: OrderedDict(zip(keys, children)),
    _keyed(_flatten_ordered),
)
node_kinds[defaultdict] = NodeKind(
    defaultdict,
    _flatten_default,
    lambda aux, children: defaultdict(aux[0], zip(aux[1], children)),
    _keyed(_flatten_default, lambda aux: aux[1]),
)


def node_kind(tree):
    """Return the kind of the container `tree`, or None if it is a leaf."""
    kind = node_kinds.get(type(tree))
    if kind is None and isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _namedtuple_kind(type(tree))
    return kind


_namedtuple_kinds: dict = {}


@cache
def _namedtuple_kind(nodetype):
    """Return the kind of a class of named tuples, whichever it is."""
    name, keys = nodetype.__name__, [GetAttrKey(name) for name in nodetype._fields]
    made = NodeKind(
        nodetype,
        _whole,
        lambda _, children: nodetype(*children),
        lambda tree: (list(zip(keys, tree)), None),
        lambda _, texts: f"CustomNode(namedtuple[{name}], [{', '.join(texts)}])",
    )
    return _namedtuple_kinds.setdefault(nodetype, made)  # of two threads, the first's


def kind_of_type(nodetype):
    """Return the kind of the containers of a class.

    Raises:
      ValueError: if the class is not registered here.
    """
    if nodetype in node_kinds:
        return node_kinds[nodetype]
    if issubclass(nodetype, tuple) and hasattr(nodetype, "_fields"):
        return _namedtuple_kind(nodetype)
    raise ValueError(
        f"A structure of trees with containers of {nodetype} came in, by pickle or the "
        "like, and this process has not registered that class. Register it first."
    )


# A kind is functions, which do not travel; its class does, and finds it again.
copyreg.pickle(NodeKind, lambda kind: (kind_of_type, (kind.type,)))


def _pair_of(flatten):
    """Return `flatten`, which says so if it returns no pair of children and aux."""

    @wraps(flatten)
    def checked(tree):
        found = flatten(tree)
        is_pair = isinstance(found, tuple) and len(found) == 2
        if not is_pair or not hasattr(found[0], "__iter__"):
            raise ValueError(
                f"The function that flattens a {type(tree).__name__} has to return a "
                f"pair of an iterable of children and aux, not {found!r}."
            )
        return found

    return checked


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable,
    unflatten_func: Callable,
    flatten_with_keys_func: Callable | None = None,
) -> None:
    """Make a type a container of trees.

    Args:
      nodetype: a class.
      flatten_func: from an instance to ``(children, aux)``, where `children` is an
        iterable of trees, and `aux`, everything else, can be compared and hashed.
      unflatten_func: from ``aux, children`` to an instance. It may be handed children
        of any kind, not arrays only.
      flatten_with_keys_func: from an instance to ``([(key, child), ...], aux)``.

    Raises:
      ValueError: if the type is registered already.

    Reference: ``jax.tree_util.register_pytree_node``.
    """
    if nodetype in node_kinds:
        raise ValueError(f"{nodetype} is registered as a container of trees already.")
    keyed = flatten_with_keys_func and _pair_of(flatten_with_keys_func)
    kind = NodeKind(nodetype, _pair_of(flatten_func), unflatten_func, keyed)
    node_kinds[nodetype] = kind
    if hasattr(nodetype, "__jax_array__"):
        _promising.add(nodetype)


_promising: set[type] = set()  # containers that promise an array by a method
