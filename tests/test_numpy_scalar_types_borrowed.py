"""What is NumPy's own."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from tests.catalogue_cases import calls, difference_from_numpy


@pytest.mark.parametrize("text", calls("borrowed"))
def test_numbers_are_those_of_numpy(text):
    assert difference_from_numpy(text, jnp) is None


def test_files(tmp_path):
    x = jnp.arange(3.0)
    jnp.save(tmp_path / "x.npy", x)
    jnp.savez(tmp_path / "all.npz", x=x)
    back = jnp.load(tmp_path / "x.npy")
    assert isinstance(back, minijax.Array) and np.array_equal(back, x)
    assert np.array_equal(jnp.load(tmp_path / "all.npz")["x"], x)
    half = x.astype("bfloat16") / 2
    jnp.save(tmp_path / "half.npy", half)  # NumPy calls its numbers two bytes each
    back = jnp.load(tmp_path / "half.npy")
    assert back.dtype == "bfloat16" and np.array_equal(back, half)


def test_printing():
    with jnp.printoptions(precision=2):
        assert jnp.array_str(jnp.float32([1 / 3])) == "[0.33]"
        assert jnp.get_printoptions()["precision"] == 2
    assert "0.3333" in str(jnp.float32([1 / 3]))


def test_what_is_not_pure_is_refused():
    with pytest.raises(NotImplementedError, match="jnp.fromiter"):
        jnp.fromiter([1], dtype=int)
