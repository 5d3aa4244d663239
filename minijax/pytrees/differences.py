"""How structures are compared and printed, and where a tree departs from one."""

# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.

import reprlib

from minijax.pytrees.key_paths import keystr
from minijax.pytrees.node_kinds import node_kind


def _hash(aux):
    try:
        return hash(aux)
    except TypeError:  # == alone will tell such data apart
        return 0


class NoEquality(ValueError):
    """The metadata of two nodes cannot be compared."""


class Outline:
    """What is compared, hashed and printed: a kind, its aux, and the same of children.

    Attributes:
      kind: the `NodeKind` of the outermost container; None for a leaf.
      aux: what this container holds besides its children, such as dictionary keys.
    """

    __slots__ = ()

    def __eq__(self, other):
        if not isinstance(other, Outline):
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

    def children(self):
        """Return the structures of the children, a list."""
        return list(self._children)

    def node_data(self):
        """Return the type and the auxiliary data of the outermost container."""
        return None if self.kind is None else (self.kind.type, self.aux)

    def walk(self, f_node, f_leaf, leaves):
        """Return what a function makes of the containers, from the leaves upwards.

        Args:
          f_node: a function of the tuple of what it made of the children, and of the
            auxiliary data; of a named tuple, its class.
          f_leaf: a function of a leaf.
          leaves: an iterable.

        Raises:
          ValueError: if there are more or fewer than `num_leaves`.
        """

        def walked(treedef):
            if treedef.kind is None:
                return f_leaf(next(rest))
            children = tuple([walked(child) for child in treedef._children])
            return f_node(children, treedef.aux)

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
    """Return "this, got that" for the outermost containers, None if they agree."""
    if treedef.kind is None:
        return f"a leaf, got a {kind.type.__name__}"
    expected = treedef.kind.type.__name__
    if kind is not treedef.kind:
        return f"a {expected}, got {tree!r:.60} of type {type(tree).__name__}"
    children, aux = kind.flatten(tree)
    if aux != treedef.aux:
        return f"a {expected} with {treedef.aux}, got one with {aux}"
    count = len(list(children))
    if count != len(treedef.children()):
        return f"a {expected} of length {len(treedef.children())}, got length {count}"
    return None


def differences(treedef, tree, exact=False, name="", path=()):
    """Return the places where `tree` departs from a structure, as lines of text.

    Args:
      treedef: a `PyTreeDef`.
      tree: any tree.
      exact: also count a container in `tree` where `treedef` has a leaf.
      name: what stands before each path, such as the name of an argument.
      path: the path of `tree` in the whole.

    Returns:
      A list of strings, one for each topmost place; empty if there is none.
    """
    kind = node_kind(tree)
    if treedef.kind is None and (kind is None or not exact):
        return []
    difference = _difference_here(treedef, kind, tree)
    if difference:
        place = f"{name}{keystr(path)}" or "the top"
        return [f"at {place}: expected {difference}"]
    found = []
    for inner, (key, child) in zip(treedef.children(), kind.keyed_children(tree)):
        found += differences(inner, child, exact, name, (*path, key))
    return found


def fits(treedef, tree, found):
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
    return all(fits(inner, child, found) for inner, child in pairs)


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
