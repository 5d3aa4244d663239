# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.
"""Where two trees part: the paths, and in words what is different there."""

from minijax.pytrees.key_paths import keystr
from minijax.pytrees.node_kinds import node_kind


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
