"""Runs of a program on a mesh whose devices belong to several processes."""

# Made from chapters/37_machines.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial

import numpy as np

from minijax.ranks.agreements import agree, text_of
from minijax.ranks.engines import ACROSS, allgather
from minijax.ranks.processes import world_here
from minijax.replicas.named_shardings import gathered
from minijax.replicas.rendezvous import Run, kinds
from minijax.replicas.rows import row_of
from minijax.replicas.sharded_maps import run_over
from minijax.spmd.exchanging import agreement, collective_across


class Crossing:
    """Where replicas of several processes exchange values.

    Args:
      members: their ranks in the run.
      processes: their processes.
    """

    def __init__(self, members, processes):
        self.members, self.processes = members, processes

    def exchange(self, rank, label, value, combine):
        """Return this replica's result of a collective, as `Meeting.exchange` does."""
        return self.collect(label, value, kinds[combine.func], combine.keywords)

    def collect(self, label, value, primitive, params):
        """Return the result here of a collective, for one operand here."""
        x = np.ascontiguousarray(value).reshape(np.shape(value))  # none, if no axes
        exchange = partial(ACROSS[primitive], **params)
        return world_here().exchange_among(label, self.processes, exchange, x)


class CrossingRun(Run):
    """One run of a program on a mesh, of which this process has some places.

    Args:
      mesh: a `Mesh`.
    """

    def __init__(self, mesh):
        super().__init__(mesh.shape)
        self.processes = [device.process_index for device in mesh._flat]
        local = [device.is_local for device in mesh._flat]
        self.ranks = [rank for rank in range(self.size) if local[rank]]

    def meeting(self, rank, names):
        """Return where a replica meets its row along some axes."""
        members = row_of(self.shape, rank, names)
        processes = tuple([self.processes[i] for i in members])
        alone = len(members) == 1
        return super().meeting(rank, names) if alone else Crossing(members, processes)


def _collective_across(eqn, mesh, group, values):
    """Do a collective among processes; return the result here, None for others."""
    processes = tuple([mesh._flat[place].process_index for place in group])
    [here] = [i for i, place in enumerate(group) if mesh._flat[place].is_local]
    rest = {key: x for key, x in eqn.params.items() if key != "axis_name"}
    call = Crossing(tuple(group), processes).collect
    label = f"{eqn.primitive} over {eqn.params['axis_name']}"
    results: list = [None] * len(group)
    results[here] = call(label, values[here]._numbers(), eqn.primitive, rest)
    return results


def _gathered(group, buffer):
    """Return the numbers of all parts of an array that lies on a group of devices."""
    processes = tuple([device.process_index for device in group.devices])
    own = group.home.fetch(buffer[group.devices.index(group.home)])
    own = np.ascontiguousarray(own)
    here = world_here()
    return list(here.exchange_among("a gathering", processes, allgather, own))


collective_across.value, gathered.value = _collective_across, _gathered


def spans(mesh):
    """Return the processes of a mesh in its order, or None if all of it is here."""
    here = all(device.is_local for device in mesh._flat)
    return None if here else tuple([device.process_index for device in mesh._flat])


def same_program(mesh, program):
    """Raise a `ValueError` unless all processes of a mesh run this program."""
    if (processes := spans(mesh)) is not None:
        compare(world_here(), processes, text_of(program, mesh))


def compare(world, processes, text):
    """Raise a `ValueError` unless all processes begin this program, or repeat it."""
    if world.latest.get(processes) != text:
        engine = world.engine(processes, "programs")
        world.watch("a comparison of programs", agree, engine, text)
        world.latest[processes] = text


def _run_over(mesh, program):
    same_program(mesh, program)
    return Run(mesh.shape) if spans(mesh) is None else CrossingRun(mesh)


agreement.value, run_over.value = same_program, _run_over
