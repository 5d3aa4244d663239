"""Layouts of arrays: the order of their axes in memory.

Reference: ``jax.experimental.layout``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from minijax.arrays.array import typeof
from minijax.arrays.devices import Sharding, sharding_converters
from minijax.jitting.compilation import UNSPECIFIED
from minijax.pytrees.tree_operations import flatten_axes
from minijax.pytrees.tree_util import tree_leaves


class _AutoLayout:
    """The layout that a compiler chooses."""

    def __repr__(self):
        return "AUTO"


@dataclass(frozen=True)
class Layout:
    """The order of the axes of an array in memory, the slowest one first.

    Args:
      major_to_minor: the axes.
      tiling: sizes of tiles, or None.
      sub_byte_element_size_in_bits: of numbers that are smaller than a byte; 0 if not.

    Reference: ``jax.experimental.layout.Layout``.
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: ClassVar = _AutoLayout()

    def __post_init__(self):
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))
        if self.tiling is not None:
            object.__setattr__(self, "tiling", tuple(map(tuple, self.tiling)))

    def update(self, **changes):
        """Return the layout with other attributes."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Format:
    """A layout and a sharding: how an array lies in memory, and where.

    Args:
      layout: a `Layout`, ``Layout.AUTO`` or None.
      sharding: a `Sharding` or None.

    Raises:
      TypeError: for another layout or sharding.
      ValueError: for a `Layout` without a sharding.

    Reference: ``jax.experimental.layout.Format``.
    """

    layout: Any = None
    sharding: Any = None

    def __post_init__(self):
        if not isinstance(self.layout, Layout | _AutoLayout | None):
            raise TypeError(
                "The layout of a Format is None, Layout.AUTO or a Layout. Got "
                f"{self.layout!r} of type {type(self.layout)}."
            )
        if not isinstance(self.sharding, Sharding | None):
            raise TypeError(
                "The sharding of a Format is None or a Sharding. Got "
                f"{self.sharding!r} of type {type(self.sharding)}."
            )
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {Layout}. Give "
                "Format a NamedSharding or a SingleDeviceSharding as well."
            )


def _sharding_of(option, given):
    if option != "device_put":
        return UNSPECIFIED if given.sharding is None else given.sharding
    if isinstance(given.layout, _AutoLayout):
        raise ValueError(f"device_put takes a concrete layout. Got {given}.")
    return given.sharding


sharding_converters[Format] = _sharding_of


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Return arrays as they are, after a look at the layouts that are asked for.

    Args:
      x: a tree of arrays.
      layouts: a tree of `Layout` that is a prefix of `x`.

    Raises:
      ValueError: for what is no `Layout`, or has not as many axes as its array.

    Reference: ``jax.experimental.layout.with_layout_constraint``.
    """
    leaves = tree_leaves(x)
    for leaf, layout in zip(leaves, _layouts_of(layouts, x), strict=True):
        if not isinstance(layout, Layout):
            raise ValueError(
                f"with_layout_constraint takes a Layout for each array, not {layout!r}."
            )
        if len(layout.major_to_minor) != len(typeof(leaf).shape):
            raise ValueError(
                f"with_layout_constraint: major_to_minor={layout.major_to_minor} does "
                f"not name the axes of an array of shape {typeof(leaf).shape}."
            )
    return x


def _layouts_of(layouts, x):
    if isinstance(layouts, Layout):
        return [layouts] * len(tree_leaves(x))
    return flatten_axes("with_layout_constraint layouts", layouts, x)
