"""Gradients, Jacobians, Hessians and `check_grads`, by their own definitions."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import (
    checkpoint,
    enable_x64,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)
from minijax.arrays.dtypes import float0
from minijax.reverse_mode.backward_pass import transpose_rules
from minijax.test_util import check_grads

F32 = np.float32
V = np.array([0.3, -0.7, 1.1], F32)
EYE = np.eye(3, dtype=F32)


def bowl(v):
    return (jnp.sin(v) * v * v[::-1]).sum() + jnp.tanh(v @ v)


HESSIANS = {
    "jacfwd of jacrev": jacfwd(jacrev(bowl)),
    "jacrev of jacfwd": jacrev(jacfwd(bowl)),
    "jacfwd of jacfwd": jacfwd(jacfwd(bowl)),
    "jacrev of jacrev": jacrev(jacrev(bowl)),
    "jvp of grad": lambda v: jnp.stack(
        [jvp(grad(bowl), (v,), (e,))[1] for e in EYE], -1
    ),
    "linearize of grad": lambda v: vmap(linearize(grad(bowl), v)[1], out_axes=-1)(EYE),
    "vjp of grad": lambda v: vmap(vjp(grad(bowl), v)[1])(EYE)[0],
}


@pytest.mark.parametrize("way", HESSIANS)
def test_ways_to_a_hessian_agree(way):
    differences = [
        (np.asarray(grad(bowl)(V + 1e-2 * e)) - np.asarray(grad(bowl)(V - 1e-2 * e)))
        / 2e-2
        for e in EYE
    ]
    np.testing.assert_allclose(HESSIANS[way](V), hessian(bowl)(V), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(HESSIANS[way](V), differences, rtol=1e-2, atol=1e-2)


def test_argnums():
    def f(x, y, z):
        return x * y * y * z

    assert float(grad(f)(2.0, 3.0, 5.0)) == 45
    assert float(grad(f, -2)(2.0, 3.0, 5.0)) == 60
    assert [float(g) for g in grad(f, (2, 0))(2.0, 3.0, 5.0)] == [18, 45]
    assert isinstance(grad(f, [1])(2.0, 3.0, 5.0), tuple)
    assert float(grad(f)(2.0, z=5.0, y=3.0)) == 45


def test_other_arguments_may_be_anything():
    assert (
        float(grad(lambda x, how: x * x if how == "square" else x)(3.0, "square")) == 6
    )


def test_aux_need_not_be_an_array():
    (value, aux), gradient = value_and_grad(
        lambda x: (x * x, {"a": [x, "b"]}), has_aux=True
    )(3.0)
    assert (float(value), float(gradient), float(aux["a"][0]), aux["a"][1]) == (
        9,
        6,
        3,
        "b",
    )


def test_results_that_a_rule_maps_with_the_tangents():
    def ranked(x):  # the rule of sort carries its operand along with the tangents
        return x - jnp.sort(x)[::-1][0], jnp.sort(x)

    x = jnp.array([3.0, 1.0, 2.0])
    slope, aux = jacfwd(ranked, has_aux=True)(x)
    np.testing.assert_array_equal(aux, [1, 2, 3])
    np.testing.assert_array_equal(slope, np.eye(3) - [1, 0, 0])
    np.testing.assert_array_equal(jacrev(jnp.sort)(x), jacfwd(jnp.sort)(x))


@pytest.mark.parametrize("base", [2.0, np.float32(2.0)])
def test_slope_of_a_number_in_the_exponent(base):
    assert grad(lambda y: base**y)(3.0) == pytest.approx(8 * np.log(2))


def test_integers_get_float0():
    gradient = grad(lambda d: d["x"] * d["n"], allow_int=True)({"x": 2.0, "n": 3})
    assert float(gradient["x"]) == 3 and gradient["n"].dtype == float0


def test_a_result_that_does_not_move():
    assert not np.any(grad(lambda v: 1.0)(V)) and grad(lambda v: 1.0)(V).shape == (3,)


def test_names_and_documents():
    assert grad(bowl).__name__ == "bowl" and "bowl" in grad(bowl).__doc__
    assert jacobian.__name__ == "jacobian"


@pytest.mark.parametrize("derive", [jacfwd, jacrev])
def test_jacobian_of_trees(derive):
    def f(p, q):
        return {"outer": p["a"][:, None] * q, "sum": p["a"].sum() * p["b"]}

    p, q = {"a": V, "b": F32(2)}, np.arange(2, dtype=F32)
    jacobian = derive(f, (0, 1))(p, q)
    assert jacobian["outer"][0]["a"].shape == (3, 2, 3)
    assert jacobian["outer"][1].shape == (3, 2, 2)
    np.testing.assert_allclose(jacobian["sum"][0]["a"], [2, 2, 2])
    assert float(jacobian["sum"][0]["b"]) == pytest.approx(V.sum(), 1e-6)
    assert not np.any(jacobian["sum"][1])


@pytest.mark.parametrize("derive", [jacfwd, jacrev])
def test_jacobian_of_nothing(derive):
    assert derive(lambda x: [])(V) == [] and derive(lambda x: 1.0)([]) == []


def test_gradients_of_a_batch():
    xs = np.stack([V, 2 * V])
    per_example = vmap(grad(bowl))(xs)
    np.testing.assert_allclose(per_example[1], grad(bowl)(xs[1]), rtol=1e-5)
    total = grad(lambda xs: vmap(bowl)(xs).sum())(xs)
    np.testing.assert_allclose(total, per_example, rtol=1e-5)


@pytest.mark.parametrize("modes", ["fwd", "rev", ("fwd", "rev")])
def test_check_grads_passes(modes):
    check_grads(bowl, (V,), 3, modes)
    check_grads(lambda p, n: {"y": jnp.tanh(p["w"]) * n}, ({"w": V}, 3), 2, modes)
    check_grads(lambda z: jnp.sin(z) * z, (np.complex64(1 + 2j),), 2, modes)
    check_grads(jnp.abs, (np.complex64(1 + 2j),), 1, modes)


def test_check_grads_finds_a_wrong_rule(monkeypatch):
    rule = transpose_rules[lax.mul_p]
    monkeypatch.setitem(
        transpose_rules,
        lax.mul_p,
        lambda cts, *xs: rule([lax.mul(np.asarray(1.01, F32), cts[0])], *xs),
    )
    check_grads(lambda v: v * v, (V,), 1, "fwd")
    with pytest.raises(AssertionError, match="rev disagrees"):
        check_grads(lambda v: v * v, (V,), 1, "rev")


def test_check_grads_names_the_order():
    def jagged(x):
        return 0.1 * jnp.abs(x) * x  # its slope has a corner, it has none

    with pytest.raises(AssertionError, match="fwd of fwd disagrees"):
        check_grads(jagged, (F32(1e-6),), 2, "fwd")
    with pytest.raises(ValueError, match="sideways"):
        check_grads(jagged, (V,), 1, "sideways")


def test_transpose_of_a_gradient_is_itself():
    matrix = np.arange(9, dtype=F32).reshape(3, 3)
    slope = grad(lambda v: 0.5 * v @ (matrix + matrix.T) @ v)
    [back] = linear_transpose(slope, V)(V)
    np.testing.assert_allclose(back, slope(V), rtol=1e-5)


def test_tolerances_by_dtype(monkeypatch):
    rule = transpose_rules[lax.mul_p]
    monkeypatch.setitem(
        transpose_rules,
        lax.mul_p,
        lambda cts, *xs: rule([lax.mul(np.asarray(1.01, F32), cts[0])], *xs),
    )

    def check(atol, rtol):
        check_grads(lambda v: v * v, (V,), 1, "rev", atol, rtol)

    for tolerance in (0.1, {jnp.float32: 0.1}, {"float32": 0.1, "float64": 0}):
        check(tolerance, tolerance)
        check(tolerance, None)
    for tolerance in (None, {}, {np.float64: 10.0}, {jnp.float32: 1e-6}, 1e-6):
        with pytest.raises(AssertionError, match="rev disagrees"):
            check(tolerance, tolerance)


def sum_of_cubes(x):
    return (x**3).sum()


WIDE = {  # of an array of float64, while new numbers have 32 bits
    "grad": (grad(lambda x: (x * x).sum()), 4.0),
    "grad of a power": (grad(sum_of_cubes), 12.0),
    "jit of grad": (jit(grad(lambda x: jnp.sin(x).sum())), np.cos(2.0)),
    "grad of jit": (grad(jit(lambda x: jnp.log(x).sum())), 0.5),
    "grad of checkpoint": (grad(checkpoint(sum_of_cubes)), 12.0),
    "grad of a mean": (grad(jnp.mean), 0.5),
    "grad of an extreme": (grad(jnp.max), 1.0),
    "grad of a norm": (grad(jnp.linalg.norm), 2 / np.sqrt(4 + 1 / 9)),
    "grad of a scan": (
        grad(lambda x: lax.scan(lambda c, v: (c * v, None), x[1], x)[0]),
        4.0 / 3,
    ),
    "hessian": (lambda x: hessian(sum_of_cubes)(x)[1], 12.0),
    "jit of hessian": (lambda x: jit(hessian(sum_of_cubes))(x)[1], 12.0),
    "jacrev": (lambda x: jacrev(lambda x: x * x)(x)[1], 4.0),
    "jacfwd": (lambda x: jacfwd(jnp.sin)(x)[1], np.cos(2.0)),
    "vmap of grad": (vmap(grad(lambda x: jnp.sin(x) * x)), np.sin(2) + 2 * np.cos(2)),
    "jvp": (lambda x: jvp(jnp.sin, (x,), (jnp.ones_like(x),))[1], np.cos(2.0)),
    "mean": (lambda x: jnp.mean(x) * jnp.ones_like(x), 7 / 6),
    "var": (lambda x: jnp.var(x) * jnp.ones_like(x), 25 / 36),
    "ones": (jit(jnp.ones_like), 1.0),
    "zeros": (jnp.zeros_like, 0.0),
    "full": (lambda x: lax.full_like(x, 0.25), 0.25),
    "linspace": (lambda x: jnp.linspace(x[0], x[1], 3)[1:], 2.0),
}


@pytest.mark.parametrize("name", WIDE)
def test_64_bits_of_before(name):
    function, expected = WIDE[name]
    with enable_x64(True):
        x = jnp.array([1 / 3, 2.0])
    with enable_x64(False):
        result = function(x)
    assert result.dtype == np.float64
    np.testing.assert_allclose(np.asarray(result)[1], expected, rtol=1e-14)


@pytest.mark.parametrize("x", [1.0, np.float32(1)])
def test_jacobians_are_as_weak_as_what_they_are_of(x):
    """As JAX's: `jacfwd` as the result, `jacrev` as the argument."""
    for function in (lambda x: 1.0, lambda x: jnp.sin(2.0)):
        assert jacfwd(function)(x).weak_type
        assert jacrev(function)(x).weak_type == isinstance(x, float)
    assert not jacfwd(lambda x: jnp.float32(2))(x).weak_type
    assert hessian(lambda x: x)(x).weak_type == isinstance(x, float)
    assert jacrev(lambda x: 1.0, allow_int=True)(1).weak_type


def test_gradients_that_are_zero_have_64_bits_where_their_argument_has():
    with minijax.enable_x64():
        x = jnp.arange(3.0)
    for wrap in (lambda f: f, minijax.jit):
        gradient = wrap(minijax.grad(lambda x, y: y[0] * y[0]))
        assert gradient(x, x).dtype == np.float64
        step = wrap(lambda x: minijax.jvp(jnp.sign, (x,), (x,))[1])
        assert step(x).dtype == np.float64


def test_gradients_of_places_in_arrays_of_64_bits_without_x64():
    with minijax.enable_x64():
        x = jnp.arange(3.0)
    for place in (
        lambda x: x[jnp.array([0, 1])][0],
        lambda x: lax.dynamic_slice(x, (jnp.int32(0),), (2,))[0],
    ):
        for wrap in (lambda f: f, minijax.jit):
            gradient = wrap(minijax.grad(place))(x)
            assert gradient.dtype == np.float64
            np.testing.assert_array_equal(gradient, [1, 0, 0])
    assert jnp.diag(x).dtype == np.float64
    assert jnp.count_nonzero(x) == 2


@pytest.mark.parametrize("preferred", [None, "complex64"])
def test_a_real_factor_beside_a_complex_one_drops_imaginary_parts_in_silence(preferred):
    """The warning is for users who cast; warnings are errors in these tests."""
    x, y = jnp.arange(4.0).reshape(2, 2), jnp.ones((2, 2), "complex64") * (1 + 2j)

    def f(x, y):
        numbers = (((1,), (0,)), ((), ()))
        found = lax.dot_general(x, y, numbers, preferred_element_type=preferred)
        return found.imag.sum()

    for gradient in (minijax.grad(f), minijax.jit(minijax.grad(f))):
        np.testing.assert_array_equal(gradient(x, y), np.full((2, 2), 4.0))
