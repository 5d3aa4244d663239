"""The gate run as Python, word for word, and as machine code."""

import ctypes

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import gate, jit
from minijax.gate_tables import Table, kind_of_node, numbers_allowed, tree_table
from minijax.gated_functions import open_gate
from minijax.object_layout import UnknownLayout
from minijax.trace_cache import Static
from minijax.tree_util import tree_structure
from minijax.words import word
from tests.test_gated_functions import TREES, X, same, warmed


@pytest.fixture(autouse=True)
def opened():
    try:
        return open_gate()
    except UnknownLayout:
        pytest.skip("the gate is closed in this Python")


def through_python(function, *args, **kwargs):
    """Do what the machine code of the gate does, by Python."""
    address = gate.gate(id(function), id(args), id(kwargs) if kwargs else 0)
    result = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(result))
    return result


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_trees(tree):
    f = jit(lambda tree, x: (tree, x + 1), backend="cpu")
    expected = warmed(f, tree, X)
    before = dict(f._ready.seen)
    for _ in range(6):
        same(through_python(f, tree, X), expected)
    assert f._ready.seen == before


@pytest.mark.parametrize("number", [0.1, 7, True, -3, 1e30])
def test_numbers_and_numpy(number):
    f = jit(lambda x, a: x * a, backend="cpu")
    same(through_python(f, X, number), warmed(f, X, number))
    same(through_python(f, np.asarray(X), number), f(X, number))
    same(through_python(f, x=X, a=number), warmed(f, x=X, a=number))


def test_what_it_leaves_to_python():
    f = jit(lambda x, a: x * a, backend="cpu")
    warmed(f, X, 2.0)
    for args in ((X[::2], 2.0), (jnp.arange(4), 2.0), (X, X), (2.0, X)):
        count = sum(f._ready.seen.values())
        same(through_python(f, *args), f(*args))
        assert sum(f._ready.seen.values()) > count


def test_tables_hold_what_they_mention():
    thing = object()
    table = Table(2)
    table[0], table[8] = thing, 5
    assert word[table.address] == id(thing) and word[table.address + 8] == 5
    assert table.held == [thing]


def test_numbers_allowed():
    avals = [jit(lambda x=x: x)().aval for x in (0.5, 3, True)] + [X.aval]
    assert [numbers_allowed(aval) for aval in avals] == [4, -4, 1, 0]


@pytest.mark.parametrize("tree", [{1: 2}, {"a": {2: 3}}], ids=str)
def test_keys_that_are_no_names(tree):
    with pytest.raises(UnknownLayout):
        tree_table(tree_structure(tree), iter(range(9)))


def test_static_values_may_be_integers():
    table = tree_table(Static(5), iter(()))
    assert word[table.address + 8] == id(5) and table.held == [5]
    assert kind_of_node(tree_structure(1)) == 0
