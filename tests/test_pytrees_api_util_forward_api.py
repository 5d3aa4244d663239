"""jvp of functions on trees of arrays."""

import numpy as np
import pytest

import minijax as jax
from minijax import lax
from minijax.arrays.dtypes import float0
from minijax.pytrees.argument_checks import instantiate_tangent

X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = {"w": np.float32([0.1, -0.2, 0.3]), "b": np.float32(0.5)}
V = {"w": np.float32([1.0, 0.5, -1.0]), "b": np.float32(2.0)}


def affine(params, x):
    """A line, with its parameters in a dictionary."""
    return lax.tanh(x * params["w"] + params["b"])


def test_parameters_in_a_dictionary():
    y, dy = jax.jvp(affine, (W, X), (V, np.zeros_like(X)))
    slope = 1 - np.asarray(y) ** 2
    np.testing.assert_allclose(dy, slope * (X * V["w"] + V["b"]), rtol=1e-5)


def test_results_are_trees():
    primals, tangents = jax.jvp(lambda x: {"a": [x * 3.0], "b": None}, (2.0,), (1.0,))
    assert float(primals["a"][0]) == 6.0 and float(tangents["a"][0]) == 3.0
    assert primals["b"] is None and tangents["b"] is None


def test_other_data_is_handed_through():
    y, dy, aux = jax.jvp(
        lambda x: (x * x, {"half": x * 0.5, "note": "hi"}), (3.0,), (1.0,), has_aux=True
    )
    assert (float(y), float(dy)) == (9.0, 6.0)
    assert float(aux["half"]) == 1.5 and aux["note"] == "hi"


def test_lists_of_arguments():
    y, dy = jax.jvp(lambda x, y: x * y, [2.0, 3.0], [1.0, 0.0])
    assert (float(y), float(dy)) == (6.0, 3.0)


def test_integers_do_not_move():
    zero = np.zeros((), float0)
    y, dy = jax.jvp(lambda x, n: (x * n, n), (2.0, 3), (1.0, zero))
    assert float(dy[0]) == 3.0
    assert dy[1].dtype == float0 and dy[1].shape == ()


def test_what_does_not_depend_on_the_argument_has_zeros():
    _, tangents = jax.jvp(lambda x: (X, 3.0, x > 0.0, 5), (1.0,), (1.0,))
    assert tangents[0].shape == (2, 3) and tangents[0].dtype == np.float32
    assert not np.asarray(tangents[0]).any()
    assert tangents[1].dtype == np.float32 and tangents[1].weak_type
    assert tangents[2].dtype == tangents[3].dtype == float0


def test_a_function_of_nothing():
    assert float(jax.jvp(lambda: 1.0, (), ())[1]) == 0.0


def test_derivatives_of_derivatives():
    def slope(x):
        return jax.jvp(lambda x: x * x * x, (x,), (1.0,))[1]

    assert float(jax.jvp(slope, (2.0,), (1.0,))[1]) == 12.0


def test_dense_tangent():
    assert instantiate_tangent(1.0, 2.0) == 2.0
    assert instantiate_tangent(X, None).shape == (2, 3)


def f(x):
    """The function of all bad calls."""
    return x


ERRORS = [
    (lambda: jax.jvp(3, (1.0,), (1.0,)), TypeError, "callable value, got 3"),
    (lambda: jax.jvp(f, 1.0, 1.0), TypeError, r"tuple .* \(x,\) and \(t,\)"),
    (lambda: jax.jvp(f, (1.0,), {"a": 1.0}), TypeError, "a tuple and a dict"),
    (lambda: jax.jvp(f, ("a",), ("a",)), TypeError, "argument x is of type str"),
    (lambda: jax.jvp(f, (1.0,), ("a",)), TypeError, "tangent of x"),
    (lambda: jax.jvp(f, (1.0,), (1,)), TypeError, "x has dtype float32.* not int32"),
    (lambda: jax.jvp(f, (1,), (1,)), TypeError, "float0, not int32.*Integers"),
    (lambda: jax.jvp(f, (True,), (False,)), TypeError, "float0, not bool"),
    (lambda: jax.jvp(f, (1j,), (1.0,)), TypeError, "complex64, not float32"),
    (
        lambda: jax.jvp(f, (X,), (X.astype(np.float16),)),
        TypeError,
        "float32, not float16",
    ),
    (lambda: jax.jvp(f, (X,), (X.T,)), ValueError, r"x has shape \(2, 3\).*\(3, 2\)"),
    (
        lambda: jax.jvp(f, ({"w": [X]},), ({"w": [X[0]]},)),
        ValueError,
        r"x\['w'\]\[0\] has shape \(2, 3\) and its tangent \(3,\)",
    ),
    (
        lambda: jax.jvp(f, (1,), (np.zeros(2, float0),)),
        ValueError,
        r"x has shape \(\)",
    ),
    (
        lambda: jax.jvp(f, ({"a": 1.0},), ({"b": 1.0},)),
        TypeError,
        r"tangents\[0\]: expected a dict with \('a',\)",
    ),
    (lambda: jax.jvp(f, (1.0,), [1.0]), TypeError, "tuple, got .* of type list"),
    (lambda: jax.jvp(f, (1.0,), (None,)), TypeError, "tree structure of primals"),
    (lambda: jax.jvp(f, (1.0, 2.0), (1.0,)), TypeError, "length 2, got length 1"),
    (lambda: jax.jvp(f, (1.0, 2.0), (1.0, 2.0)), TypeError, "positional argument"),
    (lambda: jax.jvp(lambda x: "a", (1.0,), (1.0,)), TypeError, "returned .* str"),
    (lambda: jax.jvp(f, (1.0,), (1.0,), has_aux=True), TypeError, "pair"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors_say_where_and_what(call, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        call()
