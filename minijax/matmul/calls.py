# Made from chapters/23_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""Calls of the function for matrix products from the text of other functions."""

import hashlib

from minijax.kernels.steps import StepKind, step_kinds
from minijax.llvm.compiler import make_known
from minijax.llvm.types import pointer_to, type_of
from minijax.matmul.gemm import address, name_of_gemm, parameters
from minijax.matmul.lowering import Product, cost_of_product, multiplied
from minijax.matmul.text import MatrixText


def signature(dtype):
    """Return the types of the function's parameters, as LLVM writes them."""
    params = parameters(MatrixText(dtype)).split(", ")
    return ", ".join(param.split()[0] for param in params)


def write_call(f, step, slots, space, callee=None):
    """Write the calls that do a `Product`: one for the last axis of batches.

    Args:
      f: the `LLVMFunction`.
      step: the `Product`.
      slots: the addresses of the slots of lhs, rhs and out, as ``i8*``.
      space: the address of the step's workspace, as ``i8*``.
      callee: what is called; by default, the function by its name.
    """
    layouts, kind = (step.lhs, step.rhs, step.out), type_of(step.out.dtype)
    starts = [
        behind(f, kind, f.emit(f"bitcast i8* {slot} to {pointer_to(kind)}"), x.offset)
        for slot, x in zip(slots, layouts)
    ]
    name = callee or f"@{name_of_gemm(step.out.dtype)}"
    write_calls(f, step, starts, 0, lambda x: f"call void {name}({x}, i8* {space})")


def behind(f, kind, base, distance):
    """Write the address that is so many numbers behind another one."""
    place = f"{pointer_to(kind)} {base}, i64 {distance}"
    return f.emit(f"getelementptr {kind}, {place}", "p")


def write_calls(f, step, starts, axis, call):
    """Write a loop over each axis of batches but the last one, and the call in it."""
    layouts, kind = (step.lhs, step.rhs, step.out), type_of(step.out.dtype)
    *batch, _, _ = step.out.shape
    if axis + 1 >= len(batch):
        return f.line(call(arguments(step, starts)))

    def turn(index, _):
        distances = [f.emit(f"mul i64 {index}, {x.strides[axis]}") for x in layouts]
        inner = [behind(f, kind, *pair) for pair in zip(starts, distances)]
        write_calls(f, step, inner, axis + 1, call)
        return []

    return f.loop(batch[axis], [], turn)


def arguments(step, starts):
    """Return the arguments of a call: sizes, addresses, distances."""
    *batch, m, n = step.out.shape
    texts = [f"i64 {size}" for size in (*batch, m, n, step.lhs.shape[-1])][-4:]
    texts = texts if batch else ["i64 1", *texts]
    for layout, start in zip((step.lhs, step.rhs, step.out), starts):
        texts.append(f"{pointer_to(type_of(layout.dtype))} {start}")
        texts += [f"i64 {stride}" for stride in (0, *layout.strides)[-3:]]
    return ", ".join(texts[:-1])  # the columns of out lie side by side


def write_product_step(f, step):
    """Write the call of the function for matrix products, which is in no program."""
    dtype, target = step.out.dtype, f.program.target
    which = hashlib.sha256(target.key.encode()).hexdigest()[:8]
    name = f"{name_of_gemm(dtype)}_{which}"
    make_known(name, address(dtype, target))
    f.declare(f"declare void @{name}({signature(dtype)})")
    slots = [f.address(slot) for slot in (*step.reads, *step.writes)]
    space = f.program.locations.workspaces.get(id(step), 0)
    write_call(f, step, slots, f.offset("%arena", space), f"@{name}")


step_kinds[Product] = StepKind(multiplied, cost_of_product, write_product_step)
