# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Runs of a program on a mesh of processes, without threads and without copies."""

import ctypes
from weakref import WeakValueDictionary

import numpy as np

from minijax.calls.words import word
from minijax.machine.executables import address_of, contexts, table
from minijax.memory.backend import settled
from minijax.memory.results import scratch
from minijax.ranks.agreements import _apart, digest, text_of
from minijax.ranks.crossings import Crossing, CrossingRun
from minijax.ranks.engines import allgather, alltoall, native, permute, reduce_scatter
from minijax.ranks.processes import machine_code, world_here
from minijax.replicas.rendezvous import replica_here
from minijax.replicas.rows import row_of
from minijax.replicas.sharded_maps import in_python, running
from minijax.teams.exchange_steps import FUNCTIONS_OF_NUMPY
from minijax.teams.labels import steps_told
from minijax.teams.meeting_code import ELSEWHERE, KIND, ROW
from minijax.teams.native_runs import room_for


def at(address, dtype, size):
    """Return the array at an address."""
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype, size)


def _fold_into(engine, step, x, y):
    ufunc = FUNCTIONS_OF_NUMPY[step.combining.kernel.name]
    operation = native(engine, ufunc, x.dtype)
    if operation is None:
        y[...] = ufunc.reduce(allgather(engine, x), 0)
    else:
        engine.comm.Allreduce(x, y, operation)


def _by_source(engine, step, x, y):
    pairs = [(source, i) for i, source in enumerate(step.sources) if source >= 0]
    y[...] = permute(engine, x, pairs)


def _rows(engine, x):
    return x.reshape(engine.comm.size, -1)


INTO = {
    "fold": _fold_into,
    "all": lambda engine, step, x, y: y.__setitem__(..., allgather(engine, x).ravel()),
    "parts": lambda engine, step, x, y: y.__setitem__(
        ..., alltoall(engine, _rows(engine, x)).ravel()
    ),
    "scatter": lambda engine, step, x, y: y.__setitem__(
        ..., reduce_scatter(engine, _rows(engine, x))
    ),
    "one": _by_source,
}


def exchange_into(engine, step, source, result):
    """Exchange what lies at one address, and write what comes to another one."""
    x = at(source, step.x.dtype, step.x.size)
    INTO[step.how](engine, step, x, at(result, step.out.dtype, step.out.size))


def exchange_jointly(engine, step, start, count):
    """Exchange several arrays, all of one dtype and fold together.

    Args:
      start: the address of a table with a row for each.
      count: of rows.
    """
    kinds: dict = {}
    for i, part in enumerate(step.parts):
        kinds.setdefault((part.combining.kernel.name, part.x.dtype), []).append(i)
    for (_, dtype), members in kinds.items():
        rows = [start + ROW * i for i in members]
        sizes = [step.parts[i].x.size for i in members]
        pairs = [*zip(rows, sizes)]
        x = np.concatenate([at(word[row], dtype, size) for row, size in pairs])
        y = np.empty_like(x)
        _fold_into(engine, step.parts[members[0]], x, y)
        for (row, size), part in zip(pairs, np.split(y, np.cumsum(sizes)[:-1])):
            at(word[row + 8], dtype, size)[...] = part


class Entry:
    """Where machine code finds those of several processes whom it meets.

    Args:
      crossing: a `Crossing`.
      number: of this process among them.

    Attributes:
      error: what an exchange has raised, or None.
    """

    def __init__(self, crossing, number):
        self.crossing, self.error = crossing, None
        self.memory = np.array([-1, number, 0])
        self.address = self.memory.ctypes.data
        word[self.address + ELSEWHERE] = _answer_address
        _entries[self.address] = self

    def do(self, source, result, label):
        """Do an exchange; return 1 if it has failed."""
        step = steps_told[label & KIND]
        exchange = exchange_jointly if hasattr(step, "parts") else exchange_into
        try:
            talk, processes = world_here().talk, self.crossing.processes
            talk(step.label, processes, exchange, step, source, result)
        except BaseException as error:
            self.error = error
            return 1
        return 0


_entries: WeakValueDictionary = WeakValueDictionary()
ANSWER = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)
_answer = ANSWER(lambda entry, *args: _entries[entry].do(*args))
_answer_address = ctypes.cast(_answer, ctypes.c_void_p).value


def entry_of(run, rank, names):
    """Return the `Entry` of a replica for its row along some axes."""
    members = row_of(run.shape, rank, names)
    processes = tuple([run.processes[i] for i in members])
    return Entry(Crossing(members, processes), members.index(rank))


class DirectRun:
    """A program of a mesh, with what is the same in each run by this process.

    Args:
      program: the `MeshProgram`.
    """

    def __init__(self, program):
        run, self.program = CrossingRun(program.mesh), program
        [self.rank], self.size = run.ranks, run.size
        executable = self.executable = program.executable
        self.entries = [entry_of(run, self.rank, names) for names in executable.asked]
        addresses = [entry.address for entry in self.entries]
        self.context = table([*executable.context, *addresses])
        number = digest(text_of(program.text_parts, program.mesh))
        self.number, self.found = np.array([number, -number]), np.zeros(2, np.int64)
        self.processes = tuple(run.processes)

    def compare(self, engine):
        """Raise unless all processes are about to run this program."""
        engine.comm.Allreduce(self.number, self.found, engine.operations[np.maximum])
        if self.found[0] != -self.found[1]:
            text = text_of(self.program.text_parts, self.program.mesh)
            raise ValueError(_apart(engine.comm.allgather(text)))

    def __call__(self, shares, avals):
        """Return for each result the blocks of all replicas, those that are here."""
        talk, plan = world_here().talk, self.executable.plan
        talk("a comparison of programs", self.processes, self.compare)
        inputs = [settled(share[self.rank]) for share in shares]
        results = [room_for(aval.shape, aval.dtype) for aval in avals]
        memory = table(map(address_of, [*inputs, *results]))
        arena = scratch(plan.arena)
        if self.executable.function(memory, address_of(arena), self.context):
            self.give_up()
        return list(map(self.placed, results))

    def placed(self, result):
        """Return the blocks of one result, of which one is here."""
        result.flags.writeable = False
        blocks = [None] * self.size
        blocks[self.rank] = result
        return tuple(blocks)

    def give_up(self):
        """Raise what an exchange has raised."""
        errors = [entry.error for entry in self.entries if entry.error is not None]
        for entry in self.entries:
            entry.error = None
        raise errors[0] if errors else KeyboardInterrupt


_before, _contexts_before = running.value, contexts.value


def direct(program, shares):
    """Return for each result of a `MeshProgram` the blocks of all replicas."""
    if not program.mesh.is_multi_process:
        return _before(program, shares)
    if program.seat is False:
        program.seat = DirectRun(program) if _is_direct(program.executable) else None
    if program.seat is None:
        return in_python(program, shares)
    return program.seat(shares, program.block_avals)


def _is_direct(executable):
    """Return whether a program needs no step of Python."""
    return getattr(executable, "asked", None) is not None and not executable.host.steps


def _contexts(program):
    """Return the context of one call by a replica of several processes."""
    replica = replica_here(program.asked[0][0])
    if type(replica.run) is not CrossingRun:
        return _contexts_before(program)
    made = [entry_of(replica.run, replica.rank, names) for names in program.asked]
    replica.run.entries = made  # they are needed as long as it runs
    return table([*program.context, *[entry.address for entry in made]])


running.value, contexts.value, machine_code.value = direct, _contexts, True
