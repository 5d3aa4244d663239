"""A tree of arrays as one long vector.

Reference: ``jax.flatten_util``.
"""

# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
