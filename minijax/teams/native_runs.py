# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Programs of a mesh on teams: addresses in, one call, addresses out."""

import ctypes
import math

import numpy as np

from minijax.calls.words import word
from minijax.machine.executables import address_of as start_of
from minijax.memory.backend import settled
from minijax.memory.results import empty, scratch
from minijax.replicas.sharded_maps import in_python, running
from minijax.teams.exchange_steps import exchange_library
from minijax.teams.halls import MOST, dismissed, hired
from minijax.teams.meeting_code import ARENA, CONTEXT, LINE, MEMORY, PROGRAM, WORKERS

FEW = 4096  # bytes


class Sitting:
    """A program of a mesh in the memory of a team.

    Args:
      team: the `Team`.
      program: the `MeshProgram`.

    Attributes:
      memory: the tables of addresses of all replicas, one after the other.
      groups: the hall's, when the contexts were made.
    """

    def __init__(self, team, program):
        self.team, self.executable = team, program.executable
        self.size, self.shape = program.size, program.mesh.shape
        self.width = len(program.in_shardings) + len(program.block_avals)
        self.memory = (ctypes.c_int64 * (self.size * self.width))()
        self.groups, self.arena, self.block = None, 0, -(-self._arena() // 64) * 64

    def _arena(self):
        return self.executable.plan.arena

    def sit_down(self):
        """Put addresses into the lines of the team."""
        hall, executable, ranks = self.team.hall, self.executable, range(self.size)
        if self.groups is not hall.entries:
            asked, given = executable.asked, [*executable.context]
            rows = [
                [*given, *[hall.entry(self.shape, rank, names) for names in asked]]
                for rank in ranks
            ]
            self.contexts = np.array([[x or 0 for x in row] for row in rows], np.int64)
            self.groups = hall.entries
        word[self.team.address + PROGRAM] = executable.address
        memory, contexts = ctypes.addressof(self.memory), self.contexts.ctypes.data
        for rank in ranks:
            me = self.team.address + WORKERS + rank * LINE
            word[me + MEMORY] = memory + 8 * self.width * rank
            word[me + CONTEXT] = contexts + self.contexts.strides[0] * rank
        self.team.seated, self.arena = self, 0

    def run(self, shares, avals):
        """Return for each result the blocks of all replicas."""
        memory, width, size, held = self.memory, self.width, self.size, []
        for i, share in enumerate(shares):
            share = list(map(settled, share))
            memory[i::width] = list(map(start_of, share))
            held.append(share)
        wholes = [room_for((size, *aval.shape), aval.dtype) for aval in avals]
        for i, array in enumerate(wholes, len(shares)):
            first, step = start_of(array), array.nbytes // size
            memory[i::width] = [first + step * rank for rank in range(size)]
        if self.team.seated is not self or self.groups is not self.team.hall.entries:
            self.sit_down()
        space = scratch(size * self.block) if self.block else None
        if self.block and start_of(space) != self.arena:
            self.arena = start_of(space)
            for rank in range(size):
                me = self.team.address + WORKERS + rank * LINE
                word[me + ARENA] = self.arena + rank * self.block
        self.team.hall.expect(size)
        if self.team.conduct(self.team.address, size - 1):
            self.give_up()
        for array in wholes:
            array.flags.writeable = False
        return [tuple(parts_in(array)) for array in wholes]

    def give_up(self):
        """Raise the first error of the run."""
        hall = self.team.hall
        error = hall.error
        hall.clear()
        raise error or KeyboardInterrupt


def room_for(shape, dtype):
    """Return an array with arbitrary numbers; large ones are used again."""
    few = math.prod(shape) * dtype.itemsize <= FEW
    return np.empty(shape, dtype) if few else empty(shape, dtype)


def parts_in(whole):
    """Return the parts of an array along its first axis, as arrays."""
    if whole.ndim > 1:
        return list(whole)
    return [whole[i, ...] for i in range(len(whole))]


def seat_of(program, team):
    """Return the `Sitting` of a `MeshProgram` in a team, or None if it has none."""
    executable = program.executable
    if getattr(executable, "asked", None) is None or executable.host.steps:
        return None
    if program.size > MOST:
        return None
    team.grow(program.size)
    return Sitting(team, program)


def on_a_team(program, shares):
    """Return for each result of a `MeshProgram` the blocks of all replicas."""
    if program.seat is False or not exchange_library():
        return in_python(program, shares)
    team, sitting = hired(), program.seat
    try:
        if sitting is None or sitting.team is not team:
            program.seat = sitting = seat_of(program, team) or False
        if sitting:
            return sitting.run(shares, program.block_avals)
    finally:
        dismissed(team)
    return in_python(program, shares)


running.value = on_a_team
