"""Programs in planned memory: machine code beside the interpreter."""

import threading

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, vmap
from minijax.jitting.arguments import is_deleted
from minijax.jitting.compilation import backend_name, backends
from tests.kernel_cases import alike

X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


def planned(f, **options):
    return jit(f, backend="planned", **options)


def address(x):
    return x._buffer.ctypes.data


def test_the_default_stays():
    assert "planned" in backends and backend_name() != "planned"


def test_results_are_not_shared_by_calls():
    f = planned(lambda x: jnp.exp(x)[::-1] + 1.0)
    first = f(X)
    kept = np.array(first)
    for k in range(5):
        f(X + k)
    np.testing.assert_array_equal(first, kept)


def test_results_that_are_arguments_or_constants():
    table = jnp.arange(4.0) + 0
    f = planned(lambda x, y: (x, table, x + y, y, table))
    x = jnp.ones(4) + 0
    for _ in range(2):
        a, b, c, d, e = f(x, np.ones(4, "float32"))
        assert alike(a, np.ones(4, "float32")) and alike(
            b, np.arange(4, dtype="float32")
        )
        assert alike(c, np.full(4, 2.0, "float32")) and e.shape == d.shape == (4,)


def test_arguments_of_every_form():
    f = planned(lambda x: x * 2.0 + 1.0)
    unaligned = np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view("float32")
    for x in (
        X,
        X.T,
        X[::-1, ::2],
        np.asfortranarray(X),
        unaligned,
        X[:0],
        2.0,
        X[0, 0],
    ):
        assert alike(f(x), np.asarray(x, "float32") * 2 + 1)
    g = planned(lambda x, y: x + y)
    assert alike(g(X, X), X + X)


def step(w, m, g):
    m = 0.9 * m + g
    return w - 0.1 * m, m


class TestDonation:
    def arrays(self):
        return [jnp.asarray(X) + k for k in range(3)]

    def test_results_are_where_arguments_were(self):
        f, (w, m, g) = planned(step, donate_argnums=(0, 1)), self.arrays()
        wanted = [np.asarray(x) for x in step(w, m, g)]
        before = {address(w), address(m)}
        new = f(w, m, g)
        assert {address(x) for x in new} == before
        assert is_deleted(w) and is_deleted(m) and not is_deleted(g)
        for ours, other in zip(new, wanted):
            assert alike(ours, other)

    def test_again_and_again(self):
        f, (w, m, g) = planned(step, donate_argnums=(0, 1)), self.arrays()
        ours, wanted = (w, m), (np.asarray(w).copy(), np.asarray(m).copy())
        places = {address(w), address(m)}
        for _ in range(5):
            ours, wanted = f(*ours, g), step(*wanted, np.asarray(g))
            assert {address(x) for x in ours} == places
        assert alike(ours[0], wanted[0].astype("float32"))

    @pytest.mark.parametrize(
        "hold",
        [
            np.asarray,
            lambda x: np.from_dlpack(x),
            lambda x: jit(lambda x: x, backend="planned")(x),
            lambda x: jit(lambda x: x.reshape(4, 3), backend="interpreter")(x),
            lambda x: x[1:],
            lambda x: x.T,
            lambda x: memoryview(np.asarray(x)),
        ],
    )
    def test_what_others_see_stays(self, hold):
        f, x = planned(lambda x: x * 2.0, donate_argnums=0), jnp.asarray(X) + 0
        holder = hold(x)
        before = np.array(holder)
        assert alike(f(x), X * 2)
        np.testing.assert_array_equal(np.array(holder), before)

    def test_the_memory_under_two_names(self):
        x = jnp.asarray(X) + 0
        y = jit(lambda x: x, backend="planned")(x)
        f = planned(lambda x, y: (x + 1.0, x + y), donate_argnums=0)
        first, second = f(x, y)
        assert alike(first, X + 1) and alike(second, X + X) and alike(y, X)

    def test_a_constant_of_the_program(self):
        x = jnp.asarray(X) + 0
        f = planned(lambda y: (y * 2.0, y + x), donate_argnums=0)
        for k in range(2):
            first, second = f(jnp.asarray(X) + k)
            assert alike(first, (X + k) * 2) and alike(second, X + k + X)
        first, second = f(x)
        assert alike(first, X * 2) and alike(second, X + X)

    def test_numpy_arrays_are_copied(self):
        numbers = X.copy()
        f = planned(lambda x: x + 1.0, donate_argnums=0)
        assert alike(f(numbers), X + 1) and np.array_equal(numbers, X)
        assert alike(f(np.asfortranarray(X)), X + 1)

    def test_an_argument_that_comes_back(self):
        f = planned(lambda x, y: (x, x + y), donate_argnums=0)
        x = jnp.asarray(X) + 0
        same, total = f(x, X)
        assert is_deleted(x) and alike(same, X) and alike(total, X + X)

    def test_after_an_error(self):
        def fail(x):
            raise ValueError("no")

        def f(x):
            y = jnp.exp(x) * 2.0
            shape = minijax.ShapeDtypeStruct(x.shape, x.dtype)
            return minijax.pure_callback(fail, shape, y) + y

        x = jnp.asarray(X) + 0
        with pytest.raises(Exception, match="no"):
            planned(f, donate_argnums=0)(x)
        assert is_deleted(x)

    def test_stages(self):
        w, m, g = self.arrays()
        compiled = planned(step, donate_argnums=(0, 1)).lower(w, m, g).compile()
        wanted, before = np.asarray(step(w, m, g)[0]), {address(w), address(m)}
        new = compiled(w, m, g)
        assert address(new[0]) in before and is_deleted(w) and alike(new[0], wanted)
        assert compiled.memory_analysis().alias_size_in_bytes == 2 * X.nbytes

    def test_under_transformations_nothing_is_overwritten(self):
        f, x = planned(lambda x: x * x, donate_argnums=0), jnp.asarray(X) + 0
        assert alike(grad(lambda x: f(x).sum())(x), 2 * X)
        assert alike(vmap(f)(x), X * X) and alike(x, X)


def test_callbacks_may_keep_what_they_get():
    kept = []

    def keep(x):
        kept.append(x)
        return np.asarray(x) + 1

    def f(x):
        shape = minijax.ShapeDtypeStruct(x.shape, x.dtype)
        y = minijax.pure_callback(keep, shape, jnp.exp(x))
        return jnp.sin(jnp.cos(y)[::-1] * 2.0)[::-1]

    run = planned(f)
    for k in range(3):
        run(X + k)
    for k, x in enumerate(kept):
        assert alike(np.asarray(x), np.exp(X + np.float32(k)))


def test_callbacks_may_call_the_program_again():
    def f(x, depth):
        def inner(x):
            return np.asarray(run[depth - 1](x)) if depth else np.asarray(x)

        shape = minijax.ShapeDtypeStruct(x.shape, x.dtype)
        y = jnp.exp(x * 0.5)[::-1]
        return minijax.pure_callback(inner, shape, x + 1.0) + y

    run = [planned(lambda x, depth=depth: f(x, depth)) for depth in range(3)]
    wanted = X.copy()
    for _ in range(2):
        assert run[2](X).shape == wanted.shape
    again = planned(lambda x: recursive(x))

    def recursive(x):
        def inner(x):
            return np.asarray(again(x) if x.max() < 3 else x)

        shape = minijax.ShapeDtypeStruct(x.shape, x.dtype)
        below = jnp.sin(x)[::-1]
        return minijax.pure_callback(inner, shape, x + 1.0) + below

    def reference(x):
        return (reference(x + 1) if (x + 1).max() < 3 else x + 1) + np.sin(x)[::-1]

    assert alike(again(X), reference(X).astype("float32"))


def test_threads():
    f = planned(lambda x: jnp.tanh(x)[::-1] * 2.0 + x.sum())
    wrong = []

    def work(k):
        x = X + np.float32(k)
        for _ in range(20):
            if not alike(f(x), np.tanh(x)[::-1] * 2 + x.sum()):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_control_flow():
    def f(x):
        c, ys = lax.scan(
            lambda c, a: (jnp.sin(c * a), c.sum()), x, jnp.stack([x, x + 1])
        )
        return lax.cond(ys.sum() > 0, lambda c: jnp.exp(c) * x, jnp.cos, c)

    for g in (f, lambda x: grad(lambda x: f(x).sum())(x)):
        reference = jit(g, backend="interpreter")(X)
        assert alike(planned(g)(X), reference, least=1e-2)


def test_results_without_memory():
    f = planned(lambda x: minijax.jvp(lambda x: (x, jnp.argmax(x)), (x,), (x,)))
    (_, place), (_, none) = f(X[0])
    assert place == 3 and none.shape == ()


@pytest.mark.parametrize("backend", ["planned", "vectors"])
def test_dialects_are_those_of_the_stage_s_own_backend(backend):
    f = jit(lambda x: jnp.sin(x) * 2.0 + jnp.exp(x), backend=backend)
    lowered = f.lower(np.ones(1000, "float32"))
    assert lowered.as_text("kernels").count(" = exp") == 1
    program = lowered.compile().runtime_executable().lowered
    assert lowered.as_text("kernels") == str(program)
    assert lowered.as_text("llvm") == lowered.compile().as_text()
