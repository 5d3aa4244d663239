"""`dce_sink`, which keeps equations, and `stage`, which leaves none."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr, vmap
from minijax.rematerialization.jaxpr_transforms import dce_all_outputs


def watched(x):
    lax.dce_sink({"sine": jnp.sin(x)})
    jnp.cos(x)
    return x + 1


def names(closed):
    return [eqn.primitive.name for eqn in closed.jaxpr.eqns]


def test_what_a_sink_takes_stays_and_the_rest_goes():
    assert names(dce_all_outputs(make_jaxpr(watched)(1.0))[0]) == [
        "sin",
        "dce_sink",
        "add",
    ]


@pytest.mark.parametrize("wrap", [vmap, lambda f: vmap(vmap(f))])
def test_a_batch_keeps_it(wrap):
    x = np.ones((2, 3), "float32")
    assert names(dce_all_outputs(make_jaxpr(wrap(watched))(x))[0]) == [
        "sin",
        "dce_sink",
        "add",
    ]


def in_a_branch(x):
    return lax.cond(x > 0, watched, lambda x: x, x)


def in_a_scan(x):
    return lax.scan(lambda c, y: (watched(c) * y, None), x, jnp.arange(3.0))[0]


def in_a_loop(x):
    return lax.while_loop(lambda c: c < 5, watched, x)


@pytest.mark.parametrize("f", [watched, in_a_branch, in_a_scan, in_a_loop])
def test_values_and_derivatives_are_those_without_it(f, monkeypatch):
    xs = np.array([0.5, 1.5], "float32")
    uses = [f, jit(f), lambda x: minijax.jvp(f, (x,), (x,))[1]]
    uses += [] if f is in_a_loop else [minijax.grad(f), minijax.grad(jit(f))]
    found = [[use(xs[0]), *vmap(use)(xs)] for use in uses]
    monkeypatch.setattr(lax, "dce_sink", lambda val: None)
    minijax.clear_caches()
    assert np.array_equal(found, [[use(xs[0]), *vmap(use)(xs)] for use in uses])


def test_the_text_for_others_has_nothing_of_it():
    text = minijax.export.export(jit(watched))(1.0).mlir_module()
    assert "sine" in text and "sink" not in text


def test_what_a_sink_refuses():
    with pytest.raises(TypeError, match="'a' of type <class 'str'>"):
        lax.dce_sink([1.0, "a"])
    with pytest.raises(NotImplementedError, match="debug.callback"):
        lax.dce_sink(1.0, prevent_mlir_dce=True)


def test_a_number_becomes_a_value_of_the_program():
    assert repr(lax.stage(3.0)) == "Array(3., dtype=float32, weak_type=True)"
    seen = []

    def f(x):
        seen.append(lax.stage(2.0))
        return lax.stage(x) * seen[0]

    assert str(make_jaxpr(f)(1.0)).split() == (
        "{ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }".split()
    )
    assert isinstance(seen[0], minijax.core.Tracer)
    assert minijax.jvp(lax.stage, (1.0,), (2.0,))[1] == 2
    for wrong in ("a", None, [1]):
        with pytest.raises(TypeError, match="not a valid JAX type"):
            lax.stage(wrong)
