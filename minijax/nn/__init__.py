"""Functions for neural networks.

Reference: ``jax.nn``.
"""

# Made from chapters/33_library.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
