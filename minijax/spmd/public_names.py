# Made from chapters/36_replicas_upper.md by `make chapter`;
# edit the chapter, not this file.
"""Names of meshes and shardings at the top of the package."""

from minijax.replicas.meshes import set_mesh as set_mesh
from minijax.replicas.named_shardings import NamedSharding as NamedSharding
