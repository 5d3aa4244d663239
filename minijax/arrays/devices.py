"""Devices and shardings: where buffers live, and which part of an array is where.

References: ``jax.Device``, ``jax.devices``, ``jax.sharding``.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/36_replicas_upper.md: Device.together (b26198ab).

import os
import re
from contextlib import suppress
from contextvars import Context, copy_context
from functools import wraps
from threading import RLock
from typing import Any

import numpy as np

from minijax._registry import Registry
from minijax.arrays.dtypes import aligned_copy, config, is_large_array
from minijax.errors import raise_if_out_of_memory

_silent = Context()
_silent.run(np.seterr, all="ignore")
_settings = tuple(_silent.items())  # the context variables that NumPy sets for this


def _call_silently(function, args, kwargs):
    for variable, value in _settings:
        variable.set(value)
    return function(*args, **kwargs)


def ignore_float_errors(function):
    """Return a function whose calls are as under ``np.errstate(all="ignore")``.

    A call runs in a copy of the context, so nothing is put back at its end: Ctrl-C may
    come at any time.
    """

    @wraps(function)
    def call(*args, **kwargs):
        return copy_context().run(_call_silently, function, args, kwargs)

    return call


# Devices: where buffers live and programs run.


class Device:
    """A place for buffers.

    Args:
      platform: ``"cpu"``, ``"gpu"``.
      id: number of the device on its platform.
      array_module: the module whose arrays are the buffers, and which computes.

    Attributes:
      uncommitted, committed: the `Placement` of arrays that are, and were put here.

    Reference: ``jax.Device``.
    """

    process_index, is_local = 0, True  # which process owns it, and whether that is we
    name_of_place = property(lambda self: self)  # what arrays here call their device
    together: Any = None  # what computes on arrays in parts without fetching them

    def __init__(self, platform, id, array_module):
        self.platform, self.id, self.array_module = platform, id, array_module
        self.device_kind, self.local_hardware_id = platform, id
        sharding = SingleDeviceSharding(self)
        self.uncommitted = Placement(sharding, False)
        self.committed = Placement(sharding, True)

    def __repr__(self):
        return f"{self.platform.title()}Device(id={self.id})"

    def __str__(self):
        return f"{self.platform}:{self.id}"

    def __reduce__(self):
        return _numbered, (self.platform, self.id)

    def put(self, x, dtype=None):
        """Return the numbers of `x`, of the host, in a new buffer."""
        try:
            if self.array_module is np and is_large_array(x):
                return aligned_copy(x, dtype or x.dtype)
            return self.array_module.array(x, dtype=dtype)
        except MemoryError as error:
            raise_if_out_of_memory("a copy", error)
            raise

    def fetch(self, buffer):
        """Return the numbers of a buffer as an array of NumPy, which is not changed."""
        return buffer

    def taken(self, array):
        """Return a new buffer with the numbers of an array that lies elsewhere."""
        return self.put(array.placement.device.fetch(array._buffer))

    def seal(self, buffer):
        """See to it that the numbers of a buffer, from now on an array's, stay."""
        buffer.flags.writeable = False

    def wait(self, buffer):
        """Return when the numbers of a buffer are there."""

    def is_ready(self, buffer):
        """Return whether the numbers of a buffer are there."""
        return True

    def lent(self, buffer):
        """Return what lends the numbers to other libraries, an array of NumPy."""
        return self.fetch(buffer)

    def memory_stats(self):
        """Return None: how much memory is in use is not known here, as in JAX."""

    def default_memory(self):
        """Return the memory where arrays lie, a `DeviceMemory`."""
        return DeviceMemory(self)

    def addressable_memories(self):
        """Return the list of all memories of a device. There is one, "device"."""
        return [self.default_memory()]

    def evaluate(self, primitive, compute, buffers, params, avals):
        """Return the list of buffers that `compute` makes, of the dtypes of `avals`.

        Args:
          primitive: what is named if memory runs out.
          compute: from array module, buffers and parameters to a buffer, or a list.
          buffers, params, avals: operands, parameters, and what the results are.
        """
        try:
            return _quietly(self.array_module, compute, buffers, params, avals)
        except (MemoryError, OverflowError, ValueError) as error:
            raise_if_out_of_memory(str(primitive), error, avals)
            raise


@ignore_float_errors
def _quietly(xp, compute, buffers, params, avals):
    results = compute(xp, *buffers, **params)
    results = results if isinstance(results, list) else [results]
    return [xp.asarray(x, aval.dtype) for x, aval in zip(results, avals)]


class DeviceMemory:
    """A memory of a device, which has one.

    Attributes:
      kind: its name, ``"device"``, as a `memory_kind` of shardings.
      platform: that of its device.

    Reference: ``jax.Device.default_memory``.
    """

    kind = "device"

    def __init__(self, device):
        self._device, self.platform = device, device.platform

    def __eq__(self, other):
        return isinstance(other, DeviceMemory) and other._device is self._device

    def __hash__(self):
        return hash((self._device, self.kind))

    def __repr__(self):
        return f"DeviceMemory({self._device}, kind={self.kind})"

    def addressable_by_devices(self):
        """Return the list of the devices whose memory it is."""
        return [self._device]


# Asked before numbers are moved: ``check(way, x, device)``, which may refuse it.
transfer_checks: list = []


def check_transfer(way, x, device):
    """Tell those who want to know that an array is about to be moved.

    Args:
      way: ``"host-to-device"``, ``"device-to-device"`` or ``"device-to-host"``.
      x: an array, a number or a NumPy array.
      device: where it goes, or where it comes from.
    """
    for check in transfer_checks:
        check(way, x, device)


# Shardings: which part of an array is where, and along which axes values vary.

# By type of what says a part of a sharding: functions of the option and of it that
# return the `Sharding`.
sharding_converters: dict = Registry()


class Sharding:
    """Where the parts of an array lie.

    Attributes:
      device_set: the set of all devices that have a part.
      placement: that of the arrays which are put there.

    Reference: ``jax.sharding.Sharding``.
    """

    addressable_devices = property(
        lambda self: {device for device in self.device_set if device.is_local}
    )
    has_addressable_devices = property(lambda self: bool(self.addressable_devices))
    is_fully_addressable = property(
        lambda self: all(device.is_local for device in self.device_set)
    )
    num_devices = property(lambda self: len(self.device_set))

    def is_equivalent_to(self, other, ndim):
        """Return whether another sharding places arrays of `ndim` axes the same way."""
        return self == other

    def addressable_devices_indices_map(self, global_shape):
        """Return `devices_indices_map` of the devices of this process."""
        indices = self.devices_indices_map(global_shape)
        return {device: indices[device] for device in indices if device.is_local}


class SingleDeviceSharding(Sharding):
    """All of an array lies on one device.

    Args:
      device: a `Device`.
      memory_kind: ``"device"``, the memory that each device has.

    Raises:
      ValueError: if `device` is none, or there is no such memory.

    Reference: ``jax.sharding.SingleDeviceSharding``.
    """

    is_fully_replicated, memory_kind = True, "device"

    def __init__(self, device, *, memory_kind=None):
        if not isinstance(device, Device):
            raise ValueError(
                f"SingleDeviceSharding takes one of minijax.devices(), not {device!r}."
            )
        if memory_kind not in (None, "device"):
            raise ValueError(
                f"Could not find memory addressable by device {device.device_kind}. "
                f"Device {device.device_kind} can address the following memory kinds: "
                f"device. Got memory kind: {memory_kind}"
            )
        self._device = device

    device_set = property(lambda self: {self._device})
    placement = property(lambda self: self._device.committed)
    _device_assignment = property(lambda self: (self._device,))

    def __eq__(self, other):
        return isinstance(other, SingleDeviceSharding) and other._device is self._device

    def __hash__(self):
        return hash(self._device)

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind=device)"

    def __reduce__(self):
        return SingleDeviceSharding, (self._device,)

    def with_memory_kind(self, kind):
        """Return the same sharding in a memory of another kind."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def devices_indices_map(self, global_shape):
        """Return a dictionary from the device to the slices that it has: all."""
        return {self._device: tuple([slice(None)] * len(global_shape))}

    def shard_shape(self, global_shape):
        """Return the shape of the part that a device has."""
        return tuple(global_shape)

    def shards(self, array):
        """Return the list of an array's parts, tuples for `Shard`."""
        [(device, index)] = self.devices_indices_map(array.aval.shape).items()
        return [(device, index, 0, array)]


class Placement:
    """Where an array lies, and whether its user has said so.

    There is one object for each; they are compared by identity.

    Attributes:
      sharding: a `Sharding`.
      committed: whether arrays stay there.
      device: what holds the numbers: the one device of the sharding, or what stands for
        several of them.
      devices: the tuple of its devices, in order.
      joint: where results go: here, or if arrays lie in parts, whole on each device.
    """

    __slots__ = ("committed", "device", "devices", "mesh_placement", "sharding")

    def __init__(self, sharding, committed, joint=None):
        self.sharding, self.committed = sharding, committed
        self.device, self.mesh_placement = sharding._device, joint or self
        self.devices = sharding._device_assignment

    def __repr__(self):
        return f"{'' if self.committed else 'un'}committed {self.device}"


# The devices of each platform; the first platform is the default.
platforms = Registry({"cpu": [Device("cpu", 0, np)]})

# From further names to functions that add a platform when one first asks for it, and
# return its devices; they raise a `RuntimeError` that says why there are none.
device_factories = Registry()


def host_device():
    """Return the first CPU of this process, where programs of the host have buffers."""
    return next(device for device in platforms["cpu"] if device.is_local)


def _numbered(platform, id):
    """Return the device of a number: what a pickled device becomes."""
    return devices(platform)[id]


class ManualAxisType:
    """Along which axes of a mesh the devices have different values, or parts of a sum.

    There is one object for each; they are compared by identity.

    Args:
      varying: set of names of axes along which the values differ.
      unreduced: set of names of axes along which the values are still to be summed.
      reduced: set of names of axes along which cotangents will be.

    Raises:
      ValueError: if an axis is varying and something else besides.

    Reference: ``jax.sharding.ManualAxisType``.
    """

    __slots__ = ("reduced", "unreduced", "varying")
    _parts = "varying", "unreduced", "reduced"
    _known: dict = {}

    def __new__(cls, *, varying=(), unreduced=(), reduced=()):
        parts = tuple(map(frozenset, (varying, unreduced, reduced)))
        for name, axes in (("unreduced", parts[1]), ("reduced", parts[2])):
            if parts[0] & axes:
                raise ValueError(
                    f"varying and {name} cannot have common mesh axes. Got "
                    f"varying={parts[0]} and {name}={axes}"
                )
        self = cls._known.setdefault(parts, object.__new__(cls))
        self.varying, self.unreduced, self.reduced = parts
        return self

    def __repr__(self):
        parts = [f"{name}={getattr(self, name)}" for name in self._parts]
        return f"ManualAxisType({', '.join(parts)})"

    def __str__(self):
        sets = [("V", self.varying), ("U", self.unreduced), ("R", self.reduced)]
        said = [f"{letter}:{_names_of(axes)}" for letter, axes in sets if axes]
        return f"{{{', '.join(said)}}}" if said else ""

    def __reduce__(self):
        return _manual_axes, (self.varying, self.unreduced, self.reduced)

    def update(self, **changes):
        """Return the record with other sets of axes, by their names."""
        return ManualAxisType(
            **{name: getattr(self, name) for name in self._parts} | changes
        )

    def without(self, axes):
        """Return the record of values that are the same along some more axes."""
        return self.update(varying=self.varying - {*axes})

    @property
    def empty(self):
        """Whether the values are the same on all devices."""
        return self is NO_MANUAL_AXES


def _names_of(axes):
    names = sorted(map(str, axes))
    return names[0] if len(names) == 1 else f"({','.join(names)})"


def _manual_axes(*parts):
    return ManualAxisType(**dict(zip(ManualAxisType._parts, parts)))


NO_MANUAL_AXES = ManualAxisType()


class _Default:
    """Where arrays lie that name no device.

    Attributes:
      placement: that placement, or None before first use and while threads differ.
      used: whether the devices were counted, as one of them was used.
      apart: the switches that have a value of their own in some thread.
    """

    def __init__(self):
        self.placement, self.used, self.apart, self.lock = None, False, set(), RLock()

    def unlock(self):
        """Make a new lock after a fork: no other thread is there to release it."""
        self.lock = RLock()

    def invalidate(self, name, values):
        """Forget the placement, as the switch `name` now has these values."""
        with self.lock:
            (self.apart.add if len(values) > 1 else self.apart.discard)(name)
            self.placement = None

    def count(self):
        """Make the devices of the CPU, as many as are asked for; once."""
        with self.lock:
            for id in range(1, 1 if self.used else _wanted()):
                platforms["cpu"].append(Device("cpu", id, np))
            self.used = True

    def chosen(self):
        """Return the placement that the switches choose, and keep it if that may be."""
        self.used or self.count()
        with self.lock:
            device = config.jax_default_device
            found = [device] if isinstance(device, Device) else devices(device)
            device = next(x for x in found if x.is_local)
            if not self.apart:
                self.placement = device.uncommitted
            return device.uncommitted


_default = _Default()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_default.unlock)


def default_placement():
    """Return where arrays lie that name no device: on the default one, uncommitted."""
    return _default.placement or _default.chosen()


def _wanted():
    """Return how many devices the CPU is to have."""
    flags = os.environ.get("XLA_FLAGS", "")
    found = re.findall(r"--xla_force_host_platform_device_count=(\d+)", flags)
    number = config.jax_num_cpu_devices
    return int(found[-1]) if number < 0 and found else number


def _number_of_devices(value):
    """Return the value of ``jax_num_cpu_devices`` if it can still be set."""
    if type(value) is str and re.fullmatch(r"-?\d+", value):  # of the environment
        value = int(value)
    value = -1 if value is None else value
    if not isinstance(value, int):
        raise ValueError(
            "new int config value must be None or of type int, "
            f"got {value} of type {type(value)}"
        )
    if value == 0:
        raise ValueError("There is no computer with 0 devices.")
    if _default.used and value != config.jax_num_cpu_devices:
        raise RuntimeError(
            "jax_num_cpu_devices config should be updated before backends are "
            "initialized i.e. before any JAX operation is executed. You should "
            "initialize this config immediately after `import minijax`."
        )
    return value


def _device_or_platform(value):
    """Return a device, the name of a platform that is here, or None."""
    if isinstance(value, Device | None):
        return value
    if not isinstance(value, str):
        raise ValueError(NO_DEVICE.format(value))
    if not _is_here(value):
        named = value.partition(":")[0] in platforms
        raise ValueError(NO_DEVICE.format(value)) if named else _unknown(value)
    return value


NO_DEVICE = (
    "jax.default_device must be passed either a Device object (e.g. "
    "`jax.devices('cpu')[0]`) or a platform name string like 'cpu' or 'gpu', got: {!r}"
)


def default_backend() -> str:
    """Return the name of the platform that is used unless another is asked for.

    The switch ``jax_platforms`` lists names, of which the first that is here is the
    default, and ``jax_platform_name`` is one name.
    """
    _default.used or _default.count()
    wanted = _present(config.jax_platform_name) or _present(config.jax_platforms)
    return _first(wanted) or next(iter(platforms))


def _first(names):
    here = (name for name in _listed(names) if _is_here(name))
    return next((_devices_of(name)[0].platform for name in here), "")


def _is_here(name):
    with suppress(RuntimeError):
        return bool(_devices_of(name))
    return False


def _devices_of(name):
    """Return the devices of a platform, which a higher floor may have to look for."""
    if name not in platforms and name not in device_factories:
        raise _unknown(name)
    try:
        return platforms[name] if name in platforms else device_factories[name]()
    except RuntimeError as error:
        raise _unknown(name, f". {error}") from error


def _listed(names):
    return [name.strip() for name in names.split(",")] if names else []


def _present(names):
    """Return the value of a switch if the platforms that it names are here.

    As in JAX, ``cuda`` is passed over where there is none, if another is named too.
    """
    if not isinstance(names, str | None):
        raise ValueError(f"Platforms are named by a string or None, got {names!r}.")
    used = _default.used  # before, floors that find platforms may not be there
    absent = [name for name in _listed(names) if used and not _is_here(name)]
    if absent and (set(absent) != {"cuda"} or not _first(names)):
        raise RuntimeError(
            f"Unable to initialize backend {absent[0]!r}. Present here: "
            f"{', '.join(platforms)}. A switch or the variable JAX_PLATFORMS names it."
        )
    return names


def _unknown(backend, reason=""):
    """Return the error that there is no such platform, and perhaps why."""
    return RuntimeError(
        f"Unknown backend: {backend!r} requested, but no platforms that are instances "
        f"of {backend} are present. Platforms present are: "
        f"{','.join(platforms)}{reason}"
    )


def _define(name, default, accepts):
    value = os.environ.get(name.upper(), default)
    value = os.environ.get(f"MINI{name.upper()}", value)  # for this library alone
    config.define(
        name, value, accepts, told=lambda values: _default.invalidate(name, values)
    )


_define("jax_platforms", None, _present)
_define("jax_platform_name", "", _present)
_define("jax_default_device", None, _device_or_platform)
_define("jax_num_cpu_devices", -1, _number_of_devices)


def devices(backend: str | None = None) -> list[Device]:
    """Return the devices of a platform.

    Args:
      backend: name of the platform; by default, `default_backend()`.

    Raises:
      RuntimeError: if there is no such platform.
    """
    _default.used or _default.count()
    return list(_devices_of(backend or default_backend()))
