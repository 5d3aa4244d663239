"""Moving one array between devices and the host.

Reference: ``jax.device_put``, ``jax.device_get``, ``jax.block_until_ready``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/26_calls_rest.md: _engage (08fa09c4).

import enum
import os
import warnings
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from minijax.arrays.array import ArrayImpl, as_array_impl, asbuffer, shape_rules, typeof
from minijax.arrays.devices import (
    Device,
    Sharding,
    SingleDeviceSharding,
    check_transfer,
    devices,
    transfer_checks,
)
from minijax.arrays.dtypes import SHORT_DTYPE_NAMES, _one_of, config
from minijax.arrays.interchange import numpy_view
from minijax.arrays.out_sharding import place_result
from minijax.core import (
    Array,
    Primitive,
    Tracer,
    bind_listeners,
    impl_rules,
    tracer_methods,
)
from minijax.errors import ConcretizationTypeError, JaxRuntimeError


class ArrayCopySemantics(enum.IntEnum):
    """What becomes of the buffers of arrays that are put somewhere.

    Reference: ``ArrayCopySemantics`` of JAX's runtime.
    """

    ALWAYS_COPY, REUSE_INPUT, DONATE_INPUT = range(3)

    def __repr__(self):
        return str(self)

    __str__ = enum.Enum.__str__


def placement_at(where):
    """Return the placement of arrays that are put on a device, or in a sharding.

    Raises:
      ValueError: if `where` is neither.
    """
    if isinstance(where, Device):
        return where.committed
    if isinstance(where, Sharding):
        return where.placement
    raise ValueError(
        "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device` "
        f"or a pytree of these values. Received invalid value: {where}. The devices "
        "are those of minijax.devices()."
    )


def copy_to_placement(array, placement, copy=False):
    """Return an array at a placement: itself, or in the same buffer if it is there."""
    device = placement.device
    buffer = asbuffer(array, device)
    if copy and buffer is array._buffer:
        check_transfer("device-to-device", array, device)
        buffer = device.taken(array)
    if buffer is array._buffer and placement is array.placement:
        return array
    return ArrayImpl(buffer, array.aval, placement)


def _put(x, device, how):
    """Return the array `x` on a device, or where it is if that is None."""
    fresh = not isinstance(x, ArrayImpl)  # then it is put there at once
    others = {_SWITCHES["device-to-device"]: "allow"} if fresh else {}
    with explicit_transfers(**others):
        return _moved(x, device, how)


def _put_shape(*avals, devices, srcs, copy_semantics):
    for device in devices:
        device is None or placement_at(device)
    return list(avals)


device_put_p = Primitive("device_put")
device_put_p.multiple_results = True
shape_rules[device_put_p] = _put_shape
impl_rules[device_put_p] = lambda *xs, devices, srcs, copy_semantics: list(
    map(_put, xs, devices, copy_semantics)
)


def device_put_leaf(x: Any, device: Any = None, copy: bool = False) -> Any:
    """Return the array `x` on a device.

    Args:
      x: an array, a number, a NumPy array or a tracer.
      device: a `Device`, or a `Sharding`: the array is committed to it. By default, the
        array stays where it is.
      copy: whether the result has a buffer of its own in any case.

    Raises:
      ValueError: if `device` is neither.
    """
    how = ArrayCopySemantics.ALWAYS_COPY if copy else ArrayCopySemantics.REUSE_INPUT
    if isinstance(x, Tracer):
        if device is None and not copy:
            return x
        params = {"devices": (device,), "srcs": (None,), "copy_semantics": (how,)}
        return device_put_p.bind(x, **params)[0]
    return _put(x, device, how)


def put_result_on_device(name, x, device=None, out_sharding=None):
    """Return an array where the caller of a function wants it, who may not care.

    Args:
      name: the function that was called.
      x: its result.
      device: what `device_put_leaf` takes.
      out_sharding: what `place_result` takes.

    Raises:
      ValueError: if both are given.
    """
    if device is not None and out_sharding is not None:
        raise ValueError(
            "Only one of `device` or `out_sharding` can be set. Got "
            f"{device=} and {out_sharding=}"
        )
    x = x if device is None else device_put_leaf(x, device)
    return place_result(name, x, out_sharding)


def _moved(x, device, how):
    copy = how is ArrayCopySemantics.ALWAYS_COPY
    array = as_array_impl(x)
    array._check_not_deleted()
    if device is None and (not copy or array is not x):
        return array
    wanted = array.placement if device is None else placement_at(device)
    there = copy_to_placement(array, wanted, copy)
    if how is ArrayCopySemantics.DONATE_INPUT and there.device is not array.device:
        array.delete()
    return there


def device_get_leaf(x: Any) -> Any:
    """Return an array as a read-only NumPy array; anything else as it is."""
    has_numbers = isinstance(x, Array) and not isinstance(x, Tracer)
    with explicit_transfers():
        return np.asarray(x) if has_numbers else x


def block_until_ready(x: Any) -> Any:
    """Return `x` when its numbers are there."""
    return x.block_until_ready() if isinstance(x, ArrayImpl) else x


def transfer_operands(args, device):
    """Return operands with each array that is on another device moved to this one.

    Arrays in parts, on the same devices, stay as they are.
    """
    return [
        copy_to_placement(x, device.uncommitted)
        if isinstance(x, ArrayImpl) and x.placement.mesh_placement.device is not device
        else x
        for x in args
    ]


def _only_arrays(name, call):
    """Return what a tracer answers to one who asks where it is."""

    def refuse(x, *args):
        what = f"The {name}() method was called on" if call else f"{name!r} of"
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{what} {x!r}, which stands for an array and lies nowhere. Ask the array "
            "outside of the transformed function."
        )

    return refuse if call else property(refuse)


def _sharding(x):
    raise AttributeError(
        f"The 'sharding' attribute is not available on {x!r}, which stands for an "
        "array and lies nowhere. minijax.typeof(x).sharding says what its type says."
    )


tracer_methods["sharding"] = property(_sharding)
tracer_methods["devices"] = _only_arrays("devices", call=True)
tracer_methods["addressable_data"] = _only_arrays("addressable_data", call=True)
tracer_methods["on_device_size_in_bytes"] = _only_arrays(
    "on_device_size_in_bytes", call=True
)
tracer_methods["__dlpack__"] = _only_arrays("__dlpack__", call=True)
tracer_methods["committed"] = _only_arrays("committed", call=False)
tracer_methods["is_fully_addressable"] = _only_arrays(
    "is_fully_addressable", call=False
)
tracer_methods["is_fully_replicated"] = _only_arrays("is_fully_replicated", call=False)
tracer_methods["addressable_shards"] = _only_arrays("addressable_shards", call=False)
tracer_methods["global_shards"] = _only_arrays("global_shards", call=False)


# Guards: switches that tell of transfers, or refuse them.

GUARDS = "allow", "log", "disallow", "log_explicit", "disallow_explicit"
_MILDER = {"log_explicit": "log", "disallow_explicit": "disallow"}
_WAYS = "host-to-device", "device-to-device", "device-to-host"
_SWITCHES = {way: f"jax_transfer_guard_{way.replace('-', '_')}" for way in _WAYS}


def guard_transfer(way, x, device):
    """Log a transfer or refuse it, as a switch of this thread says.

    Args:
      way: one of the three directions.
      x: an array, a number or a NumPy array.
      device: where it goes, or where it comes from.

    Raises:
      JaxRuntimeError: if it is not allowed.
    """
    level = config.read(_SWITCHES[way])
    if level in (None, "allow"):
        return
    end = "from" if way == "device-to-host" else "to"
    text = f"{way} transfer of {typeof(x).str_short()} {end} {device}"
    if level.startswith("log"):
        import logging  # not earlier: a fork takes logging's lock before ours

        logging.getLogger("minijax.arrays.transfer").warning(text)
        return
    raise JaxRuntimeError(
        f"INVALID_ARGUMENT: Disallowed {text}: the guard {_SWITCHES[way]} is {level!r} "
        "here. device_put and device_get transfer explicitly, which 'disallow' allows."
    )


def explicit_transfers(**others):
    """Return a block whose transfers are explicit; `others` are guards inside it."""
    if not transfer_checks:
        return nullcontext()
    levels = {switch: config.read(switch) for switch in _SWITCHES.values()}
    milder = {switch: _MILDER.get(levels[switch], "allow") for switch in levels}
    return config.override_all(milder | others)


_guarded: set = set()  # the switches that some thread has set


def _heard(primitive, args, params, results):
    """Hear of an operation, so that none takes a shortcut past `asbuffer`."""


def _engage(switch, values):
    (_guarded.discard if {*values} <= {None, "allow"} else _guarded.add)(switch)
    for heard, told in (bind_listeners, _heard), (transfer_checks, guard_transfer):
        if bool(_guarded) != (told in heard):
            (heard.append if _guarded else heard.remove)(told)


def _define_guard(name, default, *told, **options):
    default = os.environ.get(name.upper(), default)
    config.define(name, default, partial(_one_of, (None, *GUARDS)), *told, **options)


for _switch in _SWITCHES.values():
    _define_guard(
        _switch, os.environ.get("JAX_TRANSFER_GUARD"), partial(_engage, _switch)
    )
_define_guard("jax_transfer_guard", None, followers=tuple(_SWITCHES.values()))


def local_devices(
    process_index: int | None = None,
    backend: str | None = None,
    host_id: int | None = None,
) -> list[Device]:
    """Return the devices of this process, or of another one.

    Args:
      process_index: the number of a process; by default, that of this one.
      backend: name of the platform.
      host_id: an older name of `process_index`.

    Raises:
      ValueError: if there is no process of this number.
    """
    number = process_index if host_id is None else host_id
    if number is None:
        return [device for device in devices(backend) if device.is_local]
    if number not in (known := process_indices(backend)):
        raise ValueError(f"Unknown process_index {number}: there are {known}.")
    return [device for device in devices(backend) if device.process_index == number]


def device_count(backend: str | None = None) -> int:
    """Return the number of devices of a platform."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of a platform that this process owns."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """Return the number of this process among those that run the program."""
    return local_devices(backend=backend)[0].process_index


def process_count(backend: str | None = None) -> int:
    """Return the number of processes that run the program."""
    return len(process_indices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """Return the numbers of all processes."""
    return sorted({device.process_index for device in devices(backend)})


def _renamed(old, new):
    warnings.warn(
        f"minijax.{old} has been renamed to minijax.{new}. This alias will eventually "
        "be removed; please update your code.",
        stacklevel=3,
    )


def host_id(backend: str | None = None) -> int:
    """Return `process_index`, with a warning that it has this name now."""
    _renamed("host_id", "process_index")
    return process_index(backend)


def host_count(backend: str | None = None) -> int:
    """Return `process_count`, with a warning that it has this name now."""
    _renamed("host_count", "process_count")
    return process_count(backend)


def host_ids(backend: str | None = None) -> list[int]:
    """Return `process_indices`, with a warning that it has this name now."""
    _renamed("host_ids", "process_indices")
    return process_indices(backend)


def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Return the `SingleDeviceSharding` of a device.

    Reference: ``jax.sharding.make_single_device_sharding``.
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


_PLATFORMS = {1: "cpu", 2: "cuda", 3: "cuda", 10: "rocm"}  # by DLPack's numbers


def is_supported_dtype(dtype: Any) -> bool:
    """Return whether arrays of a dtype can be lent and borrowed.

    Reference: ``jax.dlpack.is_supported_dtype``.
    """
    return np.dtype(dtype) in SHORT_DTYPE_NAMES


def from_dlpack(x: Any, /, device: Any = None, copy: bool | None = None) -> Array:
    """Return the array of another library as one of ours, in the same memory.

    The other library should not write there any more: the array would change.

    Args:
      x: an object with the methods ``__dlpack__`` and ``__dlpack_device__``.
      device: a `Device`; by default, the array stays where it is.
      copy: True copies the numbers, False never does; by default they are copied if
        their dtype is not one in force, or if they lie at an odd address.

    Raises:
      TypeError: if `x` is no such object, or if there are no devices like its own.
      ValueError: if `copy` is False and the numbers have to be copied.
      RuntimeError: if there is no such device, or it is none of the host.

    Reference: ``jax.numpy.from_dlpack``, ``jax.dlpack.from_dlpack``.
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and "
            f"__dlpack_device__ methods, and {type(x)} has not."
        )
    kind, number = x.__dlpack_device__()
    if kind not in _PLATFORMS:
        raise TypeError(
            f"from_dlpack cannot read from a device of DLPack's type {int(kind)}."
        )
    home = devices(_PLATFORMS[kind])[number].committed
    if home.device.array_module is not np:
        raise RuntimeError(
            f"from_dlpack cannot share memory of {home.device}. Copy the array to the "
            "host in its own library, and device_put it from there."
        )
    buffer = numpy_view(x)
    there = home if device is None else placement_at(device)
    aval = typeof(buffer)
    odd = not buffer.flags.aligned or there is not home
    if odd and copy is False:
        raise ValueError(
            "from_dlpack would have to copy this array of "
            f"{buffer.dtype} to {there.device}, "
            "or to another address, and copy=False. Use copy=None."
        )
    if copy or odd or aval.dtype != buffer.dtype:
        buffer = buffer.astype(aval.dtype)
    return copy_to_placement(ArrayImpl(buffer, aval, home), there)
