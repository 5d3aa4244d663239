"""Law 8: a public name is one of JAX's, and takes JAX's arguments in JAX's order."""

import importlib
import inspect
import warnings
from importlib.util import find_spec

import jax
import pytest

from minijax._missing_names import LATER
from minijax._public import PUBLIC
from tests.public_names import found_in

# JAX keeps these primitives elsewhere, and prints them all the same.
ELSEWHERE = {("minijax.lax", "add_any_p"), ("minijax.lax", "reduce_scatter_p")}
OWN = {("minijax.experimental", "autojit")}  # chapter 41: no name of JAX's
OWN.add(("minijax.extend.core", "RuleView"))  # a class that others derive from
# What JAX's libraries import of `jax._src`, in modules that JAX does not have.
EXTEND = [f"minijax.extend.{x}" for x in "arguments dtypes promotion rules".split()]
EXTEND.append("minijax.as_jax")  # chapter 42: programs that say jax
OWN |= {(space, name) for space in EXTEND for name in PUBLIC[space]}
MISSING = object()
SPACES = [(space, name) for space, names in PUBLIC.items() for name in names]
SPACES = [pair for pair in SPACES if pair not in ELSEWHERE | OWN]


def pair(space, name):
    """Our object of this name, and JAX's."""
    theirs = found_in("jax", space.partition(".")[2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of names in experimental
        theirs = getattr(theirs, name, MISSING)
    return getattr(importlib.import_module(space), name), theirs


def parameters(function):
    """Names that a caller may use, `*` and `**` included; None where unknown."""
    if inspect.isclass(function):
        return None
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [p.name for p in found if p.kind is not p.POSITIONAL_ONLY]


def test_jax_is_the_version_we_compare_with():
    assert jax.__version__ == "0.10.2"


@pytest.mark.parametrize(("space", "name"), SPACES)
def test_name_is_jax_s(space, name):
    assert pair(space, name)[1] is not MISSING, f"{space}.{name} is not in JAX"


@pytest.mark.parametrize(("space", "name"), SPACES)
def test_parameters_are_jax_s(space, name):
    ours, theirs = map(parameters, pair(space, name))
    if ours and theirs and "args" not in theirs:
        if "kwargs" in theirs:  # ours spell out what JAX takes as **kwargs
            ours = ours[: len(theirs) - 1]
            theirs = theirs[: len(ours)]
        common = [parameter for parameter in theirs if parameter in ours]
        assert ours == common, f"JAX: {', '.join(theirs)}"


def test_names_that_arrive_later_are_names_of_jax():
    for package, names in LATER.items():
        theirs = importlib.import_module(package.replace("minijax", "jax"))
        for name in names.split():
            found = hasattr(theirs, name) or find_spec(f"{theirs.__name__}.{name}")
            assert found, f"{package}.{name}"


@pytest.mark.parametrize("space", [s for s in PUBLIC if s != "minijax.__main__"])
def test_functions_have_the_names_that_they_are_called_by(space):
    """Those of JAX have; here and there JAX's has another name."""
    for name in PUBLIC.get(space) or dir(importlib.import_module(space)):
        if (space, name) not in ELSEWHERE | OWN:
            ours, theirs = pair(space, name)
            if inspect.isroutine(ours) and inspect.isroutine(theirs):
                found = ours.__name__, ours.__qualname__
                jax_s = theirs.__name__, theirs.__qualname__
                assert found in (jax_s, (name, name)), name
