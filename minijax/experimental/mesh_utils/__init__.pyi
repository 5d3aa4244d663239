# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.mesh_utils.grids import create_device_mesh as create_device_mesh
from minijax.experimental.mesh_utils.grids import create_hybrid_device_mesh as create_hybrid_device_mesh
