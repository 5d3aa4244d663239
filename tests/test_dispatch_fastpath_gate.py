"""The gate run as Python, word for word, and as machine code."""

import ctypes
import weakref

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit
from minijax.dispatch import fastpath as gate
from minijax.dispatch.fastpath_functions import enable_fastpath
from minijax.dispatch.fastpath_tables import (
    NativeTable,
    accepted_scalars,
    tree_node_code,
    tree_table,
)
from minijax.dispatch.lowlevel import UnknownLayout, i64
from minijax.jitting.arguments import StaticKey
from minijax.tree_util import tree_structure
from tests.test_dispatch_fastpath_functions import TREES, X, same, warmed


@pytest.fixture(autouse=True)
def opened():
    try:
        return enable_fastpath()
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
    table = NativeTable(2)
    table[0], table[8] = thing, 5
    assert i64[table.address] == id(thing) and i64[table.address + 8] == 5
    assert table.held == [thing]


def test_numbers_allowed():
    avals = [jit(lambda x=x: x)().aval for x in (0.5, 3, True)] + [X.aval]
    assert [accepted_scalars(aval) for aval in avals] == [4, -4, 1, 0]


@pytest.mark.parametrize("tree", [{1: 2}, {"a": {2: 3}}], ids=str)
def test_keys_that_are_no_names(tree):
    with pytest.raises(UnknownLayout):
        tree_table(tree_structure(tree), iter(range(9)))


def test_static_values_may_be_integers():
    table = tree_table(StaticKey(5), iter(()))
    assert i64[table.address + 8] == id(5) and table.held == [5]
    assert tree_node_code(tree_structure(1)) == 0


SCALARS = [
    np.float32(1.5), np.float64(0.1), np.float64(1e-300), np.float16(2), np.int8(-3),
    np.int64(-3), np.int64(2**40 + 5), np.uint64(2**64 - 1), np.uint8(200),
    np.bool_(True), np.complex64(1 - 2j), np.complex128(1e-3 + 0.1j), 0.1 - 2j,
    jnp.zeros((), jnp.bfloat16 or jnp.float16).dtype.type(3),
]  # fmt: skip


@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
def test_scalars(scalar):
    f = jit(lambda x, a: (a, x * a), backend="cpu")
    expected = warmed(f, X, scalar)
    before = dict(f._ready.seen)
    for _ in range(6):
        same(through_python(f, X, scalar), expected)
        same(f(X, scalar), expected)
    assert f._ready.seen == before  # all of them went through the gate


@pytest.mark.parametrize("scalar", [np.float32(2), np.float64(2)])
def test_scalars_of_another_type(scalar):
    f = jit(lambda a: a + 1, backend="cpu")
    warmed(f, scalar)
    for other in (2.0, np.int64(2), np.bool_(1), np.complex64(2), 2j, np.float16(2)):
        same(f(other), jit(lambda a: a + 1, backend="python")(other))


def test_results_with_weak_references_are_not_used_again():
    f = jit(lambda x: x + 1, backend="cpu")
    warmed(f, X)
    reference = weakref.ref(f(X))
    results = [f(X + i) for i in range(8)]
    assert reference() is None
    assert all(np.asarray(r)[0] == X[0] + i + 1 for i, r in enumerate(results))
