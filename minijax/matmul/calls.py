"""Calls of the function for matrix products from the text of other functions."""

# Made from chapters/25_matmul_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools

from minijax.kernels.parts import sha256
from minijax.kernels.program_steps import step_kinds
from minijax.llvm.compiler import make_known
from minijax.llvm.types import type_of
from minijax.matmul.gemm import address, name_of_gemm, parameters
from minijax.matmul.lowering import Product
from minijax.matmul.sizes import reckon


def signature(dtype):
    """Return the types of the function's parameters, as LLVM writes them."""
    return ", ".join(kind for kind, _ in parameters(dtype))


def write_call(f, step, buffers, space, callee=None):
    """Write the calls that do a `Product`: one for the last axis of batches.

    Args:
      f: the `LLVMFunction`.
      step: the `Product`.
      buffers: the addresses of the buffers of lhs, rhs and out, as ``i8*``.
      space: the address of the step's workspace, as ``i8*``.
      callee: what is called; by default, the function by its name.
    """
    kind, views = type_of(step.out.dtype), (step.lhs, step.rhs, step.out)
    addresses = [f.cast("i8", buffer, kind) for buffer in buffers]
    starts = [f.at(kind, *pair) for pair in zip(addresses, [x.offset for x in views])]
    dtype = step.out.dtype
    name = callee or name_of_gemm(dtype, step.pairs)
    call = functools.partial(write_one, f, name, dtype, space)
    write_calls(f, step, starts, 0, call)


def write_one(f, name, dtype, space, numbers):
    """Write one call: numbers are sizes, addresses and distances."""
    kinds, _ = zip(*parameters(dtype))
    f.call("void", name, *zip(kinds, (*numbers, space)), own=True)


def write_calls(f, step, starts, axis, call):
    """Write a loop over each axis of batches but the last one, and the call in it."""
    views, kind = (step.lhs, step.rhs, step.out), type_of(step.out.dtype)
    *batch, _, _ = step.out.shape
    if axis + 1 >= len(batch):
        return call(arguments(step, starts))

    def turn(index, _):
        distances = [reckon(f, "mul", index, x.strides[axis]) for x in views]
        inner = [f.at(kind, *pair) for pair in zip(starts, distances)]
        write_calls(f, step, inner, axis + 1, call)
        return []

    return f.loop(batch[axis], [], turn)


def arguments(step, starts):
    """Return the arguments of a call but the last: sizes, addresses, distances."""
    *batch, m, n = step.out.shape
    sizes = [1, *batch, m, n, step.lhs.shape[-1]][-4:]
    for view, start in zip((step.lhs, step.rhs, step.out), starts):
        sizes += [start, *(0, *view.strides)[-3:]]
    return sizes[:-1]  # the columns of out lie side by side


def known_product(f, step):
    """Return the name of the function for a `Product`, which is in no program."""
    target, (dtype, pairs) = f.program.target, (step.out.dtype, step.pairs)
    which = sha256(target.key.encode()).hexdigest()[:8]
    name = f"{name_of_gemm(dtype, pairs)}_{which}"
    make_known(name, address(dtype, target, pairs))
    f.declare(f"declare void @{name}({signature(dtype)})")
    return name


def write_product_step(f, step):
    """Write the call of the function for matrix products."""
    name = known_product(f, step)
    buffers = [f.address(buffer) for buffer in (*step.reads, *step.writes)]
    space = f.program.locations.workspaces.get(id(step), 0)
    write_call(f, step, buffers, f.offset("%arena", space), name)


step_kinds.write_by(Product, write_product_step)
