"""Memory. How few arrays are enough?

Reference: ``jax.memory``.
"""

# Made from chapters/20_memory_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
