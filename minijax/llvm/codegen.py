"""Kernels as functions of LLVM: any nest; a backend that runs them step by step.

A loop of a nest may be written turn by turn, with vectors, or in blocks; which it is
to be stands in its marks (`minijax.kernels.loop_nests.Loop`).
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
from minijax.kernels.builder import Turn, jammed
from minijax.kernels.ir import Combine, Loop, Start, Store, runs, scalar_ops
from minijax.kernels.loop_nests import Node, loop_nest
from minijax.kernels.lowering import KernelProgram
from minijax.llvm.compiler import Library
from minijax.llvm.instructions import number_text, pointer_to, type_in_memory, type_of
from minijax.llvm.vectors import (
    Elements,
    alike_folds,
    all_running,
    first_values,
    fold_lanes_of,
    parts_of,
    set_running,
    value_types,
    with_new_values,
    write_combination,
    write_index,
    write_load,
    write_store,
    write_update,
)

# Kernels as functions of LLVM: any nest, whatever its loops say.


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
            name if self.lanes_of(node) else self.wide(type_of(node.dtype), name, lanes)
        )


# From types of steps to functions that write one.
step_writers: dict = Registry()


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
        parameter, place, guards, other, terms = node.detail
        return write_load(f, parameter, place, guards, other, terms, node.args)
    args, dtype = [f.operand(arg, lanes) for arg in node.args], node.args[-1].dtype
    found = f.functions and f.functions(f, node.op, args, dtype, lanes)
    if not found and lanes and is_library(node):
        found = write_one_by_one(f, node, args, lanes)
    flags = "contract " if node in f.products else ""
    return found or f.operation(node.op, args, dtype, node.dtype, lanes, flags)


def write_stored(f, store):
    """Write a store."""
    if store.update:
        return write_update(f, store)
    x = f.operand(store.node, f.lanes)
    return write_store(f, store.parameter, store.place, x)


def products_in(kernel):
    """Return the products that a sum needs, and nothing else."""
    uses = Counter(arg for node in kernel.nodes for arg in node.args)
    uses.update(store.node for store in kernel.stores)
    sums = [x for x in kernel.nodes if x.op == "fold" and x.detail.how == "add"]
    args = [arg for node in sums for arg in node.args if arg.op == "mul"]
    return {node for node in args if uses[node] == 1}


step_writers[Node] = lambda f, step: f.names.update({step: write_node(f, step)})
step_writers[Store] = write_stored


def write_loop(f, loop):
    """Write a loop as its marks say; folds are begun and ended."""
    new = [each for each in loop.folds if each not in f.open]
    spread = {each: spread_lanes(loop, each) for each in new}
    for each in new:
        f.open[each] = spread[each] or f.lanes_of(each.args[0])
        f.running[each] = first_values(each, f.open[each])
    write_turns(f, loop)
    ends = {each: (f.running.pop(each), f.open.pop(each)) for each in new}
    f.names |= {each: ends[each][0][-1] for each in new if not spread[each]}
    for alike in alike_folds([each for each in new if spread[each]], ends):
        f.names |= zip(alike, fold_lanes_of(f, alike, ends))


def carry_folds(f, folds, first, step, count, body):
    """Write a loop that carries the running values of some folds."""

    def inside(index, names):
        set_running(f, folds, names)
        body(index)
        return all_running(f, folds)

    kinds = [kind for each in folds for kind in value_types(each, f.open[each])]
    carried = list(zip(kinds, all_running(f, folds)))
    set_running(f, folds, f.turns(first, step, count, carried, inside))


def is_library(node):
    """Return whether an operation calls the mathematical library, for one number."""
    return node.op in scalar_ops and scalar_ops[node.op].cost == "transcendentals"


def write_one_by_one(f, node, args, lanes):
    """Write an operation that exists for scalars alone, for each lane."""
    kind, x = type_of(node.dtype), "undef"
    for lane in range(f.live):
        each = [f.element(kind, arg, lanes, lane) for arg in args]
        y = f.operation(node.op, each, node.dtype, node.dtype, 0)
        x = f.with_element(kind, x, lanes, lane, y)
    return x


def spread_lanes(loop, fold):
    """Return the lanes of vectors that lie along one of the loops of a fold, or 0."""
    if loop.lanes:
        return loop.lanes
    loops = [step for step in loop.body if isinstance(step, Loop)]
    further = [step for step in loops if fold in step.folds]
    return spread_lanes(further[0], fold) if further else 0


def write_turns(f, loop):
    """Write the turns of a loop, of scalars or of vectors."""
    if loop.lanes:
        write = functools.partial(turns, f, loop)
        return f.vectors(loop.axis, loop.lanes, write, loop.masked)
    size = f.extent(loop.axis)
    if loop.strip:
        return write_strips(f, loop, size)
    if loop.together:
        return write_together(f, loop, size)
    return turns(f, loop, 0, 1, size)


def write_strips(f, loop, size):
    """Write a loop in strips, and the last one, which may be shorter."""
    for part in parts_of(size, loop.strip):
        turns(f, loop, *part)
    f.strips.pop(loop.axis, None)


def write_together(f, loop, size):
    """Write turns side by side, so many at once, and those that are left."""
    for first, number, count in parts_of(size, loop.together):
        some = [Turn(loop.axis, ahead) for ahead in range(number)]
        body = jammed(loop.body, some)
        for turn in some:
            f.products |= {turn.copies[x] for x in f.products & turn.copies.keys()}
        turns(f, loop._replace(body=body, unrolled=False), first, number, count)


def turns(f, loop, first, step, count):
    """Write turns of a loop, through which the running values of its folds go."""

    def body(index):
        f.move(loop.axis, index, step if loop.strip else 0)
        write_steps(f, loop.body)

    if loop.parallel:
        write_part(f, first, step, count, body)
    elif loop.unrolled:
        write_out(f, loop.folds, count, body)
    elif loop.blocked:
        write_blocks(f, loop.folds, first, step, count, body)
    else:
        carry_folds(f, loop.folds, first, step, count, body)


def write_part(f, first, step, count, body):
    """Write those turns of a loop whose indices are from ``%lo`` to below ``%hi``."""

    def turn(index, _):
        body(index)
        return []

    end = first + step * count
    if count > 1:
        below = f.emit(f"icmp ult i64 %hi, {end}", "b")
        limit = f.emit(f"select i1 {below}, i64 %hi, i64 {end}", "b")
        some = f.emit(f"icmp ult i64 %lo, {limit}", "b")
        f.when(some, lambda: f.loop(limit, [], turn, "%lo", step))
    elif count:
        mine = f.emit(f"icmp ugt i64 %hi, {first}", "b")
        f.when(mine, lambda: body(first))


def write_out(f, folds, count, body):
    """Write turns one after the other; outside of all loops, in blocks."""
    length = max(1, count if f.depth else math.isqrt(count))
    for start in range(0, count, length):
        block = range(start, min(start + length, count))
        anew = folds if start else ()  # the first block goes on
        with_new_values(f, anew, lambda block=block: [*map(body, block)])


MANY = 128  # turns of a loop whose sums are made in blocks


def is_rounded(fold):
    """Return whether each turn of a fold loses digits, and blocks lose fewer."""
    rounded = fold.detail.how in ("add", "mul") and fold.dtype.kind == "f"
    return rounded and not runs(fold)


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


def write_entered(f, fold):
    """Write how a number enters a fold; one that runs has its result then."""
    f.running[fold] = write_combination(f, fold)
    if runs(fold):
        [f.names[fold]] = f.running[fold]


step_writers[Loop] = write_loop
step_writers[Start] = lambda f, step: None  # a fold begins with its loop
step_writers[Combine] = lambda f, step: write_entered(f, step.fold)


def function_of(f, name, steps, attributes="nounwind", more=()):
    """Write a kernel; return its `FunctionText`; the arguments are addresses.

    Args:
      f: the `KernelText` to write to.
      name: of the function.
      steps: those of the kernel's nest.
      attributes: what LLVM is told of the function.
      more: parameters of the function behind those of the kernel, pairs of type and
        name.
    """
    write_steps(f, steps)
    written = {store.parameter for store in f.kernel.stores}
    given = f.kernel.parameters
    params = [(address_type(x, x in written), f"%{x.name}") for x in given]
    begin, end = f.owned_memory()
    f.lines[:] = [*begin, *f.lines, *end]
    text = f.definition(name, [*params, *more], attributes, linkage="")
    return FunctionText(text, f.needed)


def address_type(parameter, written):
    """Return the type of a parameter's address; memory that is only read is marked."""
    pointer = pointer_to(type_in_memory(parameter.dtype))
    return f"{pointer} noalias" if written else f"{pointer} noalias readonly"


def module_text(functions):
    """Return the text of a module of some `FunctionText`."""
    needed = {}
    for function in functions:
        needed |= function.needed
    return "\n\n".join([*needed.values(), *[function.text for function in functions]])


def emit_llvm(kernels):
    """Return the text of a module with a function for each kernel, turn by turn.

    Args:
      kernels: from names of functions to kernels. A function takes the addresses of
        its kernel's parameters.
    """
    return module_text(
        [function_of(KernelText(k), name, loop_nest(k)) for name, k in kernels.items()]
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
