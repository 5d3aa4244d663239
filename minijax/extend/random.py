"""The generator behind keys.

Reference: ``jax.extend.random``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
