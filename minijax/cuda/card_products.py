"""Register tiling for a card: products of matrices, and convolutions by their taps.

Reference: V. Volkov and J. Demmel, *Benchmarking GPUs to tune dense linear algebra* (SC
2008).
"""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

import hashlib
import math
from typing import NamedTuple

from minijax.cuda.driver import CudaLaunch
from minijax.gpu.operations import c_type
from minijax.kernels.kernel import fold, load
from minijax.kernels.parts import Affine, Parameter, Store
from minijax.kernels.program_steps import Launch, StepKind, step_kinds
from minijax.kernels.views import Buffer, View, collapse, row_major
from minijax.matmul.lowering import Product, cost_of_product, multiplied
from minijax.threads.partial_folds import assembled
from minijax.windows.tap_products import (
    TapProduct,
    columns_in_unit,
    cost_of_taps,
    multiplied_taps,
)

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
TERMS = (
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
    named = {"parts": 1, "more": "", "term": TERMS[0], **more, **places}
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


class CardProduct(Product):
    """A step: a product of matrices by tiles, which needs no workspace."""

    workspace = 0


def reached(name, pairs):
    """Return expressions of how far the loops with a number have moved an array.

    Args:
      name: of the number of all their turns.
      pairs: how many turns each has, and how far one moves; the outermost first.
    """
    found, rest = [], name
    for count, distance in [*pairs][::-1]:
        found += [f"({rest} % {count}) * {distance}"] if distance else []
        rest = f"({rest} / {count})"
    return found


def place_in(view, row, column):
    """Return the expression of a place in a view of matrices, one for each `batch`."""
    *batch, down, across = view.strides
    terms = [str(view.offset), *reached("batch", zip(view.shape, batch))]
    return " + ".join([*terms, f"{row} * {down}", f"{column} * {across}"])


def launch_of_product(step, aligned=True):
    """Return the `CudaLaunch` of a `CardProduct`."""
    places = {
        "a": place_in(step.lhs, "row", "k"),
        "b": place_in(step.rhs, "k", "column"),
        "c": place_in(step.out, "row", "column"),
    }
    return tiled_launch(step, "product", step.sizes, places, term=TERMS[step.pairs])


step_kinds[CardProduct] = StepKind(multiplied, cost_of_product)


BLOCKS = 264  # that fill a card: two for each of the 132 multiprocessors of an H100
LEAST = 512  # terms of a part


class CardTaps(NamedTuple):
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


def launch_of_taps(step, aligned=True):
    """Return the `CudaLaunch` of a `CardTaps`."""
    taps, (sizes, groups, rows) = step.taps, sizes_of(step.taps)
    unit, count = columns_in_unit(taps.out.dtype), taps.terms.count
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


def steps_of_taps(taps):
    """Return the steps of a card for a `TapProduct`."""
    (count, rows, columns, terms), *_ = sizes_of(taps)
    tiles = count * math.prod(tiles_for(taps.out.dtype, rows, columns))
    parts = min(-(-BLOCKS // max(tiles, 1)), terms // LEAST)
    if parts < 2 or not tiles:
        return [CardTaps(taps)]
    length = SIDE * -(-terms // (parts * SIDE))
    parts = -(-terms // length)  # as many as there are terms for
    loops = [*taps.outer, taps.rows]
    shape = (*[loop.count for loop in loops], columns)
    strides, size = row_major(shape), math.prod(shape)
    partial = Buffer(f"{taps.out.source.name}_parts", taps.out.dtype, parts * size)
    *outer, last = [x._replace(c=stride) for x, stride in zip(loops, strides)]
    out = View(partial, taps.out.dtype, shape, 0, strides)
    first = taps._replace(out=out, outer=tuple(outer), rows=last)
    place = Affine(taps.out.offset, (*[loop.c for loop in loops], 1, 0))
    return [CardTaps(first, parts), added_up(out, taps.out.source, parts, place)]


def added_up(first, total, parts, place):
    """Return the launch that adds parts, the first of which is a view, in a buffer."""
    size, axis = math.prod(first.shape), len(first.shape)
    x = Parameter("x", first.dtype, parts * size)
    x = load(x, Affine(0, (*first.strides, size)))
    y = fold("add", (axis,), x)
    store = Store(Parameter("out", total.dtype, total.size), place, y)
    kernel = assembled("sum_of_parts", (*first.shape, parts), [x, y], [store])
    return Launch(collapse(kernel), [first.source, total])


def run_of_taps(program, step):
    """Return a function of the memory that does a convolution near by, in one part."""
    run = multiplied_taps(program, step.taps)

    def do(memory):
        if step.parts > 1:
            memory[step.taps.out.source][...] = 0  # and so are the other parts
        run(memory)

    return do


step_kinds[CardTaps] = StepKind(run_of_taps, lambda step: cost_of_taps(step.taps))
