"""The backend "cpu": a program is one function of machine code."""

# Made from chapters/21_machine.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/21_machine_rest.md: CarryLayout.staying (4736c6f7).
# Amended in chapters/21_machine_rest.md: carry_layout, emit_carry_begin (f28d0d0c).
# Amended in chapters/21_machine_rest.md: CPUProgram.__init__ (f625b8c4).

import dataclasses
from itertools import repeat
from typing import NamedTuple

from minijax._lazy import without_gc
from minijax.arrays.array import ArrayImpl
from minijax.cpu_backend.program_codegen import (
    SMALL_LOCAL_BYTES,
    Executable,
    ProgramEmitter,
    ScanStep,
    buffer_argument,
    data_pointer,
    emit_program_steps,
    input_buffers,
    output_buffers,
    pointer_table,
    step_passes,
    unalias_outputs,
)
from minijax.fusion.fusion_pass import fuse
from minijax.jitting.compilation import backends, default_backends
from minijax.jitting.stages import nbytes
from minijax.kernels.builder import Buffer
from minijax.kernels.lowering import Launch, cpu_rules, jaxpr_passes, lower, step_kinds
from minijax.llvm.targets import current_target, kernel_function
from minijax.memory.aliasing import may_take
from minijax.memory.allocator import scratch_bytes
from minijax.memory.buffer_assignment import Planning, may_overwrite, plan_memory
from minijax.rematerialization.jaxpr_transforms import partition_list

# What writes the steps of programs: the call of a kernel, and loops.


def emit_launch(f, step):
    """Write the call of a kernel."""
    name = intern_kernel(f.program, step.kernel)
    pairs = zip(step.kernel.parameters, step.buffers)
    args = [buffer_argument(f, buffer, parameter.dtype) for parameter, buffer in pairs]
    f.line(f"call void {name}({', '.join(args)})")


def intern_kernel(program, kernel):
    """Return the name of a kernel's function; the same text is written once."""
    text = str(kernel)
    if text not in program.kernels:
        name = f"{kernel.label}_{len(program.kernels)}"
        made = kernel_function(kernel, name, program.target)
        program.needed |= made.needed
        program.functions.append(made.text.replace("define", "define internal", 1))
        program.kernels[text] = f"@{name}"
    return program.kernels[text]


step_kinds.write_by(Launch, emit_launch)


class CarryBuffers(NamedTuple):
    """The buffers of one state of a loop.

    Attributes:
      now, following: of the state and of the next one, in the body.
      start, result: of the first one and of the last one, around the loop.
    """

    now: Buffer
    following: Buffer
    start: Buffer
    result: Buffer


def carries_of(step):
    """Return for each program in a step the pairs of a large state and the next one."""
    if not hasattr(step, "init"):
        return [[] for _ in step.programs]
    states = step.body.inputs[: len(step.init)]
    pairs = zip(states, step.body.outputs)
    large = [pair for pair in pairs if nbytes(pair[0]) > SMALL_LOCAL_BYTES]
    return [large if program is step.body else [] for program in step.programs]


def may_overwrite_or_stay(step, old, new):
    """Return whether a step may write a result where an operand is, loops included.

    A loop may, if the operand is the state at first, the result is the state in the
    end, and the state stays in its memory.
    """
    if not hasattr(step, "init"):
        return may_overwrite(step, old, new)
    body = Planning(step.body, (), may_overwrite_or_stay, carries_of)
    ends = dict(zip(step.init, step.results))
    rows = dict(zip(step.init, zip(step.body.inputs, step.body.outputs)))
    pairs = [pair for program in carries_of(step) for pair in program]
    stays = ends.get(old) is new and rows[old] in pairs
    return stays and may_take(body, *rows[old])


@dataclasses.dataclass
class CarryLayout:
    """How the states of a loop go through it.

    A small state is a local variable, and the next state another one, which is copied
    at the end of an iteration. Of a large state, the two addresses are exchanged.

    Attributes:
      large, small: lists of `CarryBuffers`.
    """

    large: list
    small: list
    staying: list | tuple = ()  # those that stay in the memory of their results


def carry_layout(f, body, step):
    """Return the `CarryLayout` of a loop; a state is small if there is room for two."""
    rows = zip(body.inputs, body.outputs, step.init, step.results)
    states = [CarryBuffers(*row) for row in rows]
    stay = [f.first_of.get(state.following) is state.now for state in states]
    others, staying = partition_list(stay, states)
    sizes = [nbytes(state.now) for state in others]
    small = [n <= SMALL_LOCAL_BYTES and f.charge_stack(2 * n) for n in sizes]
    carry = CarryLayout(*partition_list(small, others))
    carry.staying = staying
    return carry


def emit_carry_begin(f, carry):
    """Write what comes before; return the addresses that go through the loop."""
    for state in carry.small:
        f.addresses[state.now] = f.variable(state.now)
        f.addresses[state.following] = f.variable(state.following)
        f.copy(f.addresses[state.now], f.address(state.start), state.now)
    for state in carry.staying:
        to = f.addresses[state.now] = f.address(state.result)
        copy_if_apart(f, to, f.address(state.start), state.now)
    ends = [buffer for state in carry.large for buffer in (state.start, state.result)]
    return [("i8*", f.address(buffer)) for buffer in ends]


def emit_carry_enter(f, carry, names):
    """Give the states of this iteration, and the next ones, their addresses."""
    for state, *pair in zip(carry.large, names[::2], names[1::2]):
        f.addresses |= zip((state.now, state.following), pair)


def emit_carry_end(f, carry, names):
    """Write what copies the last states to where the results are."""
    for state in carry.small:
        f.copy(f.address(state.result), f.addresses[state.now], state.now)
    for state, name in zip(carry.large, names[::2]):
        copy_if_apart(f, f.address(state.result), name, state.now)


def copy_if_apart(f, to, source, buffer):
    """Write a copy of a buffer's bytes to an address, unless they are there."""
    apart, done = f.label("apart"), f.label("there")
    differ = f.emit(f"icmp ne i8* {to}, {source}")
    f.line(f"br i1 {differ}, label %{apart}, label %{done}")
    f.start(apart)
    f.copy(to, source, buffer)
    f.line(f"br label %{done}")
    f.start(done)


def emit_carry_advance(f, carry, names):
    """Write the end of an iteration; return the addresses for the next one."""
    for state in carry.small:
        f.copy(f.addresses[state.now], f.addresses[state.following], state.now)
    following = []
    for here, there in zip(names[::2], names[1::2]):
        following += [there, here]
    return following


def emit_repeat(f, step):
    """Write a loop with a known number of iterations."""
    carry = carry_layout(f, step.body, step)
    starts = emit_carry_begin(f, carry)
    arrays = [f.address(array) for array in (*step.xs, *step.ys)]

    def iteration(index, names):
        emit_carry_enter(f, carry, names)
        enter_rows(f, step, arrays, index)
        emit_program_steps(f, step.body.steps)
        return emit_carry_advance(f, carry, names)

    ends = [x for _, x in starts]
    if step.length:
        ends = f.loop(step.length, starts, iteration)
    emit_carry_end(f, carry, ends)


def enter_rows(f, step, arrays, iteration):
    """Give the rows of this iteration their addresses."""
    count = len(step.init)
    rows = [*step.body.inputs[count:], *step.body.outputs[count:]]
    if step.reverse:
        iteration = f.emit(f"sub i64 {step.length - 1}, {iteration}")
    for row, array in zip(rows, arrays):
        distance = f.emit(f"mul i64 {iteration}, {nbytes(row)}", "a")
        f.addresses[row] = f.offset(array, distance)


step_kinds.write_by(ScanStep, emit_repeat)


# The backend "cpu": a program is one function of machine code.


class CPUProgram(Executable):
    """A program as one function of machine code, with its loops.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.

    Attributes:
      lowered, plan: its `LoweredProgram` and its `MemoryPlan`.
      text: what LLVM is given.
    """

    @without_gc
    def __init__(self, closed, name="program", donated=()):
        self.name, self.out_avals = name, closed.out_avals
        self.simplified, self.target = jaxpr_passes.value(closed), current_target()
        fused = fuse(unalias_outputs(lower(self.simplified, cpu_rules)))
        self.lowered = step_passes.value(fused)
        memory = may_overwrite_or_stay, carries_of
        self.plan = plan_memory(self.lowered, donated, *memory)
        self.load(ProgramEmitter(self.plan, self.target))

    def __call__(self, *args):
        """Return the list of results."""
        inputs = input_buffers(self.plan, args)
        results = output_buffers(self.plan, self.out_avals, inputs)
        arena = scratch_bytes(self.plan.arena)
        memory = pointer_table(map(data_pointer, [*inputs, *results]))
        if self.function(memory, data_pointer(arena), self.context_of_call()):
            self.host.raise_error()
        return list(map(ArrayImpl, results, self.out_avals, repeat(self.placement)))


CPUProgram.dialects = {
    "simplified": lambda program: str(program.simplified),
    "kernels": lambda program: str(program.lowered),
    "steps": lambda program: text_of_steps(program.lowered),
    "memory": lambda program: str(program.plan),
    "llvm": lambda program: program.text,
    "assembly": lambda program: program.library.assembly,
}


def text_of_steps(program):
    """Return the steps of a program as text, without what is in its kernels."""
    return str(program).partition("\n\n")[0]


backends["cpu"] = CPUProgram
default_backends.supersede("cpu", "python", "cpu")
