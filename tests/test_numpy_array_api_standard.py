"""Questions of the Array API standard."""

import pytest

from minijax import numpy as jnp


@pytest.mark.parametrize(
    ("dtype", "kind", "answer"),
    [
        ("int8", "integral", True),
        ("int8", ("bool", "real floating"), False),
        ("float32", "numeric", True),
        ("float32", jnp.float32, True),
        ("complex64", "complex floating", True),
        ("uint8", "signed integer", False),
    ],
)
def test_kinds_of_dtypes(dtype, kind, answer):
    assert jnp.isdtype(dtype, kind) is answer


def test_casts_are_those_of_numpy():
    assert jnp.can_cast("int32", "float64") and not jnp.can_cast("int32", "float32")
    assert jnp.can_cast(jnp.float32, jnp.int8, "unsafe")
    assert jnp.iterable([1]) and not jnp.iterable(1)


def test_words_that_are_no_kinds():
    with pytest.raises(ValueError, match="Unrecognized kind='foo'"):
        jnp.isdtype("float32", "foo")
    with pytest.raises(TypeError, match="Expected kind to be a dtype"):
        jnp.isdtype("float32", 3)
