"""Programs off for a while, and reasons told."""

import minijax


def test_disable_jit():
    seen = []
    f = minijax.jit(lambda x: seen.append(type(x).__name__) or x)
    f(1.0)
    with minijax.disable_jit():
        f(1.0)
        with minijax.disable_jit(False):
            f(2.0)
    assert seen == ["JaxprTracer", "float"]


def test_switch_for_the_whole_process():
    minijax.config.update("jax_disable_jit", True)
    try:
        assert minijax.jit(lambda x: x if x > 0 else -x)(-2.0) == 2.0
    finally:
        minijax.config.update("jax_disable_jit", False)


def test_explain_cache_misses(caplog):
    f = minijax.jit(lambda x: x)
    with minijax.explain_cache_misses():
        f(1.0), f(2.0)
    assert len(caplog.records) == 1
