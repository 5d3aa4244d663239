# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Devices: where buffers live and programs run.

Reference: ``jax.Device``, ``jax.devices``.
"""

import os

import numpy as np

from minijax.arrays.settings import config
from minijax.errors import raise_if_out_of_memory


class Device:
    """A place for buffers.

    Args:
      platform: ``"cpu"``, ``"gpu"``.
      id: number of the device on its platform.
      array_module: the module whose arrays are the buffers, and which computes.

    Reference: ``jax.Device``.
    """

    process_index = 0

    def __init__(self, platform, id, array_module):
        self.platform, self.id, self.array_module = platform, id, array_module
        self.device_kind = platform

    def __repr__(self):
        return f"{self.platform.title()}Device(id={self.id})"

    def __str__(self):
        return f"{self.platform}:{self.id}"


# The devices of each platform; the first platform is the default.
platforms = {"cpu": [Device("cpu", 0, np)]}


def default_backend() -> str:
    """Return the name of the platform that is used unless another is asked for.

    The switch ``jax_platforms`` is a list of names with commas between them, of which
    the first that is here is the default, and ``jax_platform_name`` one name.
    """
    wanted = _first(config.jax_platform_name) or _first(config.jax_platforms)
    return wanted or next(iter(platforms))


def _first(names):
    return next((name for name in _listed(names) if name in platforms), "")


def _listed(names):
    return [name.strip() for name in names.split(",")] if names else []


def _present(names):
    """Return the value of a switch if the platforms that it names are here.

    As in JAX, ``cuda`` is passed over where there is none, if another is named too.
    """
    if not isinstance(names, str | None):
        raise ValueError(f"Platforms are named by a string or None, got {names!r}.")
    absent = [name for name in _listed(names) if name not in platforms]
    if absent and (set(absent) != {"cuda"} or not _first(names)):
        raise RuntimeError(
            f"Unable to initialize backend {absent[0]!r}. Present here: "
            f"{', '.join(platforms)}."
        )
    return names


config.define("jax_platforms", os.environ.get("JAX_PLATFORMS"), _present)
config.define("jax_platform_name", os.environ.get("JAX_PLATFORM_NAME", ""), _present)


def devices(backend: str | None = None) -> list[Device]:
    """Return the devices of a platform.

    Args:
      backend: name of the platform; by default, `default_backend()`.

    Raises:
      RuntimeError: if there is no such platform.
    """
    backend = default_backend() if backend is None else backend
    if backend not in platforms:
        names = ", ".join(platforms)
        raise RuntimeError(f"Unknown backend {backend!r}. Present here: {names}.")
    return list(platforms[backend])


def local_devices(
    process_index: int | None = None, backend: str | None = None
) -> list[Device]:
    """Return the devices of this process.

    Raises:
      ValueError: if there is no process of this number.
    """
    if process_index not in (None, 0):
        raise ValueError(f"Unknown process_index {process_index}: this is process 0.")
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """Return the number of devices of a platform."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of a platform that this process owns."""
    return len(local_devices(backend=backend))


def copied(device, x, dtype):
    """Return the numbers of `x` in a new buffer."""
    try:
        return device.array_module.array(x, dtype=dtype)
    except MemoryError as error:
        raise_if_out_of_memory("a copy", error)
        raise


def computed(primitive, device, compute, buffers, params, avals):
    """Return the list of buffers that `compute` makes, of the dtypes of `avals`.

    Args:
      primitive: what is named if memory runs out.
      device: whose array module computes.
      compute: a function of an array module, buffers and parameters, which returns a
        buffer, or a list of them.
      buffers: of the operands.
      params: of the primitive.
      avals: what the results are.
    """
    xp = device.array_module
    try:
        with np.errstate(all="ignore"):
            results = compute(xp, *buffers, **params)
            results = results if isinstance(results, list) else [results]
            return [xp.asarray(x, aval.dtype) for x, aval in zip(results, avals)]
    except (MemoryError, OverflowError, ValueError) as error:
        raise_if_out_of_memory(str(primitive), error, avals)
        raise
