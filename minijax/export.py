"""Functions as texts that other compilers read.

Reference: ``jax.export``.
"""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
