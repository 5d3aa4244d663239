# Made from chapters/22_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels as functions of LLVM that compute with vectors."""

import functools
import math
from collections import Counter
from typing import NamedTuple

import minijax
from minijax.kernels.kernel import Node, Store
from minijax.kernels.llvm_kernels import pointer_to
from minijax.kernels.llvm_text import number_text, type_in_memory, type_of
from minijax.kernels.loop_nests import Combine, Loop, Start, loop_nest
from minijax.kernels.scalar_ops import scalar_ops
from minijax.vectors.folds import (
    all_running,
    first_values,
    fold_lanes,
    set_running,
    value_types,
    with_new_values,
    write_combination,
    write_index,
)
from minijax.vectors.functions import write_function_call
from minijax.vectors.lanes import Elements
from minijax.vectors.loads_and_stores import write_load, write_store
from minijax.vectors.nests import VectorLoop, is_loop, is_short, with_vectors
from minijax.vectors.text import vector_type


class FunctionText(NamedTuple):
    """A function of LLVM.

    Attributes:
      text: its definition.
      needed: what has to stand in the module besides: texts, by names.
    """

    text: str
    needed: dict


class KernelText(Elements):
    """The text of a kernel's function, in the making.

    Attributes:
      names: what the result of each node is called.
      running: what the running values of each fold are called, a list.
      open: folds in whose loops we are, with the lanes of their values.
      products: nodes that may be multiplied and added to a sum in one instruction.
    """

    def __init__(self, kernel):
        super().__init__(kernel)
        self.names, self.running, self.open = {}, {}, {}
        self.products = products_in(kernel)

    def lanes_of(self, node):
        """Return how many numbers stand for a node here; 0 for a scalar."""
        return self.lanes if self.axis in node.level else 0

    def operand(self, node, lanes):
        """Return what a node is called, made a vector where one is asked for."""
        name = self.names[node]
        return (
            name if self.lanes_of(node) else self.wide(type_of(node.dtype), name, lanes)
        )


def kernel_function(kernel, name, target, inline=None):
    """Return the `FunctionText` of a kernel: its arguments are addresses of buffers.

    Args:
      kernel: a `Kernel`.
      name: of the function.
      target: the `Target` that it is meant for.
      inline: whether callers should contain it; by default, where all axes are short.
    """
    short = all(size <= 16 for size in kernel.sizes) if inline is None else inline
    where = "alwaysinline" if short else "noinline"
    return function_of(KernelText(kernel), name, target, where)


def function_of(f, name, target, where, more=()):
    """Write a kernel; return its `FunctionText`.

    Args:
      f: the `KernelText` to write to.
      name, target: of the function.
      where: whether callers contain it, as LLVM says it.
      more: parameters behind those for the buffers.
    """
    kernel = f.kernel
    write_steps(f, vector_nest(kernel, target))
    written = {store.buffer for store in kernel.stores}
    params = [
        f"{pointer_to(type_in_memory(buffer.dtype))} noalias "
        f"{'' if buffer in written else 'readonly '}%{buffer.name}"
        for buffer in kernel.buffers
    ]
    width = f'"prefer-vector-width"="{8 * target.vector_bytes}"'
    params = ", ".join([*params, *more])
    head = f"define void @{name}({params}) nounwind {where} {width} {{"
    begin, end = f.owned_memory()
    text = "\n".join([head, "entry:", *begin, *f.lines, *end, "  ret void", "}"])
    return FunctionText(text, f.needed)


# Functions of a kernel, the steps of its nest, and a target, which return other steps:
# all there are, in the order in which they are called, whoever is imported first.
nest_changes: dict = dict.fromkeys(("tiles", "vectors", "rows", "row ends", "streams"))
nest_changes["vectors"] = with_vectors


def vector_nest(kernel, target):
    """Return the steps of a kernel as a target does them best."""
    if None in nest_changes.values():
        hasattr(minijax, "jit")  # at a public name, all that register are imported
    steps = loop_nest(kernel)
    for change in filter(None, nest_changes.values()):
        steps = change(kernel, steps, target)
    return steps


def module_text(functions):
    """Return the text of a module of some `FunctionText`."""
    needed = {}
    for function in functions:
        needed |= function.needed
    return "\n\n".join([*needed.values(), *[function.text for function in functions]])


def write_steps(f, steps):
    """Write steps of a nest."""
    for step in steps:
        step_writers[type(step)](f, step)


def write_node(f, node):
    """Write the instructions of a node; return the name of its result."""
    lanes = f.lanes_of(node)
    if node.op == "constant":
        return number_text(node.detail)
    if node.op == "index":
        return write_index(f, node.detail)
    if node.op == "load":
        return write_load(f, *node.detail)
    args = [f.operand(arg, lanes) for arg in node.args]
    dtype = node.args[-1].dtype
    found = write_function_call(f, node.op, args, dtype, lanes)
    if found is None and lanes and is_library(node, dtype):
        found = write_one_by_one(f, node, args, lanes)
    flags = "contract " if node in f.products else ""
    return found or f.operation(node.op, args, dtype, node.dtype, lanes, flags)


def products_in(kernel):
    """Return the products that a sum needs, and nothing else."""
    uses = Counter(arg for node in kernel.nodes for arg in node.args)
    uses.update(store.node for store in kernel.stores)
    sums = [x for x in kernel.nodes if x.op == "fold" and x.detail.how == "add"]
    args = [arg for node in sums for arg in node.args if arg.op == "mul"]
    return {node for node in args if uses[node] == 1}


def is_library(node, dtype):
    """Return whether an operation calls the mathematical library, for one number."""
    row = scalar_ops.get(node.op)
    return row is not None and row.llvm[dtype.kind].startswith("call {t} @" + node.op)


def write_one_by_one(f, node, args, lanes):
    """Write an operation that exists for scalars alone, for each lane."""
    kind = type_of(node.dtype)
    vector, x = vector_type(kind, lanes), "undef"
    for lane in range(f.live):
        each = [f.emit(f"extractelement {vector} {a}, i32 {lane}", "e") for a in args]
        y = f.operation(node.op, each, node.dtype, node.dtype, 0)
        x = f.emit(f"insertelement {vector} {x}, {kind} {y}, i32 {lane}", "x")
    return x


def write_loop(f, loop):
    """Write a loop, by vectors if they are chosen for it; folds are begun and ended."""
    new = [each for each in loop.folds if each not in f.open]
    spread = {each: spread_lanes(loop, each) for each in new}
    for each in new:
        f.open[each] = spread[each] or f.lanes_of(each.args[0])
        f.running[each] = first_values(each, f.open[each])
    write_turns(f, loop)
    for each in new:
        values, lanes = f.running.pop(each), f.open.pop(each)
        if spread[each]:
            values = fold_lanes(f, each, values, lanes)
        f.names[each] = values[-1]


def spread_lanes(loop, fold):
    """Return the lanes of vectors that lie along one of the loops of a fold, or 0."""
    if isinstance(loop, VectorLoop):
        return loop.lanes
    further = [step for step in loop.body if is_loop(step) and fold in step.folds]
    return spread_lanes(further[0], fold) if further else 0


def write_turns(f, loop):
    """Write the turns of a loop, of scalars or of vectors."""
    if isinstance(loop, VectorLoop):
        return f.vectors(loop.axis, loop.lanes, functools.partial(turns, f, loop))
    return turns(f, loop, 0, 1, f.kernel.sizes[loop.axis])


def turns(f, loop, first, step, count):
    """Write turns of a loop, through which the running values of its folds go."""

    def body(index):
        f.indices[loop.axis] = index
        write_steps(f, loop.body)

    if is_short(f.kernel, loop) and not isinstance(loop, VectorLoop):
        write_out(f, loop.folds, count, body)
    else:
        write_blocks(f, loop.folds, first, step, count, body)


def carry_folds(f, folds, first, step, count, body):
    """Write a loop that carries the running values of some folds."""

    def inside(index, names):
        set_running(f, folds, names)
        body(index)
        return all_running(f, folds)

    kinds = [kind for each in folds for kind in value_types(each, f.open[each])]
    carried = list(zip(kinds, all_running(f, folds)))
    set_running(f, folds, f.turns(first, step, count, carried, inside))


def write_out(f, folds, count, body):
    """Write turns one after the other; outside of all loops, in blocks."""
    length = max(1, count if f.depth else math.isqrt(count))
    for start in range(0, count, length):
        block = range(start, min(start + length, count))
        anew = folds if start else ()  # the first block goes on
        with_new_values(f, anew, lambda block=block: [*map(body, block)])


MANY = 128  # turns of a loop whose sums are made in blocks


def is_rounded(fold):
    """Return whether each turn of a fold loses digits."""
    return fold.detail.how in ("add", "mul") and fold.dtype.kind == "f"


def block_length(folds, count):
    """Return how many turns of a loop make a block; all of them, if nothing is lost."""
    many = count >= MANY and any(map(is_rounded, folds))
    return max(MANY // 4, math.isqrt(count)) if many else count


def write_blocks(f, folds, first, step, count, body):
    """Write a loop in blocks, each of which begins its folds anew."""
    length = block_length(folds, count)
    if length == count:
        return carry_folds(f, folds, first, step, count, body)

    def block(start):
        turns = 0, step, length, lambda index: body(f.sum(start, index))
        with_new_values(f, folds, lambda: carry_folds(f, folds, *turns))

    blocks, rest = divmod(count, length)
    carry_folds(f, folds, first, step * length, blocks, block)
    carry_folds(f, folds, first + step * (count - rest), step, rest, body)


def write_vector_store(f, step):
    """Write a store, of a vector where there is one."""
    write_store(f, step.buffer, step.place, f.operand(step.node, f.lanes))


# From types of steps to functions that write one.
step_writers = {
    Node: lambda f, step: f.names.update({step: write_node(f, step)}),
    Store: write_vector_store,
    Loop: write_loop,
    VectorLoop: write_loop,
    Start: lambda f, step: None,  # a fold begins with its loop
    Combine: lambda f, step: f.running.update(
        {step.fold: write_combination(f, step.fold)}
    ),
}
