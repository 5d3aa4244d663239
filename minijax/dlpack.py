# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Arrays of other libraries, in the memory where they are.

Reference: ``jax.dlpack``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
