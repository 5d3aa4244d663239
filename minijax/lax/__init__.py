"""Primitives as functions: the layer on which ``minijax.numpy`` stands.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
