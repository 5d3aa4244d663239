"""Loop splitting and loop interchange: rewritings of nests that refuse what is wrong.

Reference: M. Wolfe, *More iteration space tiling* (Supercomputing, 1989).
"""

# Made from chapters/24_vectors.md by `make chapter`;
# edit the chapter, not this file.

from minijax.kernels.builder import loop_complaint
from minijax.kernels.ir import AXIS_NAMES, Loop


class ScheduleError(ValueError):
    """A rewriting of loops that would not do what their kernel says."""


def split_loop(loop, count, kind):
    """Return a loop that does `count` of its indices at a time, and how: by a kind.

    Args:
      loop: a serial `Loop`; for strips a list of steps along an axis, which go through
        each strip one after the other.
      count: indices. The last part of the axis may have fewer.
      kind: one of `loop_kinds` that has a count.

    Raises:
      ScheduleError: some other split or order would be lost, or numbers would be wrong.
    """
    complaint = split_complaint(loop, count, kind)
    if complaint:
        axis = AXIS_NAMES[(loop[0] if kind == "strip" else loop).axis]
        text = f"The loop along {axis} cannot be split into parts of {count}"
        raise ScheduleError(f'{text} of the kind "{kind}": {complaint}.')
    return _in_parts(loop, count, kind)


def split_complaint(loop, count, kind):
    """Return why a loop cannot be split so, or None."""
    if kind != "strip" and loop.kind != "serial":
        return f'its kind is "{loop.kind}" already'
    return loop_complaint(_in_parts(loop, count, kind))


def _in_parts(loop, count, kind):
    if kind == "strip":
        return Loop(loop[0].axis, loop, (), kind, count)
    return loop._replace(kind=kind, count=count)
