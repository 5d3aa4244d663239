"""Meshes: grids of devices whose axes have names.

Reference: ``jax.sharding.Mesh``, ``jax.make_mesh``, ``jax.set_mesh``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

import enum
import math
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from minijax._lazy import awake
from minijax.arrays.placement import Device
from minijax.arrays.placement import devices as devices_of
from minijax.arrays.settings import Override, config
from minijax.core import EvalTrace, current_trace
from minijax.extents import Enterable
from minijax.mesh_maps.mesh_around import mesh_around


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
        awake(lambda: None)  # what waits for meshes: this one may come out of a pickle
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


class Mesh(NamedAxes, Enterable):
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
    return mesh_around(mesh)


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
