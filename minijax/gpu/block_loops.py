"""Loops that one block of threads does in one launch."""

# Made from chapters/34_gpu_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax.gpu.cuda_text import WARP, cuda_function
from minijax.gpu.launches import LaunchShape, is_shareable, outer_axes
from minijax.gpu.operations import c_type_in_memory
from minijax.jitting.costs import nbytes
from minijax.kernels.parts import elements
from minijax.kernels.program_steps import Launch
from minijax.machine.nested import Repeat
from minijax.memory.liveness import captured

SHARED = 2**15  # bytes for the state of a loop, and what a turn computes
WORK = 2**16  # indices of kernels in a turn


def fits_block(step):
    """Return whether a step is a loop that a block can do in one launch."""
    if not step.programs or not hasattr(step, "starts"):
        return False
    steps = [each for program in step.programs for each in program.steps]
    simple = all(isinstance(each, Launch) for each in steps)
    if not simple or any(program.constants for program in step.programs):
        return False
    work = sum(math.prod(each.kernel.sizes) for each in steps)
    return work <= WORK and sum(map(nbytes, kept_by(step))) <= SHARED


def kept_by(step):
    """Return the buffers that a block has in shared memory: states and others."""
    written = [
        buffer
        for program in step.programs
        for each in program.steps
        for buffer in each.writes
    ]
    states = step.programs[-1].inputs[: len(step.starts)]
    rows = step.programs[-1].outputs[len(step.starts) :]
    return [x for x in dict.fromkeys([*states, *written]) if x not in rows]


def parameters_of(step):
    """Return the buffers whose memory a launch of a loop is given, in order."""
    inside = [buffer for program in step.programs for buffer in captured(program)]
    tests = [x for program in step.programs[:-1] for x in program.inputs]
    read = [*step.starts, *getattr(step, "xs", ()), *inside]
    written = [*step.results, *getattr(step, "ys", ())]
    return [x for x in dict.fromkeys([*read, *written]) if x not in tests]


def threads_for(step):
    """Return how many threads a block needs for a loop: whole warps, 256 at most."""
    kernels = [each.kernel for program in step.programs for each in program.steps]
    most = max((math.prod(kernel.sizes) for kernel in kernels), default=1)
    return min(256, WARP * math.ceil(max(most, 1) / WARP))


def units_of(buffer):
    """Return the type of a buffer's numbers in C, and how many it has.

    Complex numbers are two floats each, and the keys of random numbers are words.
    """
    size, kind = buffer.dtype.itemsize, buffer.dtype.kind
    if kind == "V" and size % 4 == 0:  # bfloat16 is of NumPy's kind V, too
        return "unsigned", buffer.size * size // 4
    if kind == "c":
        return {8: "float", 16: "double"}[size], 2 * buffer.size
    return c_type_in_memory(buffer.dtype), buffer.size


def pointer_for(parameter, buffer, name):
    """Return the memory of a buffer as a kernel's parameter wants it."""
    kind = c_type_in_memory(parameter.dtype)
    return name if kind == units_of(buffer)[0] else f"({kind}*){name}"


def shape_in(kernel, threads):
    """Return the launch of a kernel in blocks of so many threads."""
    outer = outer_axes(kernel)
    inner = [size for axis, size in enumerate(kernel.sizes) if axis not in outer]
    if max(inner, default=0) < 8 or not is_shareable(kernel):
        return LaunchShape(outer, 1, threads)
    team = WARP if elements(kernel, outer) > 1 else threads
    return LaunchShape(outer, team, threads // team)


def device_function(kernel, launch, name):
    """Return the text of a kernel that other functions of a card call."""
    text = cuda_function(kernel, launch, name).replace("blockIdx.x", "block")
    text = text.replace(" __restrict__", "")  # its memory may be written by others
    _, body = text.split("\n", 1)
    return f"__device__ void {body.replace(') {', ', int block) {', 1)}"


class LoopText:
    """The text of a loop for one block.

    Args:
      step: a `Repeat`, or a `While`.
      name: of the function.

    Attributes:
      lines: of the loop's function.
      functions: texts of the functions that it calls.
      names: what the memory of each buffer is called.
    """

    def __init__(self, step, name):
        self.step, self.name, self.threads = step, name, threads_for(step)
        self.lines, self.functions, self.depth = [], [], 1
        self.parameters, self.kept = parameters_of(step), kept_by(step)
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
        shape = shape_in(launch.kernel, self.threads)
        name = f"{self.name}_{len(self.functions)}"
        self.functions.append(device_function(launch.kernel, shape, name))
        pairs = zip(launch.kernel.parameters, launch.buffers)
        memory = ", ".join(pointer_for(x, b, self.names[b]) for x, b in pairs)
        count = shape.blocks(launch.kernel)
        self.line(f"for (int block = 0; block < {count}; block++) {{")
        self.line(f"  {name}({memory}, block);")
        self.line("  __syncthreads();")
        self.line("}")


def loop_function(step, name):
    """Return the text of a loop for one block, and of the functions that it calls.

    Args:
      step: a `Repeat` or a `While` that `fits_block`.
      name: of the function; its parameters are the memory of `parameters_of(step)`.
    """
    f, (*tests, body) = LoopText(step, name), step.programs
    states = body.inputs[: len(step.starts)]
    for buffer in f.kept:
        (kind, count), one = units_of(buffer), f.names[buffer]
        f.line(f"alignas(16) __shared__ {kind} {one}_memory[{max(count, 1)}];")
        f.line(f"{kind}* {one} = {one}_memory;")
    for start, state in zip(step.starts, states):
        f.copy(start, state)
    f.line("__syncthreads();")
    f.line(f"for (int turn = 0; {turns(step)}; turn++) {{")
    f.depth += 1
    write_test(f, tests, states)
    write_rows(f)
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


def turns(step):
    """Return the condition of a loop: that of a `While` stands inside of it."""
    return f"turn < {step.length}" if isinstance(step, Repeat) else "true"


def head_of(f):
    """Return the head of a loop's function."""
    written = {*f.step.results, *getattr(f.step, "ys", ())}
    texts = [
        f"{'' if x in written else 'const '}{units_of(x)[0]}* {f.names[x]}"
        for x in f.parameters
    ]
    bounds = f"__launch_bounds__({f.threads})"
    return f'extern "C" __global__ void {bounds} {f.name}({", ".join(texts)}) {{'


def write_test(f, tests, states):
    """Write the test of a `While`: all threads leave the loop together."""
    for test in tests:
        f.names.update(zip(test.inputs, [f.names[state] for state in states]))
        for launch in test.steps:
            f.launch(launch)
        f.line(f"if (!{f.names[test.outputs[0]]}[0]) break;")


def write_rows(f):
    """Write where the rows of a turn are: those that it reads, and those it writes."""
    step, count = f.step, len(f.step.starts)
    if not isinstance(step, Repeat):
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
