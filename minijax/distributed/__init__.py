"""Joining the other processes of a job.

Reference: ``jax.distributed``.
"""

# Made from chapters/37_machines_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
