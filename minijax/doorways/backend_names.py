"""Backends, as libraries ask for them: what there is to compute on.

Reference: ``jax.extend.backend``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools

from minijax.arrays.placement import Device, default_backend, default_placement, devices
from minijax.arrays.transfer import local_devices
from minijax.jitting.api import clear_caches


class Backend:
    """A platform and its devices.

    Attributes:
      platform: its name.
    """

    def __init__(self, platform: str) -> None:
        self.platform = platform

    def devices(self) -> list[Device]:
        """Return its devices."""
        return devices(self.platform)

    def local_devices(self) -> list[Device]:
        """Return those of this process, which are all."""
        return local_devices(backend=self.platform)

    def device_count(self) -> int:
        """Return how many there are."""
        return len(self.devices())

    def local_device_count(self) -> int:
        """Return how many this process has."""
        return len(self.local_devices())

    def process_index(self) -> int:
        """Return the number of this process: there is one."""
        return 0

    def __repr__(self) -> str:
        return f"Backend({self.platform!r})"


@functools.cache
def _backend(platform):
    return Backend(platform)


def get_backend(platform: str | None = None) -> Backend:
    """Return a platform, by default the one that is computed on.

    Raises:
      RuntimeError: if there is none of this name.

    Reference: ``jax.extend.backend.get_backend``.
    """
    return _backend(devices(platform or default_backend())[0].platform)


def backends() -> dict[str, Backend]:
    """Return the platforms that there are, by name.

    Reference: ``jax.extend.backend.backends``.
    """
    return {"cpu": get_backend("cpu")}


def get_default_device() -> Device:
    """Return the device on which results lie that nothing else places.

    Reference: ``jax.extend.backend.get_default_device``.
    """
    [device] = default_placement().sharding.device_set
    return device


def clear_backends() -> None:
    """Forget all compiled programs; devices stay.

    Reference: ``jax.extend.backend.clear_backends``.
    """
    clear_caches()
