"""Arrays that are made in parts.

Reference: ``jax.make_array_from_callback`` and its like.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from operator import eq
from typing import Any

import numpy as np

from minijax.arrays.array import ArrayImpl, ShapedArray, typeof
from minijax.arrays.devices import Device, Sharding, SingleDeviceSharding
from minijax.arrays.dtypes import check_dtype
from minijax.arrays.transfer import device_put_leaf
from minijax.core import Array
from minijax.pytrees.tree_operations import broadcast_prefix, treedef_is_leaf
from minijax.pytrees.tree_util import tree_flatten
from minijax.sharding.named_sharding import PartitionSpec, slice_indices


def _check_sharding(sharding):
    if not isinstance(sharding, Sharding):
        raise TypeError(
            "sharding should be an instance of `jax.sharding`. Got "
            f"{sharding} of type {type(sharding)}"
        )
    return sharding


def make_array_from_single_device_arrays(
    shape: Any, sharding: Any, arrays: Any, *, dtype: Any = None
) -> Array:
    """Return the array of which the parts are given, without a copy.

    Args:
      shape: of the whole.
      sharding: a `Sharding`.
      arrays: a list with an array on each of its devices, in any order.
      dtype: that of all the arrays.

    Raises:
      TypeError: if `arrays` is no list, or `sharding` no sharding.
      ValueError: if there are too few arrays, on other devices, or of wrong shapes.

    Reference: ``jax.make_array_from_single_device_arrays``.
    """
    _check_sharding(sharding)
    if not isinstance(arrays, list | tuple):
        raise TypeError(
            "jax.make_array_from_single_device_arrays `arrays` argument must be a list "
            f"or tuple, but got {type(arrays)}."
        )
    for i, x in enumerate(arrays):
        if not isinstance(x, ArrayImpl) or len(x.placement.devices) != 1:
            raise TypeError(f"arrays[{i}] is no array of one device: {x!r}.")
    if not arrays and dtype is None:
        raise ValueError(
            "If the Array has no addressable shards, `dtype` must be provided via the "
            "`dtype` argument to `jax.make_array_from_single_device_arrays`."
        )
    devices = [x for x in sharding._device_assignment if x.is_local]
    by_device = {x.placement.devices[0]: x for x in arrays}
    if len(arrays) != len(devices) or by_device.keys() != {*devices}:
        raise ValueError(
            f"Expected {len(devices)} per-device arrays (this is how many devices are "
            f"addressable by the sharding), one on each of {list(devices)}, but got "
            f"{len(arrays)} on {list(by_device)}."
        )
    part = sharding.shard_shape(shape)
    wanted = np.dtype(dtype or arrays[0].dtype)
    for x in by_device.values():
        _check_part(x, part, wanted, tuple(shape), sharding)
    found = map(by_device.get, sharding._device_assignment)
    buffers = tuple([None if part is None else part._buffer for part in found])
    single = not hasattr(sharding, "mesh")
    weak = all(x.weak_type for x in arrays)
    aval = ShapedArray(tuple(shape), arrays[0].dtype, weak)
    return ArrayImpl(buffers[0] if single else buffers, aval, sharding.placement)


def _check_part(x, part, dtype, shape, sharding):
    if x.shape != part:
        raise ValueError(
            f"Expected shard shape {part} doesn't match the single device array shape "
            f"{x.shape}. Shape of Array is {x.dtype}{list(shape)} with sharding "
            f"{sharding}"
        )
    if x.dtype != dtype:
        raise ValueError(
            "If `dtype` is provided to `jax.make_array_from_single_device_arrays`, it "
            "must match the dtype of the addressable shards. All have to be of dtype "
            f"{dtype}; the one on {x.device} is of dtype {x.dtype}."
        )


def make_array_from_callback(
    shape: Any, sharding: Any, data_callback: Any, dtype: Any = None
) -> Array:
    """Return an array whose parts a function returns.

    Args:
      shape: of the whole.
      sharding: a `Sharding`.
      data_callback: is given the slices of each device, and returns these numbers. If
        each device has everything, it is called once.
      dtype: that of its results.

    Raises:
      TypeError: if `sharding` is none.
      ValueError: if a part is of a wrong shape or dtype, or cannot be cut like this.

    Reference: ``jax.make_array_from_callback``.
    """
    indices = _check_sharding(sharding).addressable_devices_indices_map(tuple(shape))
    sharding.shard_shape(tuple(shape))
    if sharding.is_fully_replicated:
        values = [data_callback(next(iter(indices.values())))] * len(indices)
    else:
        values = [data_callback(index) for index in indices.values()]
    parts = [device_put_leaf(x, device) for x, device in zip(values, indices)]
    if dtype is not None:
        dtype = check_dtype(dtype, "make_array_from_callback")
    return make_array_from_single_device_arrays(shape, sharding, parts, dtype=dtype)


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Any = None
) -> Any:
    """Return the arrays of which each process brings the part that its devices have.

    Args:
      sharding: a `Sharding`, a `Device`, or a `PartitionSpec` for the context's mesh;
        or a tree of them, a prefix of `local_data`.
      local_data: a NumPy array, the part of this process, or a tree of them.
      global_shape: the shape of the whole; along each axis it is either what the parts
        add up to, which is the default, or that of `local_data`, which then is whole.
        Of a tree, a prefix of tuples and None.

    Raises:
      TypeError: if `sharding` is none.
      ValueError: if the shape is another, or one tree is no prefix of the other.

    Reference: ``jax.make_array_from_process_local_data``.
    """
    leaves, tree = tree_flatten(local_data)
    shardings = broadcast_prefix(sharding, local_data)
    shapes = [global_shape]
    if not treedef_is_leaf(tree):
        shapes = broadcast_prefix(global_shape, local_data, _is_shape)
    return tree.unflatten(map(_from_process, shardings, leaves, shapes))


def _is_shape(x):
    return x is None or isinstance(x, tuple)


def _from_process(sharding, local_data, global_shape):
    """Return the array of which `local_data` is the part of this process."""
    if isinstance(sharding, Device):
        sharding = SingleDeviceSharding(sharding)
    elif isinstance(sharding, PartitionSpec):
        sharding = sharding.on_context_mesh()
    found = typeof(local_data).shape
    counts, rows = _slices(_check_sharding(sharding), len(found))
    ours = [sorted(set(numbers)) for numbers in zip(*rows.values())]
    ours = ours or [[0] for _ in counts]
    sums = [n * count // len(o) for n, o, count in zip(found, ours, counts)]
    shape = tuple(sums if global_shape is None else global_shape)
    pairs = zip(shape, sums, found, strict=False)
    if len(shape) != len(found) or any(n not in (s, f) for n, s, f in pairs):
        raise ValueError(
            f"local_data of shape {found} is a part of an array of shape "
            f"{tuple(sums)}, as {sharding} cuts it, or, along some axes, all of it; "
            f"got global_shape {shape}."
        )
    part, data = sharding.shard_shape(shape), np.asarray(local_data)

    def at(row):
        starts = [
            (i if whole else o.index(i)) * size
            for i, o, size, whole in zip(row, ours, part, map(eq, found, shape))
        ]
        return data[tuple([slice(i, i + size) for i, size in zip(starts, part)])]

    parts = [device_put_leaf(at(row), device) for device, row in rows.items()]
    return make_array_from_single_device_arrays(shape, sharding, parts)


def _slices(sharding, ndim):
    """Return in how many parts axes are cut, and which part each device here has."""
    if not hasattr(sharding, "mesh"):
        return (1,) * ndim, dict.fromkeys(sharding._device_assignment, (0,) * ndim)
    numbers = slice_indices(sharding.mesh, sharding.spec, ndim)
    pairs = zip(sharding._device_assignment, numbers)
    return sharding.divisions(ndim), {x: row for x, row in pairs if x.is_local}
