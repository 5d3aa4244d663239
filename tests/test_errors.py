"""Every row of bad input: an error of JAX's class that states the facts."""

import pytest

import minijax
from tests.bad_inputs import ROWS


@pytest.mark.parametrize("name", ROWS)
def test_bad_input(name):
    call, kind, facts = ROWS[name]
    with pytest.raises(Exception) as caught:
        call(minijax)
    assert kind in [cls.__name__ for cls in type(caught.value).__mro__], caught.value
    message = str(caught.value)
    assert message and not [fact for fact in facts if fact not in message], message
