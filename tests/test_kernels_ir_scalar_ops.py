"""The table of scalar operations: its two columns say the same."""

import numpy as np
import pytest

from minijax.kernels.ir import (
    Affine,
    Parameter,
    Store,
    compute_dtype,
    fold_ops,
    scalar_ops,
)
from minijax.kernels.loop_nests import Kernel, load_node, op_node
from minijax.llvm.codegen import emit_llvm
from minijax.llvm.compiler import Library
from tests import array_cases as cases
from tests.kernel_cases import alike

KINDS = {"b": ["bool"], "i": ["int8", "int64"], "u": ["uint8", "uint64"]}
KINDS["f"] = ["float32", "float64"]


def operands(name, dtype, arity):
    """Numbers of all kinds, as far as the operation is defined for them."""
    x = cases.specimen(dtype)
    pairs = np.array([(a, b) for a in x for b in x], x.dtype).T
    if name in ("div", "rem") and x.dtype.kind in "iu":
        least = np.iinfo(x.dtype).min
        fine = (pairs[1] != 0) & ~(
            (pairs[0] == least) & (pairs[1] == ~pairs[1] * 0 - 1)
        )
        pairs = pairs[:, fine] if x.dtype.kind == "i" else pairs[:, pairs[1] != 0]
    if name.startswith("shift"):
        bits = x.dtype.itemsize * 8
        pairs = pairs[:, (pairs[1] >= 0) & (pairs[1] < bits)]
    if name == "select":
        return [pairs[0] > 1 if x.dtype.kind != "b" else pairs[0], *pairs]
    return [*pairs, pairs[0]][:arity]


def kernel_of(name, args, result):
    """The kernel of one operation on vectors."""
    place = Affine(0, (1,))
    parameters = [Parameter(f"x{i}", x.dtype, x.size) for i, x in enumerate(args)]
    loads = [load_node(parameter, place) for parameter in parameters]
    node = op_node(name, *loads)
    out = Parameter("out", result.dtype, result.size)
    stores = (Store(out, place, node),)
    return Kernel(name, (result.size,), (*parameters, out), (*loads, node), stores)


CASES = [
    (name, dtype)
    for name, op in scalar_ops.items()
    for kind in op.kinds
    for dtype in KINDS[kind]
]


def test_columns_agree():
    kernels, met = {}, []
    for name, dtype in CASES:
        args = operands(name, dtype, scalar_ops[name].arity)
        with np.errstate(all="ignore"):
            wanted = np.asarray(scalar_ops[name].numpy(*args))
        wanted = wanted.astype(scalar_ops[name].result or args[-1].dtype)
        kernel = kernel_of(name, args, wanted)
        kernels[kernel.label] = kernel
        met.append((kernel, args, wanted))
    library = Library(emit_llvm(kernels))
    for kernel, args, wanted in met:
        ours = np.empty_like(wanted)
        memory = [np.ascontiguousarray(x) for x in (*args, ours)]
        function = library.function(kernel.label, len(memory))
        function(*[x.ctypes.data for x in memory])
        assert alike(memory[-1], wanted), f"{kernel}\n{args}\n{memory[-1]}\n{wanted}"


@pytest.mark.parametrize("name", scalar_ops)
def test_rows(name):
    row = scalar_ops[name]
    assert row.cost in ("flops", "transcendentals", "")
    assert not row.note or row.note[0].isupper() and row.note.endswith(".")
    assert {*row.kinds} <= {*"biuf"} and row.arity in (1, 2, 3)


@pytest.mark.parametrize("how", fold_ops)
def test_folding_starts_where_it_changes_nothing(how):
    for kind in fold_ops[how].kinds:
        dtype = np.dtype(KINDS[kind][0])
        x = cases.specimen(dtype.name)[:, None]
        with np.errstate(all="ignore"):
            start = fold_ops[how].start(dtype)
            found = fold_ops[how].numpy(x, (1,), start)
        assert start.dtype == dtype
        wanted = np.zeros(x.shape, int) if how.startswith("arg") else x
        np.testing.assert_array_equal(found, wanted)


def test_halves_are_computed_in_32_bits():
    assert compute_dtype(np.dtype("float16")) == np.float32
    assert compute_dtype(np.dtype("int8")) == np.int8
