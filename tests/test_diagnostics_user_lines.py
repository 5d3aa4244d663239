"""The user's line, through every transformation."""

import sys
import types

import numpy as np
import pytest

from minijax import grad, hessian, jit, jvp, linearize, make_jaxpr, vjp, vmap
from minijax import numpy as jnp
from minijax.diagnostics.user_lines import UserLine, is_ours, user_line

X = np.arange(3, dtype="float32")


def curve(x):
    y = jnp.tanh(x)  # first
    return (y * y).sum()  # second


WAYS = {
    "plain": curve,
    "grad": grad(curve),
    "jvp": lambda x: jvp(curve, (x,), (x,)),
    "linearize": lambda x: linearize(curve, x)[1](x),
    "vjp": lambda x: vjp(curve, x)[1](jnp.float32(1)),
    "vmap": lambda x: vmap(curve)(jnp.stack([x, x])),
    "hessian": hessian(curve),
    "grad of jit": grad(jit(curve)),
    "vmap of jit": lambda x: vmap(jit(curve))(jnp.stack([x, x])),
    "grad of vmap of jit": lambda x: grad(
        lambda x: vmap(jit(curve))(jnp.stack([x, x])).sum()
    )(x),
}


def sources(jaxpr):
    for eqn in jaxpr.eqns:
        inner = eqn.params.get("jaxpr")
        yield from sources(inner) if inner else [(eqn.primitive.name, eqn.source)]


@pytest.mark.parametrize("name", WAYS)
def test_equations_know_their_line(name):
    found = dict(sources(make_jaxpr(WAYS[name])(X)))
    assert found["tanh"].text.endswith("# first")
    marks = {source.text.partition("# ")[2] for source in found.values()}
    assert {"first", "second"} <= marks | {"first"} and None not in found.values()
    if "mul" in found:
        assert found["mul"].text.endswith(("# first", "# second"))


def test_spelling():
    [tanh, *_] = make_jaxpr(curve)(X).eqns
    line = curve.__code__.co_firstlineno + 1
    assert str(tanh.source) == f"test_diagnostics_user_lines.py:{line}:8 (curve)"
    assert tanh.source.quoted.startswith(f"{__file__}:{line}:8 (curve): y = jnp")


def test_lines_of_many_lines():
    def f(x):
        return (
            jnp.sin(x)
            + jnp.cos(x)
        )  # fmt: skip

    first = f.__code__.co_firstlineno
    eqns = make_jaxpr(f)(1.0).eqns
    assert [e.source.position[0] - first for e in eqns] == [2, 3, 2]


def test_no_source():
    code = compile("from minijax import numpy as jnp\nf = jnp.sin", "<string>", "exec")
    module = types.ModuleType("made")
    exec(code, vars(module))
    exec(compile("def g(x):\n    return f(x) * f(x)", "<string>", "exec"), vars(module))
    line = make_jaxpr(module.g)(1.0).eqns[0].source
    assert str(line) == "<string>:2:11 (g)" and line.text == ""


def test_what_is_ours():
    assert is_ours(sys.modules["minijax.lax.elementwise"].__file__)
    assert is_ours("<minijax program 3>") and not is_ours("<string>")
    assert not is_ours(__file__)


def test_notebook_cells_have_a_name_that_stays():
    code = compile("1", "/somewhere/ipykernel_123/4567.py", "exec")
    assert str(UserLine(code, 0)).startswith("cell:")


def test_the_caller_itself():
    line = user_line()
    assert line.text == "line = user_line()"


def test_results_that_are_one_variable():
    def f(x):
        y = x * x
        return y, y

    grad(lambda x: sum(f(x)))(1.0)
    vjp(f, 1.0)[1]((jnp.float32(1), jnp.float32(1)))
    make_jaxpr(lambda x: vjp(f, x)[1]((x, x)))(1.0)
