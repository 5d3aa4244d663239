"""Matrix products as steps of a program, and calls of gemm from other functions.

A product is a kernel where a fold does it well: small ones, those with a vector, and
those without a sum. The others are a step of their own.
"""

# Made from chapters/25_matmul_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.array import ShapedArray
from minijax.arrays.devices import ignore_float_errors
from minijax.arrays.numerics import (
    lhs_free_axes,
    matmul_impl,
    real_dtype_of,
    sizes_of_axes,
    sum_accumulator_dtype,
)
from minijax.jitting.stages import FLOPS
from minijax.kernels.builder import (
    Buffer,
    ComplexNode,
    KernelBuilder,
    View,
    broadcast_view,
    real_and_imag_views,
    reshape_view,
    slice_view,
    transpose_view,
)
from minijax.kernels.ir import Affine, Guard, sha256
from minijax.kernels.lowering import (
    StepKind,
    array_from_view,
    copy_cost,
    kernel_rules,
    step_kinds,
)
from minijax.llvm.compiler import add_symbol
from minijax.llvm.instructions import llvm_type
from minijax.matmul.gemm import (
    gemm_address,
    gemm_name,
    gemm_parameters,
    packed_panel_bytes,
)
from minijax.matmul.packing import emit_int_op

# Matrix products as steps of a program: which are kernels, and which are not.

# Products of matrices with at most so many multiplications are kernels.
MIN_GEMM_SIZE = 16**3
MIN_GEMM_DEPTH = (
    8  # and so are those with sums of so few terms: packing would cost as much
)
# And so are those with so few rows, or so few columns that stay near the core, and so
# many numbers of the other operand: it is read once, as it lies.
FEW_ROWS, FEW_COLUMNS, CACHE_ELEMENTS, MAX_SKINNY_ELEMENTS = 16, 32, 2**13, 2**16
NARROW_COLUMNS, MIN_NARROW_ELEMENTS = (
    16,
    2**12,
)  # of float32, with so few columns, fewer are enough
LANE_SUM_COST = (
    6  # what it costs to add up the lanes of a vector; a multiply-add costs 1
)
PAIR_DTYPE = np.dtype("int32")  # two terms of sums, of one of these dtypes:
PAIRED_DTYPES = "int8", "uint8", "int16"


class Matmul(NamedTuple):
    """A step: ``out[..., i, j]`` is the sum of all ``lhs[..., i, k] * rhs[..., k, j]``.

    Attributes:
      lhs, rhs, out: views of one dtype, with the same axes before the last two. The
        rows of `out` lie one after the other.
      pairs: whether each number of `lhs` and `rhs`, of 32 bits, is a pair of integers
        of 16 bits; then both products of two pairs are added.
    """

    lhs: View
    rhs: View
    out: View
    pairs: bool = False

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        return [self.lhs.source, self.rhs.source]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [self.out.source]

    @property
    def sizes(self):
        """Numbers of matrices, of rows and columns of a result, of terms of a sum."""
        *batch, m, n = self.out.shape
        return math.prod(batch), m, n, self.lhs.shape[-1]

    @property
    def workspace(self):
        """How many bytes of memory it needs besides."""
        return packed_panel_bytes(self.sizes, self.out.dtype)

    def __str__(self):
        return f"{self.out} = {self.lhs} @ {self.rhs}"


def matmul_runner(program, step):
    """Return a function of the memory that does a `Matmul`, as NumPy does it."""

    @ignore_float_errors
    def run(memory):
        operands, out = (step.lhs, step.rhs), array_from_view(step.out, memory)
        lhs, rhs = (array_from_view(view, memory) for view in operands)
        if step.pairs:
            out[...] = sum(map(np.matmul, split_halves(lhs), split_halves(rhs)))
        else:
            out[...] = matmul_impl(np, lhs, rhs)

    return run


def split_halves(x):
    """Return the low and the high halves of integers of 32 bits, in 32 bits."""
    return x << 16 >> 16, x >> 16


def matmul_cost(step):
    """Return the costs of a product of matrices."""
    flops = 2 * math.prod(step.sizes) * (1 + step.pairs)
    return Counter({FLOPS: flops}) + copy_cost(step)


step_kinds[Matmul] = StepKind(matmul_runner, matmul_cost)


def suits_a_kernel(aval, batch, m, n, k):
    """Whether a fold is as good as anything for a product of these sizes."""
    thin = min(m, n) <= 2 or k <= MIN_GEMM_DEPTH or batch == 0
    return thin or m * n * k <= MIN_GEMM_SIZE or aval.dtype.kind == "b"


def multiply(lowering, eqn, lhs, rhs):
    """Add the steps of a ``dot_general``; return the view of its result."""
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    lhs_free = lhs_free_axes(len(lhs.shape), lhs_sum, lhs_batch)
    rhs_free = lhs_free_axes(len(rhs.shape), rhs_sum, rhs_batch)
    groups = [
        sizes_of_axes(lhs.shape, lhs_batch),
        sizes_of_axes(lhs.shape, lhs_free),
        sizes_of_axes(rhs.shape, rhs_free),
        sizes_of_axes(lhs.shape, lhs_sum),
    ]
    lhs = transpose_view(lhs, (*lhs_batch, *lhs_free, *lhs_sum))
    rhs = transpose_view(rhs, (*rhs_batch, *rhs_sum, *rhs_free))
    aval = eqn.outvars[0].aval
    batch, m, n, k = map(math.prod, groups)
    tall = m * k >= fewest(n, lhs, rhs) and lhs.strides[-1:] == (1,)
    across = n <= FEW_COLUMNS and k * n <= CACHE_ELEMENTS and rhs.strides[-1:] == (1,)
    along = is_along(n, k)
    flat = m <= FEW_ROWS and k * n >= MAX_SKINNY_ELEMENTS and rhs.strides[-1:] == (1,)
    if tall and along and 1 < n < m // 4 and k > MIN_GEMM_DEPTH and not groups[0]:
        rhs = with_terms_close(lowering, rhs, len(groups[3]))
    tall = tall and (along or across)
    if tall or flat or suits_a_kernel(aval, batch, m, n, k):
        return [folded(lowering, aval, groups, lhs, rhs)]
    return [stepped(lowering, aval, groups, lhs, rhs)]


def fewest(n, lhs, rhs):
    """Return how many numbers of a left operand are enough to read it as it lies."""
    narrow = n <= NARROW_COLUMNS and lhs.dtype == rhs.dtype == np.float32
    return MIN_NARROW_ELEMENTS if narrow else MAX_SKINNY_ELEMENTS


def is_along(n, k):
    """Return whether sums cost less with lanes along their terms than across them.

    There are `n` sums of `k` terms for each row; across them there is a vector of the
    columns, and a multiply-add for each term.
    """
    vectors = 4 * math.ceil(k / 64) if k > 64 else math.ceil(k / 16)
    return n * (vectors + LANE_SUM_COST) <= k


def with_terms_close(lowering, rhs, summed):
    """Return a narrow matrix with its columns in memory one after the other.

    They are copied if they are not: then the terms of a sum are neighbours.
    """
    if rhs.strides[summed - 1] == 1:
        return rhs
    order = (*range(summed, len(rhs.shape)), *range(summed))
    columns = transpose_view(rhs, order)
    return transpose_view(lowering.copy(columns), tuple(np.argsort(order)))


kernel_rules[lax.dot_general_p] = multiply


def folded(lowering, aval, groups, lhs, rhs):
    """Add a kernel: the sum of products, along the last axes."""
    batch, rows, columns, summed = map(len, groups)
    shape, dtype = sum(groups, ()), sum_accumulator_dtype(aval.dtype)
    first, last = range(batch + rows), range(batch + rows + columns, len(shape))
    middle = range(batch + rows, batch + rows + columns)
    lhs = broadcast_view(lhs, shape, (*first, *last))
    rhs = broadcast_view(rhs, shape, (*range(batch), *last, *middle))

    def write():
        k = KernelBuilder("dot_general", shape)
        x, y = k.convert(k.load(lhs), dtype), k.convert(k.load(rhs), dtype)
        if dtype.kind == "b":
            total = k.fold("or", last, k.apply("and", x, y))
        else:
            total = k.fold("add", last, k.mul(x, y))
        return k, k.convert(total, aval.dtype)

    return lowering.launch_known(("dot_general", last), (lhs, rhs), aval, write)


def stepped(lowering, aval, groups, lhs, rhs):
    """Add a `Matmul`, and what makes its operands matrices, of pairs or one dtype."""
    pairs, dtype = are_short(aval, lhs, rhs), sum_accumulator_dtype(aval.dtype)
    lhs, rhs = (
        materialize(lowering, x, x.dtype if pairs else dtype) for x in (lhs, rhs)
    )
    lhs, rhs = as_matrices(lowering, groups, lhs, rhs)
    if pairs:
        lhs = interleave_rows(lowering, lhs, -1)
        rhs = interleave_rows(lowering, rhs, -2)
        dtype = PAIR_DTYPE
    out = lowering.allocate(ShapedArray((*lhs.shape[:-1], rhs.shape[-1]), dtype))
    if dtype.kind == "c":
        complex_product(lowering, lhs, rhs, out)
    else:
        lowering.steps.append(Matmul(lhs, rhs, out, pairs))
    return materialize(lowering, reshape_view(out, aval.shape), aval.dtype)


def as_matrices(lowering, groups, lhs, rhs):
    """Return operands as matrices; they are copied if strides alone cannot do it."""
    views = matrices(groups, lhs, rhs)
    if None in views:
        views = matrices(groups, lowering.copy(lhs), lowering.copy(rhs))
    return views


def matrices(groups, lhs, rhs):
    """Return the operands as matrices, with one axis of batches if possible."""
    batch, (m, n, k) = groups[0], map(math.prod, groups[1:])
    for axes in [(math.prod(batch),), batch] if batch else [()]:
        views = reshape_view(lhs, (*axes, m, k)), reshape_view(rhs, (*axes, k, n))
        if None not in views:
            break
    return views


def materialize(lowering, view, dtype):
    """Return the view of an array in a buffer and in a dtype."""
    if isinstance(view.source, Buffer) and view.dtype == dtype:
        return view
    k = KernelBuilder("convert_element_type", view.shape)
    x = k.convert(k.load(view), dtype)
    return lowering.launch(k, x, ShapedArray(view.shape, dtype))


def complex_product(lowering, lhs, rhs, out):
    """Add four products of real and imaginary parts, and what joins them."""
    aval = ShapedArray(out.shape, real_dtype_of(out.dtype))
    (a, b), (c, d) = real_and_imag_views(lhs), real_and_imag_views(rhs)
    pairs = (a, c), (b, d), (a, d), (b, c)
    products = [Matmul(*pair, lowering.allocate(aval)) for pair in pairs]
    lowering.steps += products
    k = KernelBuilder("complex", out.shape)
    ac, bd, ad, bc = [product.out for product in products]
    real, imag = k.sub(k.load(ac), k.load(bd)), k.add(k.load(ad), k.load(bc))
    lowering.run(k, (out, ComplexNode(real, imag)))


def are_short(aval, *operands):
    """Return whether a product is the same if its operands have 16 bits."""
    result = aval.dtype
    fit = PAIRED_DTYPES if result.itemsize > 2 else (*PAIRED_DTYPES, "uint16")
    whole = result.kind in "iu" and result.itemsize <= 4
    return whole and all(x.dtype.name in fit for x in operands)


def interleave_rows(lowering, view, axis):
    """Add a kernel that puts two neighbours along an axis, the last one alone, into
    each number; return the view of the numbers."""
    size, shape, steps = view.shape[axis], [*view.shape], [1] * len(view.shape)
    shape[axis], steps[axis] = -(-size // 2), 2
    k = KernelBuilder("pairs", shape)
    second = Guard(Affine(1, tuple(step - 1 and 2 for step in steps)), size)
    low = slice_view(view, [0] * len(shape), shape, steps)
    high = low._replace(offset=low.offset + view.strides[axis])
    low, high = k.load(low), k.load(high, (second,) * (size % 2))
    low = k.apply("and", k.convert(low, PAIR_DTYPE), 2**16 - 1)
    high = k.shift_left(k.convert(high, PAIR_DTYPE), 16)
    aval = ShapedArray(tuple(shape), PAIR_DTYPE)
    return lowering.launch(k, k.apply("or", low, high), aval)


# Calls of the function for matrix products from the text of other functions.


def gemm_signature(dtype):
    """Return the types of the function's parameters, as LLVM writes them."""
    return ", ".join(kind for kind, _ in gemm_parameters(dtype))


def emit_gemm_calls(f, step, buffers, space, callee=None):
    """Write the calls that do a `Matmul`: one for the last axis of batches.

    Args:
      f: the `FunctionBuilder`.
      step: the `Matmul`.
      buffers: the addresses of the buffers of lhs, rhs and out, as ``i8*``.
      space: the address of the step's workspace, as ``i8*``.
      callee: what is called; by default, the function by its name.
    """
    kind, views = llvm_type(step.out.dtype), (step.lhs, step.rhs, step.out)
    addresses = [f.cast("i8", buffer, kind) for buffer in buffers]
    starts = [f.at(kind, *pair) for pair in zip(addresses, [x.offset for x in views])]
    dtype = step.out.dtype
    name = callee or gemm_name(dtype, step.pairs)
    call = functools.partial(emit_gemm_call, f, name, dtype, space)
    emit_calls(f, step, starts, 0, call)


def emit_gemm_call(f, name, dtype, space, numbers):
    """Write one call: numbers are sizes, addresses and distances."""
    kinds, _ = zip(*gemm_parameters(dtype))
    f.call("void", name, *zip(kinds, (*numbers, space)), own=True)


def emit_calls(f, step, starts, axis, call):
    """Write a loop over each axis of batches but the last one, and the call in it."""
    views, kind = (step.lhs, step.rhs, step.out), llvm_type(step.out.dtype)
    *batch, _, _ = step.out.shape
    if axis + 1 >= len(batch):
        return call(gemm_arguments(step, starts))

    def iteration(index, _):
        distances = [emit_int_op(f, "mul", index, x.strides[axis]) for x in views]
        inner = [f.at(kind, *pair) for pair in zip(starts, distances)]
        emit_calls(f, step, inner, axis + 1, call)
        return []

    return f.loop(batch[axis], [], iteration)


def gemm_arguments(step, starts):
    """Return the arguments of a call but the last: sizes, addresses, distances."""
    *batch, m, n = step.out.shape
    sizes = [1, *batch, m, n, step.lhs.shape[-1]][-4:]
    for view, start in zip((step.lhs, step.rhs, step.out), starts):
        sizes += [start, *(0, *view.strides)[-3:]]
    return sizes[:-1]  # the columns of out lie side by side


def runtime_gemm(f, step):
    """Return the name of the function for a `Matmul`, which is in no program."""
    target, (dtype, pairs) = f.program.target, (step.out.dtype, step.pairs)
    which = sha256(target.key.encode()).hexdigest()[:8]
    name = f"{gemm_name(dtype, pairs)}_{which}"
    add_symbol(name, gemm_address(dtype, target, pairs))
    f.declare(f"declare void @{name}({gemm_signature(dtype)})")
    return name


def emit_matmul(f, step):
    """Write the call of the function for matrix products."""
    name = runtime_gemm(f, step)
    buffers = [f.address(buffer) for buffer in (*step.reads, *step.writes)]
    space = f.program.locations.workspaces.get(id(step), 0)
    emit_gemm_calls(f, step, buffers, f.offset("%arena", space), name)


step_kinds.write_by(Matmul, emit_matmul)
