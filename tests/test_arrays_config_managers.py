"""Context managers that set switches."""

import inspect

import pytest

import minijax
from minijax import numpy as jnp
from minijax._public import PUBLIC
from minijax.arrays import config as managers
from minijax.arrays.dtypes import config

NAMES = [n for n, m in PUBLIC["minijax"].items() if m == managers.__name__]
OTHERS = {
    "default_device": "cpu",
    "array_garbage_collection_guard": "log",
    "default_matmul_precision": "highest",
    "default_prng_impl": "threefry2x32",
    "legacy_prng_key": "allow",
    "numpy_dtype_promotion": "strict",
    "numpy_rank_promotion": "raise",
}
REFUSED = ("no_execution",)
OF_SWITCHES = [name for name in NAMES if name not in (
    "checking_leaks", "transfer_guard", "ensure_compile_time_eval", *REFUSED
)]  # fmt: skip


def switch_of(name):
    return name if name in config.values else f"jax_{name}"


@pytest.mark.parametrize("name", OF_SWITCHES)
def test_a_switch_is_set_for_a_block_and_a_function(name):
    manager, switch = getattr(minijax, name), switch_of(name)
    default = inspect.signature(manager).parameters["new_val"].default
    given = () if default is True else (OTHERS.get(name, "disallow"),)
    before, value = config.values[switch], given[0] if given else True
    with manager(*given):
        assert config.values[switch] == value
    assert config.values[switch] == before
    assert manager(*given)(lambda: config.values[switch])() == value
    assert manager.__name__ == name


def test_a_manager_without_a_default_wants_a_value():
    told = "^Context manager for numpy_rank_promotion config option requires an arg"
    with pytest.raises(TypeError, match=told):
        minijax.numpy_rank_promotion()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_in_a_block_too(name):
    with pytest.raises(NotImplementedError), getattr(minijax, name)():
        pass


def test_one_guard_sets_all():
    with minijax.transfer_guard("disallow"):
        guards = {k: v for k, v in config.values.items() if "transfer_guard" in k}
        assert len(guards) == 4 and {*guards.values()} == {"disallow"}
    assert config.jax_transfer_guard_device_to_host is None


def test_checking_leaks():
    with minijax.checking_leaks():
        assert config.jax_check_tracer_leaks


def test_computing_while_a_program_is_written_down():
    @minijax.jit
    def f(x):
        with minijax.ensure_compile_time_eval():
            size = jnp.arange(3).sum()
        return x * int(size)

    assert f(2.0) == 6.0
    [eqn] = minijax.make_jaxpr(f)(2.0).jaxpr.eqns
    assert [inner.primitive.name for inner in eqn.params["jaxpr"].jaxpr.eqns] == ["mul"]


def test_what_depends_on_a_tracer_is_written_down():
    def f(x):
        @minijax.jit
        def inner(y):
            with minijax.ensure_compile_time_eval():
                count = jnp.arange(3).sum()
                total = minijax.jit(jnp.multiply)(y, x) + jnp.zeros(2).sum()
                assert int(count) == 3
                with pytest.raises(minijax.errors.ConcretizationTypeError):
                    int(total)
            return total * int(count)

        return inner(x + 1)

    xs = jnp.arange(3.0)
    for run in (f, minijax.jit(f)):
        assert run(2.0) == 18.0 and minijax.grad(run)(2.0) == 15.0
        assert minijax.vmap(run)(xs).tolist() == [0.0, 6.0, 18.0]
        assert minijax.jit(minijax.vmap(minijax.grad(run)))(xs).tolist() == [3, 9, 15]
