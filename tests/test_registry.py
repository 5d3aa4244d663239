"""Tables that the package fills: each key once, and what replaces another names it."""

import sys
import types

import pytest

from minijax._registry import Registry

TWICE = """
table["a"] = 1
table["a"] = 2
"""
SUPERSEDED = """
table["a"] = first
table.supersede("a", first, 2)
"""
ANOTHER = """
table["a"] = 1
table.supersede("a", first, 2)
"""
NONE = """
table.supersede("a", first, 2)
"""
MANY = """
table.update({"a": 1, "b": 2})
table.update(a=3)
"""


def as_module(text, name="minijax.floor_of_a_test", **names):
    """Run a text as the body of a module of the package."""
    module = types.ModuleType(name)
    vars(module).update(names)
    exec(compile(text, "<test>", "exec"), vars(module))
    return module


def test_a_key_is_set_once():
    table = Registry()
    with pytest.raises(RuntimeError, match="'a' is registered twice: first 1, then 2"):
        as_module(TWICE, table=table)
    assert table == {"a": 1}


def test_also_by_update():
    with pytest.raises(RuntimeError, match="registered twice"):
        as_module(MANY, table=Registry())


def test_what_replaces_names_what_it_replaces():
    table, first = Registry(), object()
    as_module(SUPERSEDED, table=table, first=first)
    assert table == {"a": 2}


@pytest.mark.parametrize("text", [ANOTHER, NONE])
def test_it_is_there(text):
    with pytest.raises(RuntimeError, match="was to supersede"):
        as_module(text, table=Registry(), first=object())


def test_the_place_stays():
    table = Registry(a=1, b=2)
    table.supersede("a", 1, 3)
    assert list(table.items()) == [("a", 3), ("b", 2)]


def test_programs_set_what_they_like():
    """A cell that runs twice, a user who replaces the rule of a primitive."""
    table = Registry()
    as_module(TWICE, name="__main__", table=table)
    assert table == {"a": 2}
    as_module(ANOTHER, name="of_a_user", table=table, first=object())
    assert table == {"a": 2}


@pytest.mark.parametrize(
    "text",
    ['table["a"] = 3', 'table.supersede("a", first, 2)', 'table.update({"a": 1})'],
)
def test_what_a_program_has_set_stays(text):
    """A notebook sets what it shows, before the package's own module is imported."""
    table = Registry()
    as_module('table["a"] = 7', name="__main__", table=table)
    as_module(text, table=table, first=object())
    assert table["a"] == 7


def test_rules_of_the_package():
    from minijax import lax
    from minijax.core import impl_rules, tracer_methods

    # No other test sets these: what a test has put back is a program's for ever.
    rule, method = impl_rules[lax.atan2_p], tracer_methods["sum"]
    text = "table[key] = None"
    for table, key in ((impl_rules, lax.atan2_p), (tracer_methods, "sum")):
        with pytest.raises(RuntimeError, match="registered twice"):
            as_module(text, table=table, key=key)
    assert impl_rules[lax.atan2_p] is rule
    assert tracer_methods["sum"] is method


def test_the_fault_is_brought_back(monkeypatch):
    """Without the refusal, whoever comes last wins."""
    monkeypatch.setattr(Registry, "__setitem__", Registry.enter)
    table = Registry()
    as_module(TWICE, table=table)
    assert table == {"a": 2}
    assert "minijax.floor_of_a_test" not in sys.modules


def test_a_module_that_is_imported_once_more_sets_its_keys_again():
    """As after Ctrl-C, which has stopped its first import halfway."""
    table, first = Registry(), object()
    text = 'table["a"] = first\ntable["b"] = 1\ntable.supersede("b", 1, 2)'
    for _ in range(2):
        as_module(text, table=table, first=first)
    assert table == {"a": first, "b": 2}
    with pytest.raises(RuntimeError, match="'a' is registered twice"):
        as_module('table["a"] = 3', "minijax.another_floor", table=table)
