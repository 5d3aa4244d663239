"""Rotations of space, and turning evenly from one to the next.

Reference: ``jax.scipy.spatial.transform``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
