"""The rules of scan, against loops of Python and finite differences."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import (
    device_put,
    disable_jit,
    grad,
    hessian,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    vmap,
)
from minijax.jaxprs.checker import check_jaxpr
from minijax.jitting.stages import cost_analysis
from minijax.rematerialization.jaxpr_transforms import dce_closed_jaxpr
from minijax.scans.scan import scan_p
from minijax.test_util import check_grads
from minijax.tree_util import tree_leaves, tree_map
from tests.commands import turned
from tests.scan_cases import CASES, ROWS, TABLE, X

CASES_WITH_STEPS = [name for name in CASES if name != "no_steps"]
BATCH = np.stack([X, X * 2, X - 1])


def assert_close(ours, theirs, rtol=1e-4):
    for a, b in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-5)


def total(f):
    return lambda x: sum(leaf.sum() for leaf in tree_leaves(f(x)))


WAYS = {
    "value": lambda f: f,
    "jvp": lambda f: lambda x: jvp(f, (x,), (x + 1,)),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x + 1),
    "grad": lambda f: grad(total(f)),
    "vmap": lambda f: lambda x: vmap(f)(x * jnp.arange(3.0)[:, None]),
    "vmap grad": lambda f: lambda x: vmap(grad(total(f)))(x * jnp.ones((2, 1))),
    "grad vmap": lambda f: grad(total(lambda x: vmap(f)(x * jnp.ones((2, 1))))),
    "grad jvp": lambda f: grad(total(lambda x: jvp(f, (x,), (x,))[1])),
    "hessian": lambda f: hessian(total(f)),
}


@pytest.mark.parametrize("name, way", turned(CASES_WITH_STEPS, WAYS, 3))
def test_as_in_python(name, way):
    f = WAYS[way](CASES[name])
    with disable_jit():
        expected = f(X)
    assert_close(f(X), expected)
    assert_close(jit(f)(X), expected)


@pytest.mark.parametrize("way", WAYS)
def test_no_steps(way):
    carry, ys = CASES["no_steps"](X)
    np.testing.assert_array_equal(carry, X)
    assert ys.shape == (0, 3)
    f = CASES["no_steps"]
    assert_close(WAYS[way](f)(X), WAYS[way](lambda x: (x, jnp.zeros((0, 3))))(X))


@pytest.mark.parametrize("name", CASES_WITH_STEPS)
def test_derivatives_are_those_of_finite_differences(name):
    check_grads(CASES[name], (X,), order=2, modes=["fwd", "rev"], atol=0.1, rtol=0.1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_jaxprs_are_well_formed(name, way):
    check_jaxpr(make_jaxpr(WAYS[way](CASES[name]))(X))


@pytest.mark.parametrize("in_axes", [0, 1, -1])
def test_mapped_axes_come_from_anywhere(in_axes):
    def f(c, xs):
        return lax.scan(lambda c, a: (c * a, c + a), c, xs)

    xs = np.moveaxis(np.stack([TABLE, TABLE + 1]), 0, in_axes)
    c = np.moveaxis(np.stack([X, 2 * X]), 0, in_axes)
    carry, ys = vmap(f, in_axes=in_axes, out_axes=in_axes)(c, xs)
    for i, (c_i, xs_i) in enumerate([(X, TABLE), (2 * X, TABLE + 1)]):
        ours = tree_map(lambda y, i=i: np.take(np.asarray(y), i, in_axes), (carry, ys))
        assert_close(ours, f(c_i, xs_i))


def test_a_carry_is_mapped_only_if_a_step_maps_it():
    def f(x):
        return lax.scan(lambda c, a: ((c[0] + 1.0, c[1] + x), c[0]), (0.0, 0.0), ROWS)

    [eqn] = [e for e in make_jaxpr(vmap(f))(X).eqns if e.primitive is scan_p]
    shapes = [var.aval.shape for var in eqn.outvars]
    assert shapes == [(), (3,), (4,)]


def test_collectives_inside():
    def f(x):
        return lax.scan(lambda c, a: (c + a * lax.psum(x, "i"), c), 0.0, ROWS)

    carry, ys = vmap(f, axis_name="i")(X)
    expected = X.sum() * np.cumsum(ROWS)
    np.testing.assert_allclose(carry, np.full(3, expected[-1]), rtol=1e-5)
    np.testing.assert_allclose(ys[0], [0, *expected[:-1]], rtol=1e-5)


def test_collectives_of_what_is_not_mapped():
    def f(x):
        return lax.scan(lambda c, a: (c + lax.axis_index("i"), a), 0, ROWS)[0]

    np.testing.assert_array_equal(vmap(f, axis_name="i")(X), [0, 4, 8])


def test_only_what_moves_has_a_rate():
    def f(x):
        return lax.scan(lambda c, a: ((c[0] + 1.0, c[1] * x), c[0]), (0.0, 1.0), ROWS)

    eqns = make_jaxpr(lambda x: jvp(f, (x,), (1.0,)))(2.0).eqns
    [eqn] = [eqn for eqn in eqns if eqn.primitive is scan_p]
    assert eqn.params["num_carry"] == 3
    assert len(eqn.outvars) == 4


def test_dead_code_takes_carries_along():
    def f(x):
        def step(c, a):
            return (c[0] * a, c[1] + c[0], jnp.sin(c[2])), (c[1], a * 2)

        return lax.scan(step, (x, x, x), TABLE)

    closed = make_jaxpr(f)(X)
    for used, carries, eqns in [
        ((True, False, False, False, False), 1, 1),
        ((False, True, False, False, False), 2, 2),
        ((False, False, False, True, False), 2, 2),
        ((False, False, True, False, False), 1, 1),
        ((False, False, False, False, True), 0, 1),
    ]:
        pruned, _ = dce_closed_jaxpr(closed, used)
        check_jaxpr(pruned)
        [eqn] = pruned.eqns
        assert eqn.params["num_carry"] == carries
        assert len(eqn.params["jaxpr"].eqns) == eqns


def test_costs_are_counted_per_step():
    def f(length):
        program = lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length)  # noqa: E731
        return cost_analysis(make_jaxpr(program)(X).jaxpr)["transcendentals"]

    assert f(7) == 7 * 3


@pytest.mark.parametrize("name", CASES)
def test_in_64_bits(name):
    from minijax import enable_x64

    with enable_x64():
        x = X.astype("float64")
        f = WAYS["grad"](CASES[name])
        assert f(x).dtype == "float64"


def test_complex_numbers():
    def f(z):
        return lax.scan(lambda c, a: (c * z + a, c), 1.0 + 0j, ROWS)[0]

    z = np.complex64(0.5 + 0.3j)
    slope = grad(f, holomorphic=True)(z)
    h = 1e-2
    assert abs(slope - (f(z + h) - f(z - h)) / (2 * h)) < 1e-2


@pytest.mark.parametrize("make", [lambda: jnp.asarray(2.0) * 3, lambda: 1 + 2j])
def test_rows_made_of_constants_stay_weak(make):
    def rows(x):
        return lax.scan(lambda c, _: (c, make()), x, None, length=2)[1]

    for way in (rows, jit(rows), lambda x: jvp(rows, (x,), (x,))[0]):
        assert way(1.0).weak_type
    assert vmap(rows)(jnp.ones(3)).weak_type


def test_integers_that_were_put_beside_floats_have_no_tangent():
    def scanned(x):
        def step(carry, t):
            return carry, carry[1] * t

        return lax.scan(step, device_put((3, x)), jnp.arange(4.0))[1].sum()

    def branched(x):
        count, x = device_put((3, x))
        return lax.cond(x > 0, lambda n, x: n * x, lambda n, x: x, count, x)

    for f, slope in ((scanned, 6.0), (branched, 3.0)):
        assert grad(f)(2.0) == jit(grad(f))(2.0) == slope
        assert jvp(f, (2.0,), (1.0,))[1] == slope
        assert vmap(grad(f))(jnp.array([1.0, 2.0])).tolist() == [slope, slope]
