"""Shardings by a mesh and a partition specification.

Reference: ``jax.sharding.NamedSharding``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections import Counter
from typing import Any

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.arrays.placement import Device, Placement
from minijax.arrays.sharding_types import Sharding
from minijax.forgetting.remembering import made_once
from minijax.jaxprs.latest import Latest
from minijax.replicas.meshes import AbstractMesh, NamedAxes
from minijax.replicas.partition_specs import (
    PartitionSpec,
    lies_like,
    names_of_entry,
    slice_numbers,
    trimmed,
)


class IndivisibleError(ValueError):
    """An axis cannot be cut into as many equal parts as its sharding says."""


class DuplicateSpecError(Exception):
    """A specification names a mesh axis twice."""


def _checked(mesh, spec):
    """Return a specification that fits a mesh.

    Raises:
      TypeError: if these are no mesh and no specification.
      ValueError: if it names an axis that the mesh has not.
      DuplicateSpecError: if it names an axis twice.
    """
    if not isinstance(mesh, NamedAxes) or not isinstance(spec, PartitionSpec):
        raise TypeError(
            "NamedSharding takes a Mesh and a PartitionSpec, got "
            f"{mesh!r} and {spec!r}."
        )
    names = [name for entry in spec for name in names_of_entry(entry)]
    for name in [*names, *spec.unreduced, *spec.reduced]:
        if name not in mesh.axis_names:
            raise ValueError(
                f"Resource axis: {name} of {spec} is not found in mesh: "
                f"{mesh.axis_names}."
            )
    for name, count in Counter(names).items():
        if count > 1:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to "
                f"at most one positional dimension, but {spec} has duplicate entries "
                f"for `{name}`"
            )
    return spec


class NamedSharding(Sharding):
    """The parts of an array lie on the devices of a mesh, as a specification says.

    Args:
      mesh: a `Mesh`, or an `AbstractMesh`, which holds no arrays.
      spec: a `PartitionSpec`.
      memory_kind: ``"device"``, the memory that each device has.

    Raises:
      TypeError: if these are no mesh and no specification.
      ValueError: if a name is no axis of the mesh, or there is no such memory.

    Reference: ``jax.sharding.NamedSharding``.
    """

    def __init__(self, mesh, spec, memory_kind=None):
        self.mesh, self.spec = mesh, _checked(mesh, spec)
        if memory_kind not in (None, "device"):
            raise ValueError(
                "Could not find memory addressable by these devices: they can address "
                f"the following memory kinds: device. Got memory kind: {memory_kind}"
            )
        self.memory_kind = None if isinstance(mesh, AbstractMesh) else "device"
        self._hash = hash((mesh, spec))

    def __eq__(self, other):
        return self is other or (
            isinstance(other, NamedSharding)
            and (self.mesh, self.spec) == (other.mesh, other.spec)
        )

    def __hash__(self):
        return self._hash

    def __repr__(self):
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"

    def __reduce__(self):
        return NamedSharding, (self.mesh, self.spec)

    @property
    def _device_assignment(self):
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(
                "device_set is not implemented for `jax.sharding.AbstractMesh`, which "
                "has no devices. Make the sharding of a Mesh."
            )
        return self.mesh._flat

    device_set = property(lambda self: {*self._device_assignment})
    num_devices = property(lambda self: self.mesh.size)
    replicated_axes = property(lambda self: frozenset(self.mesh.axis_names) - self._cut)

    @property
    def placement(self) -> Any:
        """That of the arrays which are put there."""
        return _placement(self)

    @property
    def _device(self) -> Any:
        return _device(self.mesh, trimmed(self.spec))

    @property
    def _cut(self):
        return {name for entry in self.spec for name in names_of_entry(entry)}

    @property
    def is_fully_replicated(self):
        """Whether each device has all of the array."""
        return all(self.mesh.shape[name] == 1 for name in self._cut)

    def update(self, **changes):
        """Return the sharding with another `mesh`, `spec` or `memory_kind`."""
        parts = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind}
        return NamedSharding(**parts | changes)

    def with_memory_kind(self, kind):
        """Return the same sharding in a memory of another kind."""
        return self.update(memory_kind=kind)

    def divisions(self, ndim):
        """Return into how many parts each of `ndim` axes is cut, a tuple.

        Raises:
          ValueError: if the specification is for more axes.
        """
        sizes = self.mesh.shape
        if len(self.spec) > ndim:
            scalar = " For scalars the PartitionSpec should be P()." if not ndim else ""
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least "
                f"{len(self.spec)}, but was applied to a value of rank {ndim}.{scalar}"
            )
        cuts = [math.prod(sizes[x] for x in names_of_entry(part)) for part in self.spec]
        return (*cuts, *[1] * (ndim - len(cuts)))

    def shard_shape(self, global_shape):
        """Return the shape of the part that a device has.

        Raises:
          IndivisibleError: if the parts are not equal.
          ValueError: if the specification is for more axes.
        """
        counts = self.divisions(len(global_shape))
        for axis, (size, count) in enumerate(zip(global_shape, counts)):
            if size % count:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {axis} is partitioned "
                    f"{count} times, but the dimension size is {size} (full shape: "
                    f"{tuple(global_shape)}, per-dimension tiling factors: "
                    f"{list(counts)} should evenly divide the shape)"
                )
        return tuple([size // count for size, count in zip(global_shape, counts)])

    def check_compatible_aval(self, aval_shape):
        """Raise a ValueError unless arrays of this shape can be cut like this."""
        self.shard_shape(aval_shape)

    def _indices(self, shape):
        """Return the slices of each device, a list in the order of the mesh."""
        part = self.shard_shape(shape)
        numbers = slice_numbers(self.mesh, self.spec, len(shape))
        return [
            tuple([
                slice(None) if size == whole else slice(i * size, (i + 1) * size)
                for i, size, whole in zip(row, part, shape)
            ])
            for row in numbers
        ]  # fmt: skip

    def devices_indices_map(self, global_shape):
        """Return a dictionary from each device to the slices that it has.

        Raises:
          IndivisibleError: if the parts are not equal.
        """
        return dict(zip(self._device_assignment, self._indices(global_shape)))

    def is_equivalent_to(self, other, ndim):
        """Return whether another sharding places arrays of `ndim` axes the same way."""
        if self == other:
            return True
        if not isinstance(other, NamedSharding) or max(
            len(trimmed(self.spec)), len(trimmed(other.spec))
        ) > ndim:
            return False
        mine, theirs = (
            [(x._device_assignment, x.divisions(ndim))]
            + slice_numbers(x.mesh, trimmed(x.spec), ndim)
            for x in (self, other)
        )
        return mine == theirs

    def shards(self, array):
        """Return the list of an array's parts, tuples for `Shard`."""
        copies, found = Counter(), []
        indices = self._indices(array.aval.shape)
        parts = parts_of(array, self)
        for device, index, part in zip(self._device_assignment, indices, parts):
            key = tuple([(x.start, x.stop) for x in index])
            data = part if device.is_local else None
            found.append((device, index, copies[key], data))
            copies[key] += 1
        return found


class DeviceGroup(Device):
    """The devices of a sharding, as one device: its buffers are tuples of buffers.

    Args:
      mesh: a `Mesh`.
      spec: a `PartitionSpec`, without entries at its end that say nothing.

    Attributes:
      sharding: that of the arrays whose buffers it has.
    """

    name_of_place = property(lambda self: self.sharding)
    uncommitted = property(lambda self: self.committed)

    def __init__(self, mesh, spec):
        self.sharding = NamedSharding(mesh, spec)
        self.devices, first = self.sharding._device_assignment, mesh._flat[0]
        self.platform, self.id, self.array_module = "mesh", None, first.array_module
        self.device_kind = first.device_kind

    committed = property(lambda self: self.sharding.placement)

    @property
    def together(self) -> Any:  # type: ignore[override]
        """What computes on arrays in parts without fetching them, or None."""
        return operations_together.value

    def __repr__(self):
        return repr(self.sharding)

    __str__ = __repr__

    def __reduce__(self):
        return _device, (self.sharding.mesh, self.sharding.spec)

    def put(self, x, dtype=None):
        """Return a tuple with the part of each device, of numbers of the host."""
        x = x if hasattr(x, "shape") else np.asarray(x, dtype)
        indices = self.sharding._indices(x.shape)
        pairs = zip(self.devices, indices)
        return tuple([device.put(x[index], dtype) for device, index in pairs])

    def fetch(self, buffer):
        """Return the numbers of all parts side by side, read-only, if they are here."""
        own = self.home.fetch(buffer[self.devices.index(self.home)])
        counts = self.sharding.divisions(own.ndim)
        if all(count == 1 for count in counts):
            return own
        if not self.sharding.is_fully_addressable:
            raise RuntimeError(_NOT_HERE)
        parts = [one.fetch(part) for one, part in zip(self.devices, buffer)]
        return self._side_by_side(parts, counts)

    def _side_by_side(self, parts, counts):
        shape = tuple([n * count for n, count in zip(parts[0].shape, counts)])
        whole = np.empty(shape, parts[0].dtype)
        for index, part in zip(self.sharding._indices(shape), parts):
            whole[index] = part
        whole.flags.writeable = False
        return whole

    @property
    def home(self):
        """The first of the devices that this process owns."""
        for device in self.devices:
            if device.is_local:
                return device
        raise RuntimeError(f"None of the devices of {self} is of this process.")

    def taken(self, array):
        """Return the buffer of an array that lies elsewhere; processes may talk."""
        return self.put(all_numbers(array))

    def seal(self, buffer):
        """See to it that the numbers of all parts stay."""
        for device, part in zip(self.devices, buffer):
            device.seal(part)

    def wait(self, buffer):
        """Return when the numbers of all parts are there."""
        for device, part in zip(self.devices, buffer):
            device.wait(part)

    def is_ready(self, buffer):
        """Return whether the numbers of all parts are there."""
        return all(device.is_ready(x) for device, x in zip(self.devices, buffer))

    def lent(self, buffer):
        """Refuse: other libraries know arrays of one device.

        Raises:
          BufferError: always.
        """
        raise BufferError(
            "__dlpack__ only supported for unsharded arrays. Lend the parts, "
            "array.addressable_shards[i].data, or a copy on one device."
        )

    def evaluate(self, primitive, compute, buffers, params, avals):
        """Compute on one device, with whole operands, and copy the results."""
        home = self.home
        whole = [home.put(self.fetch(buffer)) for buffer in buffers]
        results = home.evaluate(primitive, compute, whole, params, avals)
        return [self.put(home.fetch(x)) for x in results]


# What computes on arrays in parts: a function of a primitive, operands, parameters,
# abstract results and placement, or None.
operations_together: Latest = Latest(None)

# What asks other processes for parts: from a group and a buffer to numbers of all.
gathered: Latest = Latest(None)

_NOT_HERE = (
    "Fetching value for an array that spans non-addressable (non process local) devices"
    " is not possible. minijax.experimental.multihost_utils.process_allgather returns "
    "all of it to every process; `.addressable_shards` lists the parts that are here."
)


@made_once
def _device(mesh, spec):
    """Return the group of devices of a sharding."""
    return DeviceGroup(mesh, spec)


@made_once
def _placement(sharding):
    """Return the placement of arrays of a sharding."""
    if sharding.spec.unreduced or sharding.spec.reduced:
        raise NotImplementedError(
            f"Arrays whose parts are still to be summed, as in {sharding.spec}, are "
            "not there. Sum them inside of a shard_map."
        )
    whole = NamedSharding(sharding.mesh, PartitionSpec())
    return Placement(sharding, True, None if whole == sharding else whole.placement)


def all_numbers(array):
    """Return the numbers of an array; of one that spans processes, all have to ask."""
    if array.is_fully_addressable or array.is_fully_replicated:
        return array._numbers()
    there = array.placement.device
    parts = gathered.value(there, array._buffer)
    return there._side_by_side(parts, there.sharding.divisions(array.ndim))


def parts_of(array, sharding):
    """Return the parts of an array in a sharding, arrays on one device each.

    They are in the order of the mesh. If the array lies otherwise, it is cut anew.

    Raises:
      IndivisibleError: if the parts are not equal.
    """
    group, aval, there = sharding._device, array.aval, array.placement
    if lies_like(there, sharding.placement, aval.ndim):
        buffer = array._buffer
    elif there.devices == group.devices and len(group.devices) == 1:
        buffer = (array._buffer,)
    else:
        buffer = group.taken(array)
    part = aval.update(shape=sharding.shard_shape(aval.shape))
    pairs = zip(buffer, group.devices)
    return [ArrayImpl(x, part, device.committed) for x, device in pairs]
