"""Sizes that are known when a function runs: arithmetic on them, and loops over parts.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

# Made from chapters/25_matmul_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

SIZE, BOOL = np.dtype("uint64"), np.dtype(bool)


def reckon(f, op, x, y):
    """Write an operation on two sizes, ints or names; return the result's name."""
    return f.operation(op, [x, y], SIZE, SIZE)


def holds(f, op, x, y):
    """Write a comparison of two sizes."""
    return f.operation(op, [x, y], SIZE, BOOL)


def both(f, x, y):
    """Write whether two bools are true."""
    return f.operation("and", [x, y], BOOL, BOOL)


def distances_of_rows(f, count):
    """Write how far the rows of a panel of a are from the first one.

    An empty instruction of the assembler hides from LLVM what every fourth one is.
    Otherwise LLVM finds each address in the loop by adding to the one before, and a
    tile of one vector spends more time on these sums than on its own.
    """
    found = [reckon(f, "mul", "%a_row", row) for row in range(count)]
    for row in range(4, count, 4):
        found[row] = f.emit(f'call i64 asm "", "=r,0"(i64 {found[row]})')
    return found


def quotient(f, size, unit):
    """Write how many units cover a size."""
    return reckon(f, "div", reckon(f, "add", size, unit - 1), unit)


def times(f, count, body):
    """Write a loop that may have no turns; `body` is a function of the index."""

    def turn(index, _):
        body(index)
        return []

    f.when(holds(f, "ne", count, 0), lambda: f.loop(count, [], turn))


def write_parts(f, size, limit, unit, body):
    """Write a loop over parts of a size: about equal, and whole units but for the last.

    Args:
      size: the name of a number.
      limit: what no part is longer than, unless it is one unit.
      unit: a number.
      body: a function of the start and the length of a part.
    """
    count = quotient(f, size, max(limit - limit % unit, unit))
    before = reckon(f, "add", reckon(f, "sub", size, 1), count)
    step = reckon(f, "mul", quotient(f, reckon(f, "div", before, count), unit), unit)
    write_steps_of(f, size, count, step, body)


def write_panels(f, size, width, body):
    """Write a loop over panels; `body` is a function of the start and the width."""
    write_steps_of(f, size, quotient(f, size, width), width, body)


def write_steps_of(f, size, count, step, body):
    """Write a loop over parts of a size; the last one is what is left."""

    def part(index):
        start = reckon(f, "mul", index, step)
        left = reckon(f, "sub", size, start)
        body(start, reckon(f, "min", left, step))

    times(f, count, part)
