"""Processes that run one program: their devices, and who talks with whom.

Reference: ``jax.distributed``.
"""

# Made from chapters/37_machines.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax.arrays.placement import Device
from minijax.jaxprs.latest import Latest
from minijax.ranks.engines import Engine


class RemoteDevice(Device):
    """A device of another process, where that process puts its buffers.

    Args:
      platform: its name.
      process: the rank of its process.
    """

    is_local = False

    def __init__(self, platform, process):
        super().__init__(platform, process, np)
        self.process_index = process

    def put(self, x, dtype=None):
        """Return None, which stands for a buffer of another process."""

    def seal(self, buffer):
        """Do nothing: the buffer is sealed where it is."""

    def fetch(self, buffer):
        """Refuse: the numbers are not here."""
        where = f"process {self.process_index}"
        raise RuntimeError(f"The numbers on {self} are in {where}.")


class World:
    """The processes that run one program.

    Args:
      comm: the communicator of all of them.
      operations: see `Engine`.
      watch: the `Watch` of this one.

    Attributes:
      latest: from sets of processes to the text of the program they have run last.
    """

    def __init__(self, comm, operations, watch):
        self.comm, self.operations, self.watch = comm, operations, watch
        self._engines, self.latest = {}, {}

    def engine(self, processes, use="exchanges"):
        """Return the `Engine` of some processes, in their order; all have to ask.

        Each use has a communicator of its own, so what is sent for one of them never
        arrives in another.
        """
        if (processes, use) not in self._engines:
            group = self.comm.Get_group().Incl(processes)
            comm = self.comm.Create_group(group)
            self._engines[processes, use] = Engine(comm, self.operations)
        return self._engines[processes, use]

    def exchange_among(self, label, processes, exchange, *args):
        """Return what an exchange among some processes returns, under the watch."""
        return self.watch(label, lambda: exchange(self.engine(processes), *args))


world: Latest = Latest(None)
machine_code: Latest = Latest(False)  # whether it exchanges with other processes, too


def world_here() -> Any:
    """Return the `World`.

    Raises:
      RuntimeError: if this process has not joined one, or has left it.
    """
    if world.value is None or world.value.comm is None:
        raise RuntimeError(
            "This array spans several processes, and this one does not talk to them: "
            "minijax.distributed.initialize() was not called, or shutdown() was."
        )
    return world.value
