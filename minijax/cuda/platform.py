"""How the platform of GPUs is found: when a program first asks for it."""

# Made from chapters/35_device_rest.md by `make chapter`;
# edit the chapter, not this file.

import threading

from minijax.arrays.devices import device_factories, platforms
from minijax.jitting.compilation import backends, default_backends

_one_at_a_time = threading.Lock()


def find_gpus():
    """Return the devices of the platform ``gpu``, which exists from then on.

    Raises:
      RuntimeError: if there is no card, or no way to use one.
    """
    from minijax.cuda.device import CudaDevice, GraphProgram
    from minijax.cuda.driver import cuda_device_count

    with _one_at_a_time:
        if "gpu" not in platforms:
            cards = [CudaDevice(id) for id in range(cuda_device_count())]
            backends["gpu"] = GraphProgram
            default_backends["gpu"] = "gpu"
            platforms["gpu"] = cards
    return platforms["gpu"]


device_factories["gpu"] = device_factories["cuda"] = find_gpus
