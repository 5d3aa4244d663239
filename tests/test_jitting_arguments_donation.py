"""Arrays that are given up."""

import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.errors import ConcretizationTypeError, JaxRuntimeError
from minijax.jitting.arguments import aliasable_inputs, is_deleted

GONE = r"Array has been deleted with shape=float32\[3\]"


def ones():
    return jnp.ones(3) + 0


@pytest.fixture
def gone():
    x = ones()
    x.delete()
    return x


def test_what_is_known_of_a_deleted_array(gone):
    assert gone.is_deleted() and is_deleted(gone)
    assert (gone.shape, gone.dtype, gone.ndim, len(gone)) == ((3,), np.float32, 1, 3)
    gone.delete()


USES = {
    "operator": lambda x: x + 1,
    "function": jnp.sin,
    "numpy": np.asarray,
    "repr": repr,
    "str": str,
    "format": lambda x: f"{x}",
    "list": lambda x: x.tolist(),
    "copy": lambda x: x.copy(),
    "wait": lambda x: x.block_until_ready(),
    "devices": lambda x: x.devices(),
    "device": lambda x: x.device,
    "pickle": pickle.dumps,
    "jit": minijax.jit(lambda x: x * 2),
    "grad": minijax.grad(lambda x: (x * x).sum()),
    "closure": lambda x: minijax.jit(lambda y: x * y)(2.0),
    "dlpack": lambda x: np.from_dlpack(x),
}


@pytest.mark.parametrize("use", USES)
def test_a_deleted_array_is_of_no_use(use, gone):
    with pytest.raises(RuntimeError, match=GONE):
        USES[use](gone)


def donated():
    x = ones()
    minijax.jit(lambda x: x + 1.0, donate_argnums=0)(x)
    return x


def test_a_donated_array_is_refused_as_in_jax(gone):
    """What has run before raises the error of JAX's runtime; its Python another."""
    double, words = minijax.jit(lambda x: x * 2), "Buffer has been deleted or donated"
    with pytest.raises(RuntimeError, match=GONE):
        double(donated())
    double(ones())
    for _ in range(3):
        with pytest.raises(ValueError, match=f"{words}.*{GONE}.*donate_argnums"):
            double(donated())
    with pytest.raises(RuntimeError, match=rf"{GONE}.*delete\(\)"):
        double(gone)


def test_memory_is_free():
    x = ones()
    buffer = weakref.ref(x._buffer)
    x.delete()
    assert buffer() is None


def test_donated():
    x, y = ones(), ones()
    step = minijax.jit(lambda x, y: x + y, donate_argnums=0)
    np.testing.assert_array_equal(step(x, y), [2.0] * 3)
    assert x.is_deleted() and not y.is_deleted()


def test_what_comes_back_lives():
    x = ones()
    result = minijax.jit(lambda x: x, donate_argnums=0)(x)
    assert x.is_deleted() and not result.is_deleted()
    np.testing.assert_array_equal(result, [1.0] * 3)


def test_numpy_arrays_are_left_alone():
    x = np.ones(3, np.float32)
    minijax.jit(lambda x: x + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(x, [1.0] * 3)


def test_useless_donation_warns():
    x = ones()
    with pytest.warns(UserWarning, match=r"not usable: float32\[3\]") as caught:
        minijax.jit(lambda x: x.sum(), donate_argnums=0)(x)
    assert caught[0].filename == __file__
    assert not x.is_deleted()


def test_an_array_given_twice():
    x = ones()
    step = minijax.jit(lambda x, y: (x + 1, y), donate_argnums=0)
    with pytest.raises(JaxRuntimeError, match=r"f\(donate\(a\), a\)"):
        step(x, x)
    assert not x.is_deleted()


def test_an_error_deletes_nothing():
    x = ones()
    step = minijax.jit(lambda x, y: x + y, donate_argnums=0)
    with pytest.raises(TypeError):
        step(x, jnp.ones(4))
    assert not x.is_deleted()


def test_under_transformations_nothing_is_deleted():
    x = ones()
    step = minijax.jit(lambda x: x * 2, donate_argnums=0)
    minijax.jit(lambda x: step(x) + x)(x)
    minijax.make_jaxpr(step)(x)
    minijax.make_jaxpr(lambda y: step(x) + y)(1.0)
    minijax.vmap(step)(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minijax.grad(lambda x: step(x).sum())(x)
    assert not x.is_deleted()


def test_memory_given():
    closed = minijax.make_jaxpr(lambda x, y, z: (x + y, z))(ones(), ones(), 1.0)
    assert aliasable_inputs(closed, (True, True, False)) == (True, False, False)
    assert aliasable_inputs(closed, (False, True, True)) == (False, True, True)
    closed = minijax.make_jaxpr(lambda x, y: y)(ones(), ones())
    assert aliasable_inputs(closed, (True, False)) == (False, False)
    assert aliasable_inputs(closed, (True, False), keep_unused=True) == (True, False)


def test_tracers_have_no_memory():
    for method in ("delete", "is_deleted"):
        with pytest.raises(ConcretizationTypeError):
            minijax.jit(lambda x, m=method: getattr(x, m)())(1.0)


def test_the_loop_of_training_keeps_one_copy():
    gc.collect()
    step = minijax.jit(lambda w: w * 0.5, donate_argnums=0)
    w, buffers = ones(), []
    for _ in range(5):
        buffers.append(weakref.ref(w._buffer))
        w = step(w)
    alive = [buffer() for buffer in buffers if buffer() is not None]
    assert all(np.shares_memory(buffer, w._buffer) for buffer in alive)


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_backends_that_use_donated_memory_are_told(monkeypatch):
    from minijax.jitting import compilation

    told = []

    class Donating(compilation.Interpreter):
        donates = True

        def __init__(self, closed, name="program", donated=()):
            told.append(donated)
            super().__init__(closed, name)

    monkeypatch.setitem(compilation.backends, "donating", Donating)

    def f(x, y):
        return x * y

    for options in ({}, {"donate_argnums": 0}, {"donate_argnums": (0, 1)}):
        minijax.jit(f, backend="donating", **options)(ones(), ones())
    assert told == [(), (True, False)]  # one result takes the memory of one argument


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("compiled", [False, True])
def test_after_an_error_donated_arrays_are_gone(compiled):
    def fail(x):
        raise ValueError("no")

    def f(x):
        shape = minijax.ShapeDtypeStruct(x.shape, x.dtype)
        return minijax.pure_callback(fail, shape, x)

    g, x = minijax.jit(f, donate_argnums=0), ones()
    g = g.lower(x).compile() if compiled else g
    with pytest.raises(Exception, match="no"):
        g(x)
    assert is_deleted(x)
