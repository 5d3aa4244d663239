"""Kernels to try: made at random, and those of programs, with the memory they meet.

python -m tests.kernel_cases --seed 7 --count 500    random kernels, NumPy beside LLVM
python -m tests.kernel_cases --places                with computed places, likewise
python -m tests.kernel_cases --programs --every 9    kernels of programs, likewise

Machine code runs in the process of this command, so that a crash of it ends no test.
"""

import dataclasses
import sys
import warnings

import numpy as np

import minijax
from minijax.jitting.compilation import Interpreter, dce_for_compilation
from minijax.kernels.builder import collapse_axes, scan_node
from minijax.kernels.checker import check_kernel
from minijax.kernels.ir import (
    Affine,
    Guard,
    IndirectTerm,
    Parameter,
    Store,
    Update,
    compute_dtype,
    fold_ops,
    scalar_ops,
    union_of_levels,
)
from minijax.kernels.loop_nests import (
    Kernel,
    constant_node,
    fold_node,
    index_node,
    interpret,
    load_node,
    op_node,
)
from minijax.kernels.lowering import KernelProgram
from minijax.llvm.codegen import emit_llvm
from minijax.llvm.compiler import Library
from tests import array_cases as cases
from tests import emission_cases
from tests.commands import options_of, reported
from tests.red_zones import RedZones

TOLERANCES = {"bfloat16": 3e-2, "float16": 4e-3, "float64": 1e-12, "complex128": 1e-12}

# What has no meaning for some numbers, or more than one.
DELICATE = {"div", "rem", "shift_left", "shift_right", "copysign", "fma"}


def alike(ours, wanted, least=1e-30):
    """Whether two arrays agree but for rounding, in units of the largest element.

    Where that is smaller than `least`, in units of `least`.
    """
    ours, wanted = np.asarray(ours), np.asarray(wanted)
    if (ours.shape, ours.dtype) != (wanted.shape, wanted.dtype):
        return False
    if ours.dtype.kind in "biu":
        return bool((ours == wanted).all())
    rtol = TOLERANCES.get(ours.dtype.name, 1e-5)
    if ours.dtype.itemsize == 2:
        ours, wanted = ours.astype(np.float32), wanted.astype(np.float32)
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=least)
    return np.allclose(ours, wanted, rtol, rtol * largest, equal_nan=True)


# Random kernels.


class Chance:
    """Draws kernels."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one(self, items):
        """One of some items."""
        return items[self.rng.integers(len(items))]

    def place(self, sizes, size_of=None):
        """A place that varies along some axes, none below 0, and the last one."""
        order = self.rng.permutation(len(sizes))
        strides, reach = [0] * len(sizes), 0
        for axis in order:
            if size_of is None and self.rng.random() < 0.3:
                continue
            step = (reach + self.rng.integers(1, 3)) * self.one([1, 1, -1])
            strides[axis] = int(step)
            reach += abs(int(step)) * max(sizes[axis] - 1, 0)
        least, most = Affine(0, tuple(strides)).bounds([max(n, 1) for n in sizes])
        offset = int(self.rng.integers(0, 3)) - least
        return Affine(offset, tuple(strides)), offset + most + 1

    def guarded(self, place, sizes):
        """Guards along one axis, and the place moved so that they are needed."""
        moving = [axis for axis in place.axes if sizes[axis] > 1]
        if not moving or self.rng.random() < 0.6:
            return place, ()
        axis = self.one(moving)
        shift = int(self.rng.integers(0, 3))
        ones = tuple(int(k == axis) for k in range(len(sizes)))
        limit = int(self.rng.integers(0, sizes[axis] + 1))
        place = place._replace(offset=place.offset - shift * place.strides[axis])
        return place, (Guard(Affine(-shift, ones), limit),)

    def sizes(self):
        """Sizes of axes."""
        sizes = tuple(int(n) for n in self.rng.integers(0, 6, self.rng.integers(4)))
        return tuple(n or self.one([0, 1, 2]) for n in sizes)

    def kernel(self, number):
        """A kernel that the checker accepts."""
        sizes = self.sizes()
        nodes, parameters = [], []
        for which in range(self.rng.integers(1, 4)):
            place, size = self.place(sizes)
            place, guards = self.guarded(place, sizes)
            dtype = cases.dtype_of(self.one(cases.DTYPES[:-2]))
            parameters.append(Parameter(f"x{which}", dtype, size))
            nodes.append(load_node(parameters[-1], place, guards, 1))
        nodes += [index_node(axis) for axis in range(len(sizes))]
        for _ in range(self.rng.integers(1, 9)):
            nodes.append(self.node(nodes, sizes))
        nodes += self.ending(nodes)
        place, size = self.place(sizes, size_of=True)
        parameters.append(Parameter("out", self.stored(nodes[-1].dtype), size))
        stores = (Store(parameters[-1], place, nodes[-1]),)
        name = f"random{number}"
        return check_kernel(Kernel(name, sizes, (*parameters,), (*nodes,), stores))

    def ending(self, nodes):
        """What comes last; it is stored."""
        return []

    def stored(self, dtype):
        """The dtype in memory for numbers of a dtype in registers."""
        return dtype

    def node(self, nodes, sizes):
        """A node that uses others."""
        arg = self.one(nodes)
        if self.rng.random() < 0.3 and sizes:
            kept = max(arg.level[:-1], default=-1) + 1
            axis = int(self.rng.integers(kept, len(sizes)))
            axis = max(axis, *arg.level, 0) if arg.level else axis
            hows = [h for h in fold_ops if arg.dtype.kind in fold_ops[h].kinds]
            hows = [h for h in hows if sizes[axis] or not h.startswith("arg")]
            return fold_node(self.one(hows), (axis,), arg)
        if self.rng.random() < 0.3:
            dtype = cases.dtype_of(self.one(cases.DTYPES[:-2]))
            return op_node("convert", arg, dtype=compute_dtype(dtype))
        names = [n for n, op in scalar_ops.items() if arg.dtype.kind in op.kinds]
        name = self.one(sorted({*names} - DELICATE))
        peers = [n for n in nodes if n.dtype == arg.dtype] or [
            constant_node(1, arg.dtype)
        ]
        args = [self.one(peers) for _ in range(scalar_ops[name].arity)]
        if name == "select":
            conditions = [n for n in nodes if n.dtype.kind == "b"]
            return op_node(name, self.one(conditions), *args[1:]) if conditions else arg
        return op_node(name, *args)

    def memory(self, kernel):
        """Numbers for the parameters of a kernel, by their names."""
        found = {}
        for parameter in kernel.parameters:
            numbers = self.rng.normal(size=parameter.size) * 3
            with np.errstate(all="ignore"):
                kind = np.int64 if parameter.dtype.kind in "iu" else parameter.dtype
                found[parameter.name] = numbers.astype(kind).astype(parameter.dtype)
        return found


class PlacesChance(Chance):
    """Draws kernels with computed places and running folds.

    Many of the numbers are out of range, and many of the places meet.
    """

    def computed(self, nodes):
        """Up to two pairs of a number, which is put behind the nodes, and a term."""
        pairs = []
        for _ in range(self.one([1, 1, 2])):
            found = [x for x in nodes if x.dtype.kind in "iub"] or [
                constant_node(2, INT64)
            ]
            x = op_node("convert", self.one(found), dtype=INT64)
            step = constant_node(self.one([-1, 1, 2]), INT64)
            product = op_node("mul", x, step)
            shift = constant_node(int(self.rng.integers(-1, 3)), INT64)
            pairs.append(op_node("add", product, shift))
            nodes += [*x.args, x, step, product, shift, pairs[-1]]
        terms = [(self.one([-3, -1, 0, 1, 2, 7]), self.rng.integers(7)) for _ in pairs]
        return [*zip(pairs, [IndirectTerm(int(a), int(b)) for a, b in terms])]

    def reached(self, place, size, terms):
        """A place moved so that all that terms reach lies behind 0, and the size."""
        ends = [stride * (max(limit, 1) - 1) for stride, limit in terms]
        down = -sum(min(end, 0) for end in ends)
        place = place._replace(offset=place.offset + down)
        return place, size + sum(map(abs, ends))

    def kernel(self, number):
        """A kernel that the checker accepts."""
        sizes, kinds = self.sizes(), cases.DTYPES[:-2]
        nodes = [index_node(axis) for axis in range(len(sizes))]
        parameters = []
        for which in range(self.rng.integers(2, 5)):
            dtype = cases.dtype_of("int32" if which == 0 else self.one(kinds))
            place, size = self.place(sizes)
            place, guards = self.guarded(place, sizes)
            pairs = self.computed(nodes) if which and self.rng.random() < 0.7 else ()
            place, size = self.reached(place, size, [term for _, term in pairs])
            parameters.append(Parameter(f"x{which}", dtype, size))
            nodes.append(load_node(parameters[-1], place, guards, 1, pairs))
        for _ in range(self.rng.integers(1, 7)):
            nodes.append(self.node(nodes, sizes))
        nodes += self.ending(nodes)
        store = self.store(nodes, sizes)
        name, nodes = f"places{number}", tuple(dict.fromkeys(nodes))
        kernel = Kernel(name, sizes, (*parameters, store.parameter), nodes, (store,))
        return check_kernel(kernel)

    def node(self, nodes, sizes):
        """A node that uses others; one of four is a fold that runs."""
        arg = self.one(nodes)
        hows = [how for how in RUNNING if arg.dtype.kind in fold_ops[how].kinds]
        if not sizes or not hows or self.rng.random() < 0.75:
            return super().node(nodes, sizes)
        axis = int(self.rng.integers(max(arg.level, default=0), len(sizes)))
        return scan_node(self.one(hows), axis, arg)

    def store(self, nodes, sizes):
        """A store of the last node, at computed places or at affine ones."""
        x, affine = nodes[-1], self.rng.random() < 0.3
        place, size = self.place(sizes, size_of=True if affine else None)
        dtype = self.stored(x.dtype)
        if affine:
            return Store(Parameter("out", dtype, size), place, x)
        if self.rng.random() < 0.3:
            place = Affine(0, (0,) * len(sizes))
        pairs, hows = self.computed(nodes), ["set", *UPDATES]
        at, terms = zip(*pairs)
        hows = [h for h in hows if h == "set" or x.dtype.kind in fold_ops[h].kinds]
        place, size = self.reached(place, size, terms)
        axes = union_of_levels([x.level, place.axes, *[number.level for number in at]])
        axes = union_of_levels(
            [axes, tuple(k for k in range(len(sizes)) if self.one([0, 1]))]
        )
        update = Update(self.one(hows), at, terms, axes)
        return Store(Parameter("out", dtype, size), place, x, update)


INT64 = np.dtype("int64")
RUNNING = [how for how, folding in fold_ops.items() if folding.running]
UPDATES = ["add", "add", "mul", "min", "max"]


def tidy(kernel):
    """The kernel without nodes that occur twice."""
    return dataclasses.replace(kernel, nodes=(*dict.fromkeys(kernel.nodes),))


def random_kernels(seed, count, chance=Chance):
    """Pairs of a kernel and memory for it."""
    chance = chance(seed)
    for number in range(count):
        kernel = tidy(chance.kernel(number))
        yield kernel, chance.memory(kernel)


# Kernels of programs.


class Recorder(KernelProgram):
    """Interprets kernels that the checker has seen, and keeps what they have met."""

    def compile(self, kernels):
        """Functions that keep copies of the memory before and after."""
        self.met = {}
        for kernel in kernels.values():
            check_kernel(kernel)
        functions = super().compile(kernels)
        return {
            label: self.recorded(kernels[label], run)
            for label, run in functions.items()
        }

    def recorded(self, kernel, run):
        """The function, with a note of its memory."""

        def noted(*memory):
            before = [data.copy() for data in memory]
            run(*memory)
            self.met[kernel.label] = kernel, before, [data.copy() for data in memory]

        return noted


def compare(name, f, operands, recorder=Recorder):
    """What is wrong with a program on kernels, and what its kernels have met."""
    closed = emission_cases.written_down(f, operands)
    if closed is None:
        return [], {}
    program = recorder(closed)
    wanted = Interpreter(dce_for_compilation(closed))(*operands)
    wrong = [
        f"{name}: {ours} instead of {other}"
        for ours, other in zip(program(*operands), wanted, strict=True)
        if repr(ours.aval) != repr(other.aval) or not alike(ours, other, least=0.01)
    ]
    return wrong, program.met


def programs(every):
    """Each `every`-th program of `emission_cases`."""
    groups = [emission_cases.elementwise(name, every=7) for name in cases.DTYPES]
    groups += [emission_cases.mixed(name) for name in cases.DTYPES]
    groups += [emission_cases.texts(), emission_cases.compositions()]
    found = [program for group in groups for program in group]
    return found[::every]


# Machine code.


def scalar_library(kernels):
    """The library of chapter 17."""
    return Library(emit_llvm(kernels))


def differences(met, library_of=scalar_library, together=300, least=1e-30):
    """What machine code leaves in memory that the interpreter does not.

    Args:
      met: triples of a kernel, and bytes of its parameters before and after.
      library_of: a function from labels and kernels to a `Library`.
      together: how many kernels are put into one library.
      least: as for `alike`.
    """
    wrong = []
    for first in range(0, len(met), together):
        group = met[first : first + together]
        library = library_of({kernel.label: kernel for kernel, *_ in group})
        for kernel, before, after in group:
            function = library.function(kernel.label, len(kernel.parameters))
            zones = RedZones()
            memory = [zones.laid_out(data) for data in before]
            function(*[data.ctypes.data for data in memory])
            wrong += [f"{kernel}\n{problem}" for problem in zones.check()]
            for parameter, ours, wanted in zip(kernel.parameters, memory, after):
                pair = ours.view(parameter.dtype), wanted.view(parameter.dtype)
                if not alike(*pair, least):
                    wrong.append(f"{kernel}\n{parameter}: {pair[0]}, NumPy: {pair[1]}")
    return wrong


def of_random_kernels(seed, count, chance=Chance):
    """Triples as for `differences`; each kernel, and the same collapsed."""
    met = []
    for kernel, memory in random_kernels(seed, count, chance):
        before = [memory[parameter.name].copy() for parameter in kernel.parameters]
        interpret(kernel, memory)
        after = [memory[parameter.name] for parameter in kernel.parameters]
        pair = [[data.view(np.uint8) for data in datas] for datas in (before, after)]
        met += [(kernel, *pair), (collapse_axes(kernel), *pair)]
    return met


def of_programs(every, recorder=Recorder):
    """Triples of the kernels of programs, and what is wrong with the programs."""
    wrong, met = [], {}
    for wide in (False, True):
        with minijax.enable_x64(wide), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for program in programs(every):
                more, found = compare(*program, recorder)
                wrong, met = wrong + more, met | found
    return wrong, list(met.values())


def main():
    """Compare kernels; 1 if something differs."""
    options = options_of(
        __doc__, seed=0, count=200, programs=False, places=False, every=1
    )
    chance = PlacesChance if options.places else Chance
    wrong, met = [], of_random_kernels(options.seed, options.count, chance)
    if options.programs:
        wrong, met = of_programs(options.every)
    wrong += differences(met)
    return reported(f"{len(met)} kernels", wrong)


if __name__ == "__main__":
    sys.exit(main())
