"""Pytree nodes: which types are containers, key paths, and where structures differ.

A value whose type stands in `node_kinds` is a container; any other value is a leaf.

References: ``jax.tree_util.keystr``, ``KeyPath``, ``DictKey`` and its relatives,
``jax.tree_util.register_pytree_node``.
"""

# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.

import copyreg
import reprlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from typing import NamedTuple

# Where a leaf sits in a tree: one key per container, written as Python reaches it.


@dataclass(frozen=True)
class DictKey:
    """The step ``tree[key]`` into a dictionary."""

    key: object

    def __hash__(self):
        return hash(self.key)

    def __str__(self):
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class SequenceKey:
    """The step ``tree[idx]`` into a tuple or a list."""

    idx: int

    def __hash__(self):
        return self.idx + 1  # another than that of DictKey(idx)

    def __str__(self):
        return f"[{self.idx}]"


@dataclass(frozen=True)
class GetAttrKey:
    """The step ``tree.name`` to an attribute."""

    name: str

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """The step to the child number `key` of a container that names no keys."""

    key: int

    def __hash__(self):
        return self.key + 42

    def __str__(self):
        return f"[<flat index {self.key}>]"


KeyEntry = DictKey | SequenceKey | GetAttrKey | FlattenedIndexKey
KeyPath = tuple[KeyEntry, ...]


def keystr(keys: Sequence, *, simple: bool = False, separator: str = "") -> str:
    """Return a key path as text, such as ``['w'][0].bias``.

    Args:
      keys: a sequence of keys.
      simple: leave out brackets, quotes and dots.
      separator: what stands between two keys.

    Reference: ``jax.tree_util.keystr``.
    """
    if not isinstance(separator, str):
        raise TypeError(f"keystr: separator is a text, not {separator!r}.")
    return separator.join(map(_bare if simple else str, keys))


def _bare(key):
    """Return what a key looks up, without the punctuation of the look-up."""
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


# Which Python types are containers of a tree, and how each comes apart.


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


# From classes of containers to what takes them apart and makes them.
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
                f"The to_iterable function for a custom PyTree node should return a "
                f"(children, aux_data) tuple, got {found!r} for an instance of "
                f"{type(tree).__name__}. The children are an iterable."
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


# How structures are compared and printed, and where a tree departs from one.


def _hash(aux):
    try:
        return hash(aux)
    except TypeError:  # == alone will tell such data apart
        return 0


class NoEquality(ValueError):
    """The metadata of two nodes cannot be compared."""


class TreeStructure:
    """What is compared, hashed and printed: a kind, its aux, and the same of children.

    Attributes:
      kind: the `NodeKind` of the outermost container; None for a leaf.
      aux: what this container holds besides its children, such as dictionary keys.
    """

    __slots__ = ()

    def __eq__(self, other):
        if not isinstance(other, TreeStructure):
            return NotImplemented
        mine = (self.kind, self.aux, self._children)
        try:
            return mine == (other.kind, other.aux, other._children)
        except Exception as error:
            if isinstance(error, NoEquality):
                raise
            raise NoEquality(
                f"The metadata of two {self.kind.type.__name__} nodes of trees cannot "
                f"be compared: {reprlib.repr(self.aux)} and {reprlib.repr(other.aux)}. "
                "What a node returns beside its children is part of the structure: it "
                "needs an == that is True or False, and a hash. Arrays belong to the "
                "children."
            ) from error

    def __hash__(self):
        return hash((id(self.kind), _hash(self.aux), tuple(self._children)))

    def flatten_up_to(self, tree):
        """Return the subtrees of `tree` that stand where this structure has leaves.

        Raises:
          ValueError: if `tree` does not begin with this structure; the message begins
            ``The tree does not begin with`` and the structure, then says where.
        """
        found = []
        if not match_prefix(self, tree, found):
            says = mismatch_in_jax_words
            lines = "\n  ".join(structure_differences(self, tree, difference=says))
            raise ValueError(f"The tree does not begin with {self}:\n  {lines}")
        return found

    def children(self):
        """Return the structures of the children, a list."""
        return list(self._children)

    def node_data(self):
        """Return the type and the auxiliary data of the outermost container."""
        return None if self.kind is None else (self.kind.type, self._shown_aux)

    @property
    def _shown_aux(self):
        return list(self.aux) if self.kind.type is dict else self.aux  # as JAX has it

    def walk(self, f_node, f_leaf, leaves):
        """Return what a function makes of the containers, from the leaves upwards.

        Args:
          f_node: a function of the tuple of what it made of the children, and of the
            auxiliary data: of a dictionary the list of its keys, of a named tuple its
            class.
          f_leaf: a function of a leaf.
          leaves: an iterable.

        Raises:
          ValueError: if there are more or fewer than `num_leaves`.
        """

        def walked(treedef):
            if treedef.kind is None:
                return f_leaf(next(rest))
            children = tuple([walked(child) for child in treedef._children])
            return f_node(children, treedef._shown_aux)

        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            self.unflatten(leaves)  # which says so
        rest = iter(leaves)
        return walked(self)

    @property
    def num_nodes(self):
        """How many containers and leaves there are."""
        return 1 + sum(child.num_nodes for child in self._children)

    def compose(self, inner):
        """Return this structure with the structure `inner` in place of each leaf."""
        if self.kind is None:
            return inner
        structure: type = type(self)
        children = [child.compose(inner) for child in self._children]
        return structure(self.kind, self.aux, children)

    def __repr__(self):
        return f"PyTreeDef({self._text()})"

    def _text(self):
        if self.kind is None:
            return "*"
        return self.kind.text(self.aux, [child._text() for child in self._children])


def _difference_here(treedef, kind, tree):
    """Return "expected this, got that" for the outermost containers, or None."""
    if treedef.kind is None:
        return f"expected a leaf, got a {kind.type.__name__}"
    expected, count = treedef.kind.type.__name__, len(treedef.children())
    if kind is not treedef.kind:
        given = f"{tree!r:.60} of type {type(tree).__name__}"
        return f"expected a {expected}, got {given}"
    children, aux = kind.flatten(tree)
    if aux != treedef.aux:
        return f"expected a {expected} with {treedef.aux}, got one with {aux}"
    found = len(list(children))
    if found != count:
        return f"expected a {expected} of length {count}, got length {found}"
    return None


def mismatch_in_jax_words(treedef, kind, tree):
    """Return what JAX says of outermost containers that differ, None if they agree."""
    expected, given = treedef.kind.type, f"{tree!r:.200}."
    named, name = hasattr(expected, "_fields"), expected.__name__
    if kind is not treedef.kind:
        if named and hasattr(tree, "_fields"):
            return f"Named tuple type mismatch: expected {expected}, got {given}"
        if not named and expected not in (list, tuple, dict, type(None)):
            return f"Custom node type mismatch: expected {expected}, got {given}"
        plain = "named tuple" if named else name.removesuffix("Type")
        return f"Expected {plain}, got {given}"
    children, aux = kind.flatten(tree)
    if expected is dict and aux != treedef.aux:
        keys = list(treedef.aux)
        return f"Dict key mismatch; expected keys: {keys}; dict: {given}"
    if aux != treedef.aux:
        return f"Mismatch custom node data: {treedef.aux} != {aux}; value: {given}"
    found, count = len(list(children)), len(treedef.children())
    if found != count:
        kinds = f"{name[0].upper()}{name[1:]}", name
        return f"{kinds[0]} arity mismatch: {found} != {count}; {kinds[1]}: {given}"
    return None


def structure_differences(
    treedef, tree, exact=False, name="", path=(), difference=_difference_here
):
    """Return the places where `tree` departs from a structure, as lines of text.

    Args:
      treedef: a `PyTreeDef`.
      tree: any tree.
      exact: also count a container in `tree` where `treedef` has a leaf.
      name: what stands before each path, such as the name of an argument.
      path: the path of `tree` in the whole.
      difference: says of a structure, the kind of a container and the container how
        the two differ, or None.

    Returns:
      A list of strings, one for each topmost place; empty if there is none.
    """
    kind = node_kind(tree)
    if treedef.kind is None and (kind is None or not exact):
        return []
    words = difference(treedef, kind, tree)
    if words:
        place = f"{name}{keystr(path)}" or "the top"
        return [f"at {place}: {words}"]
    found, rest = [], (exact, name)
    for inner, (key, child) in zip(treedef.children(), kind.keyed_children(tree)):
        places = structure_differences(inner, child, *rest, (*path, key), difference)
        found += places
    return found


def match_prefix(treedef, tree, found):
    """Append to `found` what is at the leaves; return whether `tree` fits."""
    if treedef.kind is None:
        found.append(tree)
        return True
    if node_kind(tree) is not treedef.kind:
        return False
    children, aux = treedef.kind.flatten(tree)
    children = list(children)
    if aux != treedef.aux or len(children) != len(treedef.children()):
        return False
    pairs = zip(treedef.children(), children)
    return all(match_prefix(inner, child, found) for inner, child in pairs)


def subtrees(caller, treedef, tree):
    """Return what `tree` has at the leaves of a structure.

    Args:
      caller: the name of the function that asks, for the message.
      treedef: a `PyTreeDef`.
      tree: a tree that begins with this structure.

    Raises:
      ValueError: if it does not; the message shows the paths.
    """
    try:
        return treedef.flatten_up_to(tree)
    except ValueError as error:
        raise ValueError(f"{caller}: {error}") from None
