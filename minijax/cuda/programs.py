# Made from chapters/35_device.md by `make chapter`;
# edit the chapter, not this file.
"""Programs for a GPU: CUDA C for their kernels, and the order of launches."""

from itertools import repeat

from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.arrays.placement import host_device
from minijax.cuda.cublas import library_calls, with_library
from minijax.cuda.device_memory import (
    CardBuffer,
    CardMemory,
    bytes_of,
    memory_of_ends,
    offsets_with_answers,
    room,
)
from minijax.cuda.graphs import recorded_series
from minijax.cuda.launched_steps import (
    cuda_launches,
    program_for_card,
    rows_are_aligned,
)
from minijax.cuda.turns import by_the_host, on_the_host
from minijax.errors import JaxRuntimeError
from minijax.fusion.fusion_pass import fuse
from minijax.gpu.kept_rows import shape_on_card
from minijax.gpu.operations import PRELUDE
from minijax.jitting.compilation import on_device_of
from minijax.kernels.program_steps import Launch, jaxpr_passes, lower
from minijax.llvm.targets import TARGETS
from minijax.machine.executables import with_own_results
from minijax.memory.in_place import may_overwrite
from minijax.memory.planning import plan

MOST_BLOCKS = 2**31 - 1  # of a launch


def steps_for_card(closed, card=None):
    """Return the `LoweredProgram` of a program: launches, where a card can do it."""
    with on_device_of(host_device().uncommitted):  # for what is computed at once
        program = with_own_results(lower(jaxpr_passes.value(closed)))
        program = program_for_card(fuse(program, TARGETS["gpu"]))
    return with_library(program, card) if card else program


def launches_in(program, aligned=True):
    """Return the `CudaLaunch` of each step that a card does, by the step's `id`."""
    found = {}
    for step in program.steps:
        if type(step) in cuda_launches:
            found[id(step)] = cuda_launches[type(step)](step, aligned)
        for inner in step.programs:
            found |= launches_in(inner, aligned and rows_are_aligned(step))
    return found


def cuda_source(launches):
    """Return the CUDA C of launches, each function once, and the functions' names."""
    texts: dict = {}
    for launch in launches:
        if texts.setdefault(launch.label, launch.text) != launch.text:
            raise JaxRuntimeError(f"Two functions of a card are called {launch.label}.")
    return PRELUDE + "\n".join(texts.values()) if texts else "", {*texts}


def may_overwrite_there(step, old, new):
    """Return whether the threads of a step may write a result over an operand."""
    alone = type(step) is Launch and shape_on_card(step.kernel).team == 1
    return alone and may_overwrite(step, old, new)


def launched(program, launch):
    """Return a function of the memory that puts a launch into the card's stream."""
    label, _, blocks, threads, buffers = launch
    card, function = program.card, program.functions[label]
    reach = [(program.offsets.get(buffer), buffer) for buffer in buffers]
    what = f"{label} of {program.name}{program.line}"
    if blocks > MOST_BLOCKS:
        said = f"{what} wants {blocks} blocks; a card has {MOST_BLOCKS} at most."
        raise JaxRuntimeError(said)

    def do(memory):
        start = memory.arena.address
        places = [memory[x].address if at is None else start + at for at, x in reach]
        card.launch(function, blocks, threads, places, what)

    return do if blocks else lambda memory: None


def prepared(program, step):
    """Return a function of the memory that does a step of a program."""
    if id(step) in program.launches:
        return launched(program, program.launches[id(step)])
    if type(step) in library_calls:
        return library_calls[type(step)](program, step)
    if type(step) in by_the_host:
        return by_the_host[type(step)](program, step)
    return on_the_host(program, step)


class CardSteps:
    """The steps of a program as work for a card, and for the host."""

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        return prepared(self, step)

    def series(self, steps):
        """Return functions of the memory that do steps, one after the other."""
        return list(map(self.prepare, steps))

    def is_launched(self, step):
        """Return whether a step is work for the card alone."""
        return id(step) in self.launches or type(step) in library_calls

    def start(self, memory):
        """Go through the steps; what is the card's work is done later."""
        for step in self.steps:
            step(memory)


def line_of(closed):
    """Return where a program begins in the text of its user, for errors."""
    lines = [eqn.source for eqn in closed.eqns if eqn.source is not None]
    return f", which begins in {lines[0].brief}" if lines else ""


class CudaProgram(CardSteps):
    """A program whose kernels run on a GPU, in the order in which the host asks.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.
      device: the `CudaDevice`.

    Attributes:
      lowered, plan: its `LoweredProgram` and its `MemoryPlan`.
      text: the CUDA C of its kernels.
      arenas: memory for what is between the results, while no call uses it.
      offsets, room: where what is between lies in an arena, and how large that is.
    """

    platforms, donates, per_device = ("gpu",), True, True

    def __init__(self, closed, name="program", donated=(), device=None):
        self.name, self.line, self.out_avals = name, line_of(closed), closed.out_avals
        self.device, self.card, self.placement = device, device.card, device.uncommitted
        steps = steps_for_card(closed, device.card)
        self.plan = plan(steps, donated, may_overwrite_there)
        self.lowered = self.plan.planned
        self.offsets, self.room = offsets_with_answers(self.plan)
        self.launches, self.arenas = launches_in(self.lowered), []
        self.text, labels = cuda_source(self.launches.values())
        self.functions = self.card.load(self.text, labels) if labels else {}
        consts = self.lowered.constants
        self.constants = {x: asbuffer(value, device).bytes for x, value in consts}
        self.steps = self.series(self.lowered.steps)

    def __call__(self, *args):
        """Return the list of results."""
        return called(self, args)


def run(program, inputs):
    """Put the steps of a program into the stream; return the buffers of its results.

    Args:
      program: a `CudaProgram`.
      inputs: a list of `CardBytes`.
    """
    found, size = memory_of_ends(program, inputs), program.room
    kept = program.arenas
    taken = sum(map(len, inputs))
    what = f"the arena of {program.name}, whose arguments take {taken} bytes,"
    arena = kept.pop() if kept else room(program.card, size, what)
    program.start(CardMemory(found, program.offsets, arena))
    kept.append(arena)
    pairs = zip(program.lowered.outputs, program.out_avals)
    return [CardBuffer(found[x], aval.shape, aval.dtype) for x, aval in pairs]


def called(program, args):
    """Return the results of a program for arrays, and numbers of the host."""
    pairs = zip(args, program.plan.donated)
    inputs = [bytes_of(program, x, ours) for x, ours in pairs]
    results = run(program, inputs)
    return list(map(ArrayImpl, results, program.out_avals, repeat(program.placement)))


class GraphProgram(CudaProgram):
    """A program for a GPU that records launches which come again."""

    def series(self, steps):
        """Return functions of the memory that do steps, one after the other."""
        return recorded_series(self, steps)
