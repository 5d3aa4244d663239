"""Kernels of one block: loops in one launch, and rows kept in registers."""

# Made from chapters/34_gpu_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from minijax.cpu_backend.program_codegen import ScanStep
from minijax.gpu.codegen import (
    WARP_SIZE,
    LaunchShape,
    cuda_function,
    is_reorderable,
    launch_renderers,
    parallel_axes,
    render_node,
    render_steps,
    render_team_reduction,
)
from minijax.gpu.cuda_source import (
    c_type,
    c_type_in_memory,
    render_fold_combine,
    render_store,
    render_thread_indices,
    store_conversion_expr,
)
from minijax.gpu.schedules import (
    VECTOR_BYTES,
    choose_launch,
    is_irregular,
    is_vector_aligned,
    kernel_loads,
    render_lane,
    render_vector_load,
    render_vector_variable,
    vector_expr,
)
from minijax.jitting.stages import nbytes
from minijax.kernels.ir import (
    AXIS_NAMES,
    FoldCombine,
    Loop,
    Store,
    scalar_ops,
    trip_count,
)
from minijax.kernels.loop_nests import Node, backward_slice, loop_nest
from minijax.kernels.lowering import Launch
from minijax.memory.buffer_assignment import captured_buffers

# Loops that one block of threads does in one launch.

SHARED_MEMORY_BYTES = 2**15  # bytes for the state of a loop and for what it computes
MAX_ITERATION_ELEMENTS = 2**16  # indices of kernels in an iteration


def fits_block(step):
    """Return whether a step is a loop that a block can do in one launch."""
    if not step.programs or not hasattr(step, "init"):
        return False
    steps = [each for program in step.programs for each in program.steps]
    simple = all(isinstance(each, Launch) for each in steps)
    if not simple or any(program.constants for program in step.programs):
        return False
    work = sum(math.prod(each.kernel.sizes) for each in steps)
    return (
        work <= MAX_ITERATION_ELEMENTS
        and sum(map(nbytes, kept_by(step))) <= SHARED_MEMORY_BYTES
    )


def kept_by(step):
    """Return the buffers that a block has in shared memory: states and others."""
    written = [
        buffer
        for program in step.programs
        for each in program.steps
        for buffer in each.writes
    ]
    states = step.programs[-1].inputs[: len(step.init)]
    rows = step.programs[-1].outputs[len(step.init) :]
    return [x for x in dict.fromkeys([*states, *written]) if x not in rows]


def block_loop_buffers(step):
    """Return the buffers whose memory a launch of a loop is given, in order."""
    inside = [
        buffer for program in step.programs for buffer in captured_buffers(program)
    ]
    tests = [x for program in step.programs[:-1] for x in program.inputs]
    read = [*step.init, *getattr(step, "xs", ()), *inside]
    written = [*step.results, *getattr(step, "ys", ())]
    return [x for x in dict.fromkeys([*read, *written]) if x not in tests]


def block_size(step):
    """Return how many threads a block needs for a loop: whole warps, 256 at most."""
    kernels = [each.kernel for program in step.programs for each in program.steps]
    most = max((math.prod(kernel.sizes) for kernel in kernels), default=1)
    return min(256, WARP_SIZE * math.ceil(max(most, 1) / WARP_SIZE))


def units_of(buffer):
    """Return the type of a buffer's numbers in C, and how many it has.

    Complex numbers are two floats each, and the keys of random numbers are words.
    """
    dtype = np.dtype(buffer.dtype)  # of keys that of their words
    size, kind = dtype.itemsize, dtype.kind
    if kind == "V" and size % 4 == 0:  # bfloat16 is of NumPy's kind V, too
        return "unsigned", buffer.size * size // 4
    if kind == "c":
        return {8: "float", 16: "double"}[size], 2 * buffer.size
    return c_type_in_memory(buffer.dtype), buffer.size


def pointer_for(parameter, buffer, name):
    """Return the memory of a buffer as a kernel's parameter wants it."""
    kind = c_type_in_memory(parameter.dtype)
    return name if kind == units_of(buffer)[0] else f"({kind}*){name}"


def block_launch(kernel, threads):
    """Return the launch of a kernel in blocks of so many threads."""
    outer = parallel_axes(kernel)
    inner = [size for axis, size in enumerate(kernel.sizes) if axis not in outer]
    if max(inner, default=0) < 8 or not is_reorderable(kernel):
        return LaunchShape(outer, 1, threads)
    team = WARP_SIZE if trip_count(kernel, outer) > 1 else threads
    return LaunchShape(outer, team, threads // team)


def device_function(kernel, launch, name):
    """Return the text of a kernel that other functions of a card call."""
    text = cuda_function(kernel, launch, name).replace("blockIdx.x", "block")
    text = text.replace(" __restrict__", "")  # its memory may be written by others
    _, body = text.split("\n", 1)
    return f"__device__ void {body.replace(') {', ', int block) {', 1)}"


class BlockLoopRenderer:
    """The text of a loop for one block.

    Args:
      step: a `ScanStep`, or a `While`.
      name: of the function.

    Attributes:
      lines: of the loop's function.
      functions: texts of the functions that it calls.
      names: what the memory of each buffer is called.
    """

    def __init__(self, step, name):
        self.step, self.name, self.threads = step, name, block_size(step)
        self.lines, self.functions, self.depth = [], [], 1
        self.parameters, self.kept = block_loop_buffers(step), kept_by(step)
        self.names = {x: f"g{place}" for place, x in enumerate(self.parameters)}
        self.names |= {x: f"s{place}" for place, x in enumerate(self.kept)}

    def line(self, text):
        """Write a line."""
        self.lines.append("  " * self.depth + text)

    def copy(self, old, new):
        """Write a loop that copies memory."""
        stride, (_, size) = self.threads, units_of(old)
        self.line(f"for (int i = threadIdx.x; i < {size}; i += {stride})")
        self.line(f"  {self.names[new]}[i] = {self.names[old]}[i];")

    def launch(self, launch):
        """Write the calls that a launch in the body becomes, and barriers."""
        shape = block_launch(launch.kernel, self.threads)
        name = f"{self.name}_{len(self.functions)}"
        self.functions.append(device_function(launch.kernel, shape, name))
        pairs = zip(launch.kernel.parameters, launch.buffers)
        memory = ", ".join(pointer_for(x, b, self.names[b]) for x, b in pairs)
        count = shape.blocks(launch.kernel)
        self.line(f"for (int block = 0; block < {count}; block++) {{")
        self.line(f"  {name}({memory}, block);")
        self.line("  __syncthreads();")
        self.line("}")


def render_block_loop(step, name):
    """Return the text of a loop for one block, and of the functions that it calls.

    Args:
      step: a `ScanStep` or a `While` that `fits_block`.
      name: of the function; its parameters are the memory of
        `block_loop_buffers(step)`.
    """
    f, (*tests, body) = BlockLoopRenderer(step, name), step.programs
    states = body.inputs[: len(step.init)]
    for buffer in f.kept:
        (kind, count), one = units_of(buffer), f.names[buffer]
        f.line(f"alignas(16) __shared__ {kind} {one}_memory[{max(count, 1)}];")
        f.line(f"{kind}* {one} = {one}_memory;")
    for start, state in zip(step.init, states):
        f.copy(start, state)
    f.line("__syncthreads();")
    f.line(f"for (int turn = 0; {loop_condition(step)}; turn++) {{")
    f.depth += 1
    render_test(f, tests, states)
    render_rows(f)
    for launch in body.steps:
        f.launch(launch)
    for state, following in zip(states, body.outputs):
        old, new = f.names[state], f.names[following]
        kind, _ = units_of(state)
        f.line(f"{kind}* {old}_before = {old}; {old} = {new}; {new} = {old}_before;")
    f.depth -= 1
    f.line("}")
    for state, result in zip(states, step.results):
        f.copy(state, result)
    return "\n".join([*f.functions, head_of(f), *f.lines, "}"])


def loop_condition(step):
    """Return the condition of a loop: that of a `While` stands inside of it."""
    return f"turn < {step.length}" if isinstance(step, ScanStep) else "true"


def head_of(f):
    """Return the head of a loop's function."""
    written = {*f.step.results, *getattr(f.step, "ys", ())}
    texts = [
        f"{'' if x in written else 'const '}{units_of(x)[0]}* {f.names[x]}"
        for x in f.parameters
    ]
    bounds = f"__launch_bounds__({f.threads})"
    return f'extern "C" __global__ void {bounds} {f.name}({", ".join(texts)}) {{'


def render_test(f, tests, states):
    """Write the test of a `While`: all threads leave the loop together."""
    for test in tests:
        f.names.update(zip(test.inputs, [f.names[state] for state in states]))
        for launch in test.steps:
            f.launch(launch)
        f.line(f"if (!{f.names[test.outputs[0]]}[0]) break;")


def render_rows(f):
    """Write where the rows of an iteration are, those it reads and those it writes."""
    step, count = f.step, len(f.step.init)
    if not isinstance(step, ScanStep):
        return
    number = f"{step.length - 1} - turn" if step.reverse else "turn"
    body = step.body
    rows = [*zip(step.xs, body.inputs[count:], ["const "] * len(step.xs))]
    rows += [*zip(step.ys, body.outputs[count:], [""] * len(step.ys))]
    for place, (whole, row, const) in enumerate(rows):
        f.names[row] = f"row{place}"
        (kind, count), start = units_of(row), f.names[whole]
        wide = "(long long)" if nbytes(whole) >= 2**31 else ""
        f.line(f"{const}{kind}* row{place} = {start} + {wide}({number}) * {count};")


# Rows in registers: a team loads its row once, and walks through it several times.

MOST_WORDS = 32  # registers of a thread for what it keeps
MOST_THREADS = 1024  # of a block
MANY_ROWS = 1024  # which fill a card with threads that keep 16 numbers each


@dataclass(frozen=True)
class RowShape:
    """Teams of threads that keep a row each.

    Attributes:
      outer: axes, all but the last one.
      team: how many threads there are in a team.
      teams: how many teams there are in a block.
      lanes: how many neighbours a thread loads at once.
      turns: how often it does.
    """

    outer: tuple
    team: int
    teams: int
    lanes: int
    turns: int
    across = False

    @property
    def threads(self):
        """How many threads there are in a block."""
        return self.team * self.teams

    def blocks(self, kernel):
        """Return how many blocks it takes; the last one may have teams without work."""
        return -(-trip_count(kernel, self.outer) // self.teams)


def loops_of(kernel, outer):
    """Return the loops along the last axis inside of others; () if there are more."""
    last, steps = len(kernel.sizes) - 1, loop_nest(kernel, outer)
    loops = [step for step in steps if isinstance(step, Loop)]
    inner = [step for loop in loops for step in loop.body if isinstance(step, Loop)]
    return loops if not inner and all(loop.axis == last for loop in loops) else ()


def is_worth_keeping(node):
    """Return whether a node takes a load, or many instructions."""
    if node.op not in scalar_ops:
        return node.op == "load"
    return node.op == "div" or scalar_ops[node.op].cost == "transcendentals"


def without_kept_nodes(body, kept):
    """Return the steps of a loop without nodes that are kept, or lead to these only."""
    goals = [step for step in body if not isinstance(step, Node)]
    wanted = [
        x for g in goals for x in (g.fold if isinstance(g, FoldCombine) else g).args
    ]
    used = backward_slice(wanted, kept).difference(kept)
    return [step for step in body if not isinstance(step, Node) or step in used]


def kept_nodes(loops):
    """Return the nodes that several loops need and that are worth registers."""
    seen, found = set(), []
    for loop in loops:
        nodes = [x for x in without_kept_nodes(loop.body, found) if isinstance(x, Node)]
        while again := [x for x in nodes if x in seen and is_worth_keeping(x)]:
            found.append(again[-1])  # the last one: what leads to it is not needed now
            nodes = [
                x for x in without_kept_nodes(loop.body, found) if isinstance(x, Node)
            ]
        seen.update(nodes)
    return found


def lanes_of(kernel, unaligned):
    """Return how many neighbours of a row a thread may load at once, 1 at least."""
    found = [*kernel_loads(kernel), *kernel.stores]
    moving = [each for each in found if each.place.strides[-1]]
    widest = max(
        [each.parameter.dtype.itemsize for each in moving], default=VECTOR_BYTES
    )
    known = not any(each.parameter.name in unaligned for each in moving)
    if not known or any(map(is_irregular, found)):
        return 1
    lanes = VECTOR_BYTES // widest
    fits = all(is_vector_aligned(each.place, lanes) for each in moving)
    return lanes if fits and kernel.sizes[-1] % lanes == 0 else 1


def row_launch(kernel, unaligned=()):
    """Return the `RowShape` of a kernel, or None if it walks through no row again.

    Args:
      kernel: a `Kernel`.
      unaligned: names of parameters that may begin where no 16 bytes begin.
    """
    outer = tuple(range(len(kernel.sizes) - 1))
    alone = parallel_axes(kernel) == outer and is_reorderable(kernel)
    if not kernel.sizes or not alone or any(store.update for store in kernel.stores):
        return None
    kept = kept_nodes(loops_of(kernel, outer))
    words = sum(max(1, node.dtype.itemsize // 4) for node in kept)
    size, lanes = kernel.sizes[-1], lanes_of(kernel, unaligned)
    if not kept or size < WARP_SIZE:
        return None
    while lanes > 1 and words * lanes > MOST_WORDS:
        lanes //= 2
    most = MOST_WORDS // (words * lanes)
    usual = 16 if trip_count(kernel, outer) >= MANY_ROWS else 4
    turns = min(max(1, usual // lanes), max(1, most))
    turns = max(turns, -(-size // (MOST_THREADS * lanes)))
    team = WARP_SIZE * -(-size // (WARP_SIZE * lanes * turns))
    turns, teams = -(-size // (team * lanes)), 8 if team == WARP_SIZE else 1
    return RowShape(outer, team, teams, lanes, turns) if turns <= most else None


def choose_launch_with_rows(kernel, unaligned=()):
    """Return the shape of launch that suits a kernel, of all that there are."""
    return row_launch(kernel, unaligned) or choose_launch(kernel, unaligned)


@contextmanager
def turns_of(f):
    """Open the loop in which a thread comes to its parts of the row."""
    shape = f.launch
    size = f.kernel.sizes[-1]
    axis = AXIS_NAMES[len(f.kernel.sizes) - 1]
    step = shape.team * shape.lanes
    tests = [f"{axis} < {size}"] * (step * shape.turns > size) + [
        "busy"
    ] * f.inactive_condition
    f.line("#pragma unroll")
    with f.block(f"for (int u = 0; u < {shape.turns}; u++)"):
        first = f"t * {shape.lanes}" if shape.lanes > 1 else "t"
        f.line(f"const {f.index} {axis} = u * {step} + {first};")
        with f.block(f"if ({' && '.join(tests)})") if tests else nullcontext():
            yield


def lanes_loop(f):
    """Open the loop over the neighbours that a thread has at once."""
    if f.launch.lanes == 1:
        return nullcontext()
    f.line("#pragma unroll")
    return f.block(f"for (int c = 0; c < {f.launch.lanes}; c++)")


def render_arrays(f, kept):
    """Write the arrays of what is kept; return what stands for an element of each."""
    lanes, found = f.launch.lanes, {}
    for node in kept:
        name = f.name("k")
        f.line(f"{c_type(node.dtype)} {name}[{f.launch.turns * lanes}];")
        found[node] = f"{name}[u * {lanes} + c]" if lanes > 1 else f"{name}[u]"
    return found


def render_lane_step(f, step, vectors, arrays):
    """Write a step for one number of a row, and keep what is to be kept."""
    last, wide = AXIS_NAMES[len(f.kernel.sizes) - 1], f.launch.lanes > 1
    if isinstance(step, FoldCombine):
        place = f"({last} + c)" if wide else last
        render_fold_combine(f, step.fold, f.names[step.fold.args[0]], place)
    elif isinstance(step, Node):
        render_lane(f, step, vectors.get(step)) if wide else render_node(f, step)
        if step in arrays:
            f.line(f"{arrays[step]} = {f.names[step]};")
    elif wide:
        value = store_conversion_expr(step.parameter.dtype, f.names[step.node])
        f.line(f"{vectors[step]}.at[c] = {value};")
    else:
        render_store(f, step)


def render_row_lanes(f, steps, arrays):
    """Write what a thread does with neighbours: load, compute each number, store."""
    wide, vectors = f.launch.lanes > 1, {}
    for step in steps if wide else ():
        if isinstance(step, Node) and step.op == "load":
            vectors[step] = render_vector_load(f, step.detail)
    stores = [step for step in steps if wide and isinstance(step, Store)]
    made = {store: render_vector_variable(f, store.parameter) for store in stores}
    with lanes_loop(f):
        for step in steps:
            render_lane_step(f, step, vectors | made, arrays)
    for store in stores:
        f.line(f"{vector_expr(f, store)} = {made[store]};")


def render_walk(f, steps, arrays, there=()):
    """Write one walk of a team through its row, where some of it is kept already."""
    names = f.names
    f.names, f.inside = names | {node: arrays[node] for node in there}, True
    with turns_of(f):
        render_row_lanes(f, steps, arrays)
    f.names, f.inside = names, False


def render_kept_rows(f):
    """Write what the threads of a `RowShape` do: load what is kept, then walk."""
    render_thread_indices(f)
    steps = loop_nest(f.kernel, f.launch.outer)
    kept = kept_nodes([step for step in steps if isinstance(step, Loop)])
    arrays = render_arrays(f, kept)
    there = [node for node in kept if node.op == "load" and not node.args]
    if there:
        render_walk(f, there, arrays)
    for step in steps:
        if not isinstance(step, Loop):
            render_steps(f, [step])
            continue
        render_walk(f, without_kept_nodes(step.body, there), arrays, there)
        there += [node for node in kept if node in step.body and node not in there]
        for fold in step.folds:
            render_team_reduction(f, fold)


launch_renderers[RowShape] = render_kept_rows
