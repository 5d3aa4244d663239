"""The classes in the table of bad input are those of real JAX."""

import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("jax.scipy.special")  # a row asks for it

from tests.bad_inputs import ROWS  # noqa: E402


@pytest.mark.parametrize("name", ROWS)
def test_class_is_jax_s(name):
    call, kind, _ = ROWS[name]
    with pytest.raises(Exception) as caught:
        call(jax)
    assert kind in [cls.__name__ for cls in type(caught.value).__mro__], caught.value
