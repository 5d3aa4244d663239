"""Meshes, partition specifications, and shardings by both.

References: ``jax.sharding.Mesh``, ``jax.make_mesh``, ``jax.set_mesh``,
``jax.sharding.PartitionSpec``, ``jax.sharding.NamedSharding``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

import enum
import math
from collections import Counter, OrderedDict
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from minijax._lazy import after_registrations
from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.arrays.devices import Device, Placement, Sharding
from minijax.arrays.devices import devices as devices_of
from minijax.arrays.dtypes import Override, config
from minijax.context_values import ReentrantContext
from minijax.core import EvalTrace, current_trace
from minijax.jaxprs.types import Hook
from minijax.rematerialization.caching import memoize
from minijax.sharding.manual_axes import mesh_context

# Meshes: grids of devices whose axes have names.


class AxisType(enum.Enum):
    """Who decides how values are spread along an axis: compiler, types or program.

    Reference: ``jax.sharding.AxisType``.
    """

    Auto, Explicit, Manual = range(3)

    def __repr__(self):
        return self.name

    __str__ = __repr__


class AbstractDevice(NamedTuple):
    """What is known of the devices of a mesh without devices.

    Reference: ``jax.sharding.AbstractDevice``.
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self):
        return (
            f"device_kind={self.device_kind}, num_cores={self.num_cores}, "
            f"platform={self.platform}"
        )


class NamedAxes:
    """What a mesh is apart from its devices.

    Attributes:
      axis_names, axis_sizes, axis_types: tuples with an entry for each axis.
    """

    axis_names: tuple
    axis_sizes: tuple
    axis_types: tuple

    def _of_types(self, kind):
        pairs = zip(self.axis_names, self.axis_types)
        return tuple([name for name, found in pairs if found is kind])

    shape_tuple = property(lambda self: tuple(zip(self.axis_names, self.axis_sizes)))
    shape = property(lambda self: OrderedDict(self.shape_tuple))
    auto_axes = property(lambda self: self._of_types(AxisType.Auto))
    explicit_axes = property(lambda self: self._of_types(AxisType.Explicit))
    manual_axes = property(lambda self: self._of_types(AxisType.Manual))
    are_all_axes_auto = property(lambda self: {*self.axis_types} == {AxisType.Auto})
    are_all_axes_explicit = property(
        lambda self: {*self.axis_types} == {AxisType.Explicit}
    )
    are_all_axes_manual = property(lambda self: {*self.axis_types} == {AxisType.Manual})

    def _check_axes(self, types):
        """Give the axes their types, after looking at their names.

        Raises:
          ValueError: if names are missing, given twice, or not as many as sizes.
          TypeError: if a type is no `AxisType`.
        """
        after_registrations(
            lambda: None
        )  # what waits for meshes: this one may come out of a pickle
        names, sizes = self.axis_names, self.axis_sizes
        if None in names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
        if len(names) != len(sizes) or len({*names}) != len(names):
            raise ValueError(
                f"A mesh of {len(sizes)} axes of sizes {sizes} needs as many names, "
                f"which differ; got axis_names={names}."
            )
        one = types is None or isinstance(types, AxisType)
        types = (types or AxisType.Auto,) * len(names) if one else tuple(types)
        if len(types) != len(names):
            raise ValueError(
                "Number of axis names should match the number of axis_types. Got "
                f"axis_names={names} and axis_types={types}"
            )
        if any(not isinstance(kind, AxisType) for kind in types):
            raise TypeError(f"axis_types are members of AxisType, got {types}.")
        self.axis_types = types

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (type(other) is type(self) and self._key == other._key)

    def _shown(self):
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"{axes or '()'}, axis_types={self.axis_types}"


def _listed_names(names):
    return (names,) if isinstance(names, str) else tuple(names)


class AbstractMesh(NamedAxes):
    """A mesh without devices: names, sizes and types of axes.

    Args:
      axis_sizes, axis_names: a number and a name for each axis.
      axis_types: an `AxisType`, or one for each axis; by default, all are ``Auto``.
      abstract_device: what is known of its devices, an `AbstractDevice`.

    Raises:
      ValueError: if names and sizes do not belong together.

    Reference: ``jax.sharding.AbstractMesh``.
    """

    is_multi_process = False

    def __init__(
        self, axis_sizes, axis_names, axis_types=None, *, abstract_device=None
    ):
        self.axis_sizes, self.axis_names = tuple(axis_sizes), _listed_names(axis_names)
        self.abstract_device = abstract_device
        self._check_axes(axis_types)
        self.size = math.prod(self.axis_sizes) if self.axis_sizes else 0
        self.empty = self.size == 0
        self._key = self.shape_tuple, self.axis_types, abstract_device
        self._hash = hash(self._key)

    abstract_mesh = property(lambda self: self)

    def __repr__(self):
        device = f", {self.abstract_device!r}" if self.abstract_device else ""
        return f"AbstractMesh({self._shown()}{device})"

    def update(
        self, axis_sizes=None, axis_names=None, axis_types=None, abstract_device=None
    ):
        """Return the mesh with some of its parts replaced."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=abstract_device or self.abstract_device,
        )

    def update_axis_types(self, name_to_type):
        """Return the mesh with other types of some axes, a dictionary by name."""
        pairs = zip(self.axis_names, self.axis_types)
        types = [name_to_type.get(*pair) for pair in pairs]
        return self.update(axis_types=tuple(types))

    def _refuse(self, name):
        raise ValueError(f"AbstractMesh does not implement {name}: it has no devices.")

    devices = property(lambda self: self._refuse("devices"))
    device_ids = property(lambda self: self._refuse("device_ids"))
    local_devices = property(lambda self: self._refuse("local_devices"))
    local_mesh = property(lambda self: self._refuse("local_mesh"))


class Mesh(NamedAxes, ReentrantContext):
    """A grid of devices whose axes have names; a context in which it is *the* mesh.

    Args:
      devices: a NumPy array of devices, or a sequence of them.
      axis_names: a name for each axis of that array; a string for one axis.
      axis_types: an `AxisType`, or one for each axis; by default, all are ``Auto``.

    Raises:
      ValueError: if there are not as many names as axes.
      TypeError: if something else than a device is among them.

    Reference: ``jax.sharding.Mesh``.
    """

    def __init__(self, devices, axis_names, axis_types=None):
        self.devices = np.array(devices, dtype=object)
        self.devices.flags.writeable = False
        self.axis_names = _listed_names(axis_names)
        self.axis_sizes = self.devices.shape
        if None in self.axis_names:
            raise ValueError("Mesh axis names cannot be None.")
        if self.devices.ndim != len(self.axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the "
                "length of its second argument (`axis_names`), but got devices.ndim == "
                f"{self.devices.ndim} and len(axis_names) == {len(self.axis_names)}."
            )
        self._flat = tuple(self.devices.flat) if self.axis_names else ()
        for device in self._flat:
            if not isinstance(device, Device):
                raise TypeError(
                    f"A mesh is made of devices, got {device!r} of type "
                    f"{type(device).__name__}. minijax.devices() returns them."
                )
        self._check_axes(axis_types)
        self.size, self.empty = len(self._flat), not self._flat
        self._key = self._flat, self.shape_tuple, self.axis_types
        self._hash = hash(self._key)

    local_devices = property(lambda self: [x for x in self._flat if x.is_local])
    is_multi_process = property(
        lambda self: len({device.process_index for device in self._flat}) > 1
    )
    is_scalar = property(lambda self: self.size == 1)

    @property
    def local_mesh(self):
        """The part of the mesh that is of this process.

        Raises:
          ValueError: if its devices there are no rows of the mesh.
        """
        if not self.is_multi_process:
            return self
        ours = np.array([x.is_local for x in self._flat]).reshape(self.axis_sizes)
        part = self.devices[np.ix_(*[np.unique(places) for places in ours.nonzero()])]
        if not part.size or not all(device.is_local for device in part.flat):
            raise ValueError(f"The devices of this process are no part of {self}.")
        return Mesh(part, self.axis_names, self.axis_types)

    @property
    def device_ids(self):
        """The numbers of the devices, a NumPy array of the shape of the mesh."""
        return np.array([x.id for x in self._flat], int).reshape(self.axis_sizes)

    @property
    def abstract_mesh(self):
        """The same mesh without its devices."""
        first = self._flat[0] if self._flat else None
        known = first and AbstractDevice(first.device_kind, None, first.platform)
        return AbstractMesh(
            self.axis_sizes if first else (), self.axis_names, self.axis_types,
            abstract_device=known,
        )  # fmt: skip

    def __repr__(self):
        types = f", axis_types={self.axis_types}" if self.axis_names else ""
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"
        )

    def __str__(self):
        return f"Mesh({self._shown()})" if self.axis_names else "Mesh()"

    def __reduce__(self):
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def update(self, devices=None, axis_names=None, axis_types=None):
        """Return the mesh with some of its parts replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def extent(self):
        """Return a context manager inside which this is the mesh of the context."""
        return _mesh_set(self)


_EMPTY_MESH = Mesh(np.empty((), object), ())


class _Entered(Override):
    """A mesh that is the context's from now on, or to the end of a ``with`` block."""

    __slots__ = ()

    def __enter__(self):
        if not self.begun:  # later, `with` only wants to know how it ends
            super().__enter__()
        return self.changes["minijax_mesh"]


def get_mesh() -> Mesh:
    """Return the mesh of the context, or an empty one."""
    mesh = config.minijax_mesh
    return mesh if isinstance(mesh, Mesh) else _EMPTY_MESH


def get_abstract_mesh() -> AbstractMesh:
    """Return the mesh of the context without its devices, or an empty one."""
    return (config.minijax_mesh or _EMPTY_MESH).abstract_mesh


def use_abstract_mesh(mesh: AbstractMesh) -> Any:
    """Return a context manager inside which `mesh` is the mesh, without devices.

    Raises:
      ValueError: if it is no `AbstractMesh`.

    Reference: ``jax.sharding.use_abstract_mesh``.
    """
    if not isinstance(mesh, AbstractMesh):
        raise ValueError(
            f"Expected mesh of type `jax.sharding.AbstractMesh`. Got {type(mesh)}"
        )
    return mesh_context(mesh)


def set_mesh(mesh: Mesh | None) -> Any:
    """Make a mesh that of the context, for this thread.

    It is so from this call on; used in a ``with`` statement, to the end of its block.

    Raises:
      ValueError: if it is no `Mesh`, or while a function is traced.

    Reference: ``jax.set_mesh``.
    """
    entered = _mesh_set(mesh)
    entered.__enter__()
    return entered


def _mesh_set(mesh):
    """Return what `set_mesh` returns, but for a mesh that is not set yet."""
    if mesh is not None and not isinstance(mesh, Mesh):
        raise ValueError(
            f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}"
        )
    if not isinstance(current_trace(), EvalTrace):
        raise ValueError(
            "set_mesh can only be used outside of traced functions, such as those of "
            "jit. Give the mesh to the NamedSharding or to shard_map instead."
        )
    return _Entered(config, {"minijax_mesh": mesh})


def make_mesh(
    axis_shapes: Any,
    axis_names: Any,
    axis_types: Any = None,
    *,
    devices: Any = None,
) -> Mesh:
    """Return a mesh of the first devices that there are.

    Args:
      axis_shapes, axis_names: a size and a name for each axis.
      axis_types: an `AxisType` for each axis; by default, all are ``Auto``.
      devices: those to take instead.

    Raises:
      ValueError: if there are too few devices.

    Reference: ``jax.make_mesh``.
    """
    shape = tuple(map(int, axis_shapes))
    found = list(devices_of() if devices is None else devices)
    wanted = math.prod(shape)
    if wanted > len(found) or min(shape, default=1) < 1:
        raise ValueError(
            f"Number of devices {len(found)} must be >= the product of mesh_shape "
            f"{shape}, whose sizes are positive. A CPU is as many devices as "
            'config.update("jax_num_cpu_devices", n) says, before its first use.'
        )
    if devices is not None and wanted != len(found):
        raise ValueError(
            f"Number of devices {len(found)} must equal the product of mesh_shape "
            f"{shape}: devices were named."
        )
    return Mesh(np.array(found[:wanted], object).reshape(shape), axis_names, axis_types)


# Which axes of an array are cut along which axes of a mesh.


class _Unconstrained:
    """Stands for an axis of an array that may be cut in any way."""

    def __repr__(self):
        return "UNCONSTRAINED"

    def __reduce__(self):
        return "_UNCONSTRAINED"


_UNCONSTRAINED = _Unconstrained()


def _entry(part):
    if not isinstance(part, list | tuple):
        return part
    nested = [name for name in part if isinstance(name, list | tuple)]
    if nested:
        raise ValueError(
            "A tuple inside PartitionSpec cannot contain a nested tuple: the entry "
            f"{part!r} contains {nested[0]!r}. Write the names one after another."
        )
    return part[0] if len(part) == 1 else tuple(part) or None


class PartitionSpec:
    """For each axis of an array, the mesh axes along which it is cut.

    Args:
      *partitions: for each axis None, the name of a mesh axis, a tuple of names (the
        first is the outermost), or ``PartitionSpec.UNCONSTRAINED``.
      unreduced, reduced: sets of names of axes along which values are parts of a sum,
        or cotangents will be.

    Reference: ``jax.sharding.PartitionSpec``, ``jax.P``.
    """

    __slots__ = ("_partitions", "reduced", "unreduced")
    UNCONSTRAINED = _UNCONSTRAINED

    def __init__(self, *partitions, unreduced=frozenset(), reduced=frozenset()):
        self._partitions = tuple(map(_entry, partitions))
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)

    def __init_subclass__(cls, **kwargs):
        raise TypeError(f"Subclassing `jax.P` is prohibited; got {cls.__name__}.")

    partitions = property(lambda self: self._partitions)
    _key = property(lambda self: (self._partitions, self.unreduced, self.reduced))

    def __repr__(self):
        parts = [repr(part) for part in self._partitions]
        parts += [
            f"{name}={{{', '.join(map(repr, sorted(getattr(self, name), key=str)))}}}"
            for name in ("unreduced", "reduced")
            if getattr(self, name)
        ]
        return f"P({', '.join(parts)}{',' if len(parts) == 1 == len(self) else ''})"

    def on_context_mesh(self):
        """Return the `NamedSharding` of the mesh of the context.

        Raises:
          TypeError: if there is none.
        """
        mesh = config.minijax_mesh or _EMPTY_MESH
        if mesh.empty:
            raise TypeError(
                f"Without a mesh {self} says nothing of devices. For a PartitionSpec "
                "the context mesh cannot be empty: use `minijax.set_mesh`."
            )
        return NamedSharding(mesh, self)

    def __eq__(self, other):
        return isinstance(other, PartitionSpec) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __reduce__(self):
        return _spec_of, self._key

    def __len__(self):
        return len(self._partitions)

    def __iter__(self):
        return iter(self._partitions)

    def __getitem__(self, i):
        return self._partitions[i]

    def __add__(self, other):
        more = tuple(other) if isinstance(other, PartitionSpec | tuple) else None
        return NotImplemented if more is None else self._of((*self, *more))

    def __radd__(self, other):
        return self._of((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def _of(self, partitions):
        return _spec_of(partitions, self.unreduced, self.reduced)

    def index(self, value):
        """Return the first axis with this entry."""
        return self._partitions.index(_entry(value))

    def count(self, value):
        """Return how many axes have this entry."""
        return self._partitions.count(_entry(value))

    def update(self, partitions=None, unreduced=None, reduced=None):
        """Return the specification with some of its parts replaced."""
        given = partitions, unreduced, reduced
        pairs = zip(given, self._key)
        return _spec_of(*[old if new is None else new for new, old in pairs])


def _spec_of(partitions, unreduced, reduced):
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def entry_axes(entry):
    """Return the tuple of mesh axes along which an axis is cut."""
    if entry is None or entry is _UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def spec_dims(spec, ndim):
    """Return for each axis of an array the tuple of mesh axes that divide it."""
    entries = list(map(entry_axes, spec))
    return entries + [()] * (ndim - len(entries))


def spec_axes(spec):
    """Return the list of mesh axes that a spec mentions."""
    return [name for names in spec_dims(spec, 0) for name in names]


def strip_trailing_none(spec):
    """Return a specification without the entries at its end that say nothing."""
    kept = len(spec)
    while kept and not entry_axes(spec[kept - 1]):
        kept -= 1
    whole = [None if x is _UNCONSTRAINED else x for x in spec[:kept]]
    return spec.update(partitions=whole)


def slice_indices(mesh, spec, ndim):
    """Return for each device the number of its slice along each axis, a list."""
    entries = [entry_axes(entry) for entry in spec]
    entries += [()] * (ndim - len(entries))
    sizes, rows = mesh.shape, []
    for position in np.ndindex(*mesh.axis_sizes):
        at, row = dict(zip(mesh.axis_names, position)), []
        for names in entries:
            number = 0
            for name in names:
                number = number * sizes[name] + at[name]
            row.append(number)
        rows.append(tuple(row))
    return rows


@cache
def _equivalent(placement, wanted, ndim):
    return wanted.sharding.is_equivalent_to(placement.sharding, ndim)


def same_shards(placement, wanted, ndim):
    """Return whether arrays of `ndim` axes have the same parts in two placements.

    The meshes may call their axes differently: the parts and the devices count.
    """
    return placement is wanted or _equivalent(placement, wanted, ndim)


P = PartitionSpec


# Shardings by a mesh and a partition specification.


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
    names = [name for entry in spec for name in entry_axes(entry)]
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
        return _device(self.mesh, strip_trailing_none(self.spec))

    @property
    def _cut(self):
        return {name for entry in self.spec for name in entry_axes(entry)}

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
        cuts = [math.prod(sizes[x] for x in entry_axes(part)) for part in self.spec]
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
        numbers = slice_indices(self.mesh, self.spec, len(shape))
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
        if (
            not isinstance(other, NamedSharding)
            or max(
                len(strip_trailing_none(self.spec)),
                len(strip_trailing_none(other.spec)),
            )
            > ndim
        ):
            return False
        mine, theirs = (
            [(x._device_assignment, x.divisions(ndim))]
            + slice_indices(x.mesh, strip_trailing_none(x.spec), ndim)
            for x in (self, other)
        )
        return mine == theirs

    def shards(self, array):
        """Return the list of an array's parts, tuples for `Shard`."""
        copies, found = Counter(), []
        indices = self._indices(array.aval.shape)
        parts = shard_arrays(array, self)
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
    def together(self) -> Any:
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
        return self.put(fetch_global_value(array))

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
operations_together: Hook = Hook(None)

# What asks other processes for parts: from a group and a buffer to numbers of all.
gather_global: Hook = Hook(None)

_NOT_HERE = (
    "Fetching value for an array that spans non-addressable (non process local) devices"
    " is not possible. minijax.experimental.multihost_utils.process_allgather returns "
    "all of it to every process; `.addressable_shards` lists the parts that are here."
)


@memoize
def _device(mesh, spec):
    """Return the group of devices of a sharding."""
    return DeviceGroup(mesh, spec)


@memoize
def _placement(sharding):
    """Return the placement of arrays of a sharding."""
    if sharding.spec.unreduced or sharding.spec.reduced:
        raise NotImplementedError(
            f"Arrays whose parts are still to be summed, as in {sharding.spec}, are "
            "not there. Sum them inside of a shard_map."
        )
    whole = NamedSharding(sharding.mesh, PartitionSpec())
    return Placement(sharding, True, None if whole == sharding else whole.placement)


def fetch_global_value(array):
    """Return the numbers of an array; of one that spans processes, all have to ask."""
    there = array.placement.device
    if array.is_fully_addressable or array.is_fully_replicated:
        return there.fetch(array._buffer)
    parts = gather_global.value(there, array._buffer)
    return there._side_by_side(parts, there.sharding.divisions(array.ndim))


def shard_arrays(array, sharding):
    """Return the parts of an array in a sharding, arrays on one device each.

    They are in the order of the mesh. If the array lies otherwise, it is cut anew.

    Raises:
      IndivisibleError: if the parts are not equal.
    """
    group, aval, there = sharding._device, array.aval, array.placement
    if same_shards(there, sharding.placement, aval.ndim):
        buffer = array._buffer
    elif there.devices == group.devices and len(group.devices) == 1:
        buffer = (array._buffer,)
    else:
        buffer = asbuffer(array, group)
    part = aval.update(shape=sharding.shard_shape(aval.shape))
    pairs = zip(buffer, group.devices)
    return [ArrayImpl(x, part, device.committed) for x, device in pairs]
