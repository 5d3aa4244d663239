# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.
"""The switch for the mesh that specifications without a mesh mean."""

from minijax._lazy import wake_all
from minijax.arrays.interchange import Record
from minijax.arrays.settings import config
from minijax.forgetting.remembering import traced_switches


def _mesh_or_none(value):
    if value is not None and not hasattr(value, "axis_types"):
        raise ValueError(f"Expected a Mesh or None, got {value!r}.")
    return value


config.define("minijax_mesh", None, _mesh_or_none)
traced_switches.append("minijax_mesh")


def _sharding(aval):
    wake_all()  # which replaces this property: shardings are of meshes
    return aval.sharding


Record.sharding = property(_sharding)


def mesh_around(mesh):
    """Return a context manager inside which a mesh is the one around."""
    return config.override("minijax_mesh", mesh)
