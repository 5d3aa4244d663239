"""Programs of a mesh on teams: addresses in, one call, addresses out."""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import math
from typing import Any

import numpy as np

from minijax.calls.words import word
from minijax.forgetting.remembering import made_once
from minijax.machine.executables import Cuts, Entry
from minijax.machine.executables import address_of as start_of
from minijax.memory.backend import settled
from minijax.memory.results import empty, scratch
from minijax.replicas.sharded_maps import entries, in_python, running
from minijax.teams.exchange_steps import exchange_library
from minijax.teams.halls import MOST, Hall, dismissed, hired
from minijax.teams.meeting_code import (
    ARENA,
    BRING,
    CONTEXT,
    LINE,
    MEMORY,
    PROGRAM,
    WORKERS,
)
from minijax.teams.turn_code import (
    CONTEXTS,
    CONTEXTS_END,
    FIRST,
    IN_HALL,
    PARTS,
    PARTS_END,
    SIZE_OF_CONTEXT,
    SIZE_OF_ROW,
    SIZE_OF_SPACE,
    TURNS,
)
from minijax.teams.turns import takes_turns, time_in_turn

FEW = 4096  # bytes


class Sitting:
    """A program of a mesh in memory: the addresses that its replicas are given.

    Args:
      program: the `MeshProgram`.
      hall: the `Hall` where they meet.

    Attributes:
      memory: the tables of addresses of all replicas, one after the other.
      groups: the hall's, when the contexts were made.
      block: how many bytes of the arena each replica has.
    """

    def __init__(self, program, hall):
        self.hall, self.executable = hall, program.executable
        self.size, self.shape = program.size, program.mesh.shape
        self.width = len(program.in_shardings) + len(program.block_avals)
        self.memory = (ctypes.c_int64 * (self.size * self.width))()
        self.groups, self.block = None, -(-self.executable.plan.arena // 64) * 64

    def make_contexts(self):
        """Make the context of each replica, for the groups that the hall has now."""
        asked, given = self.executable.asked, [*self.executable.context]
        rows = [
            [*given, *[self.hall.entry(self.shape, rank, names) for names in asked]]
            for rank in range(self.size)
        ]
        self.contexts = np.array([[x or 0 for x in row] for row in rows], np.int64)
        self.groups = self.hall.entries

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
        space = scratch(size * self.block)
        self.carry_out(start_of(space))
        for array in wholes:
            array.flags.writeable = False
        return [tuple(parts_in(array)) for array in wholes]


class Turns(Sitting):
    """A program whose replicas are run in turn, by the thread that calls.

    Args:
      program: the `MeshProgram`.
      way: 1, or -1 if the addresses of each replica lie before those of the last one.

    Attributes:
      table: what `take_turns` is given.
      nanoseconds: about how long all of them take.
    """

    def __init__(self, program, way=1):
        super().__init__(program, Hall())
        self.make_contexts()
        parts = ["program"] if self.size == 1 else self.executable.parts
        place = self.executable.library.engine.get_function_address
        self.parts = np.array(list(map(place, parts)), np.int64)
        self.nanoseconds = int(time_in_turn(program))
        words = {
            IN_HALL: self.hall.address, FIRST: BRING if len(parts) > 1 else 0,
            PARTS: start_of(self.parts), CONTEXTS: start_of(self.contexts),
            PARTS_END: start_of(self.parts) + self.parts.nbytes,
            CONTEXTS_END: start_of(self.contexts) + self.contexts.nbytes,
            SIZE_OF_CONTEXT: self.contexts.strides[0],
            SIZE_OF_ROW: way * 8 * self.width, SIZE_OF_SPACE: self.block,
        }  # fmt: skip
        self.table = (ctypes.c_int64 * (TURNS // 8))()
        for place, value in words.items():
            self.table[place // 8] = value

    def carry_out(self, arena):
        """Run all replicas."""
        memory, table = map(ctypes.addressof, (self.memory, self.table))
        turn_taker(self.nanoseconds > 20_000)(memory, arena, table)


@made_once
def turn_taker(long):
    """Return the function that runs replicas in turn; a long one lets Python go on."""
    kind = ctypes.CFUNCTYPE if long else ctypes.PYFUNCTYPE
    return kind(*[ctypes.c_int64] * 4)(exchange_library().place("take_turns"))


class TeamSitting(Sitting):
    """A program in the memory of a team.

    Args:
      team: the `Team`.
      program: the `MeshProgram`.
    """

    def __init__(self, team, program):
        super().__init__(program, team.hall)
        self.team, self.arena = team, 0

    def sit_down(self):
        """Put addresses into the lines of the team."""
        if self.groups is not self.hall.entries:
            self.make_contexts()
        word[self.team.address + PROGRAM] = self.executable.address
        memory, contexts = ctypes.addressof(self.memory), start_of(self.contexts)
        for rank in range(self.size):
            me = self.team.address + WORKERS + rank * LINE
            word[me + MEMORY] = memory + 8 * self.width * rank
            word[me + CONTEXT] = contexts + self.contexts.strides[0] * rank
        self.team.seated, self.arena = self, 0

    def carry_out(self, arena):
        """Have the team run all replicas."""
        if self.team.seated is not self or self.groups is not self.hall.entries:
            self.sit_down()
        if arena != self.arena:
            self.arena = arena
            for rank in range(self.size):
                me = self.team.address + WORKERS + rank * LINE
                word[me + ARENA] = arena + rank * self.block
        self.hall.expect(self.size)
        if self.team.conduct(self.team.address, self.size - 1):
            self.give_up()

    def give_up(self):
        """Raise the first error of the run."""
        error = self.hall.error
        self.hall.clear()
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


class InTurn(list):
    """How a program is run whose replicas take turns: the `Turns` that are free."""

    def __call__(self, program, shares):
        """Return for each result the blocks of all replicas."""
        try:
            turns = self.pop()
        except IndexError:
            turns = Turns(program)
        try:
            return turns.run(shares, program.block_avals)
        finally:
            self.append(turns)


class ByTeams:
    """How a program is run by teams.

    Attributes:
      last: its `TeamSitting` in the team that ran it last.
    """

    last: Any = None

    def __call__(self, program, shares):
        """Return for each result the blocks of all replicas."""
        team, sitting = hired(), self.last
        try:
            if sitting is None or sitting.team is not team:
                team.grow(program.size)
                self.last = sitting = TeamSitting(team, program)
            return sitting.run(shares, program.block_avals)
        finally:
            dismissed(team)


def seat_of(program):
    """Return how a `MeshProgram` is run, or False if Python runs it."""
    executable = program.executable
    if getattr(executable, "asked", None) is None or executable.host.steps:
        return False
    if program.size > MOST or not exchange_library():
        return False
    return InTurn() if takes_turns(program) else ByTeams()


def run_natively(program, shares):
    """Return for each result of a `MeshProgram` the blocks of all replicas."""
    if program.seat is None:
        program.seat = seat_of(program)
    if program.seat is False:
        return in_python(program, shares)
    return program.seat(program, shares)


def entry_of(program):
    """Return the `Entry` of a `MeshProgram` whose replicas take turns, or None."""
    avals = [*program.in_avals, *program.block_avals]
    if not isinstance(program.seat, InTurn) or not all(x.dtype.itemsize for x in avals):
        return None
    turns, outs = Turns(program, -1), (program.out_avals, program.out_placements)
    ends = program.in_avals, program.block_avals, *outs, turns
    return Entry(
        exchange_library().place("take_turns"), program.size * turns.block,
        ctypes.addressof(turns.table), turns.nanoseconds,
        (None,) * len(program.out_avals), Cuts(program.size, *ends),
    )  # fmt: skip


running.value, entries.value = run_natively, entry_of
