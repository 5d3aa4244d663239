"""What a mistake raises, here and in JAX."""

import pytest


def raised(mistake):
    """Return the class and the message of what a call raises, without JAX's links."""
    with pytest.raises(Exception) as caught:
        mistake()
    return type(caught.value).__name__, str(caught.value).split("\nSee")[0]
