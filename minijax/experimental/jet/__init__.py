"""Taylor-mode differentiation: derivatives of high order along a path.

Reference: ``jax.experimental.jet``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
