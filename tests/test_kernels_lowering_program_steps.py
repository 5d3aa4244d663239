"""Programs as steps: which kernels there are, and what costs nothing."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, lax, make_jaxpr
from minijax.arrays.array import def_shape_and_impl
from minijax.core import Primitive, rule_tables
from minijax.kernels.checker import check_kernel
from minijax.kernels.lowering import (
    Evaluate,
    KernelProgram,
    elementwise_kernel_rule,
    kernel_rules,
    lower,
)
from minijax.llvm.codegen import LLVMProgram

X = np.arange(12, dtype="float32").reshape(3, 4)


def steps(f, *args):
    """The names of kernels and primitives in the steps of a function."""
    found = lower(make_jaxpr(f)(*args)).steps
    return [
        step.eqn.primitive.name if isinstance(step, Evaluate) else step.kernel.name
        for step in found
    ]


@pytest.mark.parametrize(
    "f, names",
    [
        (lambda x: x, []),
        (lambda x: x.T, ["copy"]),
        (lambda x: x.T.T, []),
        (lambda x: jnp.zeros(3), ["copy"]),
        (lambda x: x.reshape(12)[None], []),
        (lambda x: x.T.reshape(12), ["copy"]),
        (lambda x: x[::-1, 1:3].T + 1.0, ["add"]),
        (lambda x: jnp.broadcast_to(x[0], (5, 4)) * 2.0, ["mul"]),
        (lambda x: lax.squeeze(x[:1], [0]) + 1.0, ["add"]),
        (lambda x: lax.bitcast_convert_type(x, "int32") + 1, ["add"]),
        (lambda x: x @ x.T, ["dot_general"]),
        (lambda x: x.sum(0) + x.max(), ["reduce_sum", "reduce_max", "add"]),
        (lambda x: lax.bitcast_convert_type(x, "int16"), ["bitcast_convert_type"]),
        (lambda x: jit(jnp.tanh)(x) + 1.0, ["tanh", "add"]),
        (lambda x: jnp.concatenate([x, x]), ["concatenate"]),
        (lambda x: jnp.concatenate([x] * 5), ["concatenate"] * 5),
        (lambda x: jnp.concatenate([x, -x]), ["neg", "concatenate"]),
        (lambda x: jnp.concatenate([x, jnp.exp(x)]), ["exp", *["concatenate"] * 2]),
        (lambda x: jnp.pad(x, 1), ["pad"]),
        (lambda x: lax.pad(x, 0.0, ((0, 0, 1), (0, 0, 0))), ["pad", "pad"]),
        (lambda x: jnp.arange(4.0) + x[0], ["iota", "add"]),
        (lambda x: jnp.log(x + 1j), ["convert_element_type", "add", "log"]),
    ],
)
def test_steps(f, names):
    assert steps(f, X) == names


def test_equal_kernels_are_one():
    program = lower(make_jaxpr(lambda x: jnp.exp(jnp.exp(jnp.exp(x))))(X))
    assert len(program.steps) == 3 and len(program.kernels) == 1


@pytest.mark.parametrize(
    "f, shared",
    [
        (lambda x, y: (jnp.exp(x), jnp.exp(y)), True),
        (lambda x, y: (x - y, y - x), True),
        (lambda x, y: (x * 2.0, y * 2.0), True),
        (lambda x, y: (x * y, x * x), False),
        (lambda x, y: (x * 0.0, y * -0.0), False),
        (lambda x, y: (x**2, y**3), False),
        (lambda x, y: (x * y, x * y[::-1]), False),
        (lambda x, y: (x[:2] * y[:2], x * y), False),
        (lambda x, y: (jnp.exp(x), jnp.exp(y.astype("float16"))), False),
    ],
)
def test_equations_that_are_alike_share_a_kernel(f, shared):
    closed = make_jaxpr(f)(X, X)
    kernels = [step.kernel for step in lower(closed).steps]
    assert (kernels[0] is kernels[-1]) == shared
    for ours, wanted in zip(KernelProgram(closed)(X, X + 1), f(X, X + 1)):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6)
        assert np.array_equal(np.signbit(ours), np.signbit(wanted))


def test_text():
    halved = make_jaxpr(lambda x: lax.bitcast_convert_type(jnp.exp(x), "int16"))(X)
    text = str(lower(halved))
    head, kernel = text.split("\n\n")
    label = kernel.partition(" = ")[0]
    assert head == (
        "in m0:f32[12]\n"
        f"  {label}(m0, m1)\n"
        "  m2:i16[3,4,2] = bitcast_convert_type m1:f32[3,4]\n"
        "out m2:i16[24]"
    )
    assert kernel.startswith(f"{label} = exp(x:f32[12], out:f32[12]) for i < 12\n")


def test_a_fold_runs_along_the_last_axes():
    [kernel] = lower(make_jaxpr(lambda x: x.sum(0))(X)).kernels.values()
    assert str(check_kernel(kernel)).splitlines()[1:] == [
        "  v0:f32[i,j] = load x[i + 4*j]",
        "  v1:f32[i] = fold add over j of v0",
        "  out[i] = v1",
    ]


def test_a_primitive_of_the_user():
    sinh_p = Primitive("sinh_of_the_user")
    def_shape_and_impl(sinh_p, lambda x: [x], lambda xp, x: xp.sinh(x))
    closed = make_jaxpr(lambda x: sinh_p.bind(x))(X)
    assert isinstance(lower(closed).steps[0], Evaluate)
    kernel_rules[sinh_p] = elementwise_kernel_rule(
        lambda k, x: k.mul(0.5, k.sub(k.exp(x), k.exp(k.neg(x))))
    )
    try:
        for program in (KernelProgram, LLVMProgram):
            np.testing.assert_allclose(program(closed)(X)[0], np.sinh(X), rtol=1e-5)
        assert len(lower(closed).kernels) == 1
    finally:
        for table in rule_tables:
            table.pop(sinh_p, None)


def test_parameters_that_are_equal_and_differ_have_a_kernel_each():
    sign_p = Primitive("sign_of_the_user")
    def_shape_and_impl(
        sign_p,
        lambda x, of: [x],
        lambda xp, x, of: xp.copysign(x, xp.asarray(of, x.dtype)),
    )
    kernel_rules[sign_p] = elementwise_kernel_rule(
        lambda k, x, of: k.apply("copysign", x, of)
    )
    try:
        closed = make_jaxpr(lambda x: [sign_p.bind(x, of=z) for z in (0.0, -0.0)])(X)
        assert len(lower(closed).kernels) == 2
        plus, minus = KernelProgram(closed)(X)
        np.testing.assert_array_equal([plus, minus], [abs(X), -abs(X)])
    finally:
        for table in rule_tables:
            table.pop(sign_p, None)


def test_results_that_share_memory():
    def f(x):
        y = x + 1.0
        return x, y, y, y.T, x[:2], 3.0

    closed = make_jaxpr(f)(X)
    for program in (KernelProgram, LLVMProgram):
        for ours, wanted in zip(program(closed)(X), f(X)):
            np.testing.assert_array_equal(ours, wanted)


def test_gradients_need_no_rule_of_their_own():
    names = steps(grad(lambda x: jnp.tanh(x).sum()), X)
    assert "tanh" in names and not {*names} & {"dot_general", "cumsum"}
