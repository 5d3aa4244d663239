"""Objects that promise an array, places of results, amounts that are traced."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, vmap


class Promise:
    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return self.x


PROMISE = Promise(jnp.array([1.0, 2.0, 3.0]))


@minijax.tree_util.register_dataclass
@dataclasses.dataclass
class Container:
    x: object

    def __jax_array__(self):
        return jnp.asarray(self.x)


V, M, PLACES = np.float32([0.3, 0.1, 0.2]), np.eye(3, dtype="float32"), np.array([0, 2])
OF_CONTAINERS = {
    "sin": lambda w: jnp.sin(w(V)),
    "add": lambda w: jnp.add(w(V), w(V)),
    "where": lambda w: jnp.where(w(V > 0.15), w(V), 0),
    "clip": lambda w: jnp.clip(w(V), 0.2, w(V)[:1] if w is np.asarray else 0.3),
    "isclose": lambda w: jnp.isclose(w(V), w(V)),
    "round": lambda w: jnp.round(w(V), 1),
    "sum where": lambda w: jnp.sum(w(V), where=w(V > 0.15)),
    "max initial": lambda w: jnp.max(w(V), initial=w(V[0])),
    "average": lambda w: jnp.average(w(V), weights=w(V)),
    "put": lambda w: jnp.put(w(V), w(PLACES), w(V[:2]), inplace=False),
    "select": lambda w: jnp.select([w(V > 0.15)], [w(V)], w(V)),
    "stack": lambda w: jnp.stack([w(V), w(V)]),
    "einsum": lambda w: jnp.einsum("ij,j", w(M), w(V)),
    "reduce": lambda w: jnp.add.reduce(w(V)),
    "outer": lambda w: jnp.add.outer(w(V), w(V)),
    "solve": lambda w: jnp.linalg.solve(w(M), w(V)),
    "fft": lambda w: jnp.fft.fft(w(V)),
    "relu": lambda w: minijax.nn.relu(w(V)),
    "erf": lambda w: minijax.scipy.special.erf(w(V)),
    "logpdf": lambda w: minijax.scipy.stats.norm.logpdf(w(V), w(V), w(V)),
    "expm": lambda w: minijax.scipy.linalg.expm(w(M)),
    "method": lambda w: jnp.asarray(V).dot(w(V)),
    "mapped": lambda w: lax.map(jnp.sin, w(V)),
}


@pytest.mark.parametrize("name", OF_CONTAINERS)
def test_a_container_that_promises_an_array_is_an_operand(name):
    call = OF_CONTAINERS[name]
    np.testing.assert_array_equal(call(Container), call(np.asarray))


def test_containers_that_promise_arrays_are_transformed_as_trees():
    slope = grad(lambda w: jnp.sum(jnp.square(w)))(Container(jnp.asarray(V)))
    assert isinstance(slope, Container) and np.allclose(slope.x, 2 * V)
    assert jit(jnp.sin)(Container(V)).shape == (3,)
    with pytest.raises(ValueError, match="explicitly convert your object"):
        lax.sin(Container(V))


class Duck:
    shape, dtype = (2, 3), np.dtype("float32")

    def __jax_array__(self):
        raise AssertionError("asked for its numbers")


@minijax.tree_util.register_static
class Listed(Duck):
    """The same, as a container of trees."""


@pytest.mark.parametrize("kind", [Duck, Listed])
def test_questions_of_shape_and_dtype_ask_for_no_numbers(kind):
    x = kind()
    for like in (jnp.zeros_like, jnp.ones_like, jnp.empty_like):
        assert (like(x).shape, like(x).dtype) == (kind.shape, kind.dtype)
    assert jnp.full_like(x, 2)[0, 0] == 2 and jnp.zeros_like(x, shape=4).shape == (4,)
    assert (jnp.shape(x), jnp.size(x)) == ((2, 3), 6)
    assert jnp.result_type(x, jnp.int8) == lax.dtype(x) == np.float32
    assert not jnp.iscomplexobj(x) and jnp.issubdtype(x, jnp.floating)


def test_a_type_of_weak_numbers_makes_no_weak_array():
    weak = minijax.ShapeDtypeStruct((2,), "float32", weak_type=True)
    assert not jnp.zeros_like(weak).weak_type
    assert jnp.zeros_like(jnp.asarray(1.0)).weak_type


TYPES = ["float32", "int32", np.dtype("int8"), np.float16, jnp.int8, bool, 2.0, True]


@pytest.mark.parametrize("x", TYPES, ids=str)
def test_the_dtype_of_a_type_of_numbers(x):
    assert lax.dtype(x) == jnp.result_type(x)


def test_none_has_no_dtype_and_an_array_is_none():
    with pytest.raises(ValueError, match="dtype of None"):
        lax.dtype(None)
    for make in (jnp.ones, lambda n, x: jnp.ones(n).astype(x)):
        with pytest.raises(ValueError, match=r"instead of\s+dtype=x use dtype=x.dtype"):
            make(2, jnp.ones(2))


@pytest.mark.parametrize("back", [False, True])
def test_a_promise_is_an_operand(back):
    x = jnp.arange(3.0)
    for operate in (lambda a, b: a - b, lambda a, b: a < b, lambda a, b: a**b):
        pair = (PROMISE, x) if back else (x, PROMISE)
        plain = (PROMISE.x, x) if back else (x, PROMISE.x)
        assert np.array_equal(operate(*pair), operate(*plain))


class Pair(NamedTuple):
    x: object

    def __jax_array__(self):
        return jnp.asarray(self.x)


def test_a_named_tuple_that_promises_an_array_is_no_sequence():
    assert jnp.asarray(Pair(V)).tolist() == V.tolist()
    assert jnp.array([Pair(V), V]).tolist() == [V.tolist()] * 2
    assert jnp.stack([Pair(V), V]).shape == (2, 3)


def test_a_promise_of_a_tracer_is_traced():
    w = jit(lambda a, b: a * Promise(b) + jnp.stack([Promise(a), b]).sum())
    assert np.array_equal(w(jnp.ones(2), jnp.ones(2)), [5, 5])
    assert grad(lambda a: (Promise(a) * a).sum())(jnp.ones(2)).tolist() == [2, 2]


def test_transformations_and_lax_refuse_a_promise_with_its_name():
    with pytest.raises(ValueError, match="x is of type Promise.*__jax_array__"):
        jit(lambda x: x)(PROMISE)
    for function in (lax.sin, jnp.sin, minijax.typeof, minijax.device_put):
        with pytest.raises(ValueError, match="explicitly convert your object"):
            function(PROMISE)


def test_what_neither_is_nor_promises_an_array_is_no_operand():
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = jnp.ones(2) + object()


@pytest.mark.parametrize("name", "zeros ones empty".split())
def test_results_lie_on_the_device_that_is_asked_for(name):
    device = minijax.devices()[0]
    assert getattr(jnp, name)(2, device=device).devices() == {device}
    like = getattr(jnp, f"{name}_like")(jnp.ones(2), device=device)
    assert like.devices() == {device}
    with pytest.raises(ValueError, match="only accepts"):
        getattr(jnp, name)(2, device="the moon")


def test_a_device_and_a_sharding_are_one_too_many():
    with pytest.raises(ValueError, match="Only one of `device` or `out_sharding`"):
        jnp.ones(2, device=minijax.devices()[0], out_sharding="rows")


@pytest.mark.parametrize("name", "cbrt exp log1p logistic rsqrt tanh".split())
def test_an_accuracy_changes_nothing(name):
    function, x = getattr(lax, name), jnp.array([0.25, 1.0])
    for accuracy in (None, lax.AccuracyMode.HIGHEST, lax.Tolerance(rtol=1e-3)):
        assert np.array_equal(function(x, accuracy=accuracy), function(x))
    with pytest.raises(NotImplementedError, match="Accuracy high not supported"):
        function(x, accuracy="high")


def test_a_product_in_another_dtype_does_not_overflow():
    x = np.float16([300, 2])
    assert not np.isfinite(lax.mul(x, x)[0])
    product = lax.mul(x, x, out_dtype="float32")
    assert product.dtype == np.float32 and product.tolist() == [90000, 4]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_a_roll_by_a_traced_amount_is_that_of_numpy(size):
    x = np.arange(size * 2).reshape(2, size)
    roll = jit(lambda n: jnp.roll(x, n, axis=1))
    for n in range(-2 * size - 1, 2 * size + 2):
        assert np.array_equal(roll(n), np.roll(x, n, axis=1))


def test_traced_rolls_compose():
    x = jnp.arange(5.0)
    rolled = vmap(lambda n: jnp.roll(x, n))(jnp.arange(5))
    assert np.array_equal(rolled, [np.roll(x, n) for n in range(5)])
    slope = jit(grad(lambda x, n: (jnp.roll(x, n) * jnp.arange(5.0)).sum()))
    assert np.array_equal(slope(x, 2), np.roll(np.arange(5.0), -2))
    both = jit(lambda n: jnp.roll(jnp.ones((2, 3)), n, axis=(0, 1)))
    assert both(jnp.array([1, 2])).shape == (2, 3)


def test_traced_repeats_need_a_length():
    with pytest.raises(minijax.errors.ConcretizationTypeError, match="must be static"):
        jit(lambda n: jnp.repeat(jnp.ones(2), n))(2)
    repeat = jit(lambda x, n: jnp.repeat(x, n, total_repeat_length=5))
    assert np.array_equal(repeat(jnp.arange(3), jnp.array([2, 0, 1])), [0, 0, 2, 2, 2])
    assert np.array_equal(repeat(jnp.arange(3), jnp.array([4, 4, 4])), [0] * 4 + [1])


def test_repeats_end_with_the_last_element():
    found = jnp.repeat(jnp.array([1, 2, 3]), np.array([1, 2, 0]), total_repeat_length=5)
    assert found.tolist() == [1, 2, 2, 3, 3]


@pytest.mark.parametrize("name", "sum prod max min".split())
def test_a_fold_starts_from_one_number(name):
    fold, x = getattr(jnp, name), jnp.array([[1.0, 2.0], [3.0, 4.0]])
    plain = getattr(np, name)(np.asarray(x), axis=0, initial=2.5)
    assert np.array_equal(fold(x, axis=0, initial=jnp.float32(2.5)), plain)
    assert np.array_equal(jit(lambda i: fold(x, axis=0, initial=i))(2.5), plain)
    with pytest.raises(ValueError, match="must be a scalar. Got array of shape"):
        fold(x, axis=0, initial=jnp.ones(2))


def numbers(x):
    yield x


class Holder:
    static = staticmethod(lambda x: x)


@pytest.mark.parametrize("transform", [jit, grad, vmap, minijax.jacfwd])
def test_generators_and_static_methods_are_refused_at_once(transform):
    for generator in (numbers, functools.partial(numbers)):
        with pytest.raises(TypeError, match="got a generator function"):
            transform(generator)
    with pytest.raises(TypeError, match="staticmethod arguments are not supported"):
        transform(Holder.__dict__["static"])
    assert transform(Holder.static)(1.0) is not None if transform is not vmap else True


def test_gradients_of_integers_are_float0():
    for run in (grad, lambda f, **kw: jit(grad(f, **kw))):
        slope = run(lambda n: (n * 2.0).sum(), allow_int=True)(jnp.arange(3))
        assert slope.dtype == minijax.float0 and slope.shape == (3,)
    assert str(minijax.typeof(np.zeros(2, minijax.float0))) == "float0[2]"
