"""The switch for the mesh that specifications without a mesh mean."""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import wake_all
from minijax.arrays.interchange import Record
from minijax.arrays.settings import config
from minijax.forgetting.remembering import traced_switches
from minijax.jaxprs.latest import Latest


def _mesh_or_none(value):
    if value is not None and not hasattr(value, "axis_types"):
        raise ValueError(f"Expected a Mesh or None, got {value!r}.")
    return value


config.define("minijax_mesh", None, _mesh_or_none)
traced_switches.append("minijax_mesh")


# What returns the sharding of an abstract value; shardings are of meshes.
sharding_of_type: Latest = Latest(None)


def _sharding(aval):
    if sharding_of_type.value is None:
        wake_all()
    return sharding_of_type.value(aval)


# A property of the class: abstract values are read more often than anything else.
Record.sharding = property(_sharding)


def mesh_around(mesh):
    """Return a context manager inside which a mesh is the one around."""
    return config.override("minijax_mesh", mesh)
