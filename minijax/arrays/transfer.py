# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Moving one array between devices and the host.

Reference: ``jax.device_put``, ``jax.device_get``, ``jax.block_until_ready``.
"""

from typing import Any

import numpy as np

from minijax.arrays.array import ArrayImpl, asarray_impl
from minijax.arrays.avals import typeof
from minijax.arrays.capsules import borrow
from minijax.arrays.checks import refuse_sharding
from minijax.arrays.dtypes import DTYPES
from minijax.arrays.placement import Device, devices
from minijax.core import Array, Tracer


def device_put(x: Any, device: Any = None) -> Any:
    """Return the array `x` on a device; a tracer is where its trace wants it.

    Args:
      x: an array, a number, a NumPy array or a tracer.
      device: a `Device`; by default, the array stays where it is.

    Raises:
      ValueError: if `device` is not a device.
    """
    if device is not None and not isinstance(device, Device):
        raise ValueError(
            f"device_put takes a device of minijax.devices(), not {device!r}"
        )
    if isinstance(x, Tracer):
        return x
    array = asarray_impl(x)
    if device is None or device is array.device:
        return array
    return ArrayImpl(device.array_module.array(np.asarray(array)), array.aval, device)


def placed(name, x, device=None, out_sharding=None):
    """Return an array where the caller of a function wants it, who may not care.

    Args:
      name: the function that was called.
      x: its result.
      device: what `device_put` takes.
      out_sharding: has to be None.

    Raises:
      ValueError: if both are given.
    """
    if device is not None and out_sharding is not None:
        raise ValueError(
            "Only one of `device` or `out_sharding` can be set. Got "
            f"{device=} and {out_sharding=}"
        )
    refuse_sharding(name, out_sharding)
    return x if device is None else device_put(x, device)


def device_get(x: Any) -> Any:
    """Return an array as a read-only NumPy array; anything else as it is."""
    return np.asarray(x) if isinstance(x, Array) else x


def block_until_ready(x: Any) -> Any:
    """Return `x` when its numbers are there."""
    return x.block_until_ready() if isinstance(x, ArrayImpl) else x


_PLATFORMS = {1: "cpu", 2: "cuda", 3: "cuda", 10: "rocm"}  # by DLPack's numbers


def is_supported_dtype(dtype: Any) -> bool:
    """Return whether arrays of a dtype can be lent and borrowed.

    Reference: ``jax.dlpack.is_supported_dtype``.
    """
    return np.dtype(dtype) in DTYPES


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
    home, buffer = devices(_PLATFORMS[kind])[number], borrow(x)
    aval = typeof(buffer)
    odd = not buffer.flags.aligned or device not in (None, home)
    if odd and copy is False:
        raise ValueError(
            f"from_dlpack would have to copy this array of {buffer.dtype} to {device}, "
            "or to another address, and copy=False. Use copy=None."
        )
    if copy or odd or aval.dtype != buffer.dtype:
        buffer = buffer.astype(aval.dtype)
    return device_put(ArrayImpl(buffer, aval, home), device)
