"""Stages: traced, lowered, compiled."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import stages
from minijax.errors import UnexpectedTracerError

V, M = np.ones(4, np.float32), np.ones((3, 4), np.float32)


def layer(params, x, scale=2.0):
    """Text."""
    return {"y": jnp.tanh(params["w"] @ x) * scale}


PARAMS = {"w": M, "unused": V}


def test_stages():
    traced = minijax.jit(layer).trace(PARAMS, V)
    lowered = traced.lower()
    compiled = lowered.compile()
    kinds = stages.Traced, stages.Lowered, stages.Compiled
    assert (type(traced), type(lowered)) == kinds[:2]
    assert isinstance(compiled, kinds[2])
    for stage in (traced, lowered, compiled):
        assert str(stage.in_tree) == "PyTreeDef((({'unused': *, 'w': *}, *), {}))"
        assert str(stage.out_tree) == "PyTreeDef({'y': *})"
        assert stage.args_info[0][0]["w"].shape == (3, 4)
        assert stage.out_info == {"y": minijax.ShapeDtypeStruct((3,), np.float32)}
        assert stage.donate_argnums == ()
    assert traced.fun_name == "layer"
    assert [var.aval.shape for var in traced.jaxpr.invars] == [(4,), (3, 4), (4,)]
    assert traced.out_avals["y"].shape == (3,)
    np.testing.assert_allclose(compiled(PARAMS, V)["y"], layer(PARAMS, V)["y"], 1e-6)
    np.testing.assert_allclose(compiled.call(PARAMS, V)["y"], 2 * np.tanh(4.0), 1e-6)


def test_texts():
    lowered = minijax.jit(layer).lower(PARAMS, V)
    text = lowered.as_text()
    assert text.startswith("{ lambda ; a:f32[3,4] b:f32[4]. let")
    assert lowered.as_text("jaxpr") == text
    assert lowered.as_text("interpreter") == text
    assert "tanh" in lowered.as_text(debug_info=True)
    assert str(lowered.compiler_ir()) == text
    stablehlo = lowered.compiler_ir("stablehlo")
    assert str(stablehlo) == lowered.as_text("stablehlo")
    assert "stablehlo.tanh" in stablehlo and str(stablehlo).startswith("module @jit_")
    hlo = lowered.compiler_ir("hlo")
    assert hlo.as_hlo_text() == lowered.as_text("hlo")
    assert hlo.startswith("// StableHLO") and hlo.endswith(stablehlo)
    for ask in (lowered.compiler_ir, lowered.as_text):
        with pytest.raises(ValueError, match="unknown dialect: mhlo"):
            ask("mhlo")
    assert "tanh" in lowered.compile().as_text()
    with pytest.raises(ValueError, match="unknown dialect: fortran"):
        lowered.as_text("fortran")
    kept = minijax.jit(layer, keep_unused=True).lower(PARAMS, V)
    assert kept.as_text().startswith("{ lambda ; a:f32[4] b:f32[3,4] c:f32[4]. let")


@pytest.mark.of_the_cpu("names the backend of Python")
def test_costs():
    lowered = minijax.jit(layer, backend="python").lower(PARAMS, V)
    assert lowered.cost_analysis()["transcendentals"] == 3.0
    assert lowered.compile().cost_analysis() == lowered.cost_analysis()
    assert lowered.compile().memory_analysis().argument_size_in_bytes == 64


def test_types_alone_suffice():
    struct = minijax.ShapeDtypeStruct((4,), np.float32)
    compiled = minijax.jit(lambda x: x * 2).lower(struct).compile()
    np.testing.assert_array_equal(compiled(V), V * 2)


def test_statics_are_not_given_again():
    f = minijax.jit(lambda x, n, scale: x * n * scale, static_argnames=("n", "scale"))
    compiled = f.lower(V, 3, scale=2).compile()
    np.testing.assert_array_equal(compiled(V), V * 6)
    with pytest.raises(TypeError, match="structure"):
        compiled(V, 3)


def compiled():
    return minijax.jit(layer).lower(PARAMS, V).compile()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda c: c(PARAMS, np.ones(5, np.float32)),
            r"types for which layer was compiled. The mismatches are:\n"
            r"Argument 'x' compiled with float32\[4\] and called with float32\[5\]",
        ),
        (
            lambda c: c({**PARAMS, "w": M > 0}, V),
            r"Argument 'params\['w'\]' compiled with float",
        ),
        (lambda c: c(PARAMS), r"structure.*\n.*tuple of length 2, got length 1"),
        (lambda c: c({"w": M}, V), r"structure.*\n.*\[0\]\[0\]: expected a dict"),
        (
            lambda c: minijax.grad(lambda x: c(PARAMS, x)["y"].sum())(V),
            "signature. Detected argument x of layer: JVPTracer",
        ),
        (
            lambda c: minijax.jit(lambda x: c(PARAMS, x))(V),
            "Cannot apply JAX transformations",
        ),
        (lambda c: c(PARAMS, "a"), "not a valid JAX type"),
    ],
)
def test_refused(call, text):
    with pytest.raises(TypeError, match=text):
        call(compiled())


def test_weak_types_do_not_matter():
    f = minijax.jit(lambda x: x + 1)
    assert f.lower(1.0).compile()(np.float32(1)) == 2.0
    assert f.lower(np.float32(1)).compile()(1.0) == 2.0


def test_donation():
    f = minijax.jit(lambda x, y: x + y, donate_argnames="x")
    program = f.lower(V, V).compile()
    assert program.donate_argnums == (0,)
    assert program.args_info[0][0].donated
    assert program.memory_analysis().alias_size_in_bytes == 16
    x = jnp.asarray(V)
    program(x, V)
    assert x.is_deleted()


def test_a_function_with_tracers_in_it_has_no_program_of_its_own():
    def outer(x):
        minijax.jit(lambda y: x * y).lower(2.0)
        return x

    with pytest.raises(UnexpectedTracerError, match="no program of its own"):
        minijax.grad(outer)(1.0)


def test_backend():
    compiled = minijax.jit(layer, backend="interpreter").lower(PARAMS, V).compile()
    assert type(compiled.runtime_executable()).__name__ == "Interpreter"


def test_dialects_of_all_backends_and_of_one(monkeypatch):
    from minijax.jitting import compilation

    class Talking(compilation.Interpreter):
        dialects = {"rhyme": lambda executable: f"rhyme of {executable.name}"}

    monkeypatch.setitem(compilation.backends, "talking", Talking)
    monkeypatch.setitem(
        compilation.text_formats, "prose", lambda closed, name, given: f"{name} {given}"
    )

    def f(x, y):
        return x + y

    lowered = minijax.jit(f, backend="talking", donate_argnums=0).lower(1.0, 2.0)
    assert lowered.as_text("rhyme") == "rhyme of f"
    assert lowered.as_text("prose") == "f (True, False)"
    assert lowered.compile().as_text("rhyme") == "rhyme of f"
    assert lowered.compile().as_text("prose") == lowered.as_text("prose")
    silent = minijax.jit(f, backend="interpreter").lower(1.0, 2.0)
    expected = (
        "unknown dialect: rhyme. For f on the backend 'interpreter' there are: "
        "jaxpr, .*prose, interpreter, .*talking. With backend='talking' it exists."
    )
    for stage in (silent, silent.compile()):
        with pytest.raises(ValueError, match=expected):
            stage.as_text("rhyme")


def test_profiles_take_the_arguments_of_calls(monkeypatch):
    from minijax.jitting import compilation

    class Watched(compilation.Interpreter):
        def profile(self, *args):
            return [np.shape(arg) for arg in args]

    monkeypatch.setitem(compilation.backends, "watched", Watched)

    def f(tree, unused, *, scale):
        return tree["a"] * scale

    options = {"backend": "watched", "donate_argnums": 0}
    x = jnp.ones(3)
    args = {"a": x}, 1.0
    compiled = minijax.jit(f, **options).lower(*args, scale=2.0).compile()
    assert compiled.profile(*args, scale=2.0) == [(3,), ()]
    assert not x.is_deleted()
    with pytest.raises(TypeError, match="structure"):
        compiled.profile({"b": x}, 1.0, scale=2.0)
    with pytest.raises(TypeError, match="called with"):
        compiled.profile({"a": jnp.ones(4)}, 1.0, scale=2.0)
    unwatched = minijax.jit(f, backend="interpreter").lower(*args, scale=2.0).compile()
    with pytest.raises(ValueError, match="'interpreter' cannot profile f; .*watched"):
        unwatched.profile(*args, scale=2.0)


def test_executables_may_count_for_themselves(monkeypatch):
    from minijax.jitting import compilation

    class Counting(compilation.Interpreter):
        def cost_analysis(self):
            return {"flops": 7.0}

        def memory_analysis(self):
            return "little"

    monkeypatch.setitem(compilation.backends, "counting", Counting)
    compiled = minijax.jit(lambda x: x + 1, backend="counting").lower(1.0).compile()
    assert compiled.cost_analysis() == {"flops": 7.0}
    assert compiled.memory_analysis() == "little"


def test_a_stage_is_compiled_once():
    compiled = minijax.jit(lambda x, unused: x * 2.0).lower(1.0, 2.0).compile()
    executable = compiled.runtime_executable()
    assert compiled(1.0, 2.0) == 2.0
    assert compiled.runtime_executable() is executable
