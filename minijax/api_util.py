# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Arguments as flat lists, for transformations made outside the package.

Reference: ``jax.api_util``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
