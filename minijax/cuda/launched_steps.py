# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Steps of a program as functions of CUDA C: kernels, products, sorts, loops."""

import hashlib
import math
from typing import NamedTuple

from minijax.cuda.cuda_launch import CudaLaunch
from minijax.cuda.sort_passes import SortPass, launch_of_pass, passes_of_sort
from minijax.cuda.twins import side_by_side
from minijax.gpu.block_loops import (
    fits_block,
    loop_function,
    parameters_of,
    threads_for,
)
from minijax.gpu.choices import for_card
from minijax.gpu.cuda_text import cuda_function
from minijax.gpu.kept_rows import shape_on_card
from minijax.gpu.operations import c_type
from minijax.jitting.costs import nbytes
from minijax.kernels.program_steps import Launch
from minijax.kernels.steps import StepKind, step_kinds
from minijax.machine.nested import Repeat
from minijax.matmul.lowering import Product, cost_of_product, multiplied
from minijax.sorting.steps import Sort

SIDE = 16  # rows and columns of a tile


def launch_of_kernel(step, aligned=True):
    """Return the `CudaLaunch` of a `Launch`.

    Args:
      step: the `Launch`.
      aligned: whether the memory of all its buffers begins where 16 bytes begin.
    """
    kernel, label = step.kernel, step.kernel.label
    anywhere = () if aligned else {x.name for x in kernel.parameters}
    shape = shape_on_card(kernel, anywhere)
    label = label if aligned else f"{label}_anywhere"
    text = cuda_function(kernel, shape, label)
    return CudaLaunch(label, text, shape.blocks(kernel), shape.threads, step.buffers)


class BlockLoop(NamedTuple):
    """A step: a loop that one block of threads does, in one launch.

    Attributes:
      loop: a `Repeat`, or a `While`.
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
        return [x for x in parameters_of(self.loop) if x not in written]

    @property
    def writes(self):
        """The buffers that the step writes to; its states have memory of their own."""
        return [*self.loop.results, *getattr(self.loop, "ys", ())]

    def __str__(self):
        return f"in one block: {self.loop}"


def launch_of_loop(step, aligned=True):
    """Return the `CudaLaunch` of a `BlockLoop`."""
    loop = step.loop
    key = hashlib.sha256(loop_function(loop, "loop").encode()).hexdigest()[:6]
    label, buffers = f"loop_{key}", parameters_of(loop)
    text = loop_function(loop, label)
    return CudaLaunch(label, "\n" + text, 1, threads_for(loop), buffers)


def rows_are_aligned(step):
    """Return whether the rows that a loop reads begin where 16 bytes begin."""
    xs = step.xs if isinstance(step, Repeat) else []
    return not any(nbytes(x) // step.length % 16 for x in xs)


class CardProduct(Product):
    """A step: a product of matrices by tiles, which needs no workspace."""

    workspace = 0


PRODUCT = """
extern "C" __global__ void __launch_bounds__({threads})
{label}(const {t}* lhs, const {t}* rhs, {t}* out) {{
  __shared__ {s} a[{tile}][{tile} + 1], b[{tile}][{tile} + 1];
  const int x = threadIdx.x % {tile}, y = threadIdx.x / {tile};
  const long long column = blockIdx.x % {across} * {tile} + x;
  const long long row = blockIdx.x / {across} % {down} * {tile} + y;
  const long long batch = blockIdx.x / {across} / {down};
  {s} sum = 0;
  for (long long k = 0; k < {terms}; k += {tile}) {{
    a[y][x] = row < {rows} && k + x < {terms} ? lhs[{a}] : 0;
    b[y][x] = k + y < {terms} && column < {columns} ? rhs[{b}] : 0;
    __syncthreads();
    for (int i = 0; i < {tile}; i++) sum += {term};
    __syncthreads();
  }}
  if (row < {rows} && column < {columns}) out[{c}] = sum;
}}"""


# A product; and the products of the halves of two pairs of short integers.
TERMS = (
    "a[y][i] * b[i][x]",
    "(short)a[y][i] * (short)b[i][x] + "
    "(unsigned)(((int)a[y][i] >> 16) * ((int)b[i][x] >> 16))",
)


def place_in(view, row, column):
    """Return the expression of a place in a view of matrices, one for each `batch`."""
    *batch, down, across = view.strides
    terms, rest = [str(view.offset)], "batch"
    for size, stride in [*zip(view.shape, batch)][::-1]:
        terms.append(f"{rest} % {size} * {stride}")
        rest = f"({rest} / {size})"
    terms += [f"({row}) * {down}LL", f"({column}) * {across}LL"]
    return " + ".join(terms)


def launch_of_product(step, aligned=True):
    """Return the `CudaLaunch` of a `CardProduct`."""
    count, rows, columns, terms = step.sizes
    tiles = {"across": math.ceil(columns / SIDE), "down": math.ceil(rows / SIDE)}
    places = {
        "a": place_in(step.lhs, "row", "k + x"),
        "b": place_in(step.rhs, "k + y", "column"),
        "c": place_in(step.out, "row", "column"),
    }
    sizes = {"rows": rows, "columns": columns, "terms": terms, "tile": SIDE}
    named = {**types_of(step.out.dtype), "threads": SIDE**2, **sizes, **tiles, **places}
    named["term"] = TERMS[step.pairs]
    key = hashlib.sha256(str(sorted(named.items())).encode()).hexdigest()[:6]
    label = f"product_{key}"
    blocks = count * tiles["across"] * tiles["down"]
    text, buffers = PRODUCT.format(label=label, **named), [*step.reads, *step.writes]
    return CudaLaunch(label, text, blocks, SIDE**2, buffers)


def types_of(dtype):
    """Return the types of numbers and of their sums; integers wrap without a sign."""
    unsigned = {1: "unsigned char", 2: "unsigned short", 4: "unsigned"}
    wraps = unsigned.get(dtype.itemsize, "unsigned long long")
    return {"t": c_type(dtype), "s": wraps if dtype.kind == "i" else c_type(dtype)}


def card_steps(step):
    """Return the steps of a card for one of a core."""
    if type(step) is Product:
        return [CardProduct(*step)]
    if type(step) is Sort:
        return passes_of_sort(step)
    if fits_block(step):
        return [BlockLoop(step)]
    if step.programs:
        return [step.with_programs([*map(with_card_steps, step.programs)])]
    return [step]


def with_card_steps(program):
    """Return a program with a card's products, sorts and loops, within loops too."""
    steps = [each for step in program.steps for each in card_steps(step)]
    return side_by_side(program._replace(steps=steps))


def program_for_card(program):
    """Return a fused `LoweredProgram` with the steps of a card, which fill it."""
    return for_card(with_card_steps(program))


# From types of steps to functions that return the `CudaLaunch` of a step, given it and
# whether its memory is aligned.
cuda_launches = {
    Launch: launch_of_kernel,
    BlockLoop: launch_of_loop,
    CardProduct: launch_of_product,
    SortPass: launch_of_pass,
}


def run_of_loop(program, step):
    """Return a function of the memory that does the loop in a block, turn by turn."""
    return step_kinds[type(step.loop)].run(program, step.loop)


def cost_of_loop(step):
    """Return the costs of the loop in a block."""
    return step_kinds[type(step.loop)].cost(step.loop)


step_kinds[BlockLoop] = StepKind(run_of_loop, cost_of_loop)
step_kinds[CardProduct] = StepKind(multiplied, cost_of_product)
