"""Running totals that the threads of a team make together."""

# Made from chapters/34_gpu_upper.md by `make chapter`;
# edit the chapter, not this file.

import math
from dataclasses import dataclass

from minijax.gpu.cuda_text import (
    WARP,
    shared_nest,
    write_steps,
    write_together,
    writers,
)
from minijax.gpu.launches import lies_along, never_meet, outer_axes
from minijax.gpu.lines import write_indices
from minijax.gpu.operations import c_type, expression
from minijax.kernels.loop_nests import loop_nest
from minijax.kernels.parts import AXES, Combine, Loop, Store, elements, runs
from minijax.vectors.loops import everything


@dataclass(frozen=True)
class ScanShape:
    """Teams of threads that make the running totals along an axis.

    Attributes:
      outer: axes; a team does all that belongs to one index of them.
      axis: the one along which totals run.
      team: how many threads there are in a team: a warp, or a block of warps.
      teams: how many teams there are in a block.
    """

    outer: tuple
    axis: int
    team: int
    teams: int
    across = False

    @property
    def threads(self):
        """How many threads there are in a block."""
        return self.team * self.teams

    def blocks(self, kernel):
        """Return how many blocks it takes; the last one may have teams without work."""
        return math.ceil(elements(kernel, self.outer) / self.teams)


def scan_of(kernel, least=8):
    """Return the `ScanShape` of a kernel, or None if a thread has to do it alone.

    Args:
      kernel: a `Kernel`.
      least: how long the axis has to be.
    """
    outer, axes = outer_axes(kernel), {n.detail.axes for n in kernel.nodes if runs(n)}
    if len(axes) != 1 or not may_share(kernel, outer):
        return None
    [[axis]] = axes
    size, many = kernel.sizes[axis], elements(kernel, outer)
    if size < least or are_neighbours(kernel, outer):
        return None
    if size <= 1024 and many >= 64:
        return ScanShape(outer, axis, WARP, 8)
    most = 256 if many >= 64 else 1024
    return ScanShape(outer, axis, min(most, WARP * math.ceil(size / WARP)), 1)


def are_neighbours(kernel, outer):
    """Return whether the numbers of neighbouring outer indices are neighbours."""
    many = elements(kernel, outer) >= WARP
    return bool(outer) and many and lies_along(kernel) == outer[-1]


def may_share(kernel, outer):
    """Return whether threads may share all loops, those of running totals too."""
    loops = [step for step in loop_nest(kernel, outer) if isinstance(step, Loop)]
    pairs = [(store, axis) for store in kernel.stores for axis in store.axes]
    return all(map(is_flat, loops)) and all(never_meet(kernel, *x) for x in pairs)


def is_flat(loop):
    """Return whether a loop has totals of its own axis in its body, or none."""
    inner = [step for step in loop.body if isinstance(step, Loop)]
    if not any(runs(fold) for fold in loop.folds):
        return True
    within = [step for each in inner for step in everything(each.body)]
    entering = {step.fold for step in within if isinstance(step, Combine)}
    stored = any(isinstance(step, Store) for step in within)
    return not stored and entering.isdisjoint(loop.folds)


def write_scans(f):
    """Write what the threads of a `ScanShape` do."""
    write_indices(f)
    for step in shared_nest(f.kernel, f.launch):
        if isinstance(step, Loop) and any(map(runs, step.folds)):
            write_scan_loop(f, step)
        else:
            write_steps(f, [step])


def write_scan_step(f, step):
    """Write a step of such a loop; threads behind the end store nothing."""
    if isinstance(step, Combine) and runs(step.fold):
        write_running(f, step.fold)
    elif isinstance(step, (Combine, Store)):
        with f.block("if (live)"):
            write_steps(f, [step])
    else:
        write_steps(f, [step])


def joined(fold, left, right):
    """Return the expression of what two numbers become in a fold."""
    return expression(fold.detail.how, [left, right], fold.dtype, fold.dtype)


writers[ScanShape] = write_scans


def write_scan_loop(f, loop):
    """Write a loop in which each thread of a team has one index at each turn."""
    axis, size, names = AXES[loop.axis], f.kernel.sizes[loop.axis], f.names
    f.names, f.inside = dict(names), True
    with f.block(f"for ({f.index} base = 0; base < {size}; base += {f.launch.team})"):
        f.line(f"const bool within = base + t < {size};")
        f.line(f"const bool live = within{' && busy' * f.idle};")
        f.line(f"const {f.index} {axis} = within ? base + t : {size - 1};")
        for step in loop.body:
            write_scan_step(f, step)
    f.names, f.inside = names, False
    for each in loop.folds:
        if not runs(each):
            write_together(f, each)


def write_running(f, fold):
    """Write the running totals of what the threads of a team have at this turn."""
    carry, kind, x = f.names[fold], c_type(fold.dtype), f.name("v")
    f.line(f"{kind} {x} = {f.names[fold.args[0]]};")
    with f.block(f"for (int d = 1; d < {WARP}; d *= 2)"):
        f.line(f"const {kind} left = __shfl_up_sync(~0u, {x}, d);")
        f.line(f"if (t % {WARP} >= d) {x} = {joined(fold, 'left', x)};")
    f.names[fold] = f.name("v")
    if f.launch.team > WARP:
        write_warps(f, fold, carry, x)
        return
    f.line(f"const {kind} {f.names[fold]} = {joined(fold, carry, x)};")
    f.line(f"{carry} = __shfl_sync(~0u, {f.names[fold]}, {WARP - 1});")


def write_warps(f, fold, carry, x):
    """Write how the totals of warps, and of turns before, enter those of a warp."""
    kind, shared, before = c_type(fold.dtype), f.name("shared"), f.name("v")
    count = f.launch.team // WARP
    f.line(f"__shared__ {kind} {shared}[{count}];")
    f.line(f"if (t % {WARP} == {WARP - 1}) {shared}[t / {WARP}] = {x};")
    f.line("__syncthreads();")
    f.line(f"{kind} {before} = {carry};")
    with f.block(f"for (int w = 0; w < {count}; w++)"):
        f.line(f"if (w == t / {WARP}) {before} = {carry};")
        f.line(f"{carry} = {joined(fold, carry, f'{shared}[w]')};")
    f.line(f"const {kind} {f.names[fold]} = {joined(fold, before, x)};")
    f.line("__syncthreads();")
