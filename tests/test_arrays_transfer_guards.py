"""Guards of transfers: which calls move numbers, and what each level makes of it."""

import logging
import threading
from functools import partial

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.arrays import transfer
from minijax.core import bind_listeners
from tests.transfer_cases import BETWEEN_DEVICES, CASES, moving

WAYS = "host_to_device", "device_to_device", "device_to_host"
CASES_HERE = CASES(minijax)
EXPLICIT = {"put", "put on a device", "a tree put"}
STILL = {
    "compiled, of an array", "a sum of arrays", "counting", "split", "to NumPy",
    "device_get", "item", "text", "an array of an array", "stays",
}  # fmt: skip


def guard(way, level):
    return getattr(minijax, f"transfer_guard_{way}")(level)


@pytest.mark.parametrize("name", CASES_HERE)
def test_what_is_moved_from_the_host(name):
    call, allowed = CASES_HERE[name], {*STILL, *EXPLICIT, "a copy put"}
    call()
    found = moving(minijax, "host_to_device", "disallow", call)
    assert found == (name not in allowed)
    found = moving(minijax, "host_to_device", "disallow_explicit", call)
    assert found == (name not in {*STILL, "a copy put"})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("level", ["allow", "log", "disallow", "log_explicit"])
def test_what_is_put_and_fetched_explicitly_is_allowed(way, level):
    with guard(way, level):
        array = minijax.device_put(np.ones(3), minijax.devices()[1])
        there = minijax.device_put(array, minijax.devices()[0])
        assert minijax.device_get(there).sum() == 3
    assert minijax.config.values["jax_transfer_guard_host_to_device"] is None
    assert not transfer.transfer_checks and transfer._heard not in bind_listeners


@pytest.mark.parametrize("name", BETWEEN_DEVICES(minijax))
def test_what_is_moved_between_devices(name):
    explicit = name.startswith("put")
    call = BETWEEN_DEVICES(minijax)[name]
    call()
    stays = name in ("cut already", "put from the host")
    found = moving(minijax, "device_to_device", "disallow", call)
    assert found == (not explicit and not stays)
    assert moving(minijax, "device_to_device", "disallow_explicit", call) == (not stays)


def test_log_levels(caplog):
    x = np.ones(2, np.float32)
    with caplog.at_level(logging.WARNING), guard("host_to_device", "log"):
        minijax.device_put(x)
        assert not caplog.records
        jnp.asarray(x)
    [record] = caplog.records
    assert record.getMessage() == "host-to-device transfer of f32[2] to cpu:0"
    with caplog.at_level(logging.WARNING), guard("host_to_device", "log_explicit"):
        minijax.device_put(x)
    assert len(caplog.records) == 2


def test_a_guard_is_of_its_thread():
    told = []
    with minijax.transfer_guard("disallow"):
        thread = threading.Thread(target=lambda: told.append(float(jnp.sin(0.0))))
        thread.start()
        thread.join()
        with pytest.raises(minijax.errors.JaxRuntimeError, match=r"f32\[\] to cpu:0"):
            jnp.sin(0.0)
    assert told == [0.0]


def test_who_sets_the_guard_of_all_sets_each_and_each_may_differ():
    switches = [f"jax_transfer_guard_{way}" for way in WAYS]
    try:
        minijax.config.update(switches[0], "allow")
        minijax.config.update("jax_transfer_guard", "disallow")
        assert [minijax.config.values[name] for name in switches] == ["disallow"] * 3
        with pytest.raises(minijax.errors.JaxRuntimeError):
            jnp.sin(1.0)
        minijax.config.update(switches[0], None)
        assert jnp.sin(0.0) == 0
    finally:
        minijax.config.update("jax_transfer_guard", None)
    assert {minijax.config.values[name] for name in switches} == {None}


def test_a_guard_makes_no_program_anew():
    traced = []
    f = minijax.jit(lambda x: traced.append(1) or lax.sin(x))
    x = f(jnp.arange(3.0))
    with minijax.transfer_guard("disallow"):
        f(x)
    f(x)
    assert traced == [1]


def test_what_leaves_a_device_that_is_not_of_the_host(monkeypatch):
    x = jnp.arange(3.0)
    monkeypatch.setattr(x.device, "array_module", None)  # as if it were another
    for leave in np.asarray, repr, lambda x: x.tolist():
        call = partial(leave, x)
        assert moving(minijax, "device_to_host", "disallow", call)
    call = partial(minijax.device_get, x)
    assert not moving(minijax, "device_to_host", "disallow", call)
    assert moving(minijax, "device_to_host", "disallow_explicit", call)
