"""What those need who extend the package: jaxprs, and the core under JAX's names.

Reference: ``jax.extend``.
"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
