"""Random programs, with a plan and without one.

    python -m tests.memory_cases --seed 7 --count 500

The memory of a planned run is filled with one pattern before, and what dies in it with
another one at once, so that whoever reads it reads nonsense.
"""

import sys

import numpy as np

from minijax.kernels.builder import Buffer
from minijax.kernels.checker import check_kernel
from minijax.kernels.ir import (
    Affine,
    FoldCombine,
    FoldInit,
    Loop,
    Parameter,
    Store,
    fold_ops,
    scalar_ops,
)
from minijax.kernels.loop_nests import Kernel, fold_node, load_node, loop_nest, op_node
from minijax.kernels.lowering import BufferAllocations, Launch, LoweredProgram
from minijax.memory.allocator import PlannedAllocations, arena_offsets, check_plan
from minijax.memory.buffer_assignment import live_ranges, plan_memory
from tests.commands import options_of

FLOAT, WIDE, BYTES = map(np.dtype, ("float32", "float64", "uint8"))
ROWS, COLUMNS = 4, 6
FRESH, DEAD = 0xAB, 0xCD


class Chance:
    """Draws programs of kernels on matrices of 4 by 6, and on vectors of 4."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.buffers, self.steps = [], []

    def one(self, items):
        """One of some items."""
        return items[self.rng.integers(len(items))]

    def allocate(self, size=ROWS * COLUMNS):
        """A new buffer."""
        self.buffers.append(Buffer(f"m{len(self.buffers)}", FLOAT, size))
        return self.buffers[-1]

    def program(self, length):
        """A program in which results may be arguments, constants or the same twice."""
        inputs = [self.allocate(self.one([24, 24, 4])) for _ in range(3)]
        constants = [(self.allocate(), self.rng.normal(size=24).astype("float32"))]
        known = [*inputs, constants[0][0]]
        for _ in range(length):
            step, made = self.one(
                [self.elementwise, self.elementwise, self.softmax, self.moved,
                 self.of_rows, self.pair, self.parts]
            )(known)  # fmt: skip
            self.steps.append(Launch(check_kernel(step[0]), step[1]))
            known += made
        recent = known[-3:] + [self.one(known), self.one(known)]
        outputs = [self.one(recent) for _ in range(self.rng.integers(1, 5))]
        return LoweredProgram(inputs, outputs, constants, self.steps)

    def matrix(self, known):
        """A buffer of a matrix, more likely a late one."""
        found = [buffer for buffer in known if buffer.size == ROWS * COLUMNS]
        return self.one(found[-4:] if self.rng.random() < 0.8 else found)

    def elementwise(self, known):
        """Add, multiply or change sign, of two matrices or of one twice."""
        a, b, out = self.matrix(known), self.matrix(known), self.allocate()
        nodes, place = Nodes(), Affine(0, (COLUMNS, 1))
        x, y = nodes.load(a, place), nodes.load(b, place)
        nodes.apply(self.one(["add", "mul", "max"]), x, nodes.apply("neg", y))
        return nodes.kernel("elementwise", [(out, place, nodes.last)]), [out]

    def softmax(self, known):
        """Rows less what they fold to."""
        a, out = self.matrix(known), self.allocate()
        nodes, place = Nodes(), Affine(0, (COLUMNS, 1))
        x = nodes.load(a, place)
        total = nodes.write(fold_node(self.one(["add", "max"]), (1,), x))
        nodes.apply("sub", x, total)
        return nodes.kernel("softmax", [(out, place, nodes.last)]), [out]

    def moved(self, known):
        """A matrix that is read in another order than it is written."""
        a, out = self.matrix(known), self.allocate()
        nodes = Nodes()
        source = self.one([Affine(23, (-6, -1)), Affine(0, (6, 0)), Affine(5, (6, -1))])
        nodes.apply("abs", nodes.load(a, source))
        return nodes.kernel("moved", [(out, Affine(0, (6, 1)), nodes.last)]), [out]

    def of_rows(self, known):
        """Each row's fold, and the rows themselves besides."""
        a, out, sums = self.matrix(known), self.allocate(), self.allocate(ROWS)
        nodes, place = Nodes(), Affine(0, (COLUMNS, 1))
        x = nodes.load(a, place)
        total = nodes.write(fold_node("add", (1,), x))
        y = nodes.apply("neg", x)
        stores = [(out, place, y), (sums, Affine(0, (1, 0)), total)]
        return nodes.kernel("of_rows", stores), [out, sums]

    def pair(self, known):
        """Two matrices computed from two, in one sweep."""
        a, b = self.matrix(known), self.matrix(known)
        outs, nodes, place = (
            [self.allocate(), self.allocate()],
            Nodes(),
            Affine(0, (6, 1)),
        )
        x, y = nodes.load(a, place), nodes.load(b, place)
        found = nodes.apply("add", x, y), nodes.apply("sub", x, y)
        stores = [(out, place, node) for out, node in zip(outs, found)]
        return nodes.kernel("pair", stores), outs

    def parts(self, known):
        """Even and odd places at once, as of complex numbers."""
        a, out, nodes = self.matrix(known), self.allocate(), Nodes()
        places = [Affine(offset, (6, 2)) for offset in (0, 1)]
        x, y = (nodes.load(a, place) for place in places)
        found = nodes.apply("neg", y), nodes.apply("mul", x, y)
        stores = [(out, place, node) for place, node in zip(places, found)]
        return nodes.kernel("parts", stores, (ROWS, COLUMNS // 2)), [out]


class Nodes:
    """A kernel in the making."""

    def __init__(self):
        self.nodes, self.parameters = [], {}

    def parameter(self, buffer, letter):
        """The parameter of a buffer."""
        name = f"{letter}{len(self.parameters)}"
        return self.parameters.setdefault(
            buffer, Parameter(name, buffer.dtype, buffer.size)
        )

    def write(self, node):
        """Add a node; return it."""
        self.nodes.append(node)
        return node

    def load(self, buffer, place):
        """Add a load."""
        return self.write(load_node(self.parameter(buffer, "x"), place))

    def apply(self, op, *args):
        """Add an operation."""
        return self.write(op_node(op, *args))

    @property
    def last(self):
        """The node that was added last."""
        return self.nodes[-1]

    def kernel(self, name, stores, sizes=(ROWS, COLUMNS)):
        """The kernel, and its buffers."""
        stores = [
            Store(self.parameter(buffer, "y"), at, node) for buffer, at, node in stores
        ]
        parameters = tuple(self.parameters.values())
        kernel = Kernel(name, sizes, parameters, tuple(self.nodes), tuple(stores))
        return kernel, [*self.parameters]


def arguments(program, seed):
    """Numbers for the inputs of a program."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=buffer.size).astype("float32") for buffer in program.inputs]


def run_step(step, memory):
    """Run the kernel of a launch, one scalar at a time, in the order of its loops."""
    pairs = zip(step.kernel.parameters, step.buffers)
    views = {x.name: memory[buffer].view(x.dtype) for x, buffer in pairs}
    with np.errstate(all="ignore"):
        walk(loop_nest(step.kernel), step.kernel, views, {}, {})


def walk(steps, kernel, memory, indices, values):
    """Do the steps of a nest of loops."""
    for step in steps:
        if isinstance(step, Loop):
            for index in range(kernel.sizes[step.axis]):
                here = indices | {step.axis: index}
                walk(step.body, kernel, memory, here, values)
        elif isinstance(step, FoldInit):
            how, dtype = step.fold.detail.how, step.fold.dtype
            values[step.fold] = fold_ops[how].start(dtype)
        elif isinstance(step, FoldCombine):
            pair = values[step.fold], values[step.fold.args[0]]
            values[step.fold] = scalar_ops[step.fold.detail.how].numpy(*pair)
        elif isinstance(step, Store):
            memory[step.parameter.name][step.place.at(indices)] = values[step.node]
        elif step.op == "load":
            parameter, place, *_ = step.detail
            values[step] = memory[parameter.name][place.at(indices)]
        else:
            values[step] = scalar_ops[step.op].numpy(*[values[x] for x in step.args])


def unplanned(program, args):
    """The results, each buffer in memory of its own."""
    memory = BufferAllocations(
        {buffer: value.view(BYTES) for buffer, value in program.constants}
    )
    memory.update(zip(program.inputs, [x.view(BYTES) for x in args]))
    for step in program.steps:
        run_step(step, memory)
    return [memory[buffer].view(FLOAT).copy() for buffer in program.outputs]


def planned(found, args):
    """The results under a plan, in memory that is full of nonsense."""
    program, arena = found.program, np.full(found.arena, FRESH, BYTES)
    parameters = {
        "input": [x.copy().view(BYTES) for x in args],
        "constant": [value.copy().view(BYTES) for _, value in program.constants],
        "output": [
            np.full(4 * buffer.size, FRESH, BYTES) for buffer in program.outputs
        ],
    }
    known = {
        buffer: parameters[kind][number]
        for buffer, (kind, number) in found.places.items()
        if kind != "arena"
    }
    memory = PlannedAllocations(known, arena_offsets(found), arena)
    lives = live_ranges(program)
    for number, step in enumerate(found.steps):
        run_step(step, memory)
        kept = [old for old, _ in found.in_place.get(number, ())]
        for buffer, life in lives.items():
            if life.end == number and buffer not in kept and _ours(found, buffer):
                memory[buffer][:] = DEAD
    for x, copy, given in zip(args, parameters["input"], found.donated):
        assert given or np.array_equal(x.view(BYTES), copy), "an argument was changed"
    return [memory[buffer].view(FLOAT) for buffer in program.outputs]


def _ours(found, buffer):
    kind, number = found.places[buffer]
    return kind in ("arena", "output") or kind == "input" and found.donated[number]


def problem(seed, length=8):
    """What is wrong with a random program, or None."""
    program = Chance(seed).program(length)
    args = arguments(program, seed)
    flags = np.random.default_rng(seed + 1).random((2, 3)) < 0.6
    for donated in ((), *map(tuple, flags)):
        found = check_plan(plan_memory(program, donated))
        pairs = zip(planned(found, args), unplanned(program, args), strict=True)
        for ours, wanted in pairs:
            if not np.array_equal(ours, wanted, equal_nan=True):
                return f"seed {seed}, donated {donated}:\n{program}\n{found}"
    return None


def main(arguments=None):
    """Run from the command line."""
    options = options_of(__doc__, arguments, seed=0, count=500)
    found = [problem(options.seed + n) for n in range(options.count)]
    wrong = [text for text in found if text]
    print(*wrong[:3], f"{options.count} programs, {len(wrong)} wrong", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
