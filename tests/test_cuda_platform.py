"""When a GPU is looked for, and what is said where there is none."""

import sys
import types

import pytest

import minijax
import minijax.numpy as jnp
from minijax.arrays.devices import devices, platforms
from minijax.cuda.driver import cupy_stand_in
from minijax_book import emulator
from tests.emulated_card import emulated_gpu

needs_compiler = pytest.mark.skipif(
    not emulator.is_there(), reason="no C++ compiler here"
)


@pytest.fixture
def no_stand_in(monkeypatch):
    monkeypatch.setattr(cupy_stand_in, "value", None)
    monkeypatch.delitem(platforms, "gpu", raising=False)


def cupy_of(version, count):
    """A module that looks like CuPy on a machine with so many cards."""

    class Refusal(RuntimeError):
        pass

    def counted():
        if count is None:
            raise Refusal("cudaErrorNoDevice")
        return count

    runtime = types.SimpleNamespace(getDeviceCount=counted, CUDARuntimeError=Refusal)
    cuda = types.SimpleNamespace(runtime=runtime)
    return types.SimpleNamespace(__version__=version, cuda=cuda)


@pytest.mark.parametrize(
    ("version", "count", "says"),
    [
        ("12.3.0", 1, r"CuPy 12.3.0 is too old; 13 is the oldest.*cuda12"),
        ("14.2.0", None, r"CuPy 14.2.0 is installed, but .*no GPU.*ErrorNoDevice"),
        ("14.2.0", 0, r"is installed, but .*no GPU.*the driver sees none"),
    ],
)
@pytest.mark.parametrize("name", ["gpu", "cuda"])
def test_why_there_is_none(version, count, says, name, no_stand_in, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy_of(version, count))
    with pytest.raises(RuntimeError, match=f"Unknown backend: '{name}'.*cpu.*{says}"):
        devices(name)
    with pytest.raises(RuntimeError, match=says):
        minijax.jit(jnp.sin, backend=name)
    assert "gpu" not in platforms and minijax.default_backend() == "cpu"
    assert [device.platform for device in devices()] == ["cpu"] * len(devices())


def test_without_cupy_its_extras_are_named(no_stand_in, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(RuntimeError, match=r"CuPy is not installed.*book\[cuda12\]"):
        devices("gpu")
    with pytest.raises(RuntimeError, match="initialize backend 'cuda'"):
        minijax.config.update("jax_platforms", "cuda")
    with pytest.raises(RuntimeError, match="Unknown backend: 'gpu'"):
        minijax.config.update("jax_default_device", "gpu")


def test_no_other_name_is_looked_for():
    with pytest.raises(RuntimeError, match="Unknown backend: 'tpu'.*are: cpu"):
        devices("tpu")


@needs_compiler
def test_a_card_that_is_there_is_asked_for_by_name():
    with emulated_gpu() as (gpu, _):
        assert devices("gpu") == devices("cuda") == [gpu]
        assert (str(gpu), repr(gpu)) == ("cuda:0", "EmulatedCuda(id=0)")
        assert minijax.default_backend() == "cpu"
        f = minijax.jit(lambda x: x + 1, backend="gpu")
        assert f(jnp.ones(3)).device is gpu
        with minijax.config.override("jax_platforms", "cuda,cpu"):
            assert minijax.default_backend() == "gpu" and devices() == [gpu]
        with minijax.default_device(gpu):
            assert jnp.ones(3).device is gpu
    assert "gpu" not in platforms
