"""The switches of JAX: known, with JAX's defaults, and their words."""

import json
from pathlib import Path

import numpy as np
import pytest

import minijax
from minijax.arrays.config import ACCEPTED, HONORED_SWITCHES, REFUSED, statuses
from minijax.arrays.dtypes import config

RECORDED = json.loads(
    (Path(__file__).parent / "data" / "switches.json").read_text(encoding="utf-8")
)


@pytest.fixture(autouse=True)
def same_afterwards():
    assert minijax.config is config  # all modules that define switches are awake
    before = config.values
    yield
    for name, value in before.items():
        if config.values[name] != value:
            config.update(name, value)


def test_each_switch_of_jax_has_one_meaning():
    names = [name for name, *_ in statuses()]
    assert len(names) == len({*names})
    assert {*names} == {*RECORDED}
    assert {*names} <= {*config.values}


@pytest.mark.parametrize("name", sorted({*RECORDED} - {*HONORED_SWITCHES}))
def test_defaults_and_choices_are_those_of_jax(name):
    default, choices = RECORDED[name]
    assert config.values[name] == default
    accepted = name in {name for group in ACCEPTED.values() for name in group}
    for choice in choices:
        if accepted or choice == default:
            config.update(name, choice)
            assert config.values[name] == choice
    if choices:
        with pytest.raises(ValueError, match=rf"{name}: new enum value must be .*nons"):
            config.update(name, "nonsense")


@pytest.mark.parametrize("name", [name for group in REFUSED.values() for name in group])
def test_other_values_are_refused_with_a_sentence(name):
    default, choices = RECORDED[name]
    other = {bool: not default, int: 7, str: "elsewhere"}[type(default)]
    others = [choice for choice in choices if choice != default] or [other]
    config.update(name, default)
    for value in others:
        with pytest.raises(NotImplementedError, match=r"only .* is possible here\. ."):
            config.update(name, value)
        assert config.values[name] == default


def test_numbers_are_numbers():
    with pytest.raises(ValueError, match="must be None or of type int, got x of ty"):
        config.update("jax_num_cpu_devices", "x")
    with pytest.raises(ValueError, match="must be None or of type float"):
        config.update("jax_memory_fitting_effort", "x")
    config.update("jax_memory_fitting_effort", 1)


def test_the_default_device():
    for device in (minijax.devices()[0], "cpu", None):
        config.update("jax_default_device", device)
        assert config.jax_default_device is device
    with pytest.raises(ValueError, match="must be passed either a Device object"):
        config.update("jax_default_device", 3)
    with pytest.raises(RuntimeError, match="tpu"):
        config.update("jax_default_device", "tpu")


def test_64_bits_that_are_asked_for_are_an_error():
    with config.override("jax_explicit_x64_dtypes", "error"):
        for ask in (
            lambda: minijax.numpy.array([1, 2], dtype="float64"),
            lambda: minijax.numpy.ones(3, np.int64),
            lambda: minijax.numpy.ones(3).astype("float64"),
        ):
            with pytest.raises(ValueError, match="Explicitly requested dtype"):
                ask()
        assert minijax.numpy.array([1.0], dtype=float).dtype == np.float32
        with minijax.enable_x64():
            assert minijax.numpy.array([1.0], dtype="float64").dtype == np.float64
    with pytest.raises(NotImplementedError, match="'warn' or 'error' here"):
        config.update("jax_explicit_x64_dtypes", "allow")


def test_a_list_of_64_bits_is_warned_of():
    with pytest.warns(UserWarning, match="Explicitly requested dtype float64 in arr"):
        assert minijax.numpy.array([1, 2, 3], dtype="float64").dtype == np.float32


def test_a_tracer_has_no_sharding():
    def f(x):
        assert not hasattr(x, "sharding")
        with pytest.raises(AttributeError, match=r"typeof\(x\)\.sharding"):
            x.sharding  # noqa: B018
        return x

    minijax.jit(f)(1.0)
    minijax.vmap(f)(minijax.numpy.ones(2))
