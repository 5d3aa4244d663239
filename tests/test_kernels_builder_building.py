"""The builder: numbers beside nodes, memory, and complex numbers as pairs."""

import numpy as np
import pytest

from minijax.kernels.builder import (
    Buffer,
    ComplexNode,
    KernelBuilder,
    UnsupportedKernel,
    broadcast_scalar_view,
    complex_rules,
    contiguous_view,
)
from minijax.kernels.checker import check_kernel
from minijax.kernels.ir import scalar_ops
from minijax.kernels.loop_nests import interpret
from tests import array_cases as cases

F32, C64 = np.dtype("float32"), np.dtype("complex64")


def vector(name, dtype, size):
    return contiguous_view(Buffer(name, dtype, size), dtype, (size,))


def run(body, *arrays):
    """What a kernel with this body makes of vectors."""
    size = arrays[0].size
    k = KernelBuilder("test", (size,))
    xs = [k.load(vector(f"x{i}", x.dtype, size)) for i, x in enumerate(arrays)]
    result = body(k, *xs)
    dtype = C64 if isinstance(result, ComplexNode) else result.dtype
    k.store(vector("out", dtype, size), result)
    kernel, buffers = k.kernel()
    memory = {parameter.name: None for parameter in check_kernel(kernel).parameters}
    arrays = {f"x{i}": x for i, x in enumerate(arrays)}
    arrays["out"] = np.empty(size, dtype)
    for parameter, buffer in zip(kernel.parameters, buffers):
        memory[parameter.name] = arrays[buffer.name].view(parameter.dtype)
    interpret(kernel, memory)
    return arrays["out"]


def test_numbers_take_the_dtype_beside_them():
    x = np.arange(4, dtype=np.int8)
    found = run(lambda k, x: k.add(k.mul(2, x), 1), x)
    assert found.dtype == np.int8 and (found == 2 * x + 1).all()


def test_a_load_is_written_once():
    k = KernelBuilder("test", (4,))
    view = vector("x", F32, 4)
    assert k.load(view) is k.load(view)
    assert len(k.nodes) == 1 and len(k.parameters) == 1


def test_arrays_of_one_number_are_constants():
    k = KernelBuilder("test", (4,))
    assert k.load(broadcast_scalar_view(np.float32(2), (4,))).op == "constant"
    assert isinstance(k.load(broadcast_scalar_view(np.complex64(2), (4,))), ComplexNode)


def test_there_is_no_such_operation():
    k = KernelBuilder("test", (4,))
    with pytest.raises(AttributeError, match="no scalar operation 'expp'"):
        k.expp(1.0)


COMPLEX = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "neg": np.negative, "conj": np.conj, "abs": np.abs, "eq": np.equal,
    "ne": np.not_equal,
}  # fmt: skip


@pytest.mark.parametrize("op", COMPLEX)
def test_complex_numbers(op):
    x = cases.specimen("complex64")
    y = np.roll(x, 7)
    y[::3] = x[::3]
    args = (x,) if op in ("neg", "conj", "abs") else (x, y)
    found = run(lambda k, *args: k.apply(op, *args), *args)
    np.testing.assert_allclose(found, COMPLEX[op](*args), rtol=1e-5)


def test_division_by_zero_and_by_large_numbers():
    x = np.array([1 + 1j, -1, 1 + 1j, 0], C64)
    y = np.array([0, 0, 1e30 + 1e30j, 0], C64)
    with np.errstate(all="ignore"):
        wanted = x / y
    found = run(lambda k, x, y: k.div(x, y), x, y)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_allclose(found[2], wanted[2], rtol=1e-6)


def test_select_and_convert():
    x = cases.specimen("complex64")
    p = x.real > 0

    def body(k, p, x):
        return k.select(p, x, k.convert(k.convert(x, F32), C64))

    np.testing.assert_array_equal(run(body, p, x), np.where(p, x, x.real))


def test_what_has_no_rule_has_no_kernel():
    x = np.ones(2, C64)
    for body in (lambda k, x: k.asin(x), lambda k, x: k.fold("max", (0,), x)):
        with pytest.raises(UnsupportedKernel, match="of complex numbers"):
            run(body, x)


def test_pairs_hide_no_scalar_operation():
    only = {*complex_rules} - {*scalar_ops}
    assert only == {"conj"}
