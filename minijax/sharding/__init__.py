"""Where arrays lie.

Reference: ``jax.sharding``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
