# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.
"""Moving one array between devices and the host.

Reference: ``jax.device_put``, ``jax.device_get``, ``jax.block_until_ready``.
"""

import numpy as np

from minijax.array import ArrayImpl, asarray_impl
from minijax.core import Array, Tracer
from minijax.placement import Device


def device_put(x, device=None):
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


def device_get(x):
    """Return an array as a read-only NumPy array; anything else as it is."""
    return np.asarray(x) if isinstance(x, Array) else x


def block_until_ready(x):
    """Return `x` when its numbers are there."""
    return x.block_until_ready() if isinstance(x, ArrayImpl) else x
