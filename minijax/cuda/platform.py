"""How the platform of GPUs is found: when a program first asks for it."""

# Made from chapters/35_device_rest.md by `make chapter`;
# edit the chapter, not this file.

import threading

from minijax.arrays.devices import finders, platforms
from minijax.jaxprs.types import Latest
from minijax.jitting.compilation import backends, default_backends

_turn = threading.Lock()


def find_gpus():
    """Return the devices of the platform ``gpu``, which exists from then on.

    Raises:
      RuntimeError: if there is no card, or no way to use one.
    """
    from minijax.cuda.device import CudaDevice, GraphProgram
    from minijax.cuda.driver import count_cards

    with _turn:
        if "gpu" not in platforms:
            cards = [CudaDevice(id) for id in range(count_cards())]
            backends["gpu"] = GraphProgram
            default_backends["gpu"] = Latest("gpu")
            platforms["gpu"] = cards
    return platforms["gpu"]


finders["gpu"] = finders["cuda"] = find_gpus
