"""A user's primitive with two results that one kernel computes."""

import numpy as np
import pytest

from minijax import grad, jit, linearize, make_jaxpr, vmap
from minijax import numpy as jnp
from minijax.extend.core import Primitive
from minijax.fusion.fusion_pass import fuse
from minijax.interpreters import ad, batching
from minijax.kernels.builder import KernelBuilder
from minijax.kernels.checker import KernelError, check_kernel
from minijax.kernels.lowering import kernel_rules, lower
from minijax.passes.pipeline import simplify
from tests import mutants
from tests.backends_here import HERE

X = np.linspace(-2, 2, 5 * 17, dtype="float32").reshape(5, 17)


def define_turn():
    """Return a function to sines and cosines, by a primitive with all rules."""
    turn = Primitive("turn")
    turn.multiple_results = True
    turn.def_impl(lambda x: [np.sin(x), np.cos(x)])
    turn.def_abstract_eval(lambda x: [x, x])

    def jvp_rule(primals, tangents):
        sine, cosine = turn.bind(*primals)
        return [sine, cosine], [tangents[0] * cosine, -tangents[0] * sine]

    ad.primitive_jvps[turn] = jvp_rule
    batching.primitive_batchers[turn] = lambda args, dims: (turn.bind(*args), dims * 2)
    kernel_rules[turn] = kernel_of_turn
    return turn


def kernel_of_turn(lowering, eqn, x):
    """The kernel rule: two stores in one kernel."""
    sines, cosines = [lowering.allocate(var.aval) for var in eqn.outvars]
    k = KernelBuilder("turn", x.shape)
    angle = k.load(x)
    k.store(sines, k.sin(angle))
    lowering.run(k, (cosines, k.cos(angle)))
    return [sines, cosines]


TURN = define_turn()


def program(turn):
    """The primitive among others; one result is one of the program, too."""

    def f(x):
        sine, cosine = turn(jnp.abs(x) + 1)
        return 2 * sine - cosine * cosine, cosine, sine.sum(1)

    return f


def truth(x):
    return [jnp.sin(x), jnp.cos(x)]


WAYS = {
    "jit": lambda f: f,
    "vmap": vmap,
    "last axis": lambda f: vmap(f, 1, 1),
    "grad": lambda f: grad(lambda x: sum(y.sum() for y in f(x))),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x),
    "grad of vmap": lambda f: grad(
        lambda x: sum((y * y).sum() for y in vmap(f)(x[:, None]))
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("backend", HERE)
def test_every_backend(backend, way):
    x = np.stack([X, 2 * X]) if "vmap" in way or "axis" in way else X
    x = x[:, 0] if way == "grad of vmap" else x
    ours = jit(WAYS[way](program(TURN.bind)), backend=backend)(x)
    for found, wanted in zip(ours, WAYS[way](program(truth))(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("backend", HERE)
def test_its_operand_may_be_donated(backend):
    x = jnp.asarray(X)
    f = jit(lambda x: TURN.bind(x * 3), backend=backend, donate_argnums=0)
    for found, wanted in zip(f(x), truth(X * 3), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5)


def programs():
    """The steps of a program, and what fusion makes of them."""
    lowered = lower(simplify(make_jaxpr(program(TURN.bind))(X)))
    return lowered, fuse(lowered)


def test_each_result_has_a_name():
    lowered, fused = programs()
    kernels = [kernel for s in (lowered, fused) for kernel in s.kernels.values()]
    for kernel in map(check_kernel, kernels):
        assert len({x.name for x in kernel.parameters}) == len(kernel.parameters)
    [turn] = [kernel for kernel in kernels if kernel.name == "turn"]
    assert [parameter.name for parameter in turn.parameters] == ["x", "out", "out1"]


def test_one_name_for_two_is_seen():
    """The fault, brought back: the checker sees it, and numbers are wrong."""
    with mutants.same_output_names():
        wrong, _ = jit(TURN.bind, backend="kernels")(X)
        with pytest.raises(KernelError, match="two have one name: x out out"):
            [*map(check_kernel, programs()[0].kernels.values())]
    assert not np.allclose(wrong, np.sin(X))
