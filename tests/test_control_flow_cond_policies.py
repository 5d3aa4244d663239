"""Policies of checkpoint inside of conditionals: what is kept, slots, values."""

import itertools
from collections import Counter

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import checkpoint_policies as policies
from minijax.extend.core import jaxprs_in_params
from minijax.jaxprs.checker import check_jaxpr
from minijax.lax import cond, switch

W, X = jnp.eye(3) * 2, jnp.ones(3)


def products(jaxpr):
    """Return how many matrix products a program holds, at any depth."""
    inner = [each for eqn in jaxpr.eqns for each in jaxprs_in_params(eqn.params)]
    own = Counter(str(eqn.primitive) for eqn in jaxpr.eqns)["dot_general"]
    return own + sum(map(products, inner))


def one_sided(w, x):
    return cond(x[0] > 0, lambda: jnp.sin(w @ x), lambda: jnp.cos(x)).sum()


def three(w, x):
    branches = [
        lambda: jnp.sin(jnp.sin(w @ x)),
        lambda: jnp.tanh(w.T @ (w @ x)),
        lambda: jnp.exp(x),
    ]
    return switch(jnp.int32(x[1]), branches).sum()


def nested(w, x):
    inner = cond(x[1] > 0, lambda: jnp.sin(w @ x), lambda: jnp.cos(x))
    return cond(x[0] > 0, lambda: jnp.sin(w @ inner), lambda: x).sum()


FUNCTIONS = {"one side": one_sided, "three": three, "nested": nested}
INPUTS = [X, -X, X * jnp.asarray([1, 2, 0]), X * jnp.asarray([1, 0, 2])]


@pytest.mark.parametrize(
    ("name", "forgets", "keeps"), [("one side", 4, 3), ("three", 12, 9)]
)
def test_products_of_branches_are_kept(name, forgets, keeps):
    def counted(policy):
        forgetful = jax.checkpoint(FUNCTIONS[name], policy=policy)
        program = jax.make_jaxpr(jax.grad(forgetful, (0, 1)))(W, X)
        check_jaxpr(program.jaxpr)
        return products(program.jaxpr)

    assert counted(None) == counted(policies.nothing_saveable) == forgets
    assert counted(policies.dots_saveable) == keeps


@pytest.mark.parametrize(
    ("name", "policy"),
    list(itertools.product(
        FUNCTIONS, ["dots_saveable", "everything_saveable", "nothing_saveable"])
    ),
)
def test_values(name, policy):
    f = FUNCTIONS[name]
    forgetful = jax.checkpoint(f, policy=getattr(policies, policy))
    for x in INPUTS:
        plain = jax.grad(f, (0, 1))(W, x)
        for way in (lambda f: f, jax.jit):
            for one, other in zip(way(jax.grad(forgetful, (0, 1)))(W, x), plain):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    batch = jnp.stack(INPUTS)
    second = [jax.vmap(jax.hessian(g, 1), (None, 0))(W, batch) for g in (f, forgetful)]
    np.testing.assert_allclose(*second, rtol=1e-5, atol=1e-5)


def test_what_acts_in_a_branch_acts_once(capsys):
    def noisy(w, x):
        def loud():
            jax.debug.print("loud")
            return jnp.sin(w @ x)

        return cond(x[0] > 0, loud, lambda: x).sum()

    jax.grad(jax.checkpoint(noisy, policy=policies.dots_saveable))(W, X)
    assert capsys.readouterr().out.count("loud") == 1
