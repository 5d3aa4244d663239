# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Functions as texts that other compilers read.

Reference: ``jax.export``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
