# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Helpers for programs of several processes.

Reference: ``jax.experimental.multihost_utils``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
