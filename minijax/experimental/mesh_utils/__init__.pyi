# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.sharding.deprecated import create_device_mesh as create_device_mesh
from minijax.sharding.deprecated import create_hybrid_device_mesh as create_hybrid_device_mesh
