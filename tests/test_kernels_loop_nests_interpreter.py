"""The interpreter of kernels, on kernels whose results NumPy knows."""

import numpy as np

from minijax.kernels.ir import Affine, Guard, Parameter, Store
from minijax.kernels.loop_nests import (
    Kernel,
    constant_node,
    fold_node,
    index_node,
    interpret,
    load_node,
    op_node,
)

F32, F16 = np.dtype("float32"), np.dtype("float16")


def run(sizes, nodes, node, place, size, dtype=F32, **memory):
    """What a kernel with one store leaves in its output."""
    parameters = [Parameter(name, x.dtype, x.size) for name, x in memory.items()]
    out = Parameter("out", dtype, size)
    memory["out"] = np.full(size, 99, dtype)
    kernel = Kernel(
        "test", sizes, (*parameters, out), nodes, (Store(out, place, node),)
    )
    interpret(kernel, memory)
    return memory["out"]


def test_fold_runs_over_axes_that_do_not_matter():
    x = np.arange(3, dtype=F32)
    a = load_node(Parameter("x", F32, 3), Affine(0, (1, 0)))
    s = fold_node("add", (1,), a)
    np.testing.assert_array_equal(
        run((3, 4), (a, s), s, Affine(0, (1, 0)), 3, x=x), 4 * x
    )


def test_fold_of_nothing_is_its_start():
    a = load_node(Parameter("x", F32, 0), Affine(0, (0, 1)))
    s = fold_node("max", (1,), a)
    x = np.zeros(0, F32)
    found = run((2, 0), (a, s), s, Affine(0, (1, 0)), 2, x=x)
    np.testing.assert_array_equal(found, [-np.inf] * 2)


def test_guards_keep_to_the_buffer():
    x = np.arange(3, dtype=F32)
    a = load_node(
        Parameter("x", F32, 3), Affine(-2, (1,)), [Guard(Affine(-2, (1,)), 3)], 9
    )
    found = run((7,), (a,), a, Affine(0, (1,)), 7, x=x)
    np.testing.assert_array_equal(found, [9, 9, 0, 1, 2, 9, 9])


def test_guarded_load_of_an_empty_buffer():
    a = load_node(
        Parameter("x", F32, 0), Affine(0, (1,)), [Guard(Affine(0, (1,)), 0)], 5
    )
    found = run((2,), (a,), a, Affine(0, (1,)), 2, x=np.zeros(0, F32))
    np.testing.assert_array_equal(found, [5, 5])


def test_scatters_into_a_part():
    one = constant_node(1, F32)
    found = run((2,), (one,), one, Affine(4, (-3,)), 5)
    np.testing.assert_array_equal(found, [99, 1, 99, 99, 1])


def test_index_and_conversion():
    i = index_node(0)
    x = op_node("convert", i, dtype=F32)
    found = run((4,), (i, x), x, Affine(0, (1,)), 4, dtype=F16)
    assert found.dtype == F16
    np.testing.assert_array_equal(found, range(4))


def test_scalars_have_no_axes():
    a = load_node(Parameter("x", F32, 1), Affine(0, ()))
    b = op_node("exp", a)
    found = run((), (a, b), b, Affine(0, ()), 1, x=np.ones(1, F32))
    np.testing.assert_allclose(found, np.exp([1]), rtol=1e-6)
