# Made from chapters/21_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Loops in the text of programs."""

from typing import NamedTuple

from minijax.forgetting.programs import partition
from minijax.jitting.costs import nbytes
from minijax.kernels.steps import StepKind, step_kinds
from minijax.machine.nested import Repeat, cost_of_repeat, repeated
from minijax.machine.program_text import write_steps
from minijax.machine.steps_text import SMALL


class Carry(NamedTuple):
    """How the states of a loop go through it.

    A small state is a local variable, and the next state another one, which is copied
    at the end of each turn. Of a large state, the addresses of the two are exchanged.

    Attributes:
      large, small: lists of four buffers: of a state and the next one in the body,
        of the first state and the last.
    """

    large: list
    small: list


def carry_of(f, body, step):
    """Return the `Carry` of a loop; a state is small while there is room for two."""
    rows = list(zip(body.inputs, body.outputs, step.starts, step.results))
    sizes = [nbytes(row[0]) for row in rows]
    return Carry(*partition([n <= SMALL and f.takes(2 * n) for n in sizes], rows))


def copy_if_apart(f, to, source, buffer):
    """Write a copy of a buffer's bytes to an address, unless they are there."""
    apart, done = f.label("apart"), f.label("there")
    differ = f.emit(f"icmp ne i8* {to}, {source}")
    f.line(f"br i1 {differ}, label %{apart}, label %{done}")
    f.start(apart)
    f.copy(to, source, buffer)
    f.line(f"br label %{done}")
    f.start(done)


def begin(f, carry):
    """Write what comes before; return the addresses that go through the loop."""
    for state, following, start, _ in carry.small:
        f.addresses[state] = f.variable(state)
        f.addresses[following] = f.variable(following)
        f.copy(f.addresses[state], f.address(start), state)
    ends = [buffer for _, _, start, result in carry.large for buffer in (start, result)]
    return [("i8*", f.address(buffer)) for buffer in ends]


def enter(f, carry, names):
    """Give the states of this turn, and the next ones, their addresses."""
    for (state, following, *_), *pair in zip(carry.large, names[::2], names[1::2]):
        f.addresses |= zip((state, following), pair)


def advance(f, carry, names):
    """Write the end of a turn; return the addresses for the next one."""
    for state, following, *_ in carry.small:
        f.copy(f.addresses[state], f.addresses[following], state)
    return [name for pair in zip(names[1::2], names[::2]) for name in pair]


def finish(f, carry, names):
    """Write what copies the last states to where the results are."""
    for state, _, _, result in carry.small:
        f.copy(f.address(result), f.addresses[state], state)
    for (state, _, _, result), name in zip(carry.large, names[::2]):
        copy_if_apart(f, f.address(result), name, state)


def write_repeat(f, step):
    """Write a loop with a known number of turns."""
    carry, count = carry_of(f, step.body, step), len(step.starts)
    names = begin(f, carry)
    rows = [*zip(step.xs, step.body.inputs[count:])]
    rows += zip(step.ys, step.body.outputs[count:])
    bases = [f.address(whole) for whole, _ in rows]

    def turn(index, names):
        enter(f, carry, names)
        if step.reverse:
            index = f.emit(f"sub i64 {step.length - 1}, {index}")
        for (_, row), base in zip(rows, bases):
            distance = f.emit(f"mul i64 {index}, {nbytes(row)}", "a")
            f.addresses[row] = f.offset(base, distance)
        write_steps(f, step.body.steps)
        return advance(f, carry, names)

    if step.length:
        names = f.loop(step.length, names, turn)
    else:
        names = [name for _, name in names]
    finish(f, carry, names)


step_kinds[Repeat] = StepKind(repeated, cost_of_repeat, write_repeat)
