"""Names of older programs: arrays of devices, and `shard_map` and `pjit` of before."""

from types import SimpleNamespace

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax.experimental.mesh_utils import (
    create_device_mesh,
    create_hybrid_device_mesh,
)
from minijax.experimental.pjit import pjit
from minijax.experimental.shard_map import shard_map
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P


def numbers(grid):
    return np.vectorize(lambda device: device.id)(grid).tolist()


def test_devices_in_order():
    assert numbers(create_device_mesh((2, 1))) == [[0], [1]]
    assert numbers(create_device_mesh((2,), minijax.devices()[::-1])) == [1, 0]
    assert create_device_mesh((), minijax.devices()[:1]).shape == ()
    mesh = Mesh(create_device_mesh((1, 2)), ("a", "b"))
    assert dict(mesh.shape) == {"a": 1, "b": 2}


@pytest.mark.parametrize("shape", [(3,), (1, 1), (2, 0)])
def test_as_many_devices_as_places(shape):
    with pytest.raises(ValueError, match="Number of devices 2 must equal the product"):
        create_device_mesh(shape)


def test_sizes_are_integers():
    with pytest.raises(TypeError, match="mesh_shape"):
        create_device_mesh((2.0,))


def test_blocks_of_processes():
    owners = [1, 0, 1, 0, 2, 3, 3, 2]
    devices = [SimpleNamespace(id=i, process_index=p) for i, p in enumerate(owners)]
    how = {"devices": devices, "process_is_granule": True}
    grid = create_hybrid_device_mesh((1, 2), (2, 2), **how)
    assert numbers(grid) == [[1, 3, 0, 2], [4, 7, 5, 6]]
    how["should_sort_granules_by_key"] = False
    assert numbers(create_hybrid_device_mesh((2, 1), (1, 4), **how)) == [
        [0, 1, 4, 5],
        [2, 3, 7, 6],
    ]
    with pytest.raises(ValueError, match="Number of slices 4 must equal"):
        create_hybrid_device_mesh((2,), (2,), **how)
    with pytest.raises(ValueError, match="process_is_granule"):
        create_hybrid_device_mesh((2,), (1,))


def test_older_names_warn_and_work():
    mesh = Mesh(create_device_mesh((2,)), ("i",))
    x = jnp.arange(4.0)
    with pytest.warns(DeprecationWarning, match="Use minijax.shard_map"):
        total = shard_map(lambda v: minijax.lax.psum(v.sum(), "i"), mesh, P("i"), P())
    assert total(x) == 6
    with pytest.warns(DeprecationWarning, match="shard_map"):
        same = shard_map(
            lambda v: minijax.lax.all_gather(v, "i", tiled=True),
            mesh=mesh, in_specs=(P("i"),), out_specs=P(), check_rep=False,
        )  # fmt: skip
    assert same(x).tolist() == x.tolist()
    rows = NamedSharding(mesh, P("i"))
    with pytest.warns(DeprecationWarning, match="use minijax.jit"):
        double = pjit(lambda x, n: x * n, rows, NamedSharding(mesh, P()), 1)
    found = double(x, 2)
    assert found.tolist() == [0, 2, 4, 6] and found.sharding.is_fully_replicated
