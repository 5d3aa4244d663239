"""Worker threads, and which replica of a program each of them is.

Reference: the thread pool of XLA's CPU client.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

import os
import threading
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue

from minijax.arrays.settings import config
from minijax.batching.named_axes import unbound_axis
from minijax.extents import Extent, dynamic_variable, in_force


def _seconds(value):
    seconds = float(value)
    if not seconds > 0:
        raise ValueError(f"a number of seconds above 0, not {value!r}.")
    return seconds


config.define(
    "minijax_collective_timeout",
    os.environ.get("MINIJAX_COLLECTIVE_TIMEOUT", 300),
    _seconds,
)


class Released(Exception):
    """What a waiting replica gets when the run has failed elsewhere."""


def strangers_met(labels):
    """Return what is said when labels differ: which replica wants what."""
    lines = [f"replica {rank}: {label}" for rank, label in labels.items()]
    return (
        "Replicas of one program have met in different collectives:\n  "
        + "\n  ".join(lines)
        + "\nA branch or a loop that differs between replicas holds one of them."
    )


def _line():
    line = getattr(here, "line", None)
    return f" ({line})" if line else ""


def replicas_missing(members, arrived, label, seconds):
    """Return the error of a meeting at which some replicas have not arrived."""
    missing = [str(rank) for rank in members if rank not in arrived]
    which = "replica" if len(missing) == 1 else "replicas"
    return TimeoutError(
        f"{label} waited {seconds:g} s{_line()}; "
        f"{len(arrived)} of {len(members)} replicas arrived; "
        f"{which} {', '.join(missing)} missing. A replica that takes longer needs "
        "MINIJAX_COLLECTIVE_TIMEOUT; one that never comes has taken another branch, or "
        "a longer loop."
    )


class Replica:
    """What a thread is while it runs a program for a device.

    Args:
      run: the `Run`.
      rank: its number.
    """

    def __init__(self, run, rank):
        self.run, self.rank = run, rank


_replica = dynamic_variable("replica", None)


class _Here(threading.local):
    """What a thread is: its `replica`, or None, and the `line` of its collective."""

    replica = property(lambda self: in_force(_replica).value)


here = _Here()


def replica_here(name):
    """Return the `Replica` of this thread.

    Raises:
      NameError: if there is none, so that no axis is called `name`.
    """
    replica = here.replica
    if replica is None:
        raise unbound_axis(name)
    return replica


def being(replica):
    """Be a replica, or None, for a ``with`` block."""
    return Extent(_replica, replica)


class Worker:
    """A thread that does one task after the other, and stays."""

    def __init__(self):
        self.tasks = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            self.tasks.get()()


_idle: list = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def hired():
    """Return a `Worker` that has nothing to do."""
    try:
        return _idle.pop()
    except IndexError:
        return Worker()


def dismiss(worker):
    """Let a `Worker` wait for its next task."""
    _idle.append(worker)


def run_replicas(run, function):
    """Call a function once for each replica at the same time; the first one is here.

    Args:
      run: a `Run`.
      function: called with the rank.

    Returns:
      The list of what the calls returned; None for replicas of other processes.

    Raises:
      Whatever the first replica to fail has raised; the others are released.
    """
    results, ends = [None] * run.size, SimpleQueue()

    def task(rank):
        try:
            with being(Replica(run, rank)):
                results[rank] = function(rank)
        except BaseException as error:
            run.fail(error)

    def errand(rank, worker, context):
        context.run(task, rank)
        dismiss(worker)
        ends.put(rank)

    mine, *others = run.ranks
    for rank in others:
        worker = hired()
        worker.tasks.put(partial(errand, rank, worker, copy_context()))
    task(mine)
    for _ in others:
        ends.get()
    if run.error is not None:
        raise run.error
    return results
