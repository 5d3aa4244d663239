"""Kinds of memory.

Reference: ``jax.memory.Space``.
"""

# Made from chapters/20_memory_ground.md by `make chapter`;
# edit the chapter, not this file.

import enum

from minijax.arrays.devices import sharding_converters


class Space(enum.Enum):
    """The memory of a device, that of its host, or any.

    Reference: ``jax.memory.Space``.
    """

    Device, Host, Any = 1, 2, 3

    def __repr__(self):
        return f"MemorySpace.{self.name}"


def _in_space(option, space):
    if space is not Space.Device:
        raise ValueError(
            f"{option}: arrays are in the memory of their device, and not in {space!r}."
        )


sharding_converters[Space] = _in_space
