"""Names that chapters to come will bring: what is said of them until then."""

import importlib
import sys

import pytest

from minijax._later import LATER

NAMES = [
    (package, name, topic)
    for topic, packages in LATER.items()
    for package, names in packages.items()
    for name in names.split()
]


def test_the_table_has_only_names_that_are_not_there():
    for package, name, _ in NAMES:
        there = hasattr(importlib.import_module(package), name)
        assert not there, f"{package}.{name} has arrived: take it out of the table"


def test_no_name_stands_there_twice():
    assert len({(package, name) for package, name, _ in NAMES}) == len(NAMES)


@pytest.mark.parametrize("package", sorted({package for package, *_ in NAMES}))
def test_a_name_says_with_which_chapter_it_arrives(package):
    name, topic = next((name, t) for p, name, t in NAMES if p == package)
    words = f"{package}.{name} arrives with the chapter on {topic}."
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(package), name)
    assert str(caught.value) == words
    with pytest.raises(ImportError, match=f"cannot import name '{name}'") as caught:
        exec(f"from {package} import {name}")
    if hasattr(sys.modules[package], "__path__"):  # Python hides it for plain modules
        assert str(caught.value) == f"cannot import name '{name}': {words}"


def test_other_names_are_unknown_as_always():
    numpy = importlib.import_module("minijax.numpy")
    with pytest.raises(AttributeError) as caught:
        numpy.sinn  # noqa: B018
    assert str(caught.value) == "module 'minijax.numpy' has no attribute 'sinn'"
    with pytest.raises(
        ImportError, match="cannot import name 'sinn' from 'minijax.num"
    ):
        exec("from minijax.numpy import sinn")
    with pytest.raises(ModuleNotFoundError, match="named .minijax.scipy.spatial."):
        importlib.import_module("minijax.scipy.spatial")
