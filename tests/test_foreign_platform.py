"""A platform whose buffers only its device can read: nothing else may touch them."""

import copy
import pickle

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.devices import host_device
from minijax.experimental import io_callback
from minijax.jitting import compilation
from minijax.jitting.compilation import Interpreter, default_backends
from tests import corpus
from tests.commands import LONG
from tests.foreign_platform import Sealed, foreign_platform

HERE = host_device()
BACKENDS = ["interpreter", "python", "kernels", "llvm", "planned", "cpu"]


def total(f):
    return lambda x: jnp.sum(jnp.real(f(x)) * 1.0)


WAYS = {
    "eager": lambda f: f,
    "jit of grad": lambda f: minijax.jit(minijax.grad(total(f))),
    "jvp": lambda f: lambda x: minijax.jvp(f, (x,), (x,)),
    "vmap": lambda f: lambda x: minijax.vmap(f)(jnp.stack([x, x])),
}
PROGRAMS = corpus.programs(minijax)
BACKWARDS = "does not work for lax.while_loop"


@pytest.fixture(scope="module")
def devices():
    with foreign_platform() as devices:
        yield devices


@pytest.fixture
def there(devices):
    return devices[0]


@pytest.fixture
def x(there):
    return minijax.device_put(jnp.arange(6.0).reshape(2, 3), there)


def places(tree):
    return {x.device for x in minijax.tree.leaves(tree)}


@pytest.mark.parametrize("way", WAYS)
def test_the_corpus_runs_there(way, there):
    """Every second program, the others for the next way; `LONG=1`: all."""
    before = there.did["mul"]
    programs = [*PROGRAMS.items()]
    first = [*WAYS].index(way) % 2
    for name, (f, point) in programs if LONG else programs[first::2]:
        g = WAYS[way](f)
        try:
            expected = g(jnp.asarray(point))
        except ValueError as error:
            assert BACKWARDS in str(error)
            continue
        with minijax.default_device(there):
            found = g(jnp.asarray(point))
        assert places(found) == {there}, name
        for ours, theirs in zip(*map(minijax.tree.leaves, (found, expected))):
            np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5, err_msg=name)
    assert there.did["mul"] > before + 25  # it is there that they were computed


def test_sealed_buffers_answer_nothing(x, there):
    buffer = x._buffer
    assert type(buffer) is Sealed
    for ask in (np.asarray, len, bool, lambda b: b[0], lambda b: b + 1):
        with pytest.raises(AssertionError, match="buffer of another platform"):
            ask(buffer)
    with pytest.raises(AttributeError):
        buffer.flags  # noqa: B018
    np.testing.assert_array_equal(there.fetch(buffer), np.arange(6.0).reshape(2, 3))


def test_numbers_come_and_go(x, there, devices):
    assert repr(x) == repr(jnp.arange(6.0).reshape(2, 3))
    assert str(x[0]) == "[0. 1. 2.]" and f"{x[1, 2]:.1f}" == "5.0"
    assert (float(x[0, 1]), int(x[1, 0]), bool(x[0, 0])) == (1.0, 3, False)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x[0, 2].item() == 2
    for copied in (copy.copy(x), copy.deepcopy(x), x.copy(), jnp.array(x)):
        assert copied.device is there
    for numbers in (np.asarray(x), minijax.device_get(x), np.from_dlpack(x)):
        np.testing.assert_array_equal(numbers, np.arange(6.0).reshape(2, 3))
    for device in (HERE, devices[1], there):
        put = minijax.device_put(x, device)
        assert put.device is device and put.committed
        np.testing.assert_array_equal(put, x)
    given = minijax.device_put(x + 1, devices[1], donate=True)
    assert given.device is devices[1]
    [shard] = x.addressable_shards
    assert shard.data.device is there and x.on_device_size_in_bytes() == 24


def test_waiting_is_the_device_s(x, there):
    before = there.did["wait"]
    assert x.block_until_ready() is x and x.is_ready()
    minijax.block_until_ready({"x": [x, 1.0]})
    assert there.did["wait"] == before + 2


def test_pickles_are_of_numbers(x, there):
    numbers = pickle.dumps(x)
    assert pickle.loads(numbers).device is minijax.jit(lambda: 1.0)().device
    with minijax.default_device(there):
        found = pickle.loads(numbers)
    assert found.device is there and type(found._buffer) is Sealed


def test_operands_meet_there(x, there, devices):
    here = jnp.ones((2, 3))
    for result in (x + here, here * x, x + 1, jnp.where(x > 1, here, x)):
        assert places(result) == {there} and result.committed
    with pytest.raises(ValueError, match="platform FOREIGN.*platform CPU"):
        lax.add(x, minijax.device_put(here, HERE))
    with pytest.raises(ValueError, match="ids .0. on platform FOREIGN.*ids .1. on pl"):
        lax.add(x, minijax.device_put(here, devices[1]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_host_s_programs_run_on_the_host(backend, there):
    """Numbers of Python, constants and carries among them."""
    here = minijax.device_put(jnp.arange(3.0), HERE)
    loop = lambda x, y: lax.scan(lambda c, _: (c * y, x), y, None, 3)  # noqa: E731
    for f in (lambda x, y: x * y + 1, loop):
        f = minijax.jit(f, backend=backend)
        expected = f(here, 2.0)
        with minijax.default_device(there):
            found = f(here, 2.0)
        assert places(found) == {HERE}
        for pair in zip(minijax.tree.leaves(found), minijax.tree.leaves(expected)):
            np.testing.assert_array_equal(*pair)
    with minijax.default_device(there):
        result = lax.scan(lambda c, x: (c * 2 + x, c), 2.0, here)
    assert places(result) == {HERE}


def test_the_library(x, there):
    key = minijax.device_put(minijax.random.key(0), there)
    results = [
        jnp.sort(x), jnp.argsort(x), lax.top_k(x, 2), jnp.median(x), x @ x.T,
        jnp.cumsum(x), jnp.linalg.norm(x), minijax.random.normal(key, (3,)),
        minijax.random.gamma(key, 2.0, (3,)), minijax.random.permutation(key, x),
        minijax.random.split(key), lax.associative_scan(jnp.add, x), list(x),
        jnp.searchsorted(jnp.arange(4.0), x), minijax.hessian(total(jnp.sin))(x),
        minijax.linearize(jnp.sin, x)[1](x), jnp.zeros(3, device=there),
        minijax.grad(minijax.checkpoint(total(jnp.sin)))(x),
    ]  # fmt: skip
    assert places(results) == {there}
    assert "Array((), dtype=key<fry>)" in repr(key)


@pytest.mark.parametrize("way", [lambda f: f, minijax.jit], ids=["eager", "jit"])
def test_callbacks_run_on_the_host(way, x, there):
    seen = []

    def double(numbers):
        seen.append((numbers.device, numbers.committed, jnp.ones(1).device))
        return numbers * 2

    @way
    def f(x):
        minijax.debug.callback(double, x)
        return minijax.pure_callback(double, x, x) + io_callback(double, x, x)

    with minijax.default_device(there):
        result = f(x)
    assert result.device is there and seen == [(HERE, True, HERE)] * 3
    np.testing.assert_array_equal(result, np.asarray(x) * 4)


def test_invalid_numbers_are_found(x):
    with minijax.debug_nans(True):
        assert jnp.sin(x).committed
        for f in (jnp.log, minijax.jit(jnp.log)):
            with pytest.raises(FloatingPointError, match="invalid value"):
                f(x - 3)


def test_one_function_on_two_platforms(x, there):
    """The fast path takes calls on the CPU, and leaves the others alone."""
    f = minijax.jit(lambda a: a * 2)
    here = jnp.asarray(np.asarray(x))
    for _ in range(150):
        assert places(f(here)) == {here.device} and places(f(x)) == {there}
        assert f(here[:, ::2]).shape == (2, 2) and places(f(x[:, 1:])) == {there}


def test_donated(x):
    given = x + 1
    result = minijax.jit(lambda a: a * 2, donate_argnums=0)(given)
    assert given.is_deleted()
    np.testing.assert_array_equal(result, (np.asarray(x) + 1) * 2)


def test_programs_are_asked_there(x, there):
    here = minijax.sharding.SingleDeviceSharding(HERE)
    sharding = minijax.sharding.SingleDeviceSharding(there)
    double = lambda a: a * 2  # noqa: E731
    assert minijax.jit(double, in_shardings=sharding)(jnp.ones(3)).device is there
    assert minijax.jit(double, out_shardings=sharding)(jnp.ones(3)).device is there
    assert minijax.jit(double, in_shardings=here)(x).device is HERE
    assert minijax.jit(double, backend="foreign")(jnp.ones(3)).device is there
    struct = minijax.ShapeDtypeStruct((3,), "float32", sharding=sharding)
    run = minijax.jit(double).lower(struct).compile()
    assert run(jnp.ones(3)).device is there


def test_a_platform_has_its_own_backend(x, there, monkeypatch):
    """The default backend of a platform, and one that asks for the device."""
    made = []

    class ForeignProgram(Interpreter):
        platforms, per_device = ("foreign",), True

        def __init__(self, closed, name="program", device=None):
            super().__init__(closed, name)
            made.append((name, device))

    monkeypatch.setitem(compilation.backends, "foreign code", ForeignProgram)
    monkeypatch.setitem(default_backends, "foreign", "foreign code")
    f = minijax.jit(lambda a: jnp.tanh(a))
    assert places([f(x), f(x)]) == {there} and made == [("<lambda>", there)]
    f(jnp.ones(3))
    assert len(made) == 1
    with pytest.raises(RuntimeError, match="'foreign code' makes programs for foreign"):
        minijax.jit(jnp.sin, backend="foreign code")(jnp.ones(3))


@pytest.mark.parametrize("backend", ["cpu", "python", "kernels", "vectors"])
def test_backends_of_other_platforms_refuse(backend, x):
    refused = pytest.raises(RuntimeError, match="makes programs for cpu; .* on foreign")
    with minijax.config.override("minijax_backend", backend), refused:
        minijax.jit(jnp.sin)(x)
