"""Steps of a program on a card: launches, sorts, products of matrices.

References: K. Batcher, *Sorting networks and their applications* (1968); N. Satish et
al., *Designing efficient sorting algorithms for manycore GPUs* (2009), V. Volkov and
J. Demmel, *Benchmarking GPUs to tune dense linear algebra* (SC 2008).
"""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

import hashlib
import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from minijax.cpu_backend.program_codegen import ScanStep
from minijax.cuda.driver import CudaLaunch
from minijax.errors import JaxRuntimeError
from minijax.fusion.merging import fused_group, fused_launch, fusion_group_of
from minijax.gpu.block_kernels import (
    block_loop_buffers,
    block_size,
    choose_launch_with_rows,
    fits_block,
    render_block_loop,
)
from minijax.gpu.codegen import cuda_function
from minijax.gpu.cuda_source import PRELUDE, c_type
from minijax.gpu.schedules import specialize_for_gpu
from minijax.jitting.stages import FLOPS, nbytes
from minijax.kernels.builder import Buffer, View, collapse_axes, row_major_strides
from minijax.kernels.ir import Affine, Parameter, Store, is_affine
from minijax.kernels.loop_nests import fold_node, load_node
from minijax.kernels.lowering import (
    Launch,
    StepKind,
    array_from_view,
    copy_cost,
    step_kinds,
)
from minijax.matmul.lowering import Matmul, matmul_cost, matmul_runner
from minijax.memory.buffer_assignment import may_overwrite
from minijax.sorting.radix_sort import Sort, sorted_by_numpy
from minijax.threads.split_reductions import assemble_kernel
from minijax.windows.convolution_tiles import (
    TapProduct,
    columns_per_vector,
    tiled_conv_by_numpy,
    tiled_conv_cost,
)

# Sorts on a card: tiles in shared memory, then merges by rank, a launch for each.

TILE = 1024  # places that a block sorts
MERGERS = 256  # threads of a block that merges
KEY_TYPES = {
    1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long",
    16: "Vector<unsigned long long, 2>",
}  # fmt: skip


class SortPass(NamedTuple):
    """A step: bring the places of rows into order, in longer runs than before.

    Attributes:
      sort: the `Sort` that it is a part of.
      width: the length of the runs that are in order already; 0 for none.
      before, after: buffers of places, row by row. The first pass has none before it,
        and the last one moves the operands instead.
    """

    sort: Sort
    width: int
    before: Buffer | None
    after: Buffer | None

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        return [x for _, name, x in parameters_of_pass(self) if name[0] in "wbx"]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [x for _, name, x in parameters_of_pass(self) if name[0] in "ay"]

    @property
    def length(self):
        """The length of the runs that are in order afterwards."""
        return 2 * self.width or TILE

    def __str__(self):
        what = "moved" if self.after is None else str(self.after)
        return f"{what} = runs of {self.length} of {self.sort}"


def parameters_of_pass(step):
    """Return triples of types, names and buffers: words, places, operands, results."""
    words = [("const ", f"w{i}", x) for i, x in enumerate(step.sort.words)]
    ends = []
    if step.after is None:
        ends += [("const ", f"x{i}", x) for i, x in enumerate(step.sort.operands)]
        ends += [("", f"y{i}", x) for i, x in enumerate(step.sort.results)]
    found = [
        (f"{c}{KEY_TYPES[x.dtype.itemsize]}*", n, x.source) for c, n, x in words + ends
    ]
    places = ("const int*", "before", step.before), ("int*", "after", step.after)
    return found + [each for each in places if each[2] is not None]


def sort_passes(step):
    """Return the steps that a card makes of a `Sort`: a tile, then merges."""
    rows, n = step.sizes
    doublings = max(math.ceil(math.log2(n / TILE)), 0)
    widths = [0, *[TILE * 2**k for k in range(doublings)]]
    names = [f"{step.results[0].source.name}_{width}" for width in widths[1:]]
    places = [Buffer(name, np.dtype("int32"), rows * n) for name in names]
    ends = zip(widths, [None, *places], [*places, None])
    return [SortPass(step, *each) for each in ends]


COMPARE_TEXT = """
  auto comes_first = [&](long long a, long long b) {{
    if (a >= {n} || b >= {n}) return a < b;
{compare}    return a < b;
  }};"""
SORT_TILE = """
extern "C" __global__ void __launch_bounds__({threads})
{label}({parameters}) {{
  __shared__ int places[{tile}];
  const long long row = (long long)(blockIdx.x / {tiles}) * {n};
  const int start = blockIdx.x % {tiles} * {tile};{first}
  for (int i = threadIdx.x; i < {tile}; i += {threads}) places[i] = start + i;
  __syncthreads();
  for (int size = 2; size <= {tile}; size *= 2) {{
    for (int step = size / 2; step > 0; step /= 2) {{
      const int i = 2 * threadIdx.x - (threadIdx.x & (step - 1)), j = i + step;
      const int a = places[i], b = places[j];
      if (comes_first(b, a) == !(i & size)) places[i] = b, places[j] = a;
      __syncthreads();
    }}
  }}
  for (int i = threadIdx.x; i < {tile} && start + i < {n}; i += {threads}) {{
    const long long to = row + start + i, place = places[i];
{put}  }}
}}"""
MERGE = """
extern "C" __global__ void __launch_bounds__({threads})
{label}({parameters}) {{
  const long long i = (long long)blockIdx.x * {threads} + threadIdx.x;
  if (i >= {total}) return;
  const long long row = i / {n} * {n}, at = i - row, run = at / {width};
  const int place = before[i];{first}
  const long long start = min((run ^ 1) * {width}, {n}LL);
  long long low = start, high = min(start + {width}, {n}LL);
  while (low < high) {{
    const long long middle = (low + high) / 2;
    if (comes_first(before[row + middle], place)) low = middle + 1;
    else high = middle;
  }}
  const long long to = row + run / 2 * {pair} + at % {width} + (low - start);
{put}}}"""


def lines_of_pass(step):
    """Return the lines that compare two places, and those that say where one goes."""
    compare, put = "", "" if step.after is None else "    after[to] = place;\n"
    for number, view in enumerate(step.sort.words):
        a, b = (f"w{number}[{view.offset} + row + {x}]" for x in "ab")
        compare += f"    if ({a} != {b}) return {a} < {b};\n"
    for i, (x, y) in enumerate(zip(step.sort.operands, step.sort.results)):
        if step.after is None:
            put += f"    y{i}[{y.offset} + to] = x{i}[{x.offset} + row + place];\n"
    return compare, put


def sort_launch(step, aligned=True):
    """Return the `CudaLaunch` of a `SortPass`."""
    (rows, n), (compare, put) = step.sort.sizes, lines_of_pass(step)
    tile = min(TILE, max(64, 2 ** math.ceil(math.log2(n))))
    tiles, triples = math.ceil(n / tile), parameters_of_pass(step)
    parts = {
        "parameters": ", ".join(f"{kind} {name}" for kind, name, _ in triples),
        "first": COMPARE_TEXT.format(n=n, compare=compare),
        **{"n": n, "put": put, "tile": tile, "tiles": tiles, "total": rows * n},
        **{"width": step.width, "pair": 2 * step.width},
        "threads": MERGERS if step.width else tile // 2,
    }
    text = MERGE if step.width else SORT_TILE
    key = hashlib.sha256(text.format(label="", **parts).encode()).hexdigest()[:8]
    blocks = math.ceil(rows * n / MERGERS) if step.width else rows * tiles
    label, buffers = f"sort_{key}", [buffer for *_, buffer in triples]
    text = text.format(label=label, **parts)
    return CudaLaunch(label, text, blocks, parts["threads"], buffers)


def passed_by_numpy(program, step):
    """Return a function of the memory that does a `SortPass`, as NumPy does it."""
    shape = _, n = step.sort.sizes

    def run(memory):
        words = [
            array_from_view(x, memory).reshape(shape) for x in step.sort.words[::-1]
        ]
        runs = np.broadcast_to(np.arange(n) // step.length, shape)
        places = np.lexsort([*words, runs], axis=-1).astype(np.int32)
        memory[step.after][:] = places.reshape(-1).view(np.uint8)

    return sorted_by_numpy(program, step.sort) if step.after is None else run


def cost_of_pass(step):
    """Count the comparisons: one for each round of the network, or of the search."""
    rounds = math.log2(step.width) + 1 if step.width else 55
    count = Counter({FLOPS: int(math.prod(step.sort.sizes) * rounds)})
    return count + copy_cost(step)


step_kinds[SortPass] = StepKind(passed_by_numpy, cost_of_pass)


# Horizontal fusion: independent kernels of the same loops as one launch.

FUSION_WINDOW, MAX_FUSED_NODES = 32, 150  # steps that are looked at; nodes of a kernel


def horizontal_fusion(program):
    """Return a program whose independent kernels of the same loops are one launch."""
    steps: list = []
    for step in program.steps:
        place = twin_of(step, steps) if type(step) is Launch else None
        if place is None:
            steps.append(step)
        else:
            steps[place] = horizontally_fused_launch(steps[place], step)
    return program._replace(steps=steps)


def twin_of(step, steps):
    """Return the place of an earlier launch that a launch may be done with, or None."""
    for place in range(len(steps) - 1, max(len(steps) - FUSION_WINDOW, 0) - 1, -1):
        if is_needed(steps[place], step):
            return None
        if type(steps[place]) is Launch and are_twins(steps[place].kernel, step.kernel):
            return place
    return None


def is_needed(other, step):
    """Return whether a step has to stay behind another one."""
    written = {*step.writes}
    return not (
        written.isdisjoint(other.reads)
        and written.isdisjoint(other.writes)
        and {*step.reads}.isdisjoint(other.writes)
    )


def are_twins(a, b):
    """Return whether two kernels have the same loops and launches, and few nodes."""
    if (
        a.sizes != b.sizes
        or 0 in a.sizes
        or len(a.nodes) + len(b.nodes) > MAX_FUSED_NODES
    ):
        return False
    return (
        is_affine(a)
        and is_affine(b)
        and choose_launch_with_rows(a) == choose_launch_with_rows(b)
    )


def horizontally_fused_launch(first, second):
    """Return the launch of two that have the same loops."""
    part = fused_group(fusion_group_of(first), fusion_group_of(second))
    return fused_launch(part, {*first.writes, *second.writes})


# Register tiling for a card: products of matrices, and convolutions by their taps.

SIDE = 16  # threads along each side of a tile, and terms of a strip

PRODUCT = """
extern "C" __global__ void __launch_bounds__(256)
{label}(const {t}* lhs, const {t}* rhs{more}, {t}* out) {{
  alignas(16) __shared__ {s} a[16][{high} + 4], b[16][{wide}];
  const int t = threadIdx.x, y = t / 16 * {tall}, x = t % 16 * {broad};
  const {n} left = blockIdx.x % {across} * {wide};
  const {n} top = blockIdx.x / {across} % {down} * {high};
  const {n} part = blockIdx.x / {across} / {down} % {parts};
  const {n} batch = blockIdx.x / {across} / {down} / {parts};
  const {n} last = part == {parts} - 1 ? {terms} : (part + 1) * {length};
  {s} sums[{tall}][{broad}] = {{}};
  for ({n} first = part * {length}; first < last; first += 16) {{
    #pragma unroll
    for (int i = t; i < 16 * {high}; i += 256) {{
      const {n} row = top + i / 16, k = first + i % 16;
      a[i % 16][i / 16] = row < {rows} && k < last ? lhs[{a}] : 0;
    }}
    #pragma unroll
    for (int i = t; i < 16 * {wide}; i += 256) {{
      const {n} column = left + i % {wide}, k = first + i / {wide};
      b[i / {wide}][i % {wide}] = column < {columns} && k < last ? rhs[{b}] : 0;
    }}
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 16; k++)
      for (int i = 0; i < {tall}; i++)
        for (int j = 0; j < {broad}; j++) {{
          const {s} p = a[k][y + i], q = b[k][x + j];
          sums[i][j] += {term};
        }}
    __syncthreads();
  }}
  for (int i = 0; i < {tall}; i++)
    for (int j = 0; j < {broad}; j++) {{
      const {n} row = top + y + i, column = left + x + j;
      if (row < {rows} && column < {columns}) out[{c}] = sums[i][j];
    }}
}}"""

# A product; and the products of the halves of two pairs of short integers.
PRODUCT_TERMS = (
    "p * q",
    "(short)p * (short)q + (unsigned)(((int)p >> 16) * ((int)q >> 16))",
)


def types_of(dtype):
    """Return the types of numbers and of their sums; integers wrap without a sign."""
    unsigned = {1: "unsigned char", 2: "unsigned short", 4: "unsigned"}
    wraps = unsigned.get(dtype.itemsize, "unsigned long long")
    return {"t": c_type(dtype), "s": wraps if dtype.kind == "i" else c_type(dtype)}


def sums_of_thread(dtype, rows, columns):
    """Return how many sums a thread has down and across: up to 4, or 2 of 8 bytes."""
    most = 4 if dtype.itemsize <= 4 else 2
    return [min(most, 1 if n <= 16 else 2 if n <= 32 else 4) for n in (rows, columns)]


def tiles_for(dtype, rows, columns):
    """Return how many tiles there are down and across."""
    sums = sums_of_thread(dtype, rows, columns)
    return [-(-n // (SIDE * each)) for n, each in zip((rows, columns), sums)]


def tiled_launch(step, kind, sizes, places, **more):
    """Return the `CudaLaunch` of a step that sums products in tiles.

    Args:
      step: with an `out`, a view.
      kind: what the function's name begins with.
      sizes: how many matrices there are, rows, columns, terms.
      places: expressions of places in the operands and in the result, by their letters,
        of ``batch``, ``row``, ``column`` and ``k``, the term.
      more: ``parts``, ``more`` parameters, and the ``term``, where they are others.
    """
    count, rows, columns, terms = sizes
    tall, broad = sums_of_thread(step.out.dtype, rows, columns)
    named = {"parts": 1, "more": "", "term": PRODUCT_TERMS[0], **more, **places}
    down, across = tiles_for(step.out.dtype, rows, columns)
    length = SIDE * -(-terms // (named["parts"] * SIDE))
    named |= {"rows": rows, "columns": columns, "terms": terms, "length": length}
    named |= {"tall": tall, "broad": broad, "high": SIDE * tall, "wide": SIDE * broad}
    reach = max(x.size for x in [*step.reads, *step.writes])
    named |= {"across": across, "down": down, **types_of(step.out.dtype)}
    named["n"] = "int" if max(reach, rows, columns, terms) < 2**30 else "long long"
    key = hashlib.sha256(str(sorted(named.items())).encode()).hexdigest()[:12]
    text = PRODUCT.format(label=f"{kind}_{key}", **named)
    blocks = count * across * down * named["parts"]
    buffers = [*step.reads, *step.writes]
    return CudaLaunch(f"{kind}_{key}", text, blocks, SIDE**2, buffers)


class DeviceMatmul(Matmul):
    """A step: a product of matrices by tiles, which needs no workspace."""

    workspace = 0


def reached(name, pairs):
    """Return expressions of how far the loops with a number have moved an array.

    Args:
      name: of the number of all their iterations.
      pairs: how many iterations each has, and how far one moves; the outermost first.
    """
    found, rest = [], name
    for count, distance in [*pairs][::-1]:
        found += [f"({rest} % {count}) * {distance}"] if distance else []
        rest = f"({rest} / {count})"
    return found


def matrix_index_expr(view, row, column):
    """Return the expression of a place in a view of matrices, one for each `batch`."""
    *batch, down, across = view.strides
    terms = [str(view.offset), *reached("batch", zip(view.shape, batch))]
    return " + ".join([*terms, f"{row} * {down}", f"{column} * {across}"])


def matmul_launch(step, aligned=True):
    """Return the `CudaLaunch` of a `DeviceMatmul`."""
    places = {
        "a": matrix_index_expr(step.lhs, "row", "k"),
        "b": matrix_index_expr(step.rhs, "k", "column"),
        "c": matrix_index_expr(step.out, "row", "column"),
    }
    return tiled_launch(
        step, "product", step.sizes, places, term=PRODUCT_TERMS[step.pairs]
    )


step_kinds[DeviceMatmul] = StepKind(matmul_runner, matmul_cost)


BLOCKS = 264  # that fill a card: two for each of the 132 multiprocessors of an H100
LEAST = 512  # terms of a part


class DeviceConvolution(NamedTuple):
    """A step: a convolution by tiles.

    Attributes:
      taps: the `TapProduct`.
      parts: into how many the terms are cut. The sums of each follow those of the one
        before.
    """

    taps: TapProduct
    parts: int = 1

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def out(self):
        """The view of the result, or of that of the first part."""
        return self.taps.out

    @property
    def reads(self):
        """The buffers that the step reads."""
        return self.taps.reads

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return self.taps.writes

    def __str__(self):
        how = f", in {self.parts} parts" if self.parts > 1 else ""
        return f"{self.taps}{how}"


def sizes_of(taps):
    """Return how many matrices a `TapProduct` has, rows, columns, terms; and loops.

    The loops are those of the matrices, and those of the rows.
    """
    groups = [loop for loop in taps.outer if loop.b]
    rows = [loop for loop in (*taps.outer, taps.rows) if not loop.b]
    counts = [math.prod(loop.count for loop in loops) for loops in (groups, rows)]
    terms = taps.table.shape[0] * taps.terms.count
    return (*counts, taps.columns, terms), groups, rows


def convolution_launch(step, aligned=True):
    """Return the `CudaLaunch` of a `DeviceConvolution`."""
    taps, (sizes, groups, rows) = step.taps, sizes_of(step.taps)
    unit, count = columns_per_vector(taps.out.dtype), taps.terms.count
    tap, term = f"k / {count} * 2", f"k % {count}"
    terms = {
        "a": [taps.image.offset, f"table[{tap}]", f"{term} * {taps.terms.a}"],
        "b": [taps.weights.offset, f"table[{tap} + 1]", f"{term} * {taps.terms.b}"],
        "c": [taps.out.offset, "column", f"part * {math.prod(sizes[:3])}"],
    }
    terms["b"] += [f"column / {unit} * {taps.unit}", f"column % {unit}"]
    places = {}
    for letter, rest in terms.items():
        for name, loops in (("batch", groups), ("row", rows)):
            moves = [(loop.count, getattr(loop, letter)) for loop in loops]
            rest += reached(name, moves)
        places[letter] = " + ".join(map(str, rest))
    more = {"parts": step.parts, "more": ", const int* table"}
    return tiled_launch(step, "taps", sizes, places, **more)


def convolution_steps(taps):
    """Return the steps of a card for a `TapProduct`."""
    (count, rows, columns, terms), *_ = sizes_of(taps)
    tiles = count * math.prod(tiles_for(taps.out.dtype, rows, columns))
    parts = min(-(-BLOCKS // max(tiles, 1)), terms // LEAST)
    if parts < 2 or not tiles:
        return [DeviceConvolution(taps)]
    length = SIDE * -(-terms // (parts * SIDE))
    parts = -(-terms // length)  # as many as there are terms for
    loops = [*taps.outer, taps.rows]
    shape = (*[loop.count for loop in loops], columns)
    strides, size = row_major_strides(shape), math.prod(shape)
    partial = Buffer(f"{taps.out.source.name}_parts", taps.out.dtype, parts * size)
    *outer, last = [x._replace(c=stride) for x, stride in zip(loops, strides)]
    out = View(partial, taps.out.dtype, shape, 0, strides)
    first = taps._replace(out=out, outer=tuple(outer), rows=last)
    place = Affine(taps.out.offset, (*[loop.c for loop in loops], 1, 0))
    return [
        DeviceConvolution(first, parts),
        added_up(out, taps.out.source, parts, place),
    ]


def added_up(first, total, parts, place):
    """Return the launch that adds parts, the first of which is a view, in a buffer."""
    size, axis = math.prod(first.shape), len(first.shape)
    x = Parameter("x", first.dtype, parts * size)
    x = load_node(x, Affine(0, (*first.strides, size)))
    y = fold_node("add", (axis,), x)
    store = Store(Parameter("out", total.dtype, total.size), place, y)
    kernel = assemble_kernel("sum_of_parts", (*first.shape, parts), [x, y], [store])
    return Launch(collapse_axes(kernel), [first.source, total])


def run_of_taps(program, step):
    """Return a function of the memory that does a convolution near by, in one part."""
    run = tiled_conv_by_numpy(program, step.taps)

    def do(memory):
        if step.parts > 1:
            memory[step.taps.out.source][...] = 0  # and so are the other parts
        run(memory)

    return do


step_kinds[DeviceConvolution] = StepKind(
    run_of_taps, lambda step: tiled_conv_cost(step.taps)
)


# Steps of a program as functions of CUDA C: kernels, products, sorts, loops.


def launch_of_kernel(step, aligned=True):
    """Return the `CudaLaunch` of a `Launch`.

    Args:
      step: the `Launch`.
      aligned: whether the memory of all its buffers begins where 16 bytes begin.
    """
    kernel, label = step.kernel, step.kernel.label
    anywhere = () if aligned else {x.name for x in kernel.parameters}
    shape = choose_launch_with_rows(kernel, anywhere)
    label = label if aligned else f"{label}_anywhere"
    text = cuda_function(kernel, shape, label)
    return CudaLaunch(label, text, shape.blocks(kernel), shape.threads, step.buffers)


class BlockLoop(NamedTuple):
    """A step: a loop that one block of threads does, in one launch.

    Attributes:
      loop: a `ScanStep`, or a `While`.
    """

    loop: NamedTuple

    @property
    def programs(self):
        """No program: a card does the loop as a whole."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        written = {*self.writes}
        return [x for x in block_loop_buffers(self.loop) if x not in written]

    @property
    def writes(self):
        """The buffers that the step writes to; its states have memory of their own."""
        return [*self.loop.results, *getattr(self.loop, "ys", ())]

    def __str__(self):
        return f"in one block: {self.loop}"


def launch_of_loop(step, aligned=True):
    """Return the `CudaLaunch` of a `BlockLoop`."""
    loop = step.loop
    key = hashlib.sha256(render_block_loop(loop, "loop").encode()).hexdigest()[:12]
    label, buffers = f"loop_{key}", block_loop_buffers(loop)
    text = render_block_loop(loop, label)
    return CudaLaunch(label, "\n" + text, 1, block_size(loop), buffers)


def is_row_aligned(step):
    """Return whether the rows of a loop begin where 16 bytes begin."""
    wholes = [*step.xs, *step.ys] if isinstance(step, ScanStep) and step.length else []
    return not any(nbytes(x) // step.length % 16 for x in wholes)


def card_steps(step):
    """Return the steps of a card for one of a core."""
    if type(step) is Matmul:
        return [DeviceMatmul(*step)]
    if type(step) is TapProduct:
        return convolution_steps(step)
    if type(step) is Sort:
        return sort_passes(step)
    if fits_block(step):
        return [BlockLoop(step)]
    if step.programs:
        return [step.with_programs([*map(with_card_steps, step.programs)])]
    return [step]


def with_card_steps(program):
    """Return a program with a card's products, sorts and loops, within loops too."""
    steps = [each for step in program.steps for each in card_steps(step)]
    return horizontal_fusion(program._replace(steps=steps))


def program_for_gpu(program):
    """Return a fused `LoweredProgram` with the steps of a card, which fill it."""
    return specialize_for_gpu(with_card_steps(program))


# From types of steps to functions that return the `CudaLaunch` of a step, given it and
# whether its memory is aligned.
cuda_launches = {
    Launch: launch_of_kernel,
    BlockLoop: launch_of_loop,
    DeviceMatmul: matmul_launch,
    DeviceConvolution: convolution_launch,
    SortPass: sort_launch,
}


def run_of_loop(program, step):
    """Return a function of the memory that does the loop in a block, step by step."""
    return step_kinds[type(step.loop)].run(program, step.loop)


def cost_of_loop(step):
    """Return the costs of the loop in a block."""
    return step_kinds[type(step.loop)].cost(step.loop)


step_kinds[BlockLoop] = StepKind(run_of_loop, cost_of_loop)


MOST_BLOCKS = 2**31 - 1  # of a launch


def launches_in(program, aligned=True):
    """Return the `CudaLaunch` of each step that a card does, by the step's `id`."""
    found = {}
    for step in program.steps:
        if type(step) in cuda_launches:
            found[id(step)] = cuda_launches[type(step)](step, aligned)
        for inner in step.programs:
            found |= launches_in(inner, aligned and is_row_aligned(step))
    return found


def cuda_source(launches):
    """Return the CUDA C of launches, each function once, and the functions' names."""
    texts: dict = {}
    for launch in launches:
        if texts.setdefault(launch.label, launch.text) != launch.text:
            raise JaxRuntimeError(f"Two functions of a card are called {launch.label}.")
    return PRELUDE + "\n".join(texts.values()) if texts else "", {*texts}


def may_overwrite_on_gpu(step, old, new):
    """Return whether the threads of a step may write a result over an operand."""
    alone = type(step) is Launch and choose_launch_with_rows(step.kernel).team == 1
    return alone and may_overwrite(step, old, new)


def enqueue_launch(program, launch):
    """Return a function of the memory that puts a launch into the card's stream."""
    label, _, blocks, threads, buffers = launch
    card, function = program.card, program.functions[label]
    reach = [(program.offsets.get(buffer), buffer) for buffer in buffers]
    what = f"{label} of {program.name}{program.line}"
    if blocks > MOST_BLOCKS:
        said = f"{what} wants {blocks} blocks; a card has {MOST_BLOCKS} at most."
        raise JaxRuntimeError(said)

    def do(memory):
        start = memory.arena.address
        places = [memory[x].address if at is None else start + at for at, x in reach]
        card.launch(function, blocks, threads, places, what)

    return do if blocks else lambda memory: None


def source_line(closed):
    """Return where a program begins in the text of its user, for errors."""
    lines = [eqn.source for eqn in closed.eqns if eqn.source is not None]
    return f", which begins in {lines[0].brief}" if lines else ""
