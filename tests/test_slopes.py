"""Slopes agree with the values beside them, and derivatives are as weak as values."""

from functools import partial

import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.forward_mode.jvp import defjvp_unary, jvp_rules
from tests.commands import LONG
from tests.slopes import all_uneven, elementwise, uneven, unlike_at_few, weakness


def test_slopes_agree_with_the_values():
    """Those forwards of one function in four, which others have backwards, too."""
    assert not [*all_uneven(every=1 if LONG else 4)]


def test_the_functions_are_found():
    labels = {label for label, _ in elementwise()}
    assert len(labels) > 120
    assert {"lax.asin", "nn.sparse_plus", "scipy.stats.gumbel_r.logsf"} <= labels


def test_transforms_of_few_numbers():
    assert not [*unlike_at_few()]


def test_the_battery_finds_a_zero_of_the_wrong_sign():
    def slope(z, x):
        return lax.rsqrt(lax.mul(lax.neg(lax.sub(x, 1.0)), lax.add(x, 1.0)))

    kept = jvp_rules[lax.asin_p]
    jvp_rules.supersede(lax.asin_p, kept, defjvp_unary(lax.asin_p, slope))
    try:
        found = [*uneven("lax.asin", lambda jax, x: jax.lax.asin(x))]
    finally:
        jvp_rules.supersede(lax.asin_p, jvp_rules[lax.asin_p], kept)
    assert any("at 1.0: slope -inf" in text for text in found)


@pytest.mark.parametrize("f", [jnp.arcsin, jnp.arccos])
@pytest.mark.parametrize("compiled", [False, True])
def test_second_derivatives_at_the_ends(f, compiled):
    second = minijax.grad(minijax.grad(f))
    second = minijax.jit(second) if compiled else second
    side = 1 if f is jnp.arcsin else -1
    for x in (1.0, -1.0):
        assert second(x) == side * x * jnp.inf


def test_derivatives_at_numbers_of_python_are_as_weak_as_values():
    """In two of four ways, the others for the next function; with `LONG=1` in all."""
    strong, every = set(), ["grad", "hessian", "jacfwd", "jacrev"]
    for number, (label, f) in enumerate(elementwise()):
        ways = every if LONG else every[number % 2 :: 2]
        try:
            found = weakness(minijax, partial(f, minijax), of=["value", *ways])
        except (NotImplementedError, ValueError):
            continue
        if found["value"]:
            strong |= {(label, way) for way in ways if not found[way]}
    assert not strong
