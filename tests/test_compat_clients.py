"""Namespaces for extensions, as libraries use them."""

from importlib import import_module

import pytest

import minijax
import minijax.numpy
from minijax import lax
from minijax.extend import source_info_util
from minijax.extend.core import new_jaxpr_eqn
from tests.client_programs import PROGRAMS


def module(name):
    return import_module(f"minijax.{name}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    assert PROGRAMS[name](minijax, module)


def test_wrapping_without_names_warns():
    with pytest.warns(DeprecationWarning, match="debug_info"):
        wrapped = module("extend.linear_util").wrap_init(lambda x: x + 1)
    assert wrapped.call_wrapped(1) == 2 and "Core: <lambda>" in repr(wrapped)


def test_the_source_of_a_new_equation():
    here = source_info_util.current()
    text = source_info_util.summarize(here)
    assert __file__ in text and "test_the_source" in text
    eqn = new_jaxpr_eqn([], [], lax.neg_p, {}, frozenset(), here)
    assert eqn.source is here
    assert source_info_util.summarize(source_info_util.new_source_info()) == ""


def test_a_file_may_be_a_library_s():
    space: dict = {"current": source_info_util.current}
    exec(compile("def ask():\n    return current()", "library.py", "exec"), space)
    assert "library.py" in source_info_util.summarize(space["ask"]())
    source_info_util.register_exclusion("library.py")
    assert __file__ in source_info_util.summarize(space["ask"]())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("extend.backend", "register_backend_factory"),
        ("extend.source_info_util", "NameStack"),
    ],
)
def test_what_is_absent_says_why(path, name):
    with pytest.raises(AttributeError, match=f"{name} is not here: .*minijax"):
        getattr(module(path), name)


def test_the_generator_is_an_implementation():
    impl = module("extend.random").threefry_prng_impl
    one, other = minijax.random.key(7, impl=impl), minijax.random.key(7)
    assert (minijax.random.key_data(one) == minijax.random.key_data(other)).all()
    assert hash(impl) == hash("fry") and str(impl) == "fry"
