"""A program in two parts that are the whole."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.jaxprs.checker import check_jaxpr
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.rematerialization.partial_eval import partial_eval_jaxpr

V, W = np.float32([0.5, 1.0, 2.0]), np.float32([1.0, -1.0, 3.0])
TABLE = jnp.arange(3.0)

FUNCTIONS = {
    "both": lambda x, y: (jnp.sin(x) * y, jnp.sin(x), y * TABLE),
    "known": lambda x, y: (jnp.sin(x), x, x),
    "unknown": lambda x, y: (y, y * y, jnp.cos(y)),
    "nested": lambda x, y: (minijax.jit(lambda a, b: jnp.sin(a) * b)(x, y), x, y),
    "constant": lambda x, y: (TABLE, 2.0, jnp.ones(3)),
    "twice": lambda x, y: ((lambda s: (s * y, s * s * y))(jnp.exp(x)), x + y),
}


@pytest.mark.parametrize("instantiate", [False, True, (False, True, False)])
@pytest.mark.parametrize("in_unknown", [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_are_the_whole(name, in_unknown, instantiate):
    flat = lambda *xs: minijax.tree_util.tree_leaves(FUNCTIONS[name](*xs))  # noqa: E731
    closed = minijax.make_jaxpr(flat)(V, W)
    instantiate = instantiate if len(closed.outvars) == 3 else bool(instantiate)
    parts = partial_eval_jaxpr(closed, in_unknown, instantiate)
    check_jaxpr(parts.known)
    check_jaxpr(parts.unknown)
    args = [V, W]
    known_args = [x for x, later in zip(args, in_unknown, strict=True) if not later]
    unknown_args = [x for x, later in zip(args, in_unknown, strict=True) if later]
    known = jaxpr_as_fun(parts.known)(*known_args)
    residuals = parts.residuals(known_args, known)
    later = jaxpr_as_fun(parts.unknown)(*residuals, *unknown_args)
    for out, expected in zip(parts.results(known, later), flat(V, W), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-6)
    if instantiate is True:
        assert all(parts.out_unknown)


def test_known_work_is_not_on_the_tape():
    closed = minijax.make_jaxpr(lambda x, y: jnp.tanh(jnp.sin(x)) * y)(V, W)
    parts = partial_eval_jaxpr(closed, (False, True))
    assert [eqn.primitive.name for eqn in parts.known.eqns] == ["sin", "tanh"]
    assert [eqn.primitive.name for eqn in parts.unknown.eqns] == ["mul"]
    assert parts.out_unknown == (True,)


def test_residuals_that_are_inputs_are_not_copied():
    closed = minijax.make_jaxpr(lambda x, y: x * y)(V, W)
    parts = partial_eval_jaxpr(closed, (False, True))
    assert not parts.known.outvars
    assert parts.sources == (0,)
