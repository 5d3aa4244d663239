"""Fused programs beside the ones that they were made from.

`python -m tests.fusion_cases --seed 0 --count 200` compares random programs, with
`--programs` the corpus as well.
"""

import sys
import warnings

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.elementary_functions.real_functions import expand_functions
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.checker import check_kernel
from minijax.kernels.lowering import KernelProgram, lower
from minijax.llvm.codegen import LLVMProgram
from minijax.passes.pipeline import simplify
from tests import corpus, emission_cases, kernel_cases
from tests.commands import options_of
from tests.exact_drawing import drawing
from tests.random_programs import Package
from tests.red_zones import RedZones


class FusedProgram(KernelProgram):
    """Interprets the checked kernels of a fused program."""

    def lower(self, closed):
        """The fused program."""
        return fuse(lower(closed))

    def compile(self, kernels):
        """Functions of the kernels, which the checker has seen."""
        for kernel in kernels.values():
            check_kernel(kernel)
        return super().compile(kernels)


class FusedMachineCode(LLVMProgram):
    """Machine code of a fused program, with the functions of floor 19."""

    lower = FusedProgram.lower

    def compile(self, kernels):
        """Machine code of the kernels."""
        return super().compile(
            {name: expand_functions(k) for name, k in kernels.items()}
        )


def adds_floats(program):
    """Whether an order of additions, or of products, may be seen in the results."""
    return any(
        node.op == "fold"
        and node.dtype.kind == "f"
        and node.detail.how in ("add", "mul")
        for kernel in program.kernels.values()
        for node in kernel.nodes
    )


def equal(ours, wanted):
    """Whether two arrays are the same, bit by bit but for the kind of NaN."""
    ours, wanted = np.asarray(ours), np.asarray(wanted)
    if ours.dtype != wanted.dtype or ours.shape != wanted.shape:
        return False
    if ours.dtype.itemsize == 0:
        return True
    if ours.dtype.kind == "V":  # bfloat16
        ours, wanted = ours.astype("float32"), wanted.astype("float32")
    return np.array_equal(ours, wanted, equal_nan=ours.dtype.kind in "fc")


def compare(closed, args, exact=False, machine=False):
    """What is wrong with the fused program of a program, and the numbers of steps.

    Args:
      exact: whether an order of additions cannot be seen (`tests.exact_programs`).
      machine: whether its machine code is run as well.
    """
    plain, fused = KernelProgram(closed), FusedProgram(closed)
    exact, wrong = exact or not adds_floats(plain.lowered), []
    with np.errstate(all="ignore"):
        wanted, found = plain(*args), fused(*args)
        with RedZones() as zones:
            code = FusedMachineCode(closed)(*args) if machine else []
    wrong += zones.problems
    for ours, other in zip(found, wanted, strict=True):
        same = equal(ours, other) if exact else kernel_cases.alike(ours, other, 1e-2)
        wrong += [] if same else [f"{ours} instead of {other}\n{fused.text}"]
    for ours, other in zip(code, wanted):
        if not kernel_cases.alike(ours, other, 1e-2):
            wrong.append(f"machine: {ours} instead of {other}\n{fused.text}")
    return wrong, (len(plain.lowered.steps), len(fused.lowered.steps))


# Random programs: operations, views, folds, pads and pieces.

SIZES = [1, 2, 3, 4, 6]


class Chance:
    """Random programs of arrays of floats and integers."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one(self, items):
        """One of some things."""
        return items[self.rng.integers(len(items))]

    def program(self):
        """A function, which always does the same, and its operands."""
        shape = tuple(self.one(SIZES) for _ in range(self.rng.integers(1, 4)))
        if self.rng.random() < 0.05:
            shape = (*shape[:-1], 0)
        operands = [self.numbers(shape) for _ in range(2)]
        seed, length = int(self.rng.integers(2**31)), int(self.rng.integers(4, 20))

        def f(*operands):
            chance, values = Chance(seed), list(operands)
            for _ in range(length):
                values.append(chance.step(values))
            ends = chance.rng.integers(len(values), size=2)
            return [values[-1], *[values[end] for end in ends]]

        return f, operands

    def numbers(self, shape):
        """An array."""
        x = np.round(self.rng.normal(size=shape) * 4) / 4
        dtype = self.one(["float32", "float32", "float32", "int32", "float16"])
        return jnp.asarray(x.astype(dtype))

    def step(self, values):
        """Another array."""
        x = values[-1] if self.rng.random() < 0.5 else self.one(values)
        way = self.one([self.pointwise, self.pointwise, self.view, self.fold, self.cut])
        return way(x, values)

    def pointwise(self, x, values):
        """Something of each element, and of another that fits."""
        peers = [y for y in values if y.dtype == x.dtype]
        fitting = []
        for y in peers:
            try:
                np.broadcast_shapes(x.shape, y.shape)
                fitting.append(y)
            except ValueError:
                continue
        y = self.one(fitting)
        ways = [jnp.add, jnp.subtract, jnp.multiply, jnp.maximum]
        if self.rng.random() < 0.4:
            return self.one([jnp.abs, jnp.negative, jnp.square, jnp.sign])(x)
        if self.rng.random() < 0.2 and x.dtype.kind == "f":
            return jnp.where(x > 0, jnp.exp(-jnp.abs(x)), x)
        return self.one(ways)(x, y)

    def view(self, x, values):
        """The same elements at other places."""
        if x.ndim == 0:
            return x[None]
        axis = int(self.rng.integers(x.ndim))
        ways = [
            lambda: jnp.transpose(x, self.rng.permutation(x.ndim).tolist()),
            lambda: x.reshape(-1),
            lambda: lax.rev(x, (axis,)),
            lambda: jnp.broadcast_to(x, (2, *x.shape)) if x.ndim < 4 else x,
            lambda: jnp.expand_dims(x, axis),
            lambda: x.reshape(x.shape[::-1]),
        ]
        return self.one(ways)()

    def fold(self, x, values):
        """What remains when an axis is folded, with the axis or without it."""
        if x.ndim == 0:
            return x * x
        axis = int(self.rng.integers(x.ndim))
        if 0 in x.shape:
            return x
        if self.rng.random() < 0.15:
            return jnp.argmax(x, axis).astype(x.dtype)
        how = self.one([jnp.sum, jnp.max, jnp.min, jnp.max])
        axis = None if self.rng.random() < 0.2 else axis
        return how(x, axis, keepdims=bool(self.rng.random() < 0.6))

    def cut(self, x, values):
        """Pieces, put together again or padded."""
        if x.ndim == 0 or 0 in x.shape:
            return x + x
        axis, zero = int(self.rng.integers(x.ndim)), x.dtype.type(0)
        size = x.shape[axis]
        start = int(self.rng.integers(size))
        config = [(0, 0, 0)] * x.ndim
        config[axis] = self.one([(1, 1, 0), (2, 0, 0), (-1, 2, 0), (1, 0, 1)])
        ways = [
            lambda: lax.slice_in_dim(x, start, size, axis=axis),
            lambda: lax.slice_in_dim(x, 0, size, 2, axis=axis),
            lambda: jnp.concatenate([x, x * 2], axis),
            lambda: lax.pad(x, zero, config) if size > 1 else x,
        ]
        return self.one(ways)() if x.size < 500 else x


def random_programs(seed, count):
    """Triples of a program, its operands, and whether results are exact, in turn."""
    chance = Chance(seed)
    for number in range(count):
        if number % 2:
            yield *exact_program([seed, number]), True
        else:
            f, operands = chance.program()
            yield make_jaxpr(f)(*operands), operands, False


def exact_program(seed):
    """A small program of `exact_drawing` and its operands."""
    drawn = drawing(seed, "small")
    function = Package("minijax").function(drawn.lines, drawn.results)
    operands = [drawn.inputs[name] for name in sorted(drawn.inputs)]
    return simplify(make_jaxpr(function)(drawn.inputs)), operands


STACKS = [
    (), ("grad",), ("vmap",), ("jvp",), ("vjp",), ("grad", "vmap"), ("vmap", "grad"),
]  # fmt: skip


def corpus_programs(every=1):
    """Each `every`-th program of the corpus and of its derivatives and batches."""
    table = corpus.transformations(minijax)
    cases = [
        (f, jnp.asarray(point), stack)
        for f, point in corpus.programs(minijax).values()
        for stack in STACKS
    ]
    for f, point, stack in cases[::every]:
        try:
            g = corpus.apply(table, stack, f)
            closed = make_jaxpr(lambda x, g=g: jnp.asarray(g(x)))(point)
        except Exception:  # not every program has every derivative
            continue
        yield simplify(closed), [point]


def primitive_programs(every=1):
    """Each `every`-th program of one primitive or a few, at all dtypes."""
    for _, f, operands in kernel_cases.programs(every):
        closed = emission_cases.written_down(f, operands)
        if closed is not None:
            yield closed, operands


def report(programs, machine):
    """Print what is wrong with programs; return how much."""
    wrong, steps, count = [], np.zeros(2, int), 0
    for program in programs:
        more, found = compare(*program, machine=machine)
        wrong, steps, count = wrong + more, steps + found, count + 1
    print(*wrong[:5], sep="\n\n")
    print(f"{count} programs, {steps[0]} steps became {steps[1]}, {len(wrong)} wrong")
    return len(wrong)


def main():
    """Compare programs; 1 if something differs."""
    options = options_of(__doc__, seed=0, count=200, programs=False, machine=False)
    warnings.simplefilter("ignore")
    wrong = report(random_programs(options.seed, options.count), options.machine)
    if options.programs:
        wrong += report(corpus_programs(), options.machine)
        wrong += report(primitive_programs(), options.machine)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
