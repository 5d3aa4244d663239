"""Which kernels may write over an operand, and what becomes of them."""

import numpy as np
import pytest

from minijax.kernels.builder import Buffer
from minijax.kernels.ir import Affine, Guard, Parameter, Store
from minijax.kernels.loop_nests import Kernel, fold_node, interpret, load_node, op_node
from minijax.kernels.lowering import Launch
from minijax.llvm.codegen import emit_llvm
from minijax.llvm.compiler import Library
from minijax.memory.aliasing import alias_launch_buffers
from minijax.memory.buffer_assignment import may_overwrite

FLOAT, INT = np.dtype("float32"), np.dtype("int32")
SIZES = {"x": 24, "y": 24, "out": 24, "sum": 4}
X, Y, OUT, SUM = (Parameter(name, FLOAT, size) for name, size in SIZES.items())
ROWS = Affine(0, (6, 1))
BUFFERS = {b.name: Buffer(b.name, b.dtype, b.size) for b in (X, Y, OUT, SUM)}


def launch(nodes, stores, sizes=(4, 6)):
    loaded = [node.detail.parameter for node in nodes if node.op == "load"]
    parameters = tuple(dict.fromkeys([*loaded, *[store[0] for store in stores]]))
    kernel = Kernel(
        "k", sizes, parameters, tuple(nodes), tuple(Store(*s) for s in stores)
    )
    return Launch(kernel, [BUFFERS[parameter.name] for parameter in parameters])


def may(step, old="x", new="out"):
    return may_overwrite(step, BUFFERS[old], BUFFERS[new])


def test_element_by_element():
    a, b = load_node(X, ROWS), load_node(Y, ROWS)
    step = launch([a, b, c := op_node("add", a, b)], [(OUT, ROWS, c)])
    assert may(step, "x") and may(step, "y") and not may(step, "sum")


@pytest.mark.parametrize(
    "place", [Affine(23, (-6, -1)), Affine(0, (6, 0)), Affine(0, (0, 1))]
)
def test_not_if_elements_are_read_elsewhere(place):
    a, b = load_node(X, place), load_node(Y, ROWS)
    step = launch([a, b, c := op_node("add", a, b)], [(OUT, ROWS, c)])
    assert not may(step, "x") and may(step, "y")


def test_not_if_some_are_read_elsewhere_as_well():
    a, b = load_node(X, ROWS), load_node(X, Affine(5, (6, -1)))
    assert not may(launch([a, b, c := op_node("add", a, b)], [(OUT, ROWS, c)]))


def test_not_with_guards():
    guard = Guard(Affine(-1, (1, 0)), 2)
    a = load_node(X, ROWS, [guard])
    assert not may(launch([a, c := op_node("neg", a)], [(OUT, ROWS, c)]))


def test_a_fold_must_be_over_before_the_first_store():
    a = load_node(X, ROWS)
    total = fold_node("add", (1,), a)
    centred, negative = op_node("sub", a, total), op_node("neg", a)
    assert may(launch([a, total, centred], [(OUT, ROWS, centred)]))
    row = Affine(0, (1, 0))
    stores = [(OUT, ROWS, negative), (SUM, row, total)]
    assert not may(launch([a, total, negative], stores))


def test_two_results_that_wait_for_different_folds():
    a = load_node(X, ROWS)
    nodes = [
        a,
        b := fold_node("max", (1,), a),
        c := op_node("sub", a, b),
        d := op_node("neg", a),
    ]
    other = Parameter("sum", FLOAT, 24)
    assert may(launch(nodes, [(OUT, ROWS, c)]))
    assert not may(launch(nodes, [(OUT, ROWS, c), (other, ROWS, d)]))
    assert may(launch(nodes, [(OUT, ROWS, c), (other, ROWS, c)]))


def test_two_results_in_one_sweep():
    a, b = load_node(X, ROWS), load_node(Y, ROWS)
    nodes = [a, b, c := op_node("add", a, b), d := op_node("mul", a, b)]
    other = Parameter("sum", FLOAT, 24)
    step = launch(nodes, [(OUT, ROWS, c), (other, ROWS, d)])
    assert may(step, "x") and may(step, "y")


def test_parts_of_complex_numbers():
    even, odd = Affine(0, (6, 2)), Affine(1, (6, 2))
    a, b = load_node(X, even), load_node(X, odd)
    nodes = [a, b, c := op_node("neg", b)]
    assert may(launch(nodes, [(OUT, even, c), (OUT, odd, a)], (4, 3)))
    assert not may(launch(nodes, [(OUT, even, c)], (4, 3)))
    shifted = Affine(2, (6, 2))
    assert not may(
        launch([a, c := op_node("neg", a)], [(OUT, even, c), (OUT, shifted, c)], (3, 2))
    )


def test_not_with_another_dtype_or_size():
    a = load_node(X, ROWS)
    wide = Buffer("wide", INT, 24)
    step = launch([a, c := op_node("neg", a)], [(OUT, ROWS, c)])
    assert not may_overwrite(step, wide, BUFFERS["out"])
    assert not may_overwrite(object(), BUFFERS["x"], BUFFERS["out"])


def softmax_like():
    a = load_node(X, ROWS)
    nodes = [a, total := fold_node("max", (1,), a), c := op_node("sub", a, total)]
    return launch(nodes, [(OUT, ROWS, c)])


def test_one_buffer_for_both():
    step = softmax_like()
    merged = alias_launch_buffers(step, [(BUFFERS["x"], BUFFERS["out"])])
    assert merged.buffers == [BUFFERS["out"]] and merged.kernel.parameters == (OUT,)
    assert "load out[6*i + j]" in str(merged.kernel)
    assert merged.kernel.label != step.kernel.label


@pytest.mark.parametrize("run", ["interpreter", "llvm"])
def test_the_same_numbers_in_one_buffer(run):
    merged = alias_launch_buffers(softmax_like(), [(BUFFERS["x"], BUFFERS["out"])])
    numbers = np.random.default_rng(0).normal(size=(4, 6)).astype("float32")
    memory = numbers.reshape(-1).copy()
    if run == "llvm":
        Library(emit_llvm({"k": merged.kernel})).function("k", 1)(memory.ctypes.data)
    else:
        interpret(merged.kernel, {"out": memory})
    wanted = numbers - numbers.max(1, keepdims=True)
    np.testing.assert_array_equal(memory.reshape(4, 6), wanted)
