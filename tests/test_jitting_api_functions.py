"""Jitted functions: calls, keys, threads, memory."""

import copy
import functools
import inspect
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import eval_shape, grad, jit, make_jaxpr, vmap
from tests import leaks

V = np.float32([0.5, 1.0, 2.0])


class Counted:
    """A function that counts how often it runs in Python."""

    def __init__(self, fun):
        self.fun, self.runs = fun, 0
        functools.update_wrapper(self, fun)

    def __call__(self, *args, **kwargs):
        self.runs += 1
        return self.fun(*args, **kwargs)


def scaled(x, n=2):
    """Multiply."""
    return x * n


def test_a_function_runs_once_per_key():
    counted = Counted(scaled)
    f = minijax.jit(counted)
    for x in (V, 2 * V, jnp.asarray(V), 3 * V):
        np.testing.assert_array_equal(f(x), np.asarray(x) * 2)
    assert counted.runs == 1
    assert f._cache_size() == 1
    f(1.0), f(np.float32(1.0)), f(V[:2])
    assert counted.runs == 4


def test_weak_types_are_in_the_key():
    f = minijax.jit(lambda x: x * np.float16(2))
    assert f(np.float32(1)).dtype == np.float32
    assert f(1.0).dtype == np.float16
    assert f(np.float32(1)).dtype == np.float32


def test_what_a_jitted_function_shows():
    f = minijax.jit(scaled)
    assert (f.__name__, f.__doc__, f.__wrapped__) == ("scaled", "Multiply.", scaled)
    assert repr(f) == f"<PjitFunction of {scaled!r}>"
    assert inspect.signature(f) == inspect.signature(scaled)
    assert inspect.signature(f, follow_wrapped=False) == inspect.signature(scaled)


def test_results_of_dtype_float0_are_numpys():
    slope = jit(grad(lambda x: (x * 2.0).sum(), allow_int=True))
    x = jnp.arange(3)
    for _ in range(9):  # the fast path does not answer instead
        assert type(slope(x)) is np.ndarray and slope(x).dtype == minijax.float0
    compiled = slope.lower(x).compile()
    assert type(compiled(x)) is np.ndarray and compiled(x).shape == (3,)
    pair = jit(lambda x: (slope(x), x * 2))(x)
    assert type(pair[0]) is np.ndarray and pair[1].tolist() == [0, 2, 4]


def test_methods():
    class Model:
        def __init__(self, n):
            self.n, self.runs = n, 0

        @functools.partial(minijax.jit, static_argnums=0)
        def __call__(self, x):
            self.runs += 1
            return x * self.n

    model, other = Model(2), Model(3)
    assert [float(model(1.0)), float(model(2.0)), float(other(1.0))] == [2.0, 4.0, 3.0]
    assert (model.runs, other.runs) == (1, 1)
    assert isinstance(Model.__call__, type(minijax.jit(scaled)))


def test_decorator():
    @minijax.jit(static_argnames="n")
    def f(x, n):
        return [x] * n

    assert len(f(1.0, n=3)) == 3


def test_statics_by_position_and_by_name_are_one():
    counted = Counted(scaled)
    f = minijax.jit(counted, static_argnums=1)
    assert float(f(1.0, 3)) == float(f(1.0, n=3)) == 3.0
    assert counted.runs == 1
    assert float(f(1.0)) == 2.0


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "n"}])
def test_static_without_hash(options):
    f = minijax.jit(scaled, **options)
    with pytest.raises(ValueError, match=r"static argument n is \[2\] of type list"):
        f(1.0, [2])


def test_arguments_that_are_no_arrays_have_names():
    f = minijax.jit(lambda x, d: x)
    with pytest.raises(TypeError, match=r"argument d\['a'\]\[1\] is of type str"):
        f(1.0, {"a": [1, "b"]})


class Unhashable:
    __hash__ = None

    def __call__(self, x):
        return x + 1


def test_functions_without_a_hash():
    f = minijax.jit(Unhashable())
    assert [float(f(1.0)), float(f(2.0))] == [2.0, 3.0]
    assert f._cache_size() == 1


def test_bound_methods():
    class Doubler:
        def double(self, x):
            return 2 * x

    assert minijax.jit(Doubler().double)(2.0) == 4.0


def test_copies():
    f = minijax.jit(scaled, static_argnames="n")
    for g in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert g(1.0, n=3) == 3.0


@pytest.mark.of_the_cpu("names its backend, and looks at a buffer of NumPy")
def test_device():
    device = minijax.devices()[0]
    with pytest.warns(DeprecationWarning, match="device argument on jit is deprecated"):
        result = minijax.jit(scaled, device=device)(V)
    assert result.device is device and result.committed
    result = minijax.jit(scaled, backend="cpu")(V)
    assert result.device.platform == "cpu" and result.committed
    assert not minijax.jit(scaled, backend="interpreter")(V).committed


def test_closures_over_tracers():
    def outer(x):
        return minijax.jit(lambda y: x * y)(2.0)

    assert minijax.grad(outer)(3.0) == 2.0
    np.testing.assert_array_equal(minijax.vmap(outer)(V), 2 * V)
    assert minijax.grad(minijax.grad(lambda x: outer(x) * x))(1.0) == 4.0


def test_a_global_tracer_never_gets_into_a_cache():
    holder = []
    f = minijax.jit(lambda y: holder[0] * y)

    def outer(x):
        holder[:] = [x]
        return f(2.0)

    for point in (1.0, 5.0):
        assert minijax.grad(outer)(point) == 2.0
    holder[:] = [3.0]
    assert f(2.0) == 6.0


def test_leaked_tracers_are_refused():
    leaked = []
    minijax.jit(lambda x: leaked.append(x))(1.0)
    with pytest.raises(minijax.errors.UnexpectedTracerError):
        leaked[0] + 1


def test_eval_shape_and_clear_cache():
    counted = Counted(scaled)
    f = minijax.jit(counted)
    struct = f.eval_shape(minijax.ShapeDtypeStruct((3,), np.float32))
    assert struct.shape == (3,)
    f(V)
    assert counted.runs == 1
    f.clear_cache()
    assert f._cache_size() == 0
    f(V)
    assert counted.runs == 2


def in_threads(work, count):
    barrier, failures = threading.Barrier(count), []

    def run(number):
        barrier.wait()
        try:
            work(number)
        except BaseException as error:  # shown by the test
            failures.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not failures, failures[0]


def test_threads_trace_once():
    counted = Counted(lambda x: jnp.sin(x) * x)
    f = minijax.jit(counted)
    in_threads(lambda n: np.testing.assert_allclose(f(V), np.sin(V) * V, 1e-6), 16)
    assert counted.runs == 1


def test_threads_with_other_types_and_transformations():
    counted = Counted(lambda x: jnp.sin(x) * x)
    f = minijax.jit(counted)
    answers = {}

    def work(n):
        for size in range(1, 6):
            x = np.linspace(0, 1, size, dtype=np.float32)
            answers[n, size, 0] = np.asarray(f(x))
            answers[n, size, 1] = np.asarray(minijax.vmap(minijax.grad(f))(x))

    in_threads(work, 8)
    for (_, size, which), answer in answers.items():
        x = np.linspace(0, 1, size, dtype=np.float32)
        expected = [np.sin(x) * x, np.cos(x) * x + np.sin(x)][which]
        np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)
    assert counted.runs == 6


def test_threads_while_caches_are_cleared():
    f = minijax.jit(lambda x: jnp.sin(x) * x)

    def work(n):
        for size in range(1, 15):
            if n == 0:
                minijax.clear_caches()
            x = np.ones(size, np.float32)
            np.testing.assert_allclose(f(x), np.sin(x), rtol=1e-6)

    in_threads(work, 6)


@pytest.mark.of_the_cpu("counts objects; the emulator keeps work that is not done")
@pytest.mark.parametrize("work", leaks.ROUNDS, ids=lambda work: work.__name__)
def test_nothing_is_left_behind(work):
    rounds = max(leaks.ROUNDS[work] // 20, 20)
    size, objects = leaks.kept(work, rounds)
    assert objects < 30 + 2 * min(rounds, 50)  # llvmlite: a type for each new length
    assert size < 1_000_000


def test_the_number_of_programs_is_bounded():
    f = minijax.jit(lambda x: x)
    f._lane.limit = 4
    for size in range(10):
        f(np.zeros(size, np.float32))
    assert f._cache_size() == 4


def nested(depth):
    f = jnp.sin
    for _ in range(depth):
        f = jit(lambda x, g=f: g(x) + 1)
    return f


DEEP = {
    "call": (150, lambda f: f(1.0)),
    "text": (150, lambda f: str(make_jaxpr(f)(1.0))),
    "lowered": (150, lambda f: f.lower(1.0).as_text()),
    "shape": (150, lambda f: eval_shape(f, 1.0)),
    "gradient": (100, lambda f: grad(f)(1.0)),
    "program of the gradient": (100, lambda f: jit(grad(f))(1.0)),
    "batch": (100, lambda f: vmap(f)(jnp.ones(3))),
    "batch of gradients": (100, lambda f: vmap(grad(f))(jnp.ones(3))),
    "second derivative": (100, lambda f: grad(grad(f))(1.0)),
}


@pytest.mark.parametrize("name", DEEP)
def test_jitted_functions_within_jitted_functions(name):
    depth, way = DEEP[name]
    with ThreadPoolExecutor(1) as pool:  # a thread has a stack of its own
        limit, _ = sys.getrecursionlimit(), sys.setrecursionlimit(1000)
        try:
            pool.submit(way, nested(depth)).result()
        finally:
            sys.setrecursionlimit(limit)
