"""Devices, and moving arrays to them and back."""

import numpy as np
import pytest

import minijax
from minijax.arrays.array import ArrayImpl, asarray_impl
from minijax.arrays.placement import Device, platforms
from minijax.arrays.transfer import block_until_ready, device_get, device_put
from minijax.core import Tracer


def test_one_cpu():
    [device] = minijax.devices()
    assert repr(device) == "CpuDevice(id=0)" and str(device) == "cpu:0"
    assert (device.platform, device.id, device.process_index) == ("cpu", 0, 0)
    assert minijax.default_backend() == "cpu"
    assert minijax.device_count() == minijax.local_device_count() == 1
    assert minijax.local_devices(0) == minijax.devices("cpu") == [device]


def test_unknown_places():
    with pytest.raises(RuntimeError, match="Unknown backend 'tpu'. Present here: cpu"):
        minijax.devices("tpu")
    with pytest.raises(ValueError, match="process 0"):
        minijax.local_devices(3)


@pytest.mark.parametrize("switch", ["jax_platforms", "jax_platform_name"])
def test_platforms_by_switch(switch, monkeypatch):
    monkeypatch.setitem(platforms, "toy", [Device("toy", 0, np)])
    for value in ("cpu", "cpu,cuda", "cuda,cpu", "cuda, cpu", "", None):
        with minijax.config.override(switch, value):
            assert minijax.default_backend() == "cpu"
    with minijax.config.override(switch, "toy"):
        assert minijax.devices() == platforms["toy"]
    with pytest.raises(RuntimeError, match="initialize backend 'tpu'.*here: cpu"):
        minijax.config.update(switch, "tpu")
    for value in ("cuda", "cuda,cuda", "cpu,tpu", "tpu,cpu", "cpu,", "CPU"):
        with pytest.raises(RuntimeError, match="initialize backend '(cuda|tpu|CPU|)'"):
            minijax.config.update(switch, value)
    with pytest.raises(ValueError, match="string or None, got 3"):
        minijax.config.update(switch, 3)


def test_arrays_know_their_device():
    [device] = minijax.devices()
    array = asarray_impl(1.0)
    assert array.device is device and array.devices() == {device}
    assert array.block_until_ready() is array


def test_put_and_get():
    array = device_put(np.ones(3))
    assert isinstance(array, ArrayImpl) and array.dtype == np.float32
    assert device_put(array) is array and device_put(array, array.device) is array
    assert device_put(2.0).weak_type
    got = device_get(array)
    assert isinstance(got, np.ndarray) and not got.flags.writeable
    assert device_get("text") == "text" and device_get(1.5) == 1.5
    assert block_until_ready(array) is array and block_until_ready(3) == 3


def test_put_refuses():
    with pytest.raises(ValueError, match="not 'cpu'"):
        device_put(1.0, "cpu")
    with pytest.raises(TypeError, match="not a valid array type"):
        device_put("text")
    tracer = Tracer(None)
    assert device_put(tracer) is tracer


def test_results_stay_on_the_device_of_the_operands(monkeypatch):
    other = Device("cpu", 1, np)
    monkeypatch.setitem(platforms, "cpu", [*platforms["cpu"], other])
    moved = device_put(np.ones(3), minijax.devices()[1])
    assert moved.device is other
    from minijax import lax

    assert lax.add(moved, 1.0).device is other
    assert lax.add(np.ones(3), 1.0).device is minijax.devices()[0]
    np.testing.assert_array_equal(device_put(moved, minijax.devices()[0]), np.ones(3))
