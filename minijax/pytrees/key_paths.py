"""Where a leaf sits in a tree: one key per container, written as Python reaches it.

Reference: ``jax.tree_util.keystr``, ``KeyPath``, ``DictKey`` and its relatives.
"""

# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from dataclasses import dataclass


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
