# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Steps of a program as functions of CUDA C: kernels, and products of matrices."""

import hashlib
import math
from typing import NamedTuple

from minijax.gpu.cuda_text import cuda_function
from minijax.gpu.launches import launch_of
from minijax.gpu.operations import c_type
from minijax.kernels.program_steps import Launch
from minijax.kernels.steps import StepKind, step_kinds
from minijax.matmul.lowering import Product, cost_of_product, multiplied

TILE = 16  # rows and columns of a tile


class CudaLaunch(NamedTuple):
    """A function of CUDA C, and how a step launches it.

    Attributes:
      label: name of the function.
      text: of it.
      blocks, threads: how many there are, of the latter in a block.
      buffers: those of its parameters.
    """

    label: str
    text: str
    blocks: int
    threads: int
    buffers: list


def launch_of_kernel(step):
    """Return the `CudaLaunch` of a `Launch`."""
    kernel, label = step.kernel, step.kernel.label
    launch = launch_of(kernel)
    text = cuda_function(kernel, launch, label)
    return CudaLaunch(label, text, launch.blocks(kernel), launch.threads, step.buffers)


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
    for (int i = 0; i < {tile}; i++) sum += a[y][i] * b[i][x];
    __syncthreads();
  }}
  if (row < {rows} && column < {columns}) out[{c}] = sum;
}}"""


def place_in(view, row, column):
    """Return the expression of a place in a view of matrices, one for each `batch`."""
    *batch, down, across = view.strides
    terms, rest = [str(view.offset)], "batch"
    for size, stride in [*zip(view.shape, batch)][::-1]:
        terms.append(f"{rest} % {size} * {stride}")
        rest = f"({rest} / {size})"
    terms += [f"({row}) * {down}LL", f"({column}) * {across}LL"]
    return " + ".join(terms)


def launch_of_product(step):
    """Return the `CudaLaunch` of a `CardProduct`."""
    count, rows, columns, terms = step.sizes
    tiles = {"across": math.ceil(columns / TILE), "down": math.ceil(rows / TILE)}
    places = {
        "a": place_in(step.lhs, "row", "k + x"),
        "b": place_in(step.rhs, "k + y", "column"),
        "c": place_in(step.out, "row", "column"),
    }
    sizes = {"rows": rows, "columns": columns, "terms": terms, "tile": TILE}
    named = {**types_of(step.out.dtype), "threads": TILE**2, **sizes, **tiles, **places}
    key = hashlib.sha256(str(sorted(named.items())).encode()).hexdigest()[:6]
    label = f"product_{key}"
    blocks = count * tiles["across"] * tiles["down"]
    text, buffers = PRODUCT.format(label=label, **named), [*step.reads, *step.writes]
    return CudaLaunch(label, text, blocks, TILE**2, buffers)


def types_of(dtype):
    """Return the types of numbers and of their sums; integers wrap without a sign."""
    unsigned = {1: "unsigned char", 2: "unsigned short", 4: "unsigned"}
    wraps = unsigned.get(dtype.itemsize, "unsigned long long")
    return {"t": c_type(dtype), "s": wraps if dtype.kind == "i" else c_type(dtype)}


def with_card_products(program):
    """Return a program whose products are those of a card, in its loops too."""
    steps = [
        CardProduct(*step)
        if type(step) is Product
        else step.with_programs(list(map(with_card_products, step.programs)))
        if step.programs
        else step
        for step in program.steps
    ]
    return program._replace(steps=steps)


# From types of steps to functions of a step that return its `CudaLaunch`.
cuda_launches = {Launch: launch_of_kernel, CardProduct: launch_of_product}
step_kinds[CardProduct] = StepKind(multiplied, cost_of_product)
