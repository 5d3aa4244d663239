# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Where arrays lie.

Reference: ``jax.sharding``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
