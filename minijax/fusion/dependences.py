# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Dependence analysis: which steps of a program need which, and read which buffers."""

from typing import NamedTuple

from minijax.fusion.parts import part_of
from minijax.kernels.program_steps import Launch


class Uses(NamedTuple):
    """Which steps of a program use which buffers.

    Attributes:
      parts: those of its launches that may become one with others, by their numbers.
      makers: from buffers that one such launch writes to its number.
      readers: from buffers to the numbers of the steps that read them.
      kept: the buffers that have to be stored: of results, for other steps, shared.
      shared: the buffers that several steps write to.
      needs, users: for each step the numbers of those that have to come before it, and
        of those that have to come after it.
    """

    parts: dict
    makers: dict
    readers: dict
    kept: set
    shared: set
    needs: list
    users: list


def uses_of(program):
    """Return the `Uses` of a program."""
    launches = {n: s for n, s in enumerate(program.steps) if isinstance(s, Launch)}
    parts = {number: part_of(launch) for number, launch in launches.items()}
    parts = {number: part for number, part in parts.items() if part}
    kept, readers, writers, needs = {*program.outputs}, {}, {}, []
    users = [set() for _ in program.steps]
    for number, step in enumerate(program.steps):
        reads, writes = step.reads, step.writes
        kept.update(() if number in parts else reads)
        before = {n for buffer in (*reads, *writes) for n in writers.get(buffer, ())}
        before.update([n for buffer in writes for n in readers.get(buffer, ())])
        for buffer in reads:
            readers.setdefault(buffer, []).append(number)
        for buffer in {*writes}:
            writers.setdefault(buffer, []).append(number)
        for other in before:
            users[other].add(number)
        needs.append(before)
    shared = {buffer for buffer, numbers in writers.items() if len(numbers) > 1}
    alone = {buffer: numbers[0] for buffer, numbers in writers.items()}
    makers = {b: n for b, n in alone.items() if n in parts and b not in shared}
    return Uses(parts, makers, readers, kept | shared, shared, needs, users)
