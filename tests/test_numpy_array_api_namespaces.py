"""The namespace of an array."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp


def test_the_namespace_of_an_array():
    assert jnp.ones(3).__array_namespace__() is jnp
    assert jnp.ones(3).__array_namespace__(api_version=jnp.__array_api_version__) is jnp
    with pytest.raises(ValueError, match="api_version='1999' is not available"):
        jnp.ones(3).__array_namespace__(api_version="1999")


def test_a_tracer_has_a_namespace():
    double = minijax.jit(lambda x: x.__array_namespace__().add(x, x))
    assert double(2.0) == 4.0


def test_what_the_namespace_tells():
    info = jnp.__array_namespace_info__()
    assert info.default_dtypes()["integral"] == np.int32
    assert [*info.dtypes(kind="real floating")] == ["float32"]
    assert {*info.dtypes(kind=("bool", "unsigned integer"))} == {
        "bool", "uint8", "uint16", "uint32"
    }  # fmt: skip
    assert info.devices() == [None, *minijax.devices()]
    assert info.default_device() is None
    assert info.capabilities()["data-dependent shapes"] is False
    with minijax.enable_x64():
        assert info.default_dtypes()["real floating"] == np.float64
        assert "complex128" in info.dtypes()
