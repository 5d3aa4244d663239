"""StableHLO texts as texts; `tests/oracle/test_export.py` has them compiled by XLA."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from minijax import export, grad, jit, lax, make_jaxpr
from minijax.arrays.array import shape_rules
from minijax.core import Primitive
from minijax.stablehlo.exported import mlir_module_text
from minijax.stablehlo.lowering import lower_fun, stablehlo_rules
from minijax.stablehlo.text import decimal, dense
from tests import control_cases

X = np.float32([[0.5, -1, 2], [0.25, 1, 1], [-1, -1, 0.5]])


def names(text):
    """The names that a text defines, and those that it uses."""
    defined = re.findall(r"(%\d+)(?::\d+)? = ", text) + re.findall(r"(%\d+): ", text)
    return defined, {name.partition("#")[0] for name in re.findall(r"%\d+", text)}


@pytest.mark.parametrize("name", sorted(control_cases.cases(minijax)))
def test_each_name_is_defined_once(name):
    call, xs = control_cases.cases(minijax)[name]
    text = mlir_module_text(make_jaxpr(lambda *xs: call(lax, *xs))(*xs), "f")
    defined, used = names(text)
    assert len(defined) == len({*defined})
    assert used == {*defined}
    assert text.count("{") == text.count("}")


def test_every_primitive_has_a_rule_or_a_reason():
    left = [p for p in shape_rules if p not in stablehlo_rules]
    assert all(stablehlo_rules.reasons.get(p, "").endswith(".") for p in left)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_digits_of_32_bits(x):
    x = np.float32(x)
    assert np.float32(float(decimal(x))).tobytes() == x.tobytes()
    assert "." in decimal(x)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_digits_of_64_bits(x):
    assert float(decimal(np.float64(x))) == x


def test_constants():
    assert dense(np.zeros((2, 0))) == "dense<>"
    assert dense(np.float32(-np.inf)) == "dense<0xFF800000>"
    assert dense(np.float32([0, -0.0])) == "dense<[0.0, -0.0]>"  # equal, not the same
    assert (
        dense([[True, False]] * 8)
        == "dense<" + str([["true", "false"]] * 8).replace("'", "") + ">"
    )
    assert dense(np.arange(9, dtype="int8")) == 'dense<"0x000102030405060708">'
    assert dense(np.uint64([2**64 - 1])) == "dense<18446744073709551615>"


def test_a_function_is_written_once():
    square = jit(lambda x: x * x)
    text = mlir_module_text(make_jaxpr(lambda x: square(square(x)))(X), "f")
    assert text.count("func.func private") == 1
    assert text.count("func.call") == 2


def test_a_name_that_mlir_would_not_take():
    text = jit(lambda x: x).lower(X).as_text("stablehlo")
    assert text.startswith("module @jit__lambda_ {")
    inner = jit(lambda x: x + 1)
    inner.__wrapped__.__name__ = "main"
    program = make_jaxpr(lambda x: inner(x))(X)
    assert (
        len({*re.findall(r"func\.func \w+ @(\w+)", mlir_module_text(program, "f"))})
        == 2
    )


def test_a_user_s_primitive():
    triple_p = Primitive("triple")
    shape_rules[triple_p] = lambda x: [x]
    try:
        program = make_jaxpr(lambda x: triple_p.bind(x))(X)
        with pytest.raises(NotImplementedError, match=r"stablehlo_rules\[triple_p\]"):
            mlir_module_text(program, "f")
        stablehlo_rules[triple_p] = lower_fun(lambda x: x * 3)
        assert "stablehlo.multiply" in mlir_module_text(program, "f")
        stablehlo_rules[triple_p] = lambda block, eqn, x: block.constant(1, x.aval)
        stablehlo_rules[triple_p] = lower_fun(lambda x: x.sum())
        with pytest.raises(
            TypeError, match=r"triple: tensor<f32> is not tensor<3x3xf32>"
        ):
            mlir_module_text(program, "f")
    finally:
        del shape_rules[triple_p]
        stablehlo_rules.pop(triple_p, None)


def test_refusals_name_the_line():
    with pytest.raises(NotImplementedError, match="Cholesky's only.*test_stablehlo.py"):
        mlir_module_text(make_jaxpr(lambda x: jnp.linalg.svd(x)[1])(X), "f")
    with pytest.raises(NotImplementedError, match="Python function is not there"):
        jit(lambda x: minijax.debug.print("{}", x)).lower(X).as_text("stablehlo")


def test_exported():
    f = jit(lambda x, *, scale: {"out": (x * scale).sum()})
    exported = export.export(f)(X, scale=2.0)
    assert float(exported.call(X, scale=2.0)["out"]) == 2 * X.sum()
    assert [a.str_short() for a in exported.in_avals] == ["f32[3,3]", "f32[]"]
    with pytest.raises(ValueError, match=r"f32\[3,3\] as leaf 0 .* not for f32\[2,3\]"):
        exported.call(X[:2], scale=2.0)
    with pytest.raises(ValueError, match="exported for arguments"):
        exported.call(X, 2.0)
    with pytest.raises(ValueError, match=r"export\(jit\(f\)\)"):
        export.export(lambda x: x)
    assert export.export(f, platforms=["tpu"])(X, scale=1.0).platforms == ("tpu",)


def test_gradients_are_plain_equations():
    text = mlir_module_text(make_jaxpr(grad(lambda x: jnp.tanh(x @ x).sum()))(X), "f")
    assert {*re.findall(r"stablehlo\.(\w+)", text)} <= {
        "dot_general", "tanh", "constant", "broadcast_in_dim", "subtract", "multiply",
        "add", "transpose", "reduce",
    }  # fmt: skip


def test_an_export_with_64_bits_is_called_with_them():
    def f(x):
        return jnp.exp(x.astype("float64")) / 3 + jnp.arange(3)

    with minijax.enable_x64(True):
        exported = export.export(jit(f))(X)
        wanted, pullback = f(X), exported.vjp()
    for x64 in (False, True):
        with minijax.enable_x64(x64):
            found, x = exported.call(X), exported.vjp().in_avals
        assert found.dtype == wanted.dtype == np.float64
        assert found.tobytes() == wanted.tobytes()
        assert x == pullback.in_avals
    short = export.export(jit(lambda x: x / 3))(X)
    with minijax.enable_x64(True):
        assert short.call(X).dtype == np.float32


def test_names_of_other_alphabets_are_written_in_ascii():
    def größe(x):
        return x

    assert jit(größe).lower(X).as_text("stablehlo").startswith("module @jit_gr__e {")
    inner = jit(lambda x: x)
    inner.__wrapped__.__name__ = "1 b"
    assert "@_1_b(" in mlir_module_text(make_jaxpr(lambda x: inner(x))(X), "f")


def test_types_are_said_where_the_short_form_has_other_ones():
    flags = np.array([True, False])
    text = mlir_module_text(make_jaxpr(lax.select)(flags, flags, flags), "f")
    kinds = ", ".join(["tensor<2xi1>"] * 3)
    assert f" : ({kinds}) -> tensor<2xi1>" in text


def test_a_loop_without_turns_is_not_written():
    def f(c, xs):
        return lax.scan(lambda c, x: (c + x, c), c, xs)

    assert "while" not in mlir_module_text(make_jaxpr(f)(1.0, jnp.ones(0)), "f")


def test_the_tangent_of_an_integer_is_false():
    exported = export.export(jit(lambda n: n))(np.arange(3)).vjp()
    text = exported.mlir_module()
    assert "constant dense<false> : tensor<3xi1>" in text and "ui64" not in text
