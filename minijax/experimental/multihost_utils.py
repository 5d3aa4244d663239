"""Helpers for programs of several processes.

Reference: ``jax.experimental.multihost_utils``.
"""

# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
