"""Which loop of a nest has vectors, and how long they are."""

import numpy as np

from minijax.kernels.ir import Affine, Parameter, Store
from minijax.kernels.loop_nests import (
    Kernel,
    fold_node,
    load_node,
    loop_nest,
    op_node,
    print_nest,
)
from minijax.llvm.targets import forced_target
from minijax.vectorization.row_schedules import vectorize_loops
from minijax.vectorization.schedules import schedule_nest
from minijax.vectorization.vector_functions import is_loop, walk_nest
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
