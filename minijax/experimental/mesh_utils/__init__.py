# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Arrays of devices, for meshes.

Reference: ``jax.experimental.mesh_utils``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
