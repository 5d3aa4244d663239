"""Law 8: a public name is one of JAX's, and takes JAX's arguments in JAX's order."""

import importlib
import inspect

import jax
import pytest

from minijax._public import PUBLIC

# JAX keeps these primitives elsewhere, and prints them all the same.
ELSEWHERE = {("minijax.lax", "add_any_p")}
SPACES = [(space, name) for space, names in PUBLIC.items() for name in names]
SPACES = [pair for pair in SPACES if pair not in ELSEWHERE]


def pair(space, name):
    """Our object of this name, and JAX's."""
    theirs = jax
    for part in space.split(".")[1:]:
        theirs = importlib.import_module(f"{theirs.__name__}.{part}")
    return getattr(importlib.import_module(space), name), getattr(theirs, name, None)


def parameters(function):
    """Names of parameters, `*` and `**` included; None where they are unknown."""
    if inspect.isclass(function):
        return None
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def test_jax_is_the_version_we_compare_with():
    assert jax.__version__ == "0.10.2"


@pytest.mark.parametrize(("space", "name"), SPACES)
def test_name_is_jax_s(space, name):
    assert pair(space, name)[1] is not None, f"{space}.{name} is not in JAX"


@pytest.mark.parametrize(("space", "name"), SPACES)
def test_parameters_are_jax_s(space, name):
    ours, theirs = map(parameters, pair(space, name))
    if ours and theirs and "args" not in theirs:
        common = [parameter for parameter in theirs if parameter in ours]
        assert ours == common, f"JAX: {', '.join(theirs)}"
