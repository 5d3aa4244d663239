"""Arrays of devices, for meshes.

Reference: ``jax.experimental.mesh_utils``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
