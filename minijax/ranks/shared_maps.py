"""pmap across processes: each brings the examples of its own devices.

Reference: ``jax.pmap``.
"""

# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.placement import devices
from minijax.arrays.transfer import local_devices, process_count
from minijax.core import Tracer
from minijax.pytrees.functions import tree_map
from minijax.replicas.meshes import Mesh
from minijax.replicas.named_shardings import NamedSharding
from minijax.replicas.parallel_maps import shared_map, spec_at
from minijax.replicas.sharded_arrays import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)


def local_part(x):
    """Return the part of an array that lies on the devices of this process."""
    sharding = x.sharding
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh.is_multi_process:
        return x
    counts, whole = sharding.divisions(x.ndim), x.shape
    ours = NamedSharding(mesh.local_mesh, sharding.spec)
    pairs = zip(whole, counts, ours.divisions(x.ndim))
    shape = [size // count * here for size, count, here in pairs]
    parts = [shard.data for shard in x.addressable_shards]
    return make_array_from_single_device_arrays(shape, ours, parts)


def _shared(call, dims, mesh):
    """Return the mesh of all processes, and what becomes of the result of a pmap."""
    traced = any(isinstance(x, Tracer) for x in call.leaves)
    if process_count() == 1 or traced or [*mesh._flat] != local_devices():
        return mesh, lambda result: result
    everyone = Mesh(devices(), mesh.axis_names)
    for i, dim in enumerate(dims):
        if dim is not None:
            rows = NamedSharding(everyone, spec_at(everyone.axis_names[0], dim))
            call.leaves[i] = make_array_from_process_local_data(rows, call.leaves[i])
            call.avals[i] = call.leaves[i].aval
    return everyone, lambda result: tree_map(local_part, result)


shared_map.value = _shared
