"""Kernels as functions of LLVM: any nest; a backend that runs them step by step.

A loop of a nest may be written one iteration at a time, with vectors, or in blocks;
which it is stands in its kind (`minijax.kernels.ir.Loop`).
"""

# Made from chapters/18_llvm.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from minijax._registry import Registry
from minijax.jitting.compilation import backends
from minijax.kernels.builder import UnrolledIteration, unroll_and_jam
from minijax.kernels.ir import FoldCombine, FoldInit, Loop, Store, is_scan, scalar_ops
from minijax.kernels.loop_nests import Node, loop_nest
from minijax.kernels.lowering import KernelProgram
from minijax.llvm.compiler import Library
from minijax.llvm.instructions import (
    llvm_constant,
    llvm_memory_type,
    llvm_type,
    pointer_type,
    splat,
)
from minijax.llvm.vectors import (
    ElementEmitter,
    accumulators,
    emit_combination,
    emit_horizontal_folds,
    emit_index,
    emit_load,
    emit_store,
    emit_update,
    fold_init_values,
    fold_value_types,
    guard_edges,
    packable_folds,
    set_accumulators,
    split_extent,
    with_fresh_accumulators,
)

# Kernels as functions of LLVM: any nest, whatever its loops say.


class FunctionIR(NamedTuple):
    """A function of LLVM.

    Attributes:
      text: its definition.
      needed: what has to stand in the module besides: texts, by names.
    """

    text: str
    needed: dict


class KernelEmitter(ElementEmitter):
    """The text of a kernel's function, in the making.

    Args:
      kernel: a `Kernel`.
      functions: what writes the call of an elementary function, or returns None: a
        function of the text, a scalar operation, operands, their dtype, and lanes.

    Attributes:
      names: what the result of each node is called.
      running: what the running values of each fold are called, a list.
      open: folds in whose loops we are, with the lanes of their values.
      products: nodes that may be multiplied and added to a sum in one instruction.
    """

    def __init__(self, kernel, functions: Callable | None = None):
        super().__init__(kernel)
        self.names, self.running, self.open = {}, {}, {}
        self.functions, self.products = functions, products_in(kernel)

    def lanes_of(self, node):
        """Return how many numbers stand for a node here; 0 for a scalar."""
        return self.lanes if self.axis in node.level else 0

    def operand(self, node, lanes):
        """Return what a node is called, made a vector where one is asked for."""
        name = self.names[node]
        return (
            name
            if self.lanes_of(node)
            else self.splat(llvm_type(node.dtype), name, lanes)
        )


# From types of steps to functions that write one.
step_emitters: dict = Registry()


def emit_steps(f, steps):
    """Write steps of a nest."""
    for step in steps:
        step_emitters[type(step)](f, step)


def emit_node(f, node):
    """Write the instructions of a node; return the name of its result."""
    lanes = f.lanes_of(node)
    if node.op == "constant":
        return llvm_constant(node.detail)
    if node.op == "index":
        return emit_index(f, node.detail)
    if node.op == "load":
        parameter, place, guards, other, terms = node.detail
        return emit_load(f, parameter, place, guards, other, terms, node.args)
    if settled := f.is_settled(node):
        return splat("i1", settled, lanes)
    args, dtype = [f.operand(arg, lanes) for arg in node.args], node.args[-1].dtype
    found = f.functions and f.functions(f, node.op, args, dtype, lanes)
    if not found and lanes and is_library(node):
        found = emit_one_by_one(f, node, args, lanes)
    flags = "contract " if node in f.products else ""
    return found or f.operation(node.op, args, dtype, node.dtype, lanes, flags)


def emit_stored(f, store):
    """Write a store."""
    if store.update:
        return emit_update(f, store)
    x = f.operand(store.node, f.lanes)
    return emit_store(f, store.parameter, store.place, x)


def products_in(kernel):
    """Return the products that a sum needs, and nothing else."""
    uses = Counter(arg for node in kernel.nodes for arg in node.args)
    uses.update(store.node for store in kernel.stores)
    sums = [x for x in kernel.nodes if x.op == "fold" and x.detail.how == "add"]
    args = [arg for node in sums for arg in node.args if arg.op == "mul"]
    return {node for node in args if uses[node] == 1}


step_emitters[Node] = lambda f, step: f.names.update({step: emit_node(f, step)})
step_emitters[Store] = emit_stored


def emit_loop(f, loop):
    """Write a loop as its kind says; folds are begun and ended."""
    new = [each for each in loop.folds if each not in f.open]
    spread = {each: spread_lanes(loop, each) for each in new}
    for each in new:
        f.open[each] = spread[each] or f.lanes_of(each.args[0])
        f.running[each] = fold_init_values(each, f.open[each])
    emit_loop_iterations(f, loop)
    ends = {each: (f.running.pop(each), f.open.pop(each)) for each in new}
    f.names |= {each: ends[each][0][-1] for each in new if not spread[each]}
    for alike in packable_folds([each for each in new if spread[each]], ends):
        f.names |= zip(alike, emit_horizontal_folds(f, alike, ends))


def emit_fold_loop(f, folds, first, step, count, body):
    """Write a loop that carries the running values of some folds."""

    def inside(index, names):
        set_accumulators(f, folds, names)
        body(index)
        return accumulators(f, folds)

    kinds = [kind for each in folds for kind in fold_value_types(each, f.open[each])]
    carried = list(zip(kinds, accumulators(f, folds)))
    set_accumulators(f, folds, f.counted_loop(first, step, count, carried, inside))


def is_library(node):
    """Return whether an operation calls the mathematical library, for one number."""
    return node.op in scalar_ops and scalar_ops[node.op].cost == "transcendentals"


def emit_one_by_one(f, node, args, lanes):
    """Write an operation that exists for scalars alone, for each lane."""
    kind, x = llvm_type(node.dtype), "undef"
    for lane in range(f.live):
        each = [f.extract_element(kind, arg, lanes, lane) for arg in args]
        y = f.operation(node.op, each, node.dtype, node.dtype, 0)
        x = f.insert_element(kind, x, lanes, lane, y)
    return x


def spread_lanes(loop, fold):
    """Return the lanes of vectors that lie along one of the loops of a fold, or 0."""
    if loop.lanes:
        return loop.lanes
    loops = [step for step in loop.body if isinstance(step, Loop)]
    further = [step for step in loops if fold in step.folds]
    return spread_lanes(further[0], fold) if further else 0


def emit_loop_iterations(f, loop):
    """Write the iterations of a loop, as its kind says."""
    loop_emitters[loop.kind](f, loop)


def emit_serial(f, loop):
    """Write turns one after the other, all of them, beginning at 0."""
    emit_iterations(f, loop, 0, 1, f.extent(loop.axis))


def emit_vectors(f, loop):
    """Write turns of whole vectors, and what is left."""
    write = functools.partial(emit_iterations, f, loop)
    edges = guard_edges(f, loop)
    f.vectors(loop.axis, loop.count, write, loop.kind == "masked", edges)


def emit_strips(f, loop):
    """Write a loop in strips, and the last one, which may be shorter."""
    for part in split_extent(f.extent(loop.axis), loop.count):
        emit_iterations(f, loop, *part)
    f.strips.pop(loop.axis, None)


def emit_together(f, loop):
    """Write turns side by side, so many at once, and those that are left."""
    for first, number, count in split_extent(f.extent(loop.axis), loop.count):
        rank = len(f.kernel.sizes)
        some = [UnrolledIteration(loop.axis, n, rank) for n in range(number)]
        body = unroll_and_jam(loop.body, some)
        for each in some:
            f.products |= {each.copies[x] for x in f.products & each.copies.keys()}
        emit_iterations(f, loop._replace(body=body), first, number, count)


# From kinds of loops to functions that write their iterations. One thread of a
# processor does all that a team of a GPU would share.
loop_emitters = {
    "serial": emit_serial,
    "unrolled": emit_serial,
    "vector": emit_vectors,
    "masked": emit_vectors,
    "together": emit_together,
    "strip": emit_strips,
    "team": emit_serial,
}


def emit_iterations(f, loop, first, step, count):
    """Write turns of a loop, through which the running values of its folds go."""

    def body(index):
        f.move(loop.axis, index, step if loop.strip else 0)
        emit_steps(f, loop.body)

    if loop.parallel:
        emit_part(f, first, step, count, body)
    elif loop.kind == "unrolled":
        emit_out(f, loop.folds, count, body)
    elif loop.blocked:
        emit_blocks(f, loop.folds, first, step, count, body)
    else:
        emit_fold_loop(f, loop.folds, first, step, count, body)


def emit_part(f, first, step, count, body):
    """Write the iterations of a loop whose index is from ``%lo`` to below ``%hi``."""

    def iteration(index, _):
        body(index)
        return []

    end = first + step * count
    if count > 1:
        below = f.emit(f"icmp ult i64 %hi, {end}", "b")
        limit = f.emit(f"select i1 {below}, i64 %hi, i64 {end}", "b")
        start = f.at_least("%lo", first)
        some = f.emit(f"icmp ult i64 {start}, {limit}", "b")
        f.if_then(some, lambda: f.loop(limit, [], iteration, start, step))
    elif count:
        mine = f.emit(f"icmp ugt i64 %hi, {first}", "b")
        f.if_then(f.all_lanes([mine, f.begins_by(first)]), lambda: body(first))


def emit_out(f, folds, count, body):
    """Write turns one after the other; outside of all loops, in blocks."""
    length = max(1, count if f.depth else math.isqrt(count))
    for start in range(0, count, length):
        block = range(start, min(start + length, count))
        anew = folds if start else ()  # the first block goes on
        with_fresh_accumulators(f, anew, lambda block=block: [*map(body, block)])


PAIRWISE_BLOCK = 128  # turns of a loop whose sums are made in blocks


def is_inexact_fold(fold):
    """Return whether each iteration of a fold loses digits, and blocks lose fewer."""
    rounded = fold.detail.how in ("add", "mul") and fold.dtype.kind == "f"
    return rounded and not is_scan(fold)


def pairwise_block_size(folds, count):
    """Return how many iterations of a loop make a block; all, if nothing is lost."""
    many = count >= PAIRWISE_BLOCK and any(map(is_inexact_fold, folds))
    return max(PAIRWISE_BLOCK // 4, math.isqrt(count)) if many else count


def emit_blocks(f, folds, first, step, count, body):
    """Write a loop in blocks, each of which begins its folds anew."""
    length = pairwise_block_size(folds, count)
    if length == count:
        return emit_fold_loop(f, folds, first, step, count, body)

    def block(start):
        trip = 0, step, length, lambda index: body(f.sum(start, index))
        with_fresh_accumulators(f, folds, lambda: emit_fold_loop(f, folds, *trip))

    blocks, rest = divmod(count, length)
    emit_fold_loop(f, folds, first, step * length, blocks, block)
    emit_fold_loop(f, folds, first + step * (count - rest), step, rest, body)


def emit_entered(f, fold):
    """Write how a number enters a fold; one that runs has its result then."""
    f.running[fold] = emit_combination(f, fold)
    if is_scan(fold):
        [f.names[fold]] = f.running[fold]


step_emitters[Loop] = emit_loop
step_emitters[FoldInit] = lambda f, step: None  # a fold begins with its loop
step_emitters[FoldCombine] = lambda f, step: emit_entered(f, step.fold)


def emit_kernel_function(f, name, steps, attributes="nounwind", more=()):
    """Write a kernel; return its `FunctionIR`; the arguments are addresses.

    Args:
      f: the `KernelEmitter` to write to.
      name: of the function.
      steps: those of the kernel's nest.
      attributes: what LLVM is told of the function.
      more: parameters of the function behind those of the kernel, pairs of type and
        name.
    """
    emit_steps(f, steps)
    written = {store.parameter for store in f.kernel.stores}
    given = f.kernel.parameters
    params = [(address_type(x, x in written), f"%{x.name}") for x in given]
    begin, end = f.scratch_pointer()
    f.lines[:] = [*begin, *f.lines, *end]
    text = f.definition(name, [*params, *more], attributes, linkage="")
    return FunctionIR(text, f.needed)


def address_type(parameter, written):
    """Return the type of a parameter's address; memory that is only read is marked."""
    pointer = pointer_type(llvm_memory_type(parameter.dtype))
    return f"{pointer} noalias" if written else f"{pointer} noalias readonly"


def module_ir(functions):
    """Return the text of a module of some `FunctionIR`."""
    needed = {}
    for function in functions:
        needed |= function.needed
    return "\n\n".join([*needed.values(), *[function.text for function in functions]])


def emit_llvm(kernels):
    """Return the text of a module with a function for each kernel, one index at a time.

    Args:
      kernels: from names of functions to kernels. A function takes the addresses of
        its kernel's parameters.
    """
    return module_ir(
        [
            emit_kernel_function(KernelEmitter(k), name, loop_nest(k))
            for name, k in kernels.items()
        ]
    )


# Programs run step by step, whose kernels are machine code.


class LLVMProgram(KernelProgram):
    """Runs the steps of a program, one after the other; the kernels are machine code.

    Attributes:
      text: what LLVM is given.
      library: the `Library` that was made of it.
    """

    def compile(self, kernels):
        """Return functions of the buffers' memory, by the labels of the kernels."""
        self.text = emit_llvm(kernels)
        self.library = Library(self.text)
        return {label: self.called(label, kernel) for label, kernel in kernels.items()}

    def called(self, name, kernel):
        """Return a function that hands the addresses of buffers to machine code."""
        function = self.library.function(name, len(kernel.parameters))
        return lambda *memory: function(*[data.ctypes.data for data in memory])


LLVMProgram.dialects = KernelProgram.dialects | {
    "assembly": lambda program: program.library.assembly,
}
backends["llvm"] = LLVMProgram
