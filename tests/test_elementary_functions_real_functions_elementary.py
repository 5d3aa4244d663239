"""Elementary functions: their errors, their corners, and kernels made of them."""


import numpy as np
import pytest
from mpmath import mp

from minijax.elementary_functions.real_functions import (
    expand_functions,
    function_bodies,
    scalar_function,
)
from minijax.kernels.checker import check_kernel
from minijax.kernels.ir import (
    Affine,
    Parameter,
    Store,
    cast_ops,
    define_scalar_op,
    scalar_ops,
)
from minijax.kernels.loop_nests import Kernel, interpret, load_node, op_node
from minijax.llvm.codegen import emit_llvm
from minijax.llvm.compiler import Library
from tests import function_cases as cases
from tests import worst_arguments
from tests.function_cases import DTYPES, F32, F64, compiled, interpreted, ulps

mp.prec = 160
BOTH = [(name, dtype) for name in function_bodies for dtype in DTYPES]
INF, NAN = np.inf, np.nan


def operation_kernel(name, dtype, size):
    """The kernel of one scalar operation, as a primitive's rule makes it."""
    place, arity = Affine(0, (1,)), scalar_ops[name].arity
    parameters = [Parameter(f"x{n}", dtype, size) for n in range(arity)]
    loads = [load_node(parameter, place) for parameter in parameters]
    node, out = op_node(name, *loads), Parameter("out", dtype, size)
    stores = (Store(out, place, node),)
    return Kernel(name, (size,), (*parameters, out), (*loads, node), stores)


@pytest.mark.parametrize(("name", "dtype"), BOTH)
def test_errors_in_ulps(name, dtype):
    arity = scalar_ops[name].arity
    xs = [cases.arguments(name, dtype, seed=seed) for seed in range(arity)]
    with mp.workprec(1300 if name in ("sin", "cos", "tan") else 160):
        exact = [
            cases.TRUTHS[name](*[mp.mpf(float(x)) for x in args]) for args in zip(*xs)
        ]
    limits = cases.LIMITS.get(name, (2.5, 2.5))
    for run, limit in zip((compiled, interpreted), limits):
        errors = ulps(run(function_bodies[name], *xs), exact)
        place = errors.argmax()
        assert errors[place] <= limit, (run.__name__, [x[place] for x in xs])


# Of very many numbers, the largest error in ulps: from where, to where, and the limit.
DENSE = {
    "exp": (2.0**-20, 88.0, 1.8),
    "log": (2.0**-126, 3e38, 1.2),
    "tanh": (2.0**-10, 9.2, 2.5),
    "sin": (2.0**-10, 12_800.0, 2.4),
    "cos": (2.0**-10, 12_800.0, 2.4),
    "erf": (2.0**-10, 4.1, 4.2),
}


@pytest.mark.parametrize("run", [compiled, interpreted])
@pytest.mark.parametrize("name", DENSE)
def test_errors_of_very_many_numbers(name, run):
    *ends, limit = DENSE[name]
    places = np.array(ends, F32).view("int32")
    bits = np.random.default_rng(0).integers(*places, 400_000, "int32")
    x = bits.view(F32)
    exact = compiled(function_bodies[name], x.astype(F64))  # to far below 2**-24
    place = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 24, -149))
    assert (abs(run(function_bodies[name], x) - exact) / place).max() <= limit


# How many operations of each number are done; of them, products (fused or not).
PRICES = {
    ("exp", F32): (22, 12),
    ("tanh", F32): (23, 10),
    ("log", F32): (24, 11),
    ("log", F64): (26, 10),
    ("sin", F64): (37, 13),
    ("cos", F64): (33, 13),
    ("erf", F32): (21, 13),
    ("erf", F64): (39, 31),
}


@pytest.mark.parametrize(("name", "dtype"), PRICES)
def test_functions_are_short(name, dtype):
    found = scalar_function(name, dtype)
    products = sum(node.op in ("mul", "fma") for node in found.nodes)
    most, most_products = PRICES[name, dtype]
    assert found.operations <= most and products <= most_products


# What functions are at the ends of numbers, and where they have no value: arguments,
# and results.
CORNERS = {
    "exp": [(0.0, -0.0, INF, -INF, 1e4, -1e4), (1, 1, INF, 0, INF, 0)],
    "exp2": [(0.0, INF, -INF, 3.0, -2.0, 1e4, -1e4), (1, INF, 0, 8, 0.25, INF, 0)],
    "expm1": [(0.0, -0.0, INF, -INF, -1e4, 1e4), (0.0, -0.0, INF, -1, -1, INF)],
    "sinh": [(0.0, -0.0, INF, -INF, 1e4, -1e4), (0.0, -0.0, INF, -INF, INF, -INF)],
    "cosh": [(0.0, -0.0, INF, -INF, -1e4), (1, 1, INF, INF, INF)],
    "tanh": [(0.0, -0.0, INF, -INF, 50.0, -50.0), (0.0, -0.0, 1, -1, 1, -1)],
    "log": [(0.0, -0.0, INF, 1.0, -1.0, -INF), (-INF, -INF, INF, 0.0, NAN, NAN)],
    "log1p": [(0.0, -0.0, INF, -1.0, -2.0, -INF), (0.0, -0.0, INF, -INF, NAN, NAN)],
    "asinh": [(0.0, -0.0, INF, -INF), (0.0, -0.0, INF, -INF)],
    "acosh": [(1.0, INF, 0.5, -2.0, -INF), (0.0, INF, NAN, NAN, NAN)],
    "atanh": [(0.0, -0.0, 1.0, -1.0, 2.0, -INF), (0.0, -0.0, INF, -INF, NAN, NAN)],
    "sin": [(0.0, -0.0, INF, -INF), (0.0, -0.0, NAN, NAN)],
    "cos": [(0.0, -0.0, INF, -INF), (1, 1, NAN, NAN)],
    "tan": [(0.0, -0.0, INF, -INF), (0.0, -0.0, NAN, NAN)],
    "asin": [(0.0, -0.0, 2.0, -INF), (0.0, -0.0, NAN, NAN)],
    "acos": [(1.0, 2.0, -INF), (0.0, NAN, NAN)],
    "atan": [(0.0, -0.0), (0.0, -0.0)],
    "cbrt": [(0.0, -0.0, INF, -INF, 27.0, -8.0), (0.0, -0.0, INF, -INF, 3, -2)],
    "erf": [(0.0, -0.0, INF, -INF, 30.0), (0.0, -0.0, 1, -1, 1)],
    "erfc": [(0.0, -0.0, INF, -INF, 60.0, -60.0), (1, 1, 0.0, 2, 0.0, 2)],
}


@pytest.mark.parametrize("run", [compiled, interpreted])
@pytest.mark.parametrize(("name", "dtype"), [c for c in BOTH if c[0] in CORNERS])
def test_corners(name, dtype, run):
    x, wanted = (np.array([*numbers, NAN], dtype) for numbers in CORNERS[name])
    found = run(function_bodies[name], x)
    np.testing.assert_array_equal(found, wanted)
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("run", [compiled, interpreted])
@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_corners_of_two_numbers(name, run, dtype):
    numbers = [
        0.0,
        -0.0,
        1,
        -1,
        2,
        -2,
        3,
        0.5,
        -0.5,
        INF,
        -INF,
        NAN,
        1e30,
        -1e30,
        1e-30,
    ]
    x, y = np.array([(a, b) for a in numbers for b in numbers], dtype).T
    ufunc = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}[name]
    with np.errstate(all="ignore"):
        wanted = ufunc(x.astype("float64"), y.astype("float64")).astype(dtype)
    found = run(function_bodies[name], x.copy(), y.copy())
    np.testing.assert_allclose(found, wanted, rtol=8 * np.finfo(dtype).eps)
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_that_never_pass_one(dtype):
    x = np.linspace(0, 12, 30_001).astype(dtype)
    for name in ("tanh", "erf", "sin", "cos"):
        for run in (compiled, interpreted):
            assert abs(run(function_bodies[name], x)).max() <= 1


@pytest.mark.parametrize(("name", "dtype"), BOTH)
def test_functions_are_flat(name, dtype):
    found = scalar_function(name, dtype)
    assert found is scalar_function(name, np.dtype(dtype.name))
    assert found.label == f"{name}_{dtype.name}" and found.result.dtype == dtype
    assert [arg.detail for arg in found.args] == [*range(scalar_ops[name].arity)]
    seen, rare = {*found.args}, found.rare
    for node in (*found.nodes, *(rare.nodes if rare else ())):
        assert seen.issuperset(node.args)
        arithmetic = {*cast_ops, *scalar_ops, "constant"} - {*function_bodies}
        assert node.op in arithmetic
        assert (
            node.op == "constant"
            or node.op in cast_ops
            or scalar_ops[node.op].cost != "transcendentals"
        )
        seen.add(node)
    assert found.result in seen and (rare is None or rare.result in seen)


def test_other_operations_are_no_functions():
    assert scalar_function("add", F32) is None
    assert scalar_function("exp", np.dtype("int32")) is None


@pytest.mark.parametrize(("name", "dtype"), BOTH)
def test_expanded_kernels_mean_the_same(name, dtype):
    rng = np.random.default_rng(1)
    xs = [abs(cases.scattered(rng, -3, 0, 40, dtype)) for _ in range(2)]
    xs = xs[: scalar_ops[name].arity]
    if name == "acosh":
        xs = [xs[0] + dtype.type(1)]
    kernel = operation_kernel(name, dtype, 40)
    expanded = check_kernel(expand_functions(kernel))
    results = []
    for each in (kernel, expanded):
        memory = {f"x{n}": x for n, x in enumerate(xs)} | {"out": np.empty(40, dtype)}
        interpret(each, memory)
        results.append(memory["out"])
    np.testing.assert_allclose(*results, rtol=20 * np.finfo(dtype).eps)
    assert name not in {node.op for node in expanded.nodes}
    assert "@" + name not in emit_llvm({"f": expanded})


def test_kernels_without_functions_stay():
    kernel = operation_kernel("mul", F64, 5)
    assert str(expand_functions(kernel)) == str(kernel)


def test_halves_are_computed_in_32_bits():
    half, place = np.dtype("float16"), Affine(0, (1,))
    x, out = Parameter("x", half, 3), Parameter("out", half, 3)
    a = load_node(x, place)
    y = op_node("tanh", a)
    stores = (Store(out, place, y),)
    kernel = Kernel("tanh", (3,), (x, out), (a, y), stores)
    kernel = check_kernel(expand_functions(kernel))
    memory = {"x": np.array([0.5, -3, 0], half), "out": np.empty(3, half)}
    interpret(kernel, memory)
    np.testing.assert_array_equal(memory["out"], np.tanh(memory["x"]))


def test_fused_products_are_an_operation():
    assert scalar_ops["fma"].arity == 3
    assert callable(define_scalar_op)
    kernel = operation_kernel("fma", F64, 4)
    xs = [np.array([1.5, -2, 0, 1e100]) for _ in range(3)]
    out = np.empty(4)
    function_ = Library(emit_llvm({"f": kernel})).function("f", 4)
    function_(*[x.ctypes.data for x in (*xs, out)])
    np.testing.assert_allclose(out, xs[0] * xs[1] + xs[2])


@pytest.mark.parametrize("name", worst_arguments.FOUND)
def test_the_worst_of_all_arguments(name):
    """No error is larger than where a search of all numbers of 32 bits ended."""
    argument, error = worst_arguments.FOUND[name]
    assert abs(worst_arguments.error_at(name, argument) - error) < 1e-3
    beside = np.array(argument, "float32").view("int32") + np.arange(-9999, 10_000)
    near = worst_arguments.near_errors(name, beside.astype("int32").view("float32"))
    assert abs(near.max() - error) < 1e-3
