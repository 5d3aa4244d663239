"""Programs off for a while, and reasons told."""

import pytest

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


def test_a_compilation_is_logged(caplog):
    with minijax.log_compiles():
        minijax.jit(lambda x: x + 1)(2.0)
    [record] = caplog.records
    assert "Compiling <lambda> with global shapes and types [" in record.getMessage()


def test_tracing_can_be_refused():
    known = minijax.jit(lambda x: x + 1)
    known(2.0)
    with minijax.no_tracing():
        assert known(3.0) == 4.0
        with pytest.raises(
            RuntimeError, match="re-tracing function .* 'no_tracing' is"
        ):
            minijax.jit(lambda x: x - 1)(2.0)
