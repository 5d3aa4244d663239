"""Taylor series: known ones, programs inside programs, sizes, and what is refused."""

import math
import re

import numpy as np
import pytest

import minijax
from minijax import enable_x64, grad, jit, lax, make_jaxpr, vmap
from minijax import numpy as jnp
from minijax.experimental.jet import fact, jet

ALONG = (1.0, 0.0, 0.0, 0.0, 0.0)


def derivatives(f, x, order=5):
    return jet(f, (x,), (ALONG[:order],))[1]


def test_factorials_turn_derivatives_into_coefficients():
    x, factorials = 0.3, [fact(k) for k in range(1, 6)]
    assert factorials == [1, 2, 6, 24, 120] and fact(0) == 1
    found = jet(jnp.sin, (x,), (ALONG,), factorial_scaled=False)[1]
    wanted = [d / n for d, n in zip(derivatives(jnp.sin, x), factorials)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@enable_x64(True)
def test_known_series():
    x = 0.3
    np.testing.assert_allclose(derivatives(jnp.exp, x), [math.exp(x)] * 5)
    s, c = math.sin(x), math.cos(x)
    np.testing.assert_allclose(derivatives(jnp.sin, x), [c, -s, -c, s, c])
    np.testing.assert_allclose(
        derivatives(jnp.log, x),
        [(-1) ** (k + 1) * math.factorial(k - 1) / x**k for k in range(1, 6)],
    )
    np.testing.assert_allclose(
        derivatives(lambda x: 1 / (1 - x), x),
        [math.factorial(k) / (1 - x) ** (k + 1) for k in range(1, 6)],
    )


@enable_x64(True)
def test_coefficients_and_derivatives():
    outs, terms = jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),), factorial_scaled=False)
    np.testing.assert_allclose(
        [outs, *terms], [1 / math.factorial(k) for k in range(4)]
    )


def nested(f, x, order):
    for _ in range(order):
        f = grad(f)
    return f(x)


PROGRAMS = {
    "jit": jit(lambda x: jit(jnp.sin)(x) * x),
    "checkpoint": minijax.checkpoint(lambda x: jnp.sin(x) * x),
    "cond": lambda x: lax.cond(x > 0, lambda x: jnp.sin(x) * x, lambda x: 1.0, x),
    "scan": lambda x: lax.scan(lambda c, y: (jnp.sin(c) * y, None), x, x + jnp.ones(3))[
        0
    ],
    "relu": lambda x: minijax.nn.relu(x) ** 4,
    "tie": lambda x: minijax.nn.relu(x - 0.4) + x**3,
    "solve": lambda x: jnp.linalg.solve(jnp.eye(2) + x, jnp.ones(2) * x**2).sum(),
    "sort": lambda x: jnp.sort(jnp.stack([x, x**2, x**3]))[1],
    "remainder": lambda x: lax.rem(-7 * x, x * x),
}


@enable_x64(True)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_inside(name):
    f = PROGRAMS[name]
    value, terms = jet(f, (0.4,), ((1.0, 0.0, 0.0),))
    wanted = [f(0.4), *(nested(f, 0.4, k) for k in (1, 2, 3))]
    np.testing.assert_allclose([value, *terms], wanted, rtol=1e-9, atol=1e-12)


@enable_x64(True)
def test_while_loop_carries_what_does_not_move_at_first():
    def f(x):
        keep = lambda c: c[0] < 3  # noqa: E731
        return lax.while_loop(keep, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))

    (count, value), (counts, terms) = jet(f, (2.0,), ((1.0, 0.0, 0.0),))
    assert count == 3 and not np.any(counts)
    np.testing.assert_allclose([value, *terms], [8, 12, 12, 6])


def test_own_rules():
    f = minijax.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    assert [float(x) for x in derivatives(f, 1.0, 2)] == [2, 0]
    g = minijax.custom_vjp(lambda x: x * x)
    g.defvjp(lambda x: (x * x, x), lambda x, ct: (7 * ct,))
    assert [float(x) for x in derivatives(g, 1.0, 2)] == [2, 2]


def test_transformations_around():
    def third(x):
        return derivatives(lambda x: jnp.sin(x) * x, x, 3)[2]

    x = jnp.linspace(0.1, 1, 4)
    wanted = -3 * jnp.sin(x) - x * jnp.cos(x)
    np.testing.assert_allclose(third(x), wanted, rtol=1e-5)
    np.testing.assert_allclose(jit(third)(x), wanted, rtol=1e-5)
    np.testing.assert_allclose(vmap(third)(x), wanted, rtol=1e-5)
    fourth = -4 * jnp.cos(x) + x * jnp.sin(x)
    np.testing.assert_allclose(vmap(grad(third))(x), fourth, rtol=1e-4)


def test_a_jet_inside_a_jet_keeps_its_series_apart():
    def outer(x):
        return derivatives(lambda y: x * y * y, x, 1)[0]  # 2 x²

    assert [float(x) for x in derivatives(outer, 3.0, 2)] == [12, 4]


@pytest.mark.parametrize("name", ["exp", "sin", "tanh", "log", "sqrt", "tan", "erf"])
def test_programs_do_not_double(name):
    """Each order more adds operations; nested derivatives would multiply them."""

    def size(order):
        f = lambda x: derivatives(getattr(lax, name), x, order)  # noqa: E731
        return len(make_jaxpr(f)(0.5).eqns)

    assert size(5) < 1.9 * size(4)


def test_results_without_series():
    _, terms = jet(lambda x: (x > 0, 2.0, jnp.arange(2)), (1.0,), ((1.0, 2.0),))
    assert [[np.shape(t) for t in each] for each in terms] == [[()] * 2] * 2 + [
        [(2,)] * 2
    ]
    assert not any(np.any(t) for each in terms for t in each)
    assert jet(jnp.square, (3.0,), ((),)) == (9.0, [])


MISTAKES = [
    ("not an array", ValueError, lambda: jet(len, ([1.0],), ((1.0,),))),
    ("series[0][0]", ValueError, lambda: jet(jnp.sin, (1.0,), (([1.0],),))),
    ("inconsistent lengths", ValueError, lambda: jet(max, (1.0, 2.0), ((1.0,), ()))),
    ("2 primals and 1 series", ValueError, lambda: jet(max, (1.0, 2.0), ((1.0,),))),
    ("there is no argument", ValueError, lambda: jet(max, (), ())),
    ("complex64", TypeError, lambda: jet(jnp.sin, (1.0,), ((1j,),))),
    ("(2,)", ValueError, lambda: jet(jnp.sin, (jnp.ones(3),), ((jnp.ones(2),),))),
    ("series[0] has to be", TypeError, lambda: jet(jnp.sin, (1.0,), (2.0,))),
    ("str", TypeError, lambda: jet(jnp.sin, ("a",), ((1.0,),))),
]


@pytest.mark.parametrize("text, kind, call", MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistakes(text, kind, call):
    with pytest.raises(kind, match=re.escape(text)):
        call()
