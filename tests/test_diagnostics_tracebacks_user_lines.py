"""The user's line, through every transformation."""

import sys
import types
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from minijax import grad, hessian, jit, jvp, linearize, make_jaxpr, random, vjp, vmap
from minijax import numpy as jnp
from minijax.arrays.dtypes import config
from minijax.diagnostics.source_info import UserLine
from minijax.diagnostics.tracebacks import is_internal_file, user_line
from minijax.passes.simplification import inline_calls

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


def lines_within(jaxpr):
    """Yield for each equation, also of inner programs, the mark at its line's end."""
    for eqn in jaxpr.eqns:
        yield eqn.source and eqn.source.text.partition("# ")[2]
        for inner in eqn.params.values():
            yield from lines_within(inner) if hasattr(inner, "eqns") else ()


def two_callers(key):
    one = random.bits(key, (3,))  # first
    return one, random.bits(key, (3,))  # second


def test_an_inlined_helper_takes_the_line_of_each_caller():
    key = random.key(0)
    assert [*lines_within(make_jaxpr(two_callers)(key))] == ["first", "second"]
    vmapped = make_jaxpr(vmap(jit(two_callers)))(random.split(key))
    assert [*lines_within(vmapped.eqns[0].params["jaxpr"])] == ["first", "second"]


def two_uniforms(key):
    one = random.uniform(key)  # first
    return one + random.uniform(key)  # second


def test_a_kept_program_leaves_the_line_to_its_calls():
    jaxpr = make_jaxpr(two_uniforms)(random.key(1))
    assert {*lines_within(jaxpr)} == {"first", "second", None}
    inlined = [*lines_within(inline_calls(jaxpr))]
    half = (len(inlined) - 1) // 2
    assert inlined == half * ["first"] + half * ["second"] + ["second"]


def test_a_helper_of_the_user_keeps_its_own_lines():
    @partial(jit, inline=True)
    def helper(x):
        return jnp.sin(x)  # inner

    def f(x):
        return helper(x) + helper(x)  # outer

    assert [*lines_within(make_jaxpr(f)(X))] == ["inner", "inner", "outer"]


def test_derived_programs_leave_the_line_to_their_calls_too():
    helper = jit(jnp.log1p)

    def f(x):
        y = helper(x)  # first
        return helper(y)  # second

    found = [*lines_within(inline_calls(make_jaxpr(grad(f))(1.0)))]
    assert {"first", "second"} <= {*found} and None not in found
    assert found.count("first") == found.count("second")


def test_errors_in_a_kept_program_name_the_present_caller():
    helper = jit(jnp.log)
    with config.override("jax_debug_nans", True):
        for mark in range(2):
            with pytest.raises(FloatingPointError, match=f"# call {mark}"):
                if mark == 0:
                    helper(-1.0)  # call 0
                else:
                    helper(-1.0)  # call 1


def test_spelling():
    [tanh, *_] = make_jaxpr(curve)(X).eqns
    line = curve.__code__.co_firstlineno + 1
    assert str(tanh.source) == f"{Path(__file__).name}:{line}:8 (curve)"
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
    assert is_internal_file(sys.modules["minijax.lax.elementwise"].__file__)
    assert is_internal_file("<minijax program 3>") and not is_internal_file("<string>")
    assert not is_internal_file(__file__)


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
