# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Platforms and their devices.

Reference: ``jax.extend.backend``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
