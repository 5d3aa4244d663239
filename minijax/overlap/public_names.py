# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Names of meshes at the top of the package."""

from minijax.mesh_maps.resharding import reshard as reshard
