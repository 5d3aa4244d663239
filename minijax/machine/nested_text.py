# Made from chapters/24_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Loops and choices in the text of programs."""

from minijax.forgetting.programs import partition
from minijax.jitting.costs import nbytes
from minijax.kernels.steps import StepKind, step_kinds
from minijax.llvm.types import type_in_memory
from minijax.machine.nested import Branch, Repeat, While
from minijax.machine.nested_runners import (
    branched,
    cost_of_branch,
    cost_of_repeat,
    cost_of_while,
    repeated,
    repeated_while,
)
from minijax.machine.program_text import SMALL, typed, write_steps


class Carry:
    """How the states of a loop go through it.

    A small state is a local variable, and the next state another one, which is copied
    at the end of each turn. Of a large state, the addresses of the two are exchanged.

    Args:
      f: the `FunctionText`.
      body: the `Schedule` of a turn.
      step: the loop.
    """

    def __init__(self, f, body, step):
        self.f = f
        rows = zip(body.inputs, body.outputs, step.starts, step.results)
        rows = list(rows)
        sizes = [nbytes(row[0]) for row in rows]
        small = [size <= SMALL and f.takes(2 * size) for size in sizes]
        self.large, self.small = partition(small, rows)

    def begin(self):
        """Write what comes before; return the addresses that go through the loop."""
        f = self.f
        for state, following, start, _ in self.small:
            f.addresses[state] = f.variable(state)
            f.addresses[following] = f.variable(following)
            f.copy(f.addresses[state], f.address(start), state)
        return [
            ("i8*", f.address(slot))
            for _, _, start, result in self.large
            for slot in (start, result)
        ]

    def enter(self, names):
        """Give the states of this turn, and the next ones, their addresses."""
        for (state, following, *_), *pair in zip(self.large, names[::2], names[1::2]):
            self.f.addresses |= zip((state, following), pair)

    def advance(self, names):
        """Write the end of a turn; return the addresses for the next one."""
        for state, following, *_ in self.small:
            self.f.copy(self.f.addresses[state], self.f.addresses[following], state)
        return [name for pair in zip(names[1::2], names[::2]) for name in pair]

    def end(self, names):
        """Write what copies the last states to where the results are."""
        f = self.f
        for state, _, _, result in self.small:
            f.copy(f.address(result), f.addresses[state], state)
        for (state, _, _, result), name in zip(self.large, names[::2]):
            copy_if_apart(f, f.address(result), name, state)


def copy_if_apart(f, to, source, slot):
    """Write a copy of a slot's bytes to an address, unless they are there."""
    apart, done = f.label("apart"), f.label("there")
    differ = f.emit(f"icmp ne i8* {to}, {source}")
    f.line(f"br i1 {differ}, label %{apart}, label %{done}")
    f.start(apart)
    f.copy(to, source, slot)
    f.line(f"br label %{done}")
    f.start(done)


def write_repeat(f, step):
    """Write a loop with a known number of turns."""
    carry, count = Carry(f, step.body, step), len(step.starts)
    names = carry.begin()
    rows = [*zip(step.xs, step.body.inputs[count:])]
    rows += zip(step.ys, step.body.outputs[count:])
    bases = [f.address(whole) for whole, _ in rows]

    def turn(index, names):
        carry.enter(names)
        if step.reverse:
            index = f.emit(f"sub i64 {step.length - 1}, {index}")
        for (_, row), base in zip(rows, bases):
            distance = f.emit(f"mul i64 {index}, {nbytes(row)}", "a")
            f.addresses[row] = f.offset(base, distance)
        write_steps(f, step.body.steps)
        return carry.advance(names)

    if step.length:
        names = f.loop(step.length, names, turn)
    else:
        names = [name for _, name in names]
    carry.end(names)


step_kinds[Repeat] = StepKind(repeated, cost_of_repeat, write_repeat)


def write_while(f, step):
    """Write a loop that goes on as long as its test says so."""
    carry, [going] = Carry(f, step.body, step), step.test.outputs
    first, before = carry.begin(), f.label("before")
    f.addresses[going] = f.variable(going)
    f.line(f"br label %{before}")
    f.start(before)
    head, turn, done = f.label("while"), f.label("turn"), f.label("done")
    f.line(f"br label %{head}")
    f.start(head)
    mark, names = len(f.lines), [f.name("c") for _ in first]
    carry.enter(names)
    write_steps(f, step.test.steps)
    found = f.emit(f"load i8, i8* {f.addresses[going]}")
    f.line(f"br i1 {f.emit(f'icmp ne i8 {found}, 0')}, label %{turn}, label %{done}")
    f.start(turn)
    write_steps(f, step.body.steps)
    following = carry.advance(names)
    f.line(f"br label %{head}")
    f.lines[mark:mark] = [
        f"  {name} = phi i8* [ {start}, %{before} ], [ {then}, %{f.block} ]"
        for name, (_, start), then in zip(names, first, following)
    ]
    f.start(done)
    carry.end(names)


step_kinds[While] = StepKind(repeated_while, cost_of_while, write_while)


def write_branch(f, step):
    """Write a choice; the last branch is run for every other number."""
    kind = type_in_memory(step.index.dtype)
    index = f.emit(f"load {kind}, {typed(f, f.address(step.index), step.index.dtype)}")
    results, done = list(map(f.address, step.results)), f.label("chosen")
    labels = [f.label("branch") for _ in step.branches]
    cases = [f"{kind} {n}, label %{to}" for n, to in enumerate(labels[:-1])]
    f.line(f"switch {kind} {index}, label %{labels[-1]} [ {'  '.join(cases)} ]")
    for label, branch in zip(labels, step.branches):
        f.start(label)
        f.addresses |= zip(branch.outputs, results)
        write_steps(f, branch.steps)
        f.line(f"br label %{done}")
    f.start(done)


step_kinds[Branch] = StepKind(branched, cost_of_branch, write_branch)
