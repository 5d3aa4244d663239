"""Steps of a program as functions of CUDA C: kernels, products, sorts, loops."""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

import hashlib
from typing import NamedTuple

from minijax.cuda.card_products import (
    CardProduct,
    CardTaps,
    launch_of_product,
    launch_of_taps,
    steps_of_taps,
)
from minijax.cuda.driver import CudaLaunch
from minijax.cuda.sort_passes import SortPass, launch_of_pass, passes_of_sort
from minijax.cuda.twins import side_by_side
from minijax.errors import JaxRuntimeError
from minijax.gpu.block_loops import (
    fits_block,
    loop_function,
    parameters_of,
    threads_for,
)
from minijax.gpu.choices import for_card
from minijax.gpu.cuda_text import cuda_function
from minijax.gpu.kept_rows import shape_on_card
from minijax.gpu.operations import PRELUDE
from minijax.jitting.costs import nbytes
from minijax.kernels.program_steps import Launch, StepKind, step_kinds
from minijax.machine.nested import Repeat
from minijax.matmul.lowering import Product
from minijax.memory.in_place import may_overwrite
from minijax.sorting.steps import Sort
from minijax.windows.tap_products import TapProduct


def launch_of_kernel(step, aligned=True):
    """Return the `CudaLaunch` of a `Launch`.

    Args:
      step: the `Launch`.
      aligned: whether the memory of all its buffers begins where 16 bytes begin.
    """
    kernel, label = step.kernel, step.kernel.label
    anywhere = () if aligned else {x.name for x in kernel.parameters}
    shape = shape_on_card(kernel, anywhere)
    label = label if aligned else f"{label}_anywhere"
    text = cuda_function(kernel, shape, label)
    return CudaLaunch(label, text, shape.blocks(kernel), shape.threads, step.buffers)


class BlockLoop(NamedTuple):
    """A step: a loop that one block of threads does, in one launch.

    Attributes:
      loop: a `Repeat`, or a `While`.
    """

    loop: NamedTuple

    @property
    def programs(self):
        """No program: a card does the loop as a whole."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        written = {*self.writes}
        return [x for x in parameters_of(self.loop) if x not in written]

    @property
    def writes(self):
        """The buffers that the step writes to; its states have memory of their own."""
        return [*self.loop.results, *getattr(self.loop, "ys", ())]

    def __str__(self):
        return f"in one block: {self.loop}"


def launch_of_loop(step, aligned=True):
    """Return the `CudaLaunch` of a `BlockLoop`."""
    loop = step.loop
    key = hashlib.sha256(loop_function(loop, "loop").encode()).hexdigest()[:12]
    label, buffers = f"loop_{key}", parameters_of(loop)
    text = loop_function(loop, label)
    return CudaLaunch(label, "\n" + text, 1, threads_for(loop), buffers)


def rows_are_aligned(step):
    """Return whether the rows of a loop begin where 16 bytes begin."""
    wholes = [*step.xs, *step.ys] if isinstance(step, Repeat) and step.length else []
    return not any(nbytes(x) // step.length % 16 for x in wholes)


def card_steps(step):
    """Return the steps of a card for one of a core."""
    if type(step) is Product:
        return [CardProduct(*step)]
    if type(step) is TapProduct:
        return steps_of_taps(step)
    if type(step) is Sort:
        return passes_of_sort(step)
    if fits_block(step):
        return [BlockLoop(step)]
    if step.programs:
        return [step.with_programs([*map(with_card_steps, step.programs)])]
    return [step]


def with_card_steps(program):
    """Return a program with a card's products, sorts and loops, within loops too."""
    steps = [each for step in program.steps for each in card_steps(step)]
    return side_by_side(program._replace(steps=steps))


def program_for_card(program):
    """Return a fused `LoweredProgram` with the steps of a card, which fill it."""
    return for_card(with_card_steps(program))


# From types of steps to functions that return the `CudaLaunch` of a step, given it and
# whether its memory is aligned.
cuda_launches = {
    Launch: launch_of_kernel,
    BlockLoop: launch_of_loop,
    CardProduct: launch_of_product,
    CardTaps: launch_of_taps,
    SortPass: launch_of_pass,
}


def run_of_loop(program, step):
    """Return a function of the memory that does the loop in a block, turn by turn."""
    return step_kinds[type(step.loop)].run(program, step.loop)


def cost_of_loop(step):
    """Return the costs of the loop in a block."""
    return step_kinds[type(step.loop)].cost(step.loop)


step_kinds[BlockLoop] = StepKind(run_of_loop, cost_of_loop)


MOST_BLOCKS = 2**31 - 1  # of a launch


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


def line_of(closed):
    """Return where a program begins in the text of its user, for errors."""
    lines = [eqn.source for eqn in closed.eqns if eqn.source is not None]
    return f", which begins in {lines[0].brief}" if lines else ""
