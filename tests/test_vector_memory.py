"""Where loads of vectors are written."""

import numpy as np
import pytest

from minijax.kernels import Affine, Buffer, Kernel, Store, apply, fold, load
from minijax.targets import forced_target
from minijax.vector_kernels import kernel_function
from minijax.vector_memory import read_own, write_own
from minijax.vector_places import Elements

F32 = np.dtype("float32")


def product(rows, columns):
    """A kernel: a matrix times a vector."""
    x, y = Buffer("x", F32, rows * columns), Buffer("y", F32, columns)
    out = Buffer("out", F32, rows)
    a, b = load(x, Affine(0, (columns, 1))), load(y, Affine(0, (0, 1)))
    total = fold("add", (1,), c := apply("mul", a, b))
    stores = (Store(out, Affine(0, (1, 0)), total),)
    return Kernel("dot", (rows, columns), (x, y, out), (a, b, c, total), stores)


@pytest.mark.parametrize("columns", [15, 16, 24])  # 24 with a mask
def test_a_vector_that_all_rows_meet_is_loaded_before_them(columns):
    kernel = product(50, columns)
    text = kernel_function(kernel, "k", forced_target("plain")).text
    before, _, inside = text.partition("loop1:")
    assert before.count("%y") > 0 and "%y" not in inside
    assert "%x" in inside


def test_a_long_vector_is_loaded_again_for_each_row():
    text = kernel_function(product(50, 1000), "k", forced_target("plain")).text
    assert "getelementptr float, float* %y, i64 %i" in text.partition("loop1:")[2]


def test_own_memory_is_read_when_it_is_asked_for():
    """What a function keeps changes: it is loaded behind each store."""
    f = Elements(Kernel("example", (8,), (), (), ()))
    f.indices, f.axis, f.lanes, f.live = {0: 0}, 0, 8, 8
    for value in ("%a", "%b"):
        write_own(f, "row", F32, Affine(0, (1,)), 8, value, 8)
        read_own(f, "row", F32, Affine(0, (1,)), 8, 8)
    found = [line.split()[2] for line in f.lines if " = load" in line]
    assert len(found) == 2
