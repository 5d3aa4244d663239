"""Rules of one's own beside real JAX: values, programs and messages."""

import itertools

import jax
import numpy as np
import pytest

import minijax
from tests import own_rules_cases
from tests.commands import some
from tests.oracle.raised import raised

PACKAGES = minijax, jax
FUNCTIONS = tuple(map(own_rules_cases.functions, PACKAGES))
WAYS = tuple(map(own_rules_cases.transformations, PACKAGES))
PROGRAMS = tuple(map(own_rules_cases.programs, PACKAGES))
MISTAKES = tuple(map(own_rules_cases.mistakes, PACKAGES))
DEEP = "bent", "turned", "counted"  # the others are stacked once
CASES = [(name, (way,)) for name in FUNCTIONS[0] for way in WAYS[0]]
CASES += [(name, s) for name in DEEP for s in itertools.product(WAYS[0], repeat=2)]
CASES = [case for case in CASES if own_rules_cases.is_possible(*case)]


def outcome(functions, ways, name, stack):
    """The value, or the class of the error."""
    f = functions[name]
    for way in stack:
        f = ways[way](f)
    try:
        return np.asarray(f(1.25))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize(("name", "stack"), some(CASES, 2))
def test_values(name, stack):
    ours, theirs = (
        outcome(*pair, name, stack) for pair in zip(FUNCTIONS, WAYS, strict=True)
    )
    if isinstance(theirs, str):
        assert isinstance(ours, str)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=2e-5)


@pytest.mark.parametrize("name", PROGRAMS[0])
def test_texts_of_programs(name):
    texts = []
    for package, programs in zip(PACKAGES, PROGRAMS, strict=True):
        f, args = programs[name]
        texts.append(str(package.make_jaxpr(f)(*args)))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", sorted(MISTAKES[0]))
def test_messages(name):
    ours, theirs = (raised(mistakes[name]) for mistakes in MISTAKES)
    assert ours == theirs


@pytest.mark.parametrize("staged", [False, True])
def test_what_does_not_depend_on_the_example(staged):
    """A batch of calls with shared arguments has shared results, weak as JAX's."""

    def found(j):
        jnp, lax = j.numpy, j.lax
        drawn = j.custom_jvp(lambda x: j.random.normal(j.random.key(5), ()) * x)
        drawn.defjvp(lambda p, t: (drawn(*p), 2 * t[0]))
        chosen = j.custom_vjp(lambda x, y: lax.cond(x > 9, jnp.sin, lambda _: 0.25, x))
        chosen.defvjp(lambda x, y: (chosen(x, y), x), lambda x, ct: (ct * x, None))

        def each(x, y):
            return drawn(x), chosen(drawn(x), y), j.nn.relu(x)

        over = j.vmap(each, in_axes=(None, 0), out_axes=(None, 0, None))
        over = j.jit(over) if staged else over
        outs, pullback = j.vjp(over, 2.0, jnp.arange(3))
        weak = [y.weak_type for y in outs]
        return weak, *outs, pullback(tuple(map(jnp.ones_like, outs)))[0]

    for ours, theirs in zip(found(minijax), found(jax), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
