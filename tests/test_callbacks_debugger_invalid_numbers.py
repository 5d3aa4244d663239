"""debug_nans and debug_infs: which primitive, whose line."""

import re
import threading

import numpy as np
import pytest

import minijax
from minijax import core, debug_infs, debug_nans, grad, jit, lax, vmap
from minijax import numpy as jnp
from minijax.callbacks.debugger import search
from tests.backends_here import HERE

X = np.array([1.0, 0.0], "float32")


def entropy(p):
    logs = jnp.log(p)
    return -(p * logs).sum()  # the product


WAYS = {
    "eager": entropy,
    "jit": jit(entropy),
    "jit in jit": jit(lambda p: 1 + jit(entropy)(p)),
    "vmap": lambda p: vmap(entropy)(np.stack([p, p])),
    "vmap of jit": lambda p: vmap(jit(entropy))(np.stack([p, p])),
    "grad": grad(entropy),
    "grad of jit": grad(jit(entropy)),
    "jit of grad": jit(grad(entropy)),
}


@pytest.mark.parametrize("backend", HERE)
@pytest.mark.parametrize("name", WAYS)
def test_the_line_is_the_users(name, backend):
    with minijax.config.override("minijax_backend", backend), debug_nans():
        for _ in range(2):  # the second time nothing is traced
            with pytest.raises(FloatingPointError, match=r"\(nan\).* in \w+\n") as info:
                WAYS[name](X)
            message, place = str(info.value).split("\n")
            here = r".*_debugger_invalid_numbers.py:\d+:\d+ \(entropy\): "
            assert re.match(here, place)
            if "grad" not in name:
                assert message.endswith("in mul") and place.endswith("# the product")


@pytest.mark.parametrize("wrap", [lambda f: f, jit, vmap])
def test_infinities(wrap):
    with debug_infs(), pytest.raises(FloatingPointError, match=r"\(inf\).* in exp"):
        wrap(lambda x: jnp.exp(x) * 2)(np.array([1000.0], "float32"))


def test_switches():
    with debug_nans(False), debug_infs(False):
        assert np.isnan(entropy(X))
    minijax.config.update("jax_debug_nans", True)
    try:
        assert search in core.bind_listeners
        with pytest.raises(FloatingPointError):
            jit(entropy)(X)
        with debug_nans(False):
            assert np.isnan(jit(entropy)(X))
    finally:
        minijax.config.update("jax_debug_nans", False)
    assert np.isnan(jit(entropy)(X))


def test_nobody_searches_once_the_switches_are_off_everywhere():
    inside, done = threading.Event(), threading.Event()

    def other():
        with debug_infs():
            inside.set()
            done.wait()

    thread = threading.Thread(target=other)
    with debug_nans(False):
        assert minijax.config.values and search not in core.bind_listeners
        with debug_nans(), debug_infs(), debug_nans():
            assert core.bind_listeners.count(search) == 1
            thread.start()
            inside.wait()
        assert search in core.bind_listeners  # for the other thread
    done.set()
    thread.join()
    assert (
        minijax.config.values and search not in core.bind_listeners
    )  # who reads is told


def test_valid_numbers_and_other_types_pass():
    with debug_nans(), debug_infs():
        jit(lambda x: (x > 1, x.astype(int), x + 1j, x[:0] / 0, x))(X)


@pytest.mark.parametrize("dtype", ["complex64", "float16", "bfloat16"])
def test_complex_and_small_floats(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = jnp.zeros(2).astype(dtype)
    with debug_nans(), pytest.raises(FloatingPointError):
        jit(lambda x: x / x)(x)


def log(x):
    return jnp.log(x - 5)  # in the loop


LOOPS = {
    "cond": lambda x: lax.cond(x < 5, log, lambda x: x, x),
    "scan": lambda x: lax.scan(lambda c, a: (c, log(a)), 0.0, jnp.stack([x, x]))[1],
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: log(c), x),
    "while": lambda x: lax.while_loop(lambda c: c > 0, log, x),
    "vmap of cond": lambda x: vmap(LOOPS["cond"])(jnp.stack([x, 9 * x])),
    "grad of scan": lambda x: grad(lambda x: LOOPS["scan"](x).sum())(x) * log(x),
    "scan of cond": lambda x: lax.scan(
        lambda c, a: (c, LOOPS["cond"](a)), 0.0, jnp.stack([x, x])
    )[1],
}


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", LOOPS)
def test_inside_of_loops_and_branches(name, wrap):
    with debug_nans(), pytest.raises(FloatingPointError, match="in log\n") as info:
        wrap(LOOPS[name])(jnp.float32(2))
    assert str(info.value).endswith("# in the loop")


def test_donated_arguments_are_there_for_the_second_run():
    f = jit(lambda p: jnp.log(p - 2), donate_argnums=0)
    with debug_nans(), pytest.raises(FloatingPointError, match="in log"):
        f(jnp.asarray(X))


def test_only_this_thread(monkeypatch):
    import threading

    results = []
    with debug_nans():
        thread = threading.Thread(target=lambda: results.append(entropy(X)))
        thread.start()
        thread.join()
    assert np.isnan(results[0])


def test_environment():
    import subprocess
    import sys

    code = "import minijax; print(minijax.config.jax_debug_nans)"
    for value, answer in (("1", "True"), ("0", "False"), ("true", "True")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"JAX_DEBUG_NANS": value},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == answer


def test_a_word_that_is_neither_on_nor_off_is_refused():
    for switch in ("jax_debug_nans", "jax_debug_infs"):
        with pytest.raises(ValueError, match="'maybe' is neither on nor off"):
            minijax.config.update(switch, "maybe")
        with minijax.config.override(switch, "yes"):
            assert getattr(minijax.config, switch) is True


def test_a_number_of_a_device_of_a_mesh():
    mesh = minijax.make_mesh((1,), ("x",))
    spec = minijax.P("x")
    f = minijax.shard_map(lambda x: 0.0 / x, mesh=mesh, in_specs=spec, out_specs=spec)
    words = r"Invalid value \(nan\) encountered in sharded computation: .* in div\n"
    with minijax.debug_nans():
        for call in (f, minijax.pmap(lambda x: 0.0 / x)):
            with pytest.raises(FloatingPointError, match=words):
                call(jnp.zeros(1))


def test_a_literal_is_no_operation():
    f = minijax.jit(lambda x: (jnp.nan, x + 2))
    refused = pytest.raises(FloatingPointError, match=r"de-optimized .* a literal is")
    with debug_nans(), refused:
        f(3)
