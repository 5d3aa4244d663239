# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels as functions of LLVM, and modules of such functions."""

from minijax.arrays.dtypes import short_name
from minijax.kernels.kernel import Node, Store
from minijax.kernels.llvm_text import (
    HALVES,
    LLVMFunction,
    number_text,
    type_in_memory,
    type_of,
    write_best,
    write_loop,
    write_operation,
)
from minijax.kernels.loop_nests import Loop, Start, loop_nest
from minijax.kernels.scalar_ops import foldings, in_registers


class KernelText(LLVMFunction):
    """The text of a kernel's function, in the making.

    Attributes:
      kernel: the `Kernel`.
      names: what the result of each node is called.
      indices: what the index along each axis is called.
      running: what the running values of each fold are called, a list.
    """

    def __init__(self, kernel):
        super().__init__()
        self.kernel = kernel
        self.names, self.indices, self.running = {}, {}, {}


def write_step(f, step):
    """Write one step of a nest."""
    if isinstance(step, Node):
        f.names[step] = write_node(f, step)
    elif isinstance(step, Store):
        write_store(f, *step)
    elif isinstance(step, Loop):
        write_steps_in_loop(f, *step)
    elif isinstance(step, Start):
        f.running[step.fold] = first_values(step.fold)
    else:
        f.running[step.fold] = write_combination(f, step.fold)


def write_node(f, node):
    """Write the instructions of a node; return the name of its result."""
    if node.op == "constant":
        return number_text(node.detail)
    if node.op == "index":
        return f.indices[node.detail]
    if node.op == "load":
        return write_load(f, *node.detail)
    args = [f.names[arg] for arg in node.args]
    return write_operation(f, node.op, args, node.args[-1].dtype, node.dtype)


def write_steps_in_loop(f, axis, body, folds):
    """Write a loop, through which the running values of folds go."""

    def inside(index, names):
        f.indices[axis] = index
        run_on(f, folds, names)
        for step in body:
            write_step(f, step)
        return [value for fold in folds for value in f.running[fold]]

    carried = [pair for fold in folds for pair in typed_values(f, fold)]
    if f.kernel.sizes[axis] > 0:
        run_on(f, folds, write_loop(f, f.kernel.sizes[axis], carried, inside))
    for fold in folds:
        f.names[fold] = f.running[fold][-1]


def typed_values(f, fold):
    """Return pairs of a type and a running value of a fold."""
    return list(zip([type_of(fold.args[0].dtype), "i64"], f.running[fold]))


def run_on(f, folds, names):
    """Give the running values of folds other names, which are listed together."""
    names = iter(names)
    for fold in folds:
        f.running[fold] = [next(names) for _ in f.running[fold]]


def first_values(fold):
    """Return the running value of a fold, and for extremes its place, at the start."""
    [arg], how = fold.args, fold.detail.how
    start = number_text(foldings[how].start(arg.dtype))
    return [start, "0"] if how.startswith("arg") else [start]


def write_combination(f, fold):
    """Write how one more number enters a fold; return the names of its values."""
    [arg], (how, axes) = fold.args, fold.detail
    values, x = f.running[fold], f.names[arg]
    if how.startswith("arg"):
        return write_best(f, how, arg.dtype, values, [x, f.indices[axes[0]]])
    return [write_operation(f, how, [*values, x], arg.dtype, arg.dtype)]


def write_sum(f, place):
    """Write an `Affine`; return the name of the number."""
    total = None
    for axis in place.axes:
        index, stride = f.indices[axis], place.strides[axis]
        term = index if stride == 1 else f.emit(f"mul i64 {index}, {stride}", "a")
        total = f.emit(f"add i64 {total}, {term}", "a") if total else term
    if total and place.offset:
        return f.emit(f"add i64 {total}, {place.offset}", "a")
    return total or str(place.offset)


def write_guards(f, guards):
    """Write whether all guards say inside; return the name of the bool, or None."""
    inside = None
    for place, limit in guards:  # as unsigned numbers, those below 0 are large
        fits = f.emit(f"icmp ult i64 {write_sum(f, place)}, {limit}", "g")
        inside = f.emit(f"and i1 {inside}, {fits}", "g") if inside else fits
    return inside


def write_pointer(f, buffer, address):
    """Write the address of an element; return it with its type."""
    kind = type_in_memory(buffer.dtype)
    base = f"{pointer_to(kind)} %{buffer.name}"
    name = f.emit(f"getelementptr inbounds {kind}, {base}, i64 {address}", "p")
    return f"{pointer_to(kind)} {name}"


def pointer_to(kind):
    """Return the type of addresses of a type."""
    return f"{kind}*"


def write_load(f, buffer, place, guards, other):
    """Write a load; where a guard says outside, the first element is read in vain."""
    if buffer.size == 0:
        return number_text(other)
    address, inside = write_sum(f, place), write_guards(f, guards)
    if inside:
        address = f.emit(f"select i1 {inside}, i64 {address}, i64 0", "a")
    pointer = write_pointer(f, buffer, address)
    x = f.emit(f"load {type_in_memory(buffer.dtype)}, {pointer}", "e")
    x = from_memory(f, buffer.dtype, x)
    if not inside:
        return x
    kind = type_of(buffer.dtype)
    return f.emit(f"select i1 {inside}, {kind} {x}, {kind} {number_text(other)}")


def write_store(f, buffer, place, node):
    """Write a store."""
    x = to_memory(f, buffer.dtype, f.names[node])
    pointer = write_pointer(f, buffer, write_sum(f, place))
    f.line(f"store {type_in_memory(buffer.dtype)} {x}, {pointer}")


def from_memory(f, dtype, x):
    """Write what makes of an element in memory a number; return its name."""
    if dtype.kind == "b":
        return f.emit(f"icmp ne i8 {x}, 0")
    if dtype == in_registers(dtype):
        return x
    return f.emit(f"call float @from_{short_name(dtype)}(i16 {x})")


def to_memory(f, dtype, x):
    """Write what makes of a number an element in memory; return its name."""
    if dtype.kind == "b":
        return f.emit(f"zext i1 {x} to i8")
    if dtype == in_registers(dtype):
        return x
    return f.emit(f"call i16 @to_{short_name(dtype)}(float {x})")


def function_text(f, name):
    """Return the text of a kernel's function; its arguments are addresses."""
    for step in loop_nest(f.kernel):
        write_step(f, step)
    written = {store.buffer for store in f.kernel.stores}
    params = ", ".join(
        f"{pointer_to(type_in_memory(buffer.dtype))} noalias "
        f"{'' if buffer in written else 'readonly '}%{buffer.name}"
        for buffer in f.kernel.buffers
    )
    head = f"define void @{name}({params}) nounwind {{"
    return "\n".join([head, "entry:", *f.lines, "  ret void", "}"])


def emit_llvm(kernels):
    """Return the text of a module with a function for each kernel.

    Args:
      kernels: from names of functions to kernels. A function takes the addresses of
        its kernel's buffers.
    """
    writers = {name: KernelText(kernel) for name, kernel in kernels.items()}
    functions = [function_text(f, name) for name, f in writers.items()]
    called = set().union(*[f.declared for f in writers.values()])
    return "\n\n".join([*map(_provided, sorted(called)), *functions])


def _provided(declaration):
    name = declaration.removeprefix("declare ").partition("(")[0]
    return HALVES.get(name, declaration)
