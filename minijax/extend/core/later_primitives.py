"""Primitives of branches and of meshes, under JAX's path.

Reference: ``jax.extend.core.primitives``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.branches.rewiring import empty_p
from minijax.spmd.constraints import sharding_constraint_p as sharding_constraint_p

empty2_p = empty_p
