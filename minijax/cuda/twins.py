"""Horizontal fusion: independent kernels of the same loops as one launch."""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.fusion.merging import merged
from minijax.fusion.parts import joined, part_of
from minijax.gpu.kept_rows import shape_on_card
from minijax.kernels.parts import is_affine
from minijax.kernels.program_steps import Launch

BACK, WIDE = 32, 150  # steps that are looked at; nodes of a kernel


def side_by_side(program):
    """Return a program whose independent kernels of the same loops are one launch."""
    steps: list = []
    for step in program.steps:
        place = twin_of(step, steps) if type(step) is Launch else None
        if place is None:
            steps.append(step)
        else:
            steps[place] = both(steps[place], step)
    return program._replace(steps=steps)


def twin_of(step, steps):
    """Return the place of an earlier launch that a launch may be done with, or None."""
    for place in range(len(steps) - 1, max(len(steps) - BACK, 0) - 1, -1):
        if is_needed(steps[place], step):
            return None
        if type(steps[place]) is Launch and are_twins(steps[place].kernel, step.kernel):
            return place
    return None


def is_needed(other, step):
    """Return whether a step has to stay behind another one."""
    written = {*step.writes}
    return not (
        written.isdisjoint(other.reads)
        and written.isdisjoint(other.writes)
        and {*step.reads}.isdisjoint(other.writes)
    )


def are_twins(a, b):
    """Return whether two kernels have the same loops and launches, and few nodes."""
    if a.sizes != b.sizes or 0 in a.sizes or len(a.nodes) + len(b.nodes) > WIDE:
        return False
    return is_affine(a) and is_affine(b) and shape_on_card(a) == shape_on_card(b)


def both(first, second):
    """Return the launch of two that have the same loops."""
    part = joined(part_of(first), part_of(second))
    return merged(part, {*first.writes, *second.writes})
