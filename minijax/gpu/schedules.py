"""Shapes of launches: vectors, tiles, split folds, block scans, and the choice."""

# Made from chapters/34_gpu_upper.md by `make chapter`;
# edit the chapter, not this file.

import math
from contextlib import contextmanager
from dataclasses import dataclass

from minijax.gpu.codegen import (
    WARP_SIZE,
    LaunchShape,
    contiguous_axis,
    cooperative_nest,
    default_launch,
    launch_renderers,
    parallel_axes,
    render_node,
    render_steps,
    render_team_reduction,
    stores_never_alias,
)
from minijax.gpu.cuda_source import (
    c_expression,
    c_type,
    c_type_in_memory,
    index_expr,
    load_conversion_expr,
    load_expr,
    multi_stage_fold,
    render_store,
    render_thread_indices,
    store_conversion_expr,
)
from minijax.kernels.builder import Buffer, collapse_axes, rewritten, scan_node
from minijax.kernels.ir import (
    AXIS_NAMES,
    Affine,
    FoldCombine,
    Guard,
    Loop,
    Parameter,
    Store,
    fold_ops,
    is_scan,
    trip_count,
)
from minijax.kernels.loop_nests import Kernel, fold_node, load_node, loop_nest, op_node
from minijax.kernels.lowering import Launch
from minijax.threads.split_reductions import (
    AxisSplit,
    FoldSplit,
    assemble_kernel,
    partial_fold_kernel,
    partial_parameters,
    row_strides,
    two_stage_fold,
)
from minijax.vectorization.vector_functions import walk_nest

# A thread for some neighbours: one vector of 16 bytes, or fewer, of each array.

VECTOR_BYTES = 16  # that one instruction of a thread loads or stores, at most


@dataclass(frozen=True)
class VectorShape:
    """Threads that do some neighbours along the last axis each.

    Attributes:
      outer: axes, all that there are.
      lanes: how many neighbours.
      threads: how many threads there are in a block.
    """

    outer: tuple
    lanes: int
    threads: int = 256
    team, across = 1, False

    @property
    def teams(self):
        """How many threads there are in a block, each of which is a team."""
        return self.threads

    def runs(self, kernel):
        """Return how many runs there are; the last of a row may be shorter."""
        *before, last = [kernel.sizes[axis] for axis in self.outer]
        return math.prod(before) * math.ceil(last / self.lanes)

    def blocks(self, kernel):
        """Return how many blocks it takes; the last one may have idle threads."""
        return math.ceil(self.runs(kernel) / self.threads)


def kernel_loads(kernel):
    """Return what a kernel loads, a list of `Load`."""
    return [node.detail for node in kernel.nodes if node.op == "load"]


def is_irregular(each):
    """Return whether a `Load` or a `Store` has computed places, or guards."""
    kinds = "update", "terms", "guards"
    return any(getattr(each, kind, None) for kind in kinds)


def is_vector_aligned(place, lanes):
    """Return whether vectors of so many lanes begin at multiples of their size."""
    *others, last = place.strides
    return last == 1 and all(x % lanes == 0 for x in [place.offset, *others])


def render_run(f):
    """Write the indices with which the run of a thread begins."""
    shape, sizes = f.launch, f.kernel.sizes
    wide = "(long long)" if f.index != "int" else ""
    f.line(f"const {f.index} run = {wide}blockIdx.x * {shape.threads} + threadIdx.x;")
    f.line(f"if (run >= {shape.runs(f.kernel)}) return;")
    runs = math.ceil(sizes[-1] / shape.lanes)
    first = f"run % {runs}" if len(sizes) > 1 else "run"
    f.line(f"{f.index} {AXIS_NAMES[len(sizes) - 1]} = {shape.lanes} * ({first});")
    rest = f"run / {runs}"
    for axis in reversed(range(len(sizes) - 1)):
        value = f"({rest}) % {sizes[axis]}" if axis else rest
        f.line(f"const {f.index} {AXIS_NAMES[axis]} = {value};")
        rest = f"{rest} / {sizes[axis]}"


def vector_expr(f, each, const=""):
    """Return the expression of the vector at the place of a load or a store."""
    kind = f"Vector<{c_type_in_memory(each.parameter.dtype)}, {f.launch.lanes}>"
    place = index_expr(f, each.place)
    return f"*reinterpret_cast<{const}{kind}*>({each.parameter.name} + {place})"


def render_vector_variable(f, parameter, value=""):
    """Write the line of a new variable for a vector; return its name."""
    name, kind = f.name("a"), c_type_in_memory(parameter.dtype)
    f.line(f"Vector<{kind}, {f.launch.lanes}> {name}{value};")
    return name


def render_vector_load(f, load):
    """Write the line that loads a vector; return its name."""
    return render_vector_variable(
        f, load.parameter, f" = {vector_expr(f, load, 'const ')}"
    )


def render_lane(f, node, vector):
    """Write the line of a node for one number of a run."""
    if vector:
        f.names[node] = load_conversion_expr(
            node.detail.parameter.dtype, f"{vector}.at[c]"
        )
    elif node.op == "index":
        f.names[node] = f"((long long){AXIS_NAMES[node.detail]} + c)"
    else:
        render_node(f, node)


def vector_launch(kernel, unaligned=()):
    """Return the `VectorShape` of a kernel, or None if vectors do not suit it.

    Args:
      kernel: a `Kernel`.
      unaligned: names of parameters that may begin where no 16 bytes begin.
    """
    outer = parallel_axes(kernel)
    if not outer or len(outer) < len(kernel.sizes):
        return None
    found = [*kernel_loads(kernel), *kernel.stores]
    moving = [each for each in found if each.place.strides[-1]]
    if not moving or any(map(is_irregular, found)):
        return None
    widest = max(each.parameter.dtype.itemsize for each in moving)
    lanes = VECTOR_BYTES // widest
    fits = all(is_vector_aligned(each.place, lanes) for each in moving)
    known = not any(each.parameter.name in unaligned for each in moving)
    wide = lanes > 1 and kernel.sizes[-1] >= lanes
    return VectorShape(outer, lanes) if wide and fits and known else None


def render_run_in_vectors(f):
    """Write one run: load vectors, compute each number, store vectors."""
    kernel, lanes = f.kernel, f.launch.lanes
    last = len(kernel.sizes) - 1
    still = [node for node in kernel.nodes if last not in node.level]
    moving = [node for node in kernel.nodes if last in node.level]
    loads = [node for node in moving if node.op == "load"]
    for node in still:
        render_node(f, node)
    at = {node: render_vector_load(f, node.detail) for node in loads}
    made = {
        store: render_vector_variable(f, store.parameter) for store in kernel.stores
    }
    f.line("#pragma unroll")
    with f.block(f"for (int c = 0; c < {lanes}; c++)"):
        for node in moving:
            render_lane(f, node, at.get(node))
        for store, name in made.items():
            value = store_conversion_expr(store.parameter.dtype, f.names[store.node])
            f.line(f"{name}.at[c] = {value};")
    for store, name in made.items():
        f.line(f"{vector_expr(f, store)} = {name};")


def render_vectors(f):
    """Write what a thread does with its neighbours; a shorter run has a loop."""
    kernel, shape = f.kernel, f.launch
    axis, size = AXIS_NAMES[shape.outer[-1]], kernel.sizes[-1]
    render_run(f)
    if size % shape.lanes == 0:
        render_run_in_vectors(f)
        return
    with f.block(f"if ({axis} <= {size - shape.lanes})"):
        render_run_in_vectors(f)
    f.names = {}
    with f.block(f"else for (; {axis} < {size}; {axis}++)"):
        render_steps(f, loop_nest(kernel, shape.outer))


launch_renderers[VectorShape] = render_vectors


# Transposes: a block turns a tile of 32 x 32 numbers around in shared memory.

MAX_TILE_BYTES = 2**15  # bytes for the tiles of a block


@dataclass(frozen=True)
class TileShape:
    """Blocks that do tiles of two axes.

    Attributes:
      outer: axes, all that there are.
      across: the axis along which stores are neighbours.
      down: the axis along which some loads are.
    """

    outer: tuple
    across: int
    down: int
    team, teams, threads = 1, 256, 256

    def counts(self, kernel):
        """Return how many tiles, or single indices, there are along each axis."""
        tiled = self.across, self.down
        return [
            math.ceil(size / WARP_SIZE) if axis in tiled else size
            for axis, size in enumerate(kernel.sizes)
        ]

    def blocks(self, kernel):
        """Return how many blocks it takes, one for each tile."""
        return math.prod(self.counts(kernel))


def turned_loads(kernel, across):
    """Return the loads whose neighbours along an axis are no neighbours in memory."""
    return [
        node
        for node in kernel.nodes
        if node.op == "load"
        and node.detail.place.strides[across]
        and shortest_stride_axis(node.detail.place) != across
    ]


def shortest_stride_axis(place):
    """Return the axis along which a place moves by the shortest step, or None."""
    return min(place.axes, key=lambda axis: abs(place.strides[axis]), default=None)


@contextmanager
def sweep(f, slow, fast):
    """Write the loop in which a block walks through its tile, row by row."""
    names, sizes = [AXIS_NAMES[axis] for axis in (slow, fast)], f.kernel.sizes
    with f.block(
        f"for (int row = threadIdx.x / {WARP_SIZE}; row < {WARP_SIZE}; row += 8)"
    ):
        for name, more in zip(names, ("row", "lane")):
            f.line(f"const {f.index} {name} = {name}_first + {more};")
        inside = f"{names[0]} < {sizes[slow]} && {names[1]} < {sizes[fast]}"
        with f.block(f"if ({inside})"):
            yield


def render_corner(f):
    """Write where in its row of the tile a thread is, and where the tile begins."""
    f.line(f"const int lane = threadIdx.x % {WARP_SIZE};")
    rest, counts = "blockIdx.x", f.launch.counts(f.kernel)
    for axis in reversed(f.launch.outer):
        name, tiled = AXIS_NAMES[axis], axis in (f.launch.across, f.launch.down)
        value = f"{rest} % {counts[axis]}" if axis else rest
        many = f"({value}) * {WARP_SIZE}" if tiled else value
        f.line(f"const {f.index} {name}{'_first' * tiled} = {many};")
        rest = f"({rest} / {counts[axis]})"


def tile_launch(kernel, least=WARP_SIZE // 2):
    """Return the `TileShape` of a kernel, or None if no load of it is turned around.

    Args:
      kernel: a `Kernel`.
      least: how long both axes of a tile have to be.
    """
    outer = parallel_axes(kernel)
    if len(outer) < max(2, len(kernel.sizes)) or any(map(is_irregular, kernel.stores)):
        return None
    [across, *more] = {shortest_stride_axis(store.place) for store in kernel.stores}
    turned = turned_loads(kernel, across)
    downs = {shortest_stride_axis(node.detail.place) for node in turned}
    room = sum(WARP_SIZE * (WARP_SIZE + 1) * node.dtype.itemsize for node in turned)
    if (
        more
        or len(downs) != 1
        or any(node.args for node in turned)
        or room > MAX_TILE_BYTES
    ):
        return None
    [down] = downs
    big = min(kernel.sizes[across], kernel.sizes[down]) >= least
    return TileShape(outer, across, down) if big else None


def render_tiles(f):
    """Write what a block does: load tiles as they lie, wait, compute from them."""
    across, down = f.launch.across, f.launch.down
    render_corner(f)
    tiles = {node: f.name("tile") for node in turned_loads(f.kernel, across)}
    for node, tile in tiles.items():
        f.line(f"__shared__ {c_type(node.dtype)} {tile}[{WARP_SIZE}][{WARP_SIZE + 1}];")
    with sweep(f, across, down):
        for node, tile in tiles.items():
            f.line(f"{tile}[row][lane] = {load_expr(f, node.detail, [])};")
    f.line("__syncthreads();")
    with sweep(f, down, across):
        f.names.update({node: f"{tile}[lane][row]" for node, tile in tiles.items()})
        for node in f.kernel.nodes:
            if node not in tiles:
                render_node(f, node)
        for store in f.kernel.stores:
            render_store(f, store)


launch_renderers[TileShape] = render_tiles


# Kernels in several launches, so that they fill a card: long folds, running totals.

FULL_OCCUPANCY_THREADS, LOW_OCCUPANCY_THREADS = (
    2**19,
    2**13,
)  # threads: which fill a card, and leave most of it idle
SCAN_PART_THREADS = 512  # of them for a running total
ROOM_FOR_PARTS = 2**26  # for what is left of the parts, in bytes


def split_count(size, threads, least):
    """Return in how many parts to cut an axis, or 1 for none.

    Args:
      size: of the axis.
      threads: how many threads there are otherwise.
      least: how long a part has to be.
    """
    if threads > FULL_OCCUPANCY_THREADS // 2 or size < 2 * least:
        return 1
    count = min(size // least, math.ceil(FULL_OCCUPANCY_THREADS / max(threads, 1)))
    length = 32 * math.ceil(size / count / 32)
    return math.ceil(size / length)


def split_folds(step):
    """Return launches that do what one does, with more blocks; or itself, in a list."""
    kernel = step.kernel
    if 0 in kernel.sizes:
        return [step]
    if any(map(is_scan, kernel.nodes)):
        return totals_in_parts(step) or [step]
    shape = default_launch(kernel)
    threads = shape.blocks(kernel) * shape.threads
    if threads <= LOW_OCCUPANCY_THREADS and (stages := multi_stage_fold(step)):
        return [each for stage in stages for each in split_folds(stage)]
    folded = [n.detail.axes for n in kernel.nodes if n.op == "fold"]
    axes = {axis for each in folded for axis in each}
    longest = max((kernel.sizes[axis] for axis in axes), default=1)
    least = 256 if shape.across else 1024
    count = split_count(longest, threads, least)
    options = {"counts": [count], "room": ROOM_FOR_PARTS, "uneven": True}
    return count > 1 and two_stage_fold(step, **options) or [step]


# Running totals that the threads of a team make together.


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
        return math.ceil(trip_count(kernel, self.outer) / self.teams)


def scan_launch(kernel, least=8):
    """Return the `ScanShape` of a kernel, or None if a thread has to do it alone.

    Args:
      kernel: a `Kernel`.
      least: how long the axis has to be.
    """
    outer = parallel_axes(kernel)
    axes = {n.detail.axes for n in kernel.nodes if is_scan(n)}
    if len(axes) != 1 or not is_cooperative(kernel, outer):
        return None
    [[axis]] = axes
    size, many = kernel.sizes[axis], trip_count(kernel, outer)
    if size < least or are_neighbours(kernel, outer):
        return None
    if size <= 1024 and many >= 64:
        return ScanShape(outer, axis, WARP_SIZE, 8)
    most = 256 if many >= 64 else 1024
    return ScanShape(outer, axis, min(most, WARP_SIZE * math.ceil(size / WARP_SIZE)), 1)


def are_neighbours(kernel, outer):
    """Return whether the numbers of neighbouring outer indices are neighbours."""
    many = trip_count(kernel, outer) >= WARP_SIZE
    return bool(outer) and many and contiguous_axis(kernel) == outer[-1]


def is_cooperative(kernel, outer):
    """Return whether threads may share all loops, those of running totals too."""
    loops = [step for step in loop_nest(kernel, outer) if isinstance(step, Loop)]
    pairs = [(store, axis) for store in kernel.stores for axis in store.axes]
    return all(map(is_flat, loops)) and all(
        stores_never_alias(kernel, *x) for x in pairs
    )


def is_flat(loop):
    """Return whether a loop has totals of its own axis in its body, or none."""
    inner = [step for step in loop.body if isinstance(step, Loop)]
    if not any(is_scan(fold) for fold in loop.folds):
        return True
    within = [step for each in inner for step in walk_nest(each.body)]
    entering = {step.fold for step in within if isinstance(step, FoldCombine)}
    stored = any(isinstance(step, Store) for step in within)
    return not stored and entering.isdisjoint(loop.folds)


def render_scans(f):
    """Write what the threads of a `ScanShape` do."""
    render_thread_indices(f)
    for step in cooperative_nest(f.kernel, f.launch):
        if isinstance(step, Loop) and any(map(is_scan, step.folds)):
            render_scan_loop(f, step)
        else:
            render_steps(f, [step])


def render_scan_step(f, step):
    """Write a step of such a loop; threads behind the end store nothing."""
    if isinstance(step, FoldCombine) and is_scan(step.fold):
        render_running(f, step.fold)
    elif isinstance(step, (FoldCombine, Store)):
        with f.block("if (live)"):
            render_steps(f, [step])
    else:
        render_steps(f, [step])


def render_scan_combine(fold, left, right):
    """Return the expression of what two numbers become in a fold."""
    return c_expression(fold.detail.how, [left, right], fold.dtype, fold.dtype)


launch_renderers[ScanShape] = render_scans


def render_scan_loop(f, loop):
    """Write a loop in which each thread of a team has one index at each iteration."""
    axis, size, names = AXIS_NAMES[loop.axis], f.kernel.sizes[loop.axis], f.names
    f.names, f.inside = dict(names), True
    with f.block(f"for ({f.index} base = 0; base < {size}; base += {f.launch.team})"):
        f.line(f"const bool within = base + t < {size};")
        f.line(f"const bool live = within{' && busy' * f.inactive_condition};")
        f.line(f"const {f.index} {axis} = within ? base + t : {size - 1};")
        for step in loop.body:
            render_scan_step(f, step)
    f.names, f.inside = names, False
    for each in loop.folds:
        if not is_scan(each):
            render_team_reduction(f, each)


def render_running(f, fold):
    """Write the running totals of what the threads of a team have at this iteration."""
    carry, kind, x = f.names[fold], c_type(fold.dtype), f.name("v")
    f.line(f"{kind} {x} = {f.names[fold.args[0]]};")
    with f.block(f"for (int d = 1; d < {WARP_SIZE}; d *= 2)"):
        f.line(f"const {kind} left = __shfl_up_sync(~0u, {x}, d);")
        f.line(
            f"if (t % {WARP_SIZE} >= d) {x} = {render_scan_combine(fold, 'left', x)};"
        )
    f.names[fold] = f.name("v")
    if f.launch.team > WARP_SIZE:
        render_warps(f, fold, carry, x)
        return
    f.line(f"const {kind} {f.names[fold]} = {render_scan_combine(fold, carry, x)};")
    f.line(f"{carry} = __shfl_sync(~0u, {f.names[fold]}, {WARP_SIZE - 1});")


def render_warps(f, fold, carry, x):
    """Write how totals of warps, and of earlier iterations, enter those of a warp."""
    kind, shared, before = c_type(fold.dtype), f.name("shared"), f.name("v")
    count = f.launch.team // WARP_SIZE
    f.line(f"__shared__ {kind} {shared}[{count}];")
    f.line(f"if (t % {WARP_SIZE} == {WARP_SIZE - 1}) {shared}[t / {WARP_SIZE}] = {x};")
    f.line("__syncthreads();")
    f.line(f"{kind} {before} = {carry};")
    with f.block(f"for (int w = 0; w < {count}; w++)"):
        f.line(f"if (w == t / {WARP_SIZE}) {before} = {carry};")
        f.line(f"{carry} = {render_scan_combine(fold, carry, f'{shared}[w]')};")
    f.line(f"const {kind} {f.names[fold]} = {render_scan_combine(fold, before, x)};")
    f.line("__syncthreads();")


def axis_of_totals(kernel, totals):
    """Return the axis along which totals can be cut, or None."""
    late, [axis, *more] = set(totals), {x for n in totals for x in n.detail.axes}
    for node in kernel.nodes:
        if not late.isdisjoint(node.args):
            late.add(node)
    pure = not any(is_whole(node, axis) for node in kernel.nodes)
    along = all(
        axis in node.args[0].level and node.args[0] not in late for node in totals
    )
    stored = all(axis in s.place.axes and not s.update for s in kernel.stores)
    return axis if pure and along and stored and not more else None


def is_whole(node, axis):
    """Return whether a node needs its axis whole: a fold, an index, computed places."""
    index = node.op == "index" and node.detail == axis
    return index or node.op == "fold" or (node.op == "load" and bool(node.args))


def carry_kernel(kernel, count, total, whole, carry):
    """Return the kernel of what all parts before each part have made."""
    strides, size = row_strides(kernel, total)
    axes = range(len(strides))
    sizes = [kernel.sizes[axis] if axis in total.level else 1 for axis in axes]
    one = Affine(-1, (*[0 for _ in axes], 1))
    start = fold_ops[total.detail.how].start(total.dtype)
    before = Affine(-size, (*strides, size))
    x = load_node(whole, before, [Guard(one, count)], start)
    y = scan_node(total.detail.how, len(sizes), x)
    store = Store(carry, before._replace(offset=0), y)
    return collapse_axes(assemble_kernel(kernel.name, [*sizes, count], [x, y], [store]))


def totals_kernel(kernel, cut, carries):
    """Return the kernel that makes the totals of each part, from its carry on."""
    spread = AxisSplit(kernel, cut.axis, cut.parts)

    def carried(node, args):
        if node not in carries:
            return spread.guarded(node, args)
        how = node.detail.how
        strides, size = row_strides(kernel, fold_node(how, (cut.axis,), *node.args))
        carry = spread.write(load_node(carries[node], Affine(0, (size, *strides))))
        total = spread.write(scan_node(how, cut.axis + 1, *args))
        return spread.write(op_node(how, carry, total))

    new = rewritten(spread, kernel.nodes, spread.maps, len(spread.sizes), carried)
    stores = [spread.store(store, new[store.node]) for store in kernel.stores]
    return assemble_kernel(kernel.name, spread.sizes, spread.nodes, stores)


def with_buffers(step, kernels, parameters):
    """Return launches of kernels; new parameters have buffers of their own."""
    owners = dict(zip(step.kernel.parameters, step.buffers))
    name = step.buffers[-1].name
    owners |= {x: Buffer(f"{name}_{x.name}", x.dtype, x.size) for x in parameters}
    return [
        Launch(kernel, [owners[parameter] for parameter in kernel.parameters])
        for kernel in kernels
    ]


def totals_in_parts(step):
    """Return three launches for one that makes running totals, or None."""
    kernel, totals = step.kernel, [node for node in step.kernel.nodes if is_scan(node)]
    axis = axis_of_totals(kernel, totals)
    if axis is None:
        return None
    rows = trip_count(kernel, parallel_axes(kernel))
    count = split_count(kernel.sizes[axis], rows * SCAN_PART_THREADS, 1024)
    if count == 1:
        return None
    folds = [fold_node(node.detail.how, (axis,), *node.args) for node in totals]
    wholes = partial_parameters(kernel, folds, count)
    carries = [Parameter(f"carry{x.name}", x.dtype, x.size) for x in wholes]
    cut = FoldSplit(axis, count, dict(zip(folds, wholes)))
    nodes = [node for node in kernel.nodes if not is_scan(node)]
    ends = Kernel(kernel.name, kernel.sizes, (), (*nodes, *folds), ())
    kernels = [
        partial_fold_kernel(ends, cut),
        *[carry_kernel(kernel, count, *x) for x in zip(folds, wholes, carries)],
        totals_kernel(kernel, cut, dict(zip(totals, carries))),
    ]
    return with_buffers(step, kernels, [*wholes, *carries])


# Which shape of launch a kernel has on a card, and which launches a program.


def choose_launch(kernel, unaligned=()):
    """Return the shape of launch that suits a kernel.

    Args:
      kernel: a `Kernel`.
      unaligned: names of parameters that may begin where no 16 bytes begin.
    """
    if any(map(is_scan, kernel.nodes)):
        return scan_launch(kernel) or LaunchShape(parallel_axes(kernel))
    return (
        tile_launch(kernel)
        or vector_launch(kernel, unaligned)
        or default_launch(kernel)
    )


def specialize_for_gpu(program):
    """Return a fused `LoweredProgram` whose launches fill a card."""
    steps = []
    for step in program.steps:
        if isinstance(step, Launch):
            steps += split_folds(step)
        elif step.programs:
            steps.append(step.with_programs([*map(specialize_for_gpu, step.programs)]))
        else:
            steps.append(step)
    return program._replace(steps=steps)
