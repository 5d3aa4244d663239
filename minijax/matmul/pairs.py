"""Pairs of short integers in one number: two products and their sum at once.

Reference: the instruction ``pmaddwd``, in Intel's Software Developer's Manual.
"""

# Made from chapters/25_matmul_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.llvm.types import vector_type

SHORT, LONG = np.dtype("int16"), np.dtype("int32")


def multiply_add_pairs(f, dtype, x, y, z, lanes):
    """Write `z` and the products of the low and of the high halves of two numbers.

    LLVM knows these instructions as one, where the processor has it.
    """
    factors = [halves(f, number, lanes) for number in (x, y)]
    xy = f.operation("mul", factors, LONG, LONG, 2 * lanes)
    orders = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    parts = [f.shuffle("i32", xy, "undef", order, 2 * lanes) for order in orders]
    both = f.operation("add", parts, LONG, LONG, lanes)
    return f.operation("add", [both, z], LONG, LONG, lanes)


def halves(f, x, lanes):
    """Write the halves of numbers, low and high in turn, as numbers of their size."""
    old, new = vector_type("i32", lanes), vector_type("i16", 2 * lanes)
    short = f.emit(f"bitcast {old} {x} to {new}")
    return f.operation("convert", [short], SHORT, LONG, 2 * lanes)
