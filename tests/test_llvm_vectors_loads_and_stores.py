"""Where loads of vectors are written, and how much a store writes."""

import math
import re

import numpy as np
import pytest
from llvmlite import binding

from minijax import jit
from minijax.kernels.ir import Affine, Parameter, Store, compute_dtype
from minijax.kernels.loop_nests import Kernel, fold_node, load_node, op_node
from minijax.llvm.codegen import module_ir
from minijax.llvm.targets import forced_target, kernel_function, optimize_module
from minijax.llvm.vectors import ElementEmitter, emit_scratch_load, emit_scratch_store
from minijax.threads.parallel_loops import grain_unit, parallel_loop, range_function
from tests import mutants, vector_cases
from tests.array_cases import dtype_of

F32 = np.dtype("float32")


def product(rows, columns):
    """A kernel: a matrix times a vector."""
    x, y = Parameter("x", F32, rows * columns), Parameter("y", F32, columns)
    out = Parameter("out", F32, rows)
    a, b = load_node(x, Affine(0, (columns, 1))), load_node(y, Affine(0, (0, 1)))
    total = fold_node("add", (1,), c := op_node("mul", a, b))
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
    f = ElementEmitter(Kernel("example", (8,), (), (), ()))
    f.indices, f.axis, f.lanes, f.live = {0: 0}, 0, 8, 8
    for value in ("%a", "%b"):
        emit_scratch_store(f, "row", F32, Affine(0, (1,)), 8, value, 8)
        emit_scratch_load(f, "row", F32, Affine(0, (1,)), 8, 8)
    found = [line.split()[2] for line in f.lines if " = load" in line]
    assert len(found) == 2


# What stands behind a row is somebody else's.

SUFFIXES = {"b": 1, "w": 2, "d": 4, "q": 8}
WIDTHS = {"vmovss": 4, "vmovsd": 8} | {
    name + suffix: width
    for suffix, width in SUFFIXES.items()
    for name in ("vpextr", "vmov", "mov")
}
WIDTHS |= {"movw": 2, "movl": 4, "movq": 8}


def avx512():
    """A processor with AVX-512, or a test is skipped; nothing runs on it."""
    try:
        return forced_target("avx512")
    except ValueError:
        pytest.skip("LLVM makes no code for x86 here")


def prepared_code(*functions):
    """LLVM's module of functions for a processor with AVX-512, and its assembly."""
    module, machine = optimize_module(binding, module_ir(functions), avx512())
    return str(module), machine.emit_assembly(module)


def converted(sizes, strides, old, new):
    """A kernel: magnitudes of the numbers in rows, in another dtype and any order."""
    size = math.prod(sizes)
    x, out = Parameter("x", old, size), Parameter("out", new, size)
    rows = tuple(math.prod(sizes[k + 1 :]) for k in range(len(sizes)))
    nodes = [load_node(x, Affine(0, rows))]
    nodes.append(op_node("abs", nodes[0]))
    if nodes[0].dtype != compute_dtype(new):
        nodes.append(op_node("convert", nodes[-1], dtype=new))
    first = -sum(min(stride, 0) * (n - 1) for stride, n in zip(strides, sizes))
    stores = (Store(out, Affine(first, tuple(strides)), nodes[-1]),)
    return Kernel("converted", tuple(sizes), (x, out), tuple(nodes), stores)


def ends_of_stores(assembly):
    """Behind which bytes of the last argument, a row, its stores end."""
    for line in assembly.splitlines():
        found = re.match(r"\s+(\w+)\s.*[%$]\S+, (-?\d*)\(%rsi\)$", line)
        if found:  # stores with a mask end in {%k1}
            wide = re.search(r"%([xyz])mm", line)
            whole = 16 << "xyz".index(wide[1]) if wide else 0
            packed = re.match(r"vpmov([wdq])([bwd])$", found[1])
            if packed:
                whole = whole * SUFFIXES[packed[2]] // SUFFIXES[packed[1]]
            yield int(found[2] or 0) + WIDTHS.get(found[1], whole)


NARROWED = [
    ("float32", "float16"),
    ("float16", "float16"),
    ("float32", "bfloat16"),
    ("int32", "int8"),
    ("int32", "uint16"),
    ("int16", "int8"),
    ("int64", "int8"),
    ("int64", "int16"),
    ("int64", "int32"),
]


@pytest.mark.parametrize(("old", "new"), NARROWED)
def test_the_last_number_of_a_row_is_stored_in_its_own_width(old, new):
    """LLVM 22 made of a mask with one lane a store of what a number was before."""
    old, new = dtype_of(old), dtype_of(new)
    for left in (1, 2, 3):
        size = avx512().lanes(compute_dtype(old)) + left
        function = kernel_function(converted((size,), (1,), old, new), "k", avx512())
        ends = ends_of_stores(prepared_code(function)[1])
        assert max(ends) == (size if left == 1 else size - left) * new.itemsize


def lone_lanes(kernel):
    """Stores of a kernel, and of its parts for threads, with a mask of one lane."""
    functions = [kernel_function(kernel, "k", avx512())]
    if loop := parallel_loop(kernel, avx512()):
        functions.append(range_function(kernel, "part", avx512(), grain_unit(loop)))
    module = prepared_code(*functions)[0]
    found = re.findall(r"@llvm.masked.store\S+\(.*<((?:i1 \w+(?:, )?)+)>\)", module)
    assert len(found) == module.count("call void @llvm.masked.store")
    return [mask for mask in found if mask.count("true") < 2]


ORDERS = {
    "rows": lambda size: (size, 1),
    "rows, the last first": lambda size: (-size, 1),
    "backwards": lambda size: (size, -1),
    "columns": lambda size: (1, 3),
    "columns, backwards": lambda size: (-1, -3),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [9, 17, 33, 65])
def test_a_number_alone_is_stored_without_a_mask(size, order):
    for pair in (("float32", "float16"), ("int64", "int8"), ("float64", "float64")):
        dtypes = [*map(dtype_of, pair)]
        assert not lone_lanes(converted((3, size), ORDERS[order](size), *dtypes))


@pytest.mark.parametrize("size", [17, 33, 65])
def test_a_number_alone_behind_folds(size):
    """Ends of rows, columns, copies and tiles."""
    f16 = np.dtype("float16")
    for kernel in (
        vector_cases.row_program(size, size, f16),
        vector_cases.row_program(5, size, f16, along=0),
        vector_cases.turned(size, size, f16),
        vector_cases.copies(2, size, 3, f16, 1),
        vector_cases.parts(size, 40, f16),
        vector_cases.ends(2, size, 20, f16),
        vector_cases.column_folds(600, size, "add", f16),
    ):
        assert not lone_lanes(kernel)


def test_a_store_that_is_too_wide_is_seen():
    """The fault, brought back: what follows a row is no longer what it was."""
    x = np.ones((3, 3, 17), np.float16)
    assert (np.asarray(jit(moved)(x)) == 3).all()
    with mutants.wide_row_end():
        assert (np.asarray(jit(moved)(x)) == 0).any()
    assert (np.asarray(jit(moved)(x)) == 3).all()


def moved(x):
    """Two results with their rows in two orders: what follows one was there before."""
    y = x * 2 + 1
    return y, y.transpose(1, 0, 2)
