# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.
"""A launch of CUDA C, as a record."""

from typing import NamedTuple


class CudaLaunch(NamedTuple):
    """A function of CUDA C, and how a step launches it.

    Attributes:
      label: name of the function.
      text: of it.
      blocks, threads: how many there are, of the latter in a block.
      buffers: those of its parameters.
    """

    label: str
    text: str
    blocks: int
    threads: int
    buffers: list
