"""Names of JAX that are not here: each has its reason, or is to come."""

import importlib

import pytest

from minijax._missing_names import ABSENT, LATER
from tests.public_names import found_in, recorded

NAMES = [(package, name) for package in LATER for name in LATER[package].split()]
RECORD = recorded()["names"]


def test_the_tables_have_only_names_that_are_not_there():
    absent = [(package, name) for package in ABSENT for name in ABSENT[package]]
    for package, name in NAMES + absent:
        there = hasattr(importlib.import_module(package), name)
        assert not there, f"{package}.{name} has arrived: take it out of the table"


def test_no_name_stands_there_twice():
    assert len({*NAMES}) == len(NAMES)
    assert not [pair for pair in NAMES if pair[1] in ABSENT.get(pair[0], {})]


@pytest.mark.parametrize("path", RECORD)
def test_a_name_of_jax_is_here_or_to_come_or_has_a_reason_why_not(path):
    space, known = f"minijax.{path}".rstrip("."), found_in("minijax", path)
    if known is None:
        above, _, name = space.rpartition(".")
        assert (
            name in ABSENT.get(above, {})
            or (above, name) in NAMES
            or (found_in("minijax", path.rpartition(".")[0]) is None)
        )
        return
    told = {*LATER.get(space, "").split(), *ABSENT.get(space, {})}
    lacking = {name for name in RECORD[path] if not hasattr(known, name)}
    assert lacking <= told


def is_lazy(package):
    """Return whether a module looks for its names when it is asked for them."""
    ask = vars(importlib.import_module(package)).get("__getattr__")
    return getattr(ask, "__module__", None) == "minijax._lazy"


def test_only_lazy_modules_have_names_to_come():
    assert all(map(is_lazy, LATER))


def test_a_name_that_is_to_come_names_the_nearest_and_the_page(monkeypatch):
    monkeypatch.setitem(LATER, "minijax.lax", "ragged_all_to_al other")
    with pytest.raises(AttributeError) as caught:
        importlib.import_module("minijax.lax").ragged_all_to_al  # noqa: B018
    words = str(caught.value)
    assert words.startswith("minijax.lax.ragged_all_to_al is not here yet.")
    assert "like it is minijax.lax.ragged_all_to_all." in words
    assert "book/compatibility" in words
    with pytest.raises(ImportError) as caught:
        exec("from minijax.lax import ragged_all_to_al")
    assert str(caught.value) == f"cannot import name 'ragged_all_to_al': {words}"


def test_other_names_are_unknown_as_always():
    numpy = importlib.import_module("minijax.numpy")
    with pytest.raises(AttributeError) as caught:
        numpy.sinn  # noqa: B018
    assert str(caught.value) == "module 'minijax.numpy' has no attribute 'sinn'"
    with pytest.raises(
        ImportError, match="cannot import name 'sinn' from 'minijax.num"
    ):
        exec("from minijax.numpy import sinn")
    with pytest.raises(ModuleNotFoundError, match="named .minijax.scipy.odr."):
        importlib.import_module("minijax.scipy.odr")
