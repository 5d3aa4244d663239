"""Which loop of a nest has vectors, and how long they are."""

import numpy as np
import pytest

import minijax
from minijax.kernels.ir import Affine, Parameter, Store
from minijax.kernels.loop_nests import (
    Kernel,
    fold_node,
    load_node,
    loop_nest,
    op_node,
    print_nest,
)
from minijax.llvm.targets import TARGETS, forced_target
from minijax.vectorization.row_schedules import vectorize_loops
from minijax.vectorization.schedules import schedule_nest
from minijax.vectorization.vector_functions import (
    is_loop,
    live_values,
    vector_lanes,
    waits_long,
    walk_nest,
)
from minijax.vectorization.vectorizer import step_cost

F32 = np.dtype("float32")


def function_of_sums(rows, columns, op):
    """A kernel that does something with the sum of each row."""
    x, out = Parameter("x", F32, rows * columns), Parameter("out", F32, rows)
    a = load_node(x, Affine(0, (columns, 1)))
    y = op_node(op, total := fold_node("add", (1,), a))
    stores = (Store(out, Affine(0, (1, 0)), y),)
    return Kernel("sums", (rows, columns), (x, out), (a, total, y), stores)


def axes_of_vectors(kernel):
    """The axes that vectors lie along."""
    nest = vectorize_loops(kernel, loop_nest(kernel), forced_target("plain"))
    return [step.axis for step in walk_nest(nest) if is_loop(step) and step.lanes]


def test_functions_of_a_few_short_rows_are_done_at_once():
    assert axes_of_vectors(function_of_sums(3, 3, "tanh")) == [0]
    assert axes_of_vectors(function_of_sums(3, 3, "neg")) != [0]
    assert axes_of_vectors(function_of_sums(100, 200, "tanh")) == [1]


@pytest.mark.parametrize("size", [37, 1003])
def test_a_long_chain_has_vectors_of_several_registers(size):
    """While one operation is waited for, those of other registers go on."""
    x, out = Parameter("x", F32, size), Parameter("out", F32, size)
    nodes = [load_node(x, Affine(0, (1,)))]
    target, lanes = TARGETS["avx2"], []
    for _ in range(12):
        nodes.append(op_node("mul", nodes[-1], nodes[0]))
        stores = (Store(out, Affine(0, (1,)), nodes[-1]),)
        kernel = Kernel("power", (size,), (x, out), (*nodes,), stores)
        lanes.append(vectorize_loops(kernel, loop_nest(kernel), target)[0].lanes)
    assert lanes == [8] * 9 + [32 if size > 1000 else 8] * 3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32"])
@pytest.mark.parametrize("size", [129, 1003])
def test_a_long_chain_has_the_same_bits(dtype, size):
    """As operation by operation, also in the vector that is not full."""
    x = minijax.numpy.asarray(np.linspace(-2, 2, size), dtype)

    def total(x):
        found = x
        for _ in range(16):
            found = found * x - minijax.numpy.asarray(0.75, x.dtype)
        return found

    expected = np.asarray(total(x)).tobytes()
    for backend in ("vectors", "cpu"):
        assert np.asarray(minijax.jit(total, backend=backend)(x)).tobytes() == expected


def test_no_more_registers_than_there_are_stand_for_values():
    x = [Parameter(f"x{n}", F32, 1000) for n in range(12)]
    out, place = Parameter("out", F32, 1000), Affine(0, (1,))
    nodes = loads = [load_node(each, place) for each in x]
    for each in loads * 2:
        nodes = [*nodes, op_node("mul", nodes[-1], each)]
    kernel = Kernel(
        "products", (1000,), (*x, out), (*nodes,), (Store(out, place, nodes[-1]),)
    )
    [loop] = loop_nest(kernel)
    assert live_values(loop.body) == 13 and waits_long(loop.body)
    assert vector_lanes(kernel, loop, TARGETS["avx2"]) == 8


def test_parts_of_complex_numbers_are_not_put_into_several_registers():
    x, out = Parameter("x", F32, 2000), Parameter("out", F32, 1000)
    widths = []
    for stride in 1, 2:
        nodes = [load_node(x, Affine(0, (stride,)))]
        for _ in range(20):
            nodes.append(op_node("sqrt", nodes[-1]))
        stores = (Store(out, Affine(0, (1,)), nodes[-1]),)
        kernel = Kernel("chain", (1000,), (x, out), (*nodes,), stores)
        [loop] = loop_nest(kernel)
        assert waits_long(loop.body)
        widths.append(vector_lanes(kernel, loop, TARGETS["avx2"]))
    assert widths == [32, 8]


def test_a_function_costs_as_much_as_its_operations():
    a = load_node(Parameter("x", F32, 8), Affine(0, (1,)))
    assert step_cost(op_node("tanh", a), 0, 8) > 10 * step_cost(op_node("neg", a), 0, 8)
    assert step_cost(op_node("sin", a), 0, 8) > step_cost(op_node("exp", a), 0, 8)
    integer = load_node(Parameter("x", np.dtype("int32"), 8), Affine(0, (1,)))
    assert step_cost(op_node("add", integer, integer), 0, 8) == step_cost(
        op_node("neg", a), 0, 8
    )


def test_steps_of_higher_floors_are_printed_with_what_is_in_them():
    """A stream is no `Loop`, and holds steps before and after one."""
    size = 4096 * 600
    x, out = Parameter("x", F32, size), Parameter("out", F32, 600)
    a = load_node(x, Affine(0, (1, 600)))
    nodes = a, total = (a, fold_node("add", (1,), a))
    stores = (Store(out, Affine(0, (1, 0)), total),)
    kernel = Kernel("sums", (600, 4096), (x, out), nodes, stores)
    text = print_nest(kernel, schedule_nest(kernel, forced_target("avx2")))
    assert text.splitlines() == [
        "stream i:",
        "  for j < 4096:",
        "    v0 = load x[i + 600*j]",
        "    v1 = add v1 v0",
        "  out[i] = v1",
    ]
