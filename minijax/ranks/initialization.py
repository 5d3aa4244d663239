"""Joining the other processes of a job, and leaving them.

Reference: ``jax.distributed``.
"""

# Made from chapters/37_machines.md by `make chapter`;
# edit the chapter, not this file.

import atexit
import os
from functools import partial
from time import monotonic, sleep
from typing import Any

import numpy as np

from minijax.arrays.placement import devices, platforms
from minijax.arrays.settings import config
from minijax.ranks.launchers import find_launcher, load_mpi
from minijax.ranks.processes import RemoteDevice, World, machine_code, world
from minijax.ranks.watching import Notes, Watch, end_all_on_error


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: Any = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Join the other processes of this job, which a launcher has started.

    ``mpiexec -n 4 python train.py`` starts four; this call has them know each other. In
    a process that no launcher has started, it is alone.

    Args:
      num_processes, process_id: what the launcher has to agree with, if given.
      shutdown_timeout_seconds: how long a process that ends waits for the others.
      coordinator_address, local_device_ids, cluster_detection_method,
        initialization_timeout, heartbeat_timeout_seconds, coordinator_bind_address,
        slice_index, partition_index: taken for JAX's sake; the launcher knows it all.

    Raises:
      RuntimeError: if it was called before, or if MPI is not there.
      ValueError: if the launcher says something else, or there are several devices.

    Reference: ``jax.distributed.initialize``.
    """
    if world.value is not None:
        raise RuntimeError("distributed.initialize should only be called once.")
    launcher = find_launcher(os.environ)
    if launcher is None:
        _check_asked(num_processes, process_id, 1, 0)
        world.value = World(None, {}, None)
        return
    MPI = load_mpi(launcher)
    comm = MPI.COMM_WORLD.Dup()
    _check_asked(num_processes, process_id, comm.size, comm.rank)
    _join(comm.rank, comm.size)
    operations = {np.add: MPI.SUM, np.maximum: MPI.MAX, np.minimum: MPI.MIN}
    many = MPI.Query_thread() == MPI.THREAD_MULTIPLE
    notes = Notes(MPI.COMM_WORLD.Dup()) if many else None
    limit = partial(getattr, config, "minijax_collective_timeout")
    watch = Watch(comm.rank, comm.size, limit, lambda: _end(comm), notes).start()
    end_all_on_error(lambda: _end(comm))
    world.value = World(comm, operations, watch)
    config.update("minijax_exchange", machine_code.value and config.minijax_exchange)
    atexit.register(_leave, shutdown_timeout_seconds)


def _join(rank, size):
    """Be process `rank` of `size`: number the device here, and list the others.

    Raises:
      ValueError: if there is more than one device here.
    """
    here = devices("cpu")
    if len(here) > 1:
        raise ValueError(
            f"There are {size} processes, with one device each, but this one was asked "
            f"for {len(here)} (jax_num_cpu_devices). Start more processes instead."
        )
    [home] = here
    home.id = home.process_index = rank
    listed = [home if i == rank else RemoteDevice("cpu", i) for i in range(size)]
    platforms["cpu"][:] = listed


def _check_asked(number, index, size, rank):
    """Raise unless what a caller says agrees with what the launcher has started."""
    if number not in (None, size) or index not in (None, rank):
        raise ValueError(
            f"distributed.initialize was given num_processes={number} and process_id="
            f"{index}, but this is process {rank} of {size}. A launcher starts "
            "processes, as in: mpiexec -n 4 python train.py"
        )


def _end(comm):
    """End all processes, this one too."""
    try:
        comm.Abort(1)
    finally:
        os._exit(1)


def shutdown() -> None:
    """Leave the other processes; wait until they do, too.

    Raises:
      RuntimeError: if `initialize` was not called.

    Reference: ``jax.distributed.shutdown``.
    """
    if world.value is None:
        raise RuntimeError("distributed.shutdown: initialize was not called.")
    _leave(300)


def _leave(seconds):
    """Wait for all processes to end; end them if some do not come."""
    here, world.value = world.value, None
    if here is None or here.comm is None:
        return
    request, end = here.comm.Ibarrier(), monotonic() + seconds
    while not request.Test():
        if monotonic() > end:
            here.watch._say(f"has ended, and others have not after {seconds:g} s.")
            _end(here.comm)
        sleep(0.002)
    here.watch.stop()


def is_initialized() -> bool:
    """Return whether `initialize` was called, and `shutdown` was not.

    Reference: ``jax.distributed.is_initialized``.
    """
    return world.value is not None
