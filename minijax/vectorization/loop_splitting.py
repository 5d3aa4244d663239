"""Loop splitting and loop interchange: rewritings of nests that refuse what is wrong.

Reference: M. Wolfe, *More iteration space tiling* (Supercomputing, 1989).
"""

# Made from chapters/24_vectors_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.kernels.builder import loop_complaint, steps_inside
from minijax.kernels.ir import AXIS_NAMES, FoldCombine, Loop, Store, is_scan
from minijax.kernels.loop_nests import Node
from minijax.llvm.codegen import is_inexact_fold


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


def reorder_loops(loop, axes):
    """Return a nest with its loops in the order of some axes, all steps in the last.

    Raises:
      ScheduleError: the order of its loops matters.
    """
    complaint = reorder_complaint(loop, axes)
    if complaint:
        order = " ".join(AXIS_NAMES[axis] for axis in axes)
        raise ScheduleError(f"No loops in the order {order}: {complaint}.")
    body = [step for step in steps_inside(loop) if not isinstance(step, Loop)]
    for axis in reversed(axes):
        body = [loop._replace(axis=axis, body=body)]
    return body[0]


def reorder_complaint(loop, axes):
    """Return why loops cannot stand in the order of some axes, or None."""
    loops = [each for each in (loop, *steps_inside(loop)) if isinstance(each, Loop)]
    steps = [step for each in loops[:-1] for step in each.body]
    between = [step for step in steps if not isinstance(step, Node | Loop)]
    inner = [step for step in loops[-1].body if not isinstance(step, Node)]
    updates = [step.update for step in inner if isinstance(step, Store)]
    known = all(isinstance(step, Store | FoldCombine) for step in inner)
    ordered = [x for x in loop.folds if is_scan(x) or is_inexact_fold(x)]
    distinct = all(update is None or update.distinct for update in updates)
    complaints = {
        "its loops have other axes": sorted(axes) != sorted(x.axis for x in loops),
        "one is split, or has folds of its own": any(
            each.kind != "serial" or each.folds != loop.folds for each in loops
        ),
        "a step stands between them": between or not known,
        "a fold needs its numbers in order": ordered,
        "a later index may store over an earlier one": not distinct,
    }
    return next((text for text, wrong in complaints.items() if wrong), None)
