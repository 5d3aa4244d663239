"""Kernels as functions in CUDA C, and launches: which threads do which indices."""

# Made from chapters/34_gpu.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import NamedTuple

from minijax._registry import Registry
from minijax.gpu.cuda_source import (
    CudaRenderer,
    accumulator_names,
    c_expression,
    c_literal,
    c_type,
    is_loaded,
    load_expr,
    parameter_declarations,
    render_fold_combine,
    render_fold_init,
    render_store,
    render_thread_indices,
)
from minijax.kernels.ir import AXIS_NAMES, FoldInit, Loop, Store, trip_count
from minijax.kernels.loop_nests import Node, loop_nest
from minijax.vectorization.loop_splitting import split_loop

# Launches: which threads do which indices of a kernel, and how many there are.


class LaunchShape(NamedTuple):
    """How the threads of a GPU share a kernel.

    A team of threads does all that belongs to one index of the `outer` axes.

    Attributes:
      outer: axes.
      team: how many threads there are in a team.
      teams: how many teams there are in a block.
      across: whether neighbours in a block are of neighbouring teams, and not of one.
    """

    outer: tuple
    team: int = 1
    teams: int = 256
    across: bool = False

    @property
    def threads(self):
        """How many threads there are in a block."""
        return self.team * self.teams

    def blocks(self, kernel):
        """Return how many blocks it takes; the last one may have teams without work."""
        return math.ceil(trip_count(kernel, self.outer) / self.teams)


def parallel_axes(kernel):
    """Return the axes along which all indices may be done at the same time."""
    axes = set(range(len(kernel.sizes)))
    for node in kernel.nodes:
        if node.op in ("fold", "running"):
            axes.difference_update(node.detail.axes)
    for store in kernel.stores:
        axes &= {axis for axis in store.axes if stores_never_alias(kernel, store, axis)}
    return tuple(sorted(axes))


def stores_never_alias(kernel, store, axis):
    """Return whether indices along an axis always store into different elements."""
    update = store.update
    if not update or update.distinct:
        return True
    moves = [abs(store.place.strides[x]) for x in update.axes if x != axis]
    others = math.gcd(*moves, *[abs(term.stride) for term in update.terms])
    step = abs(store.place.strides[axis])
    still = not any(axis in number.level for number in update.at)
    return still and step > 0 and step * (kernel.sizes[axis] - 1) < max(others, 1)


# Kernels as functions in CUDA C: any nest, whatever its launch says.

WARP_SIZE = 32  # threads


def render_node(f, node):
    """Write the line of a node, or remember the number that a constant is."""
    if node.op == "constant":
        f.names[node] = c_literal(node.detail)
        return
    args = [f.names[arg] for arg in node.args]
    if node.op == "index":
        value = AXIS_NAMES[node.detail]
    elif node.op == "load":
        value = load_expr(f, node.detail, args)
    else:
        value = c_expression(node.op, args, node.args[-1].dtype, node.dtype)
    f.names[node] = f.name("v")
    f.line(f"const {c_type(node.dtype)} {f.names[node]} = {value};")


def render_steps(f, steps):
    """Write steps of a nest."""
    for step in steps:
        if isinstance(step, Node):
            render_node(f, step)
        elif isinstance(step, Store):
            render_once(f, step)
        elif isinstance(step, Loop):
            render_loop(f, step)
        elif isinstance(step, FoldInit):
            render_fold_init(f, step.fold)
        else:
            fold = step.fold
            render_fold_combine(
                f, fold, f.names[fold.args[0]], AXIS_NAMES[fold.detail.axes[0]]
            )


def render_loop(f, loop):
    """Write a loop; if a team shares it, each thread has its folds afterwards."""
    axis, size = AXIS_NAMES[loop.axis], f.kernel.sizes[loop.axis]
    team = loop.counted("team")
    first = "t" if team else "0"
    more = " && busy" if team and f.inactive_condition else ""
    head = f"for ({f.index} {axis} = {first}; {axis} < {size}{more}; "
    names, f.inside = f.names, f.inside or team > 0
    f.names = dict(names)
    with f.block(f"{head}{axis} += {team or 1})"):
        render_steps(f, loop.body)
    f.names = names
    if team:
        f.inside = False
        for fold in loop.folds:
            render_team_reduction(f, fold)


def render_once(f, store):
    """Write a store; outside of shared loops one thread of the team does it."""
    if f.launch.team == 1 or f.inside:
        render_store(f, store)
        return
    if is_loaded(f.kernel, store.parameter):  # wait until all threads have read it
        f.line("__syncthreads();")
    with f.block("if (t == 0 && busy)" if f.inactive_condition else "if (t == 0)"):
        render_store(f, store)


def cooperative_nest(kernel, launch):
    """Return the steps inside of the outer loops; teams share the loops among them."""
    steps = loop_nest(kernel, launch.outer)
    if launch.team == 1:
        return steps
    return [
        split_loop(step, launch.team, "team") if isinstance(step, Loop) else step
        for step in steps
    ]


def render_teams(f):
    """Write what the threads of a `LaunchShape` do."""
    render_thread_indices(f)
    render_steps(f, cooperative_nest(f.kernel, f.launch))


# From types of launches to functions that write what their threads do.
launch_renderers: dict = Registry({LaunchShape: render_teams})


def cuda_function(kernel, launch, name):
    """Return the text of a kernel's function for a launch."""
    f = CudaRenderer(kernel, launch)
    launch_renderers[type(launch)](f)
    head = f'extern "C" __global__ void __launch_bounds__({launch.threads})'
    first, *others = parameter_declarations(kernel)
    texts = f"{name}({first}", *[f"    {each}" for each in others]
    return "\n".join([head, ",\n".join(texts) + ") {", *f.lines, "}"])


def render_team_reduction(f, fold):
    """Put the parts together that the threads of a team have; each gets the whole."""
    if not f.launch.across:
        render_shuffles(f, fold)
    if f.launch.across or f.launch.team > WARP_SIZE:
        render_shared_memory_fold(f, fold)


def render_other(f, fold, others):
    """Write how what another thread has enters a fold: expressions of its parts."""
    for (part, kind), other in zip(accumulator_names(f, fold).items(), others):
        f.line(f"const {kind} {part}_other = {other};")
    first, *_, last = [f"{part}_other" for part in accumulator_names(f, fold)] * 2
    render_fold_combine(f, fold, first, last)


def render_shuffles(f, fold):
    """Fold what the threads of each warp have."""
    parts = accumulator_names(f, fold)
    with f.block("for (int d = 16; d; d /= 2)"):
        render_other(f, fold, [f"__shfl_xor_sync(~0u, {x}, d)" for x in parts])


def render_shared_memory_fold(f, fold):
    """Fold through shared memory what warps have, or rows of threads, if across."""
    team, across = f.launch.team, f.launch.across
    count, row, mine, lane = team // WARP_SIZE, "", "t / 32", ""
    if across:
        count, row, mine = team, f"[{f.launch.teams}]", "t"
        lane = f"[threadIdx.x % {f.launch.teams}]"
    shared = {part: f.name("shared") for part in accumulator_names(f, fold)}
    for part, kind in accumulator_names(f, fold).items():
        f.line(f"__shared__ {kind} {shared[part]}[{count}]{row};")
        who = "" if across else "if (t % 32 == 0) "
        f.line(f"{who}{shared[part]}[{mine}]{lane} = {part};")
    f.line("__syncthreads();")
    for part, place in shared.items():
        f.line(f"{part} = {place}[0]{lane};")
    with f.block(f"for (int w = 1; w < {count}; w++)"):
        render_other(f, fold, [f"{place}[w]{lane}" for place in shared.values()])


def default_launch(kernel):
    """Return the launch that suits a kernel."""
    outer = parallel_axes(kernel)
    inner = [size for axis, size in enumerate(kernel.sizes) if axis not in outer]
    longest = max(inner, default=0)
    if longest < 8 or not is_reorderable(kernel):
        return LaunchShape(outer)
    if outer and contiguous_axis(kernel) == outer[-1] and kernel.sizes[outer[-1]] >= 32:
        return LaunchShape(outer, team=8, teams=32, across=True)
    if longest <= 1024 and trip_count(kernel, outer) >= 64:
        return LaunchShape(outer, team=32, teams=8)
    return LaunchShape(outer, team=min(1024, 32 * math.ceil(longest / 128)), teams=1)


def is_reorderable(kernel):
    """Return whether the iterations of its inner loops may be done in any order."""
    runs = any(node.op == "running" for node in kernel.nodes)
    pairs = [(store, axis) for store in kernel.stores for axis in store.axes]
    return not runs and all(stores_never_alias(kernel, *pair) for pair in pairs)


def contiguous_axis(kernel):
    """Return the axis along which the largest arrays it loads lie, or None."""
    loads = [node.detail.place for node in kernel.nodes if node.op == "load"]
    places = [place for place in loads if len(place.axes) > 1]
    counts = [trip_count(kernel, place.axes) for place in places]
    along = {
        min(place.axes, key=lambda axis: abs(place.strides[axis]))
        for place, count in zip(places, counts)
        if count == max(counts)
    }
    return along.pop() if len(along) == 1 else None
