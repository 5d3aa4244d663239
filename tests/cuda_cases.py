"""Kernels in CUDA C, run by the emulator beside NumPy, each launch forced upon them.

python -m tests.cuda_cases --seed 7 --count 200     random kernels
python -m tests.cuda_cases --places                 with computed places, likewise
python -m tests.cuda_cases --card                   with long rows, for the schedules
python -m tests.cuda_cases --rows                   with rows that are walked again
python -m tests.cuda_cases --programs --every 19    kernels of programs, likewise
python -m tests.cuda_cases --how warps              one launch only, or schedule
python -m tests.cuda_cases --gpu                    on the GPU of this machine
"""

import ctypes
import math
import sys

import numpy as np

from minijax import devices, make_jaxpr
from minijax.fusion.fusion_pass import fuse
from minijax.gpu.block_kernels import choose_launch_with_rows, row_launch
from minijax.gpu.codegen import (
    LaunchShape,
    cuda_function,
    default_launch,
    is_reorderable,
    parallel_axes,
)
from minijax.gpu.cuda_source import PRELUDE
from minijax.gpu.schedules import ScanShape, scan_launch, tile_launch, vector_launch
from minijax.kernels.builder import scan_node
from minijax.kernels.ir import Affine, fold_ops
from minijax.kernels.loop_nests import fold_node, interpret, op_node
from minijax.kernels.lowering import lower
from minijax_book.emulator import CHECK, RACES, TRAFFIC, EmulatorError, Module
from tests import cuda_sources, kernel_cases
from tests.commands import options_of, reported

LAUNCHES = {
    "chosen": default_launch,
    "alone": lambda kernel: LaunchShape(parallel_axes(kernel)),
    "warps": lambda kernel: LaunchShape(parallel_axes(kernel), 32, 8),
    "blocks": lambda kernel: LaunchShape(parallel_axes(kernel), 96, 1),
    "across": lambda kernel: LaunchShape(parallel_axes(kernel), 8, 32, True),
}


def scan_by(team, teams):
    """Return a function of a kernel that has teams make its running totals."""

    def launch(kernel):
        found = scan_launch(kernel, least=0)
        return found and ScanShape(found.outer, found.axis, team, teams)

    return launch


# Those of the schedules; None where a kernel is of another kind.
SCHEDULES = {
    "shape": choose_launch_with_rows,
    "vectors": vector_launch,
    "tiles": lambda kernel: tile_launch(kernel, least=1),
    "rows": row_launch,
    "rows anywhere": lambda k: row_launch(k, [x.name for x in k.parameters]),
    "scans by warps": scan_by(32, 8),
    "scans by blocks": scan_by(64, 1),
}


def forced(kernel, how):
    """Return a launch of that kind, or one that suits where there is none."""
    if how in SCHEDULES:
        return SCHEDULES[how](kernel) or choose_launch_with_rows(kernel)
    return LAUNCHES[how if is_reorderable(kernel) else "alone"](kernel)


class CardChance(kernel_cases.Chance):
    """Draws kernels whose rows are long enough for vectors, tiles and scans."""

    def sizes(self):
        """Sizes of one to three axes, the last one often a multiple of a vector."""
        count = int(self.rng.integers(1, 4))
        lengths = [1, 2, 3, 5, 8, 16, 31, 33, 40, 64]
        return tuple(
            self.one(lengths[: 5 if k < count - 2 else 10]) for k in range(count)
        )

    def place(self, sizes, size_of=None):
        """A place row by row, mostly; else with two axes exchanged, or any."""
        draw = self.rng.random()
        if draw > 0.9:
            return super().place(sizes, size_of)
        order = [*range(len(sizes))]
        if draw > 0.6 and len(order) > 1:
            order[-2:] = order[:-3:-1]
        strides, reach = [0] * len(sizes), 1
        for axis in reversed(order):
            if size_of is None and self.rng.random() < 0.2:
                continue
            strides[axis] = reach
            reach *= sizes[axis]
        offset = int(self.one([0, 0, 0, 0, 4, 1]))
        return Affine(offset, tuple(strides)), offset + reach

    def guarded(self, place, sizes):
        """Guards in one case of eight of those of other kernels."""
        often = self.rng.random() < 0.2
        return super().guarded(place, sizes) if often else (place, ())

    def node(self, nodes, sizes):
        """A node that uses others; few folds, and some that run."""
        arg, draw = self.one(nodes), self.rng.random()
        hows = [
            h for h in kernel_cases.RUNNING if arg.dtype.kind in fold_ops[h].kinds
        ]
        if draw < 0.15 and hows and sizes:
            axis = int(self.rng.integers(max(arg.level, default=0), len(sizes)))
            return scan_node(self.one(hows), axis, arg)
        if draw < 0.25:
            return super().node(nodes, sizes)
        found = super().node(nodes, sizes)
        return arg if found.op == "fold" else found


class RowChance(CardChance):
    """Draws kernels that walk through long rows several times."""

    def sizes(self):
        """Sizes of one to three axes; the last is about as long as teams are."""
        few = [self.one([1, 2, 3, 9]) for _ in range(self.rng.integers(3))]
        long = [32, 33, 36, 63, 64, 96, 127, 128, 129, 260, 511, 512, 515, 1028, 4100]
        draw = self.rng.random()
        if draw < 0.05:  # enough rows for threads that keep more
            return 1025, self.one(long[:8])
        if draw < 0.1:  # as many numbers as a block can keep, or one too many
            return 1, self.one([16383, 16384, 32768, 32769])
        return (*few, self.one(long))

    def place(self, sizes, size_of=None):
        """A place row by row, in nine cases of ten."""
        if self.rng.random() < 0.1:
            return super().place(sizes, size_of)
        strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        offset = int(self.one([0, 0, 0, 0, 4, 1]))
        return Affine(offset, tuple(strides)), offset + math.prod(sizes)

    def ending(self, nodes):
        """What comes last: a sum of the last number along a row, and its last fold."""
        folds = [n for n in nodes if n.op == "fold" and n.dtype.kind == "f"]
        moving = [n for n in nodes if n.level and n.dtype.kind != "b"]
        if not folds or not moving:
            return []
        other = op_node("convert", moving[-1], dtype=folds[-1].dtype)
        return [other, op_node("add", folds[-1], other)]

    def node(self, nodes, sizes):
        """A node that uses others: a fold along rows, or what is behind such folds."""
        last, draw = len(sizes) - 1, self.rng.random()
        moving = [n for n in nodes if last in n.level and n.dtype.kind != "b"]
        if draw < 0.35 and moving:
            arg = self.one(moving)
            hows = [h for h in fold_ops if arg.dtype.kind in fold_ops[h].kinds]
            # A product of many numbers is one of some infinity, by its order.
            return fold_node(self.one([h for h in hows if h != "mul"]), (last,), arg)
        folds = [n for n in nodes if n.op == "fold" and n.dtype.kind != "b"]
        if draw < 0.8 and folds and moving:
            arg = self.one(folds)
            other = op_node("convert", self.one(moving), dtype=arg.dtype)
            nodes.append(other)
            return op_node(self.one(["add", "sub", "max"]), arg, other)
        found = kernel_cases.Chance.node(self, nodes, sizes)
        return self.one(nodes) if found.op == "fold" else found


def source_of(kernels, how="chosen"):
    """Return the text of kernels, by their labels."""
    texts = [cuda_function(k, forced(k, how), name) for name, k in kernels.items()]
    return PRELUDE + "\n".join(texts)


class CudaLibrary:
    """Kernels in the emulator, as `kernel_cases.differences` wants them."""

    def __init__(self, kernels, how="chosen", edit=str, seed=1):
        self.kernels, self.how, self.seed = kernels, how, seed
        self.module = Module(edit(cuda_sources.kept(source_of(kernels, how))))
        self.complaints = []

    def function(self, label, count):
        """Return a function of addresses of parameters that launches a kernel."""
        kernel = self.kernels[label]
        launch = forced(kernel, self.how)
        written = {store.parameter for store in kernel.stores}

        def start(*addresses):
            views = [
                _view(address, parameter, parameter in written)
                for address, parameter in zip(addresses, kernel.parameters)
            ]
            grid, block = (launch.blocks(kernel),), (launch.threads,)
            try:
                if grid[0]:
                    self.module.launch(label, grid, block, views, seed=self.seed)
            except EmulatorError as error:
                self.complaints.append(f"{kernel}\n{launch}: {error}")

        return start


def _view(address, parameter, writable):
    size = parameter.size * parameter.dtype.itemsize
    if size == 0:
        return np.zeros(0, np.uint8)
    view = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
    view.flags.writeable = writable
    return view


class GpuLibrary:
    """Kernels on the GPU of this machine; guard bytes lie around what they write."""

    def __init__(self, kernels, how="chosen"):
        self.kernels, self.how, self.complaints = kernels, how, []
        self.card = devices("gpu")[0].card
        self.functions = self.card.load(source_of(kernels, how), [*kernels])

    def function(self, label, count):
        """Return a function of addresses of the host that has the card do a kernel."""
        kernel, card = self.kernels[label], self.card
        launch = forced(kernel, self.how)
        blocks = launch.blocks(kernel)

        def start(*addresses):
            near = [_view(a, p, True) for a, p in zip(addresses, kernel.parameters)]
            blocks_of = [Guarded(card, numbers) for numbers in near]
            places = [block.address for block in blocks_of]
            if blocks:
                card.launch(self.functions[label], blocks, launch.threads, places)
            torn = [not block.fetch_into(x) for block, x in zip(blocks_of, near)]
            if any(torn):
                self.complaints.append(f"{kernel}\n{launch}: guard bytes are torn")

        return start


class Guarded:
    """Bytes on a card, between others that nobody may change."""

    def __init__(self, card, numbers):
        self.card, self.before = card, np.full(len(numbers) + 2 * GUARD, 0xA5, np.uint8)
        self.before[GUARD : GUARD + len(numbers)] = numbers
        self.memory = card.allocate(len(self.before))
        self.address = self.memory.ptr + GUARD
        card.copy_to_device(self.memory.ptr, self.before)

    def fetch_into(self, numbers):
        """Copy the bytes to the host; return whether those around are as before."""
        after, size = np.empty_like(self.before), len(numbers)
        self.card.copy_to_host(after, self.memory.ptr)
        numbers[:] = after[GUARD : GUARD + size]
        self.before[GUARD : GUARD + size] = numbers
        return bool((after == self.before).all())


GUARD = 512  # bytes


def differences(met, how="chosen", library=CudaLibrary):
    """What the emulator leaves in memory, or says, that it should not."""
    libraries = []

    def library_of(kernels):
        libraries.append(library(kernels, how))
        return libraries[-1]

    wrong = kernel_cases.differences(met, library_of, together=200)
    return wrong + [text for library in libraries for text in library.complaints]


def notices(met, how, edit):
    """Whether the emulator or a comparison notices what an edit of the text breaks."""
    made = []

    def library_of(kernels):
        made.append(CudaLibrary(kernels, how, edit))
        source = source_of(kernels, how)
        if edit(source) == source:
            raise ValueError("the edit leaves the text as it is")
        return made[-1]

    return bool(kernel_cases.differences(met, library_of) or made[0].complaints)


def kernels_of(f, *args):
    """Return the kernels of a fused function."""
    program = fuse(lower(make_jaxpr(f)(*args)))
    return [step.kernel for step in program.steps]


def met_by(f, x):
    """Return the first kernel of a function, and its memory before and after."""
    kernel, *_ = kernels_of(f, x)
    before = {b.name: np.zeros(b.size, b.dtype) for b in kernel.parameters}
    before[kernel.parameters[0].name][:] = x.reshape(-1)
    return met_with(kernel, before)


def met_with(kernel, before):
    """Return a kernel, and its memory before and after: bytes, by its parameters."""
    after = {name: array.copy() for name, array in before.items()}
    with np.errstate(all="ignore"):
        interpret(kernel, after)
    return kernel, *[
        [memory[x.name].view(np.uint8) for x in kernel.parameters]
        for memory in (before, after)
    ]


def traffic_of(kernel, shape, edit=str, shift=0):
    """Return the `Traffic` of a kernel of zeros that begin at sectors, or behind."""
    text, memory = PRELUDE + cuda_function(kernel, shape, "kernel"), []
    module = Module(edit(text))
    for parameter in kernel.parameters:
        size = parameter.size * parameter.dtype.itemsize
        room = np.zeros(size + 64, np.uint8)
        start = -room.ctypes.data % 32 + shift
        memory.append(room[start : start + size])
    grid, block = (shape.blocks(kernel),), (shape.threads,)
    module.launch("kernel", grid, block, memory, flags=CHECK | RACES | TRAFFIC)
    return module.traffic()


def main():
    """Compare kernels under each launch; 1 if something differs."""
    options = options_of(
        __doc__,
        **{"seed": 0, "count": 200, "every": 19, "how": ""},
        **{"places": False, "programs": False, "card": False, "rows": False},
        gpu=False,
    )
    chance = kernel_cases.PlacesChance if options.places else kernel_cases.Chance
    chance = CardChance if options.card else chance
    chance = RowChance if options.rows else chance
    wrong, met = [], []
    if options.programs:
        wrong, met = kernel_cases.of_programs(options.every)
    else:
        met = kernel_cases.of_random_kernels(options.seed, options.count, chance)
    for how in [options.how] if options.how else [*LAUNCHES, *SCHEDULES]:
        found = differences(met, how, GpuLibrary if options.gpu else CudaLibrary)
        print(f"{how}: {len(met)} kernels, {len(found)} differences", flush=True)
        wrong += found
    return reported(f"{len(met)} kernels", wrong)


if __name__ == "__main__":
    sys.exit(main())
