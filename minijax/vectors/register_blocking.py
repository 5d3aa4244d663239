"""Register blocking: rows of folds side by side, where a load serves all of them.

Reference: S. Carr and K. Kennedy, "Improving the ratio of memory operations to
floating-point operations in loops" (ACM TOPLAS, 1994).
"""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.kernels.kernel import Node
from minijax.kernels.parts import Combine, Start, Store, runs
from minijax.vectors.held_rows import Keep
from minijax.vectors.loops import is_function, is_loop, widest
from minijax.vectors.streaming import Stream, beside_at_most, far_bytes


def with_blocks(kernel, steps, target):
    """Return the steps of a nest with loops whose turns are done side by side."""
    return [
        blocked_rows(kernel, step, target) if is_loop(step) else step for step in steps
    ]


def blocked_rows(kernel, loop, target):
    """Return a loop with marks where turns of it, or of loops in it, share loads."""
    count = rows_together(kernel, loop, target) or short_rows(kernel, loop, target)
    if count > 1:
        return loop._replace(together=count)
    return loop._replace(body=with_blocks(kernel, loop.body, target))


SHORT, FEW, SIMPLE = 4, 4, 32  # vectors in a row, rows side by side, steps of a row


def short_rows(kernel, loop, target):
    """Return how many turns of a loop over short rows are done side by side, or 0.

    The ends of their folds do not wait for each other then. A single sum has too
    little to wait for.
    """
    inner = [step for step in loop.body if is_loop(step)]
    steps = [step for each in (loop, *inner) for step in each.body]
    steps = [step for step in steps if not any(step is each for each in inner)]
    plain = len(steps) <= SIMPLE and all(map(may_be_beside, steps))
    folds = [fold for each in inner for fold in each.folds]
    long = len(inner) > 1 or any(fold.detail.how in ("max", "min") for fold in folds)
    if loop.lanes or loop.folds or not (folds and plain and long):
        return 0
    if not all(each.lanes for each in inner):
        return 0
    lengths = [kernel.sizes[x.axis] / target.lanes(widest(x)) for x in inner]
    return FEW if max(lengths) <= SHORT and kernel.sizes[loop.axis] >= FEW else 0


def may_be_beside(step):
    """Return whether a step is one that turns of a loop may do side by side."""
    fold, update = getattr(step, "fold", None), getattr(step, "update", None)
    known = isinstance(step, Node | Store | Start | Combine | Keep)
    return known and not update and not (fold and runs(fold))


def rows_together(kernel, loop, target):
    """Return how many turns of a loop share loads, and find room in registers."""
    strips = [x.strip for x in loop.body if is_loop(x) and x.strip]
    across, rows = folded_inside(loop := without_strips(loop))
    if rows is None or not rows.folds or not is_plain([loop, across, rows]):
        return 0
    loads = [s for s in rows.body if isinstance(s, Node) and s.op == "load"]
    axis, along = loop.axis, across.axis
    shared = [x for x in loads if along in x.level and axis not in x.level]
    own = [fold for fold in rows.folds if axis in fold.level]
    if not shared or not own:
        return 0
    vectors = -(-across.lanes // target.lanes(widest(rows)))
    room, size = target.registers // 2 // (vectors * len(own)), kernel.sizes[axis]
    if isinstance(across, Stream):  # whose running values are in memory
        row = min([kernel.sizes[along], *strips]) * widest(rows).itemsize * len(own)
        room = min(beside_at_most(target), far_bytes(target) // 2 // row)
    return min(room, size)


def without_strips(loop):
    """Return a loop with what is in strips in their place."""
    parts = [x.body if is_loop(x) and x.strip else [x] for x in loop.body]
    return loop._replace(body=[step for part in parts for step in part])


def folded_inside(loop):
    """Return the step in a loop along whose axis vectors lie, and its loop of folds.

    They may be one and the same. None stands for what is not there.
    """
    inner = [step for step in loop.body if is_loop(step) or isinstance(step, Stream)]
    if loop.lanes or loop.folds or len(inner) != 1 or not inner[0].lanes:
        return None, None
    across = inner[0]
    if isinstance(across, Stream):
        return across, across.rows
    if across.folds:
        return across, across
    loops = [step for step in across.body if is_loop(step)]
    return across, loops[0] if loops else None


def steps_in(loop):
    """Return the steps in a loop or a stream."""
    return [*loop.before, *loop.after] if isinstance(loop, Stream) else loop.body


def is_plain(nest):
    """Return whether loops, each in the one before, hold only steps that are cheap."""
    steps = [step for loop in nest for step in steps_in(loop)]
    steps = [step for step in steps if not any(step is loop for loop in nest)]
    stores = [step for step in steps if isinstance(step, Store)]
    return (
        all(isinstance(step, Node | Store | Start | Combine | Keep) for step in steps)
        and not any(map(runs, nest[-1].folds))
        and not any(store.update for store in stores)
        and not any(map(is_function, nest[-1].body))
    )
