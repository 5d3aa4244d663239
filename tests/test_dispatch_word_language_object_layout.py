"""Where things are in objects; a process where they are elsewhere is recognised."""

import numpy as np
import pytest

from minijax.arrays.array import ArrayImpl, ShapedArray
from minijax.dispatch import word_language as object_layout
from minijax.dispatch.fastpath_functions import FastPathFunction
from minijax.dispatch.word_language import UnknownLayout, check_layout, i64, slot_offset
from minijax.jitting.api import JitOptions


@pytest.fixture(autouse=True)
def known():
    try:
        check_layout()
    except UnknownLayout as error:
        pytest.skip(f"the fast path is off in this Python: {error}")


def test_slots():
    x = ArrayImpl(np.zeros(3, "float32"), ShapedArray((3,), "float32"))
    found = [i64[id(x) + slot_offset(ArrayImpl, name)] for name in ArrayImpl.__slots__]
    assert found == [id(x._buffer), id(x.aval), id(x.placement)]
    f = FastPathFunction(abs, JitOptions())
    assert i64[id(f) + object_layout.ObjectOffsets.fast_path] == id(f._fast_path)


PLACES = """refs type size tuple_items list_items float_value call data ndim dims
    descr flags"""


@pytest.mark.parametrize("name", PLACES.split())
@pytest.mark.parametrize("distance", [8, -8])
def test_other_places_are_refused(monkeypatch, name, distance):
    moved = getattr(object_layout.ObjectOffsets, name) + distance
    monkeypatch.setattr(object_layout.ObjectOffsets, name, moved)
    with pytest.raises(UnknownLayout):
        check_layout()


def test_other_interpreters_are_refused(monkeypatch):
    monkeypatch.setattr(object_layout.sys.implementation, "name", "pypy")
    with pytest.raises(UnknownLayout):
        check_layout()


def test_threads_without_a_lock_are_refused(monkeypatch):
    monkeypatch.setattr(object_layout.sysconfig, "get_config_var", lambda name: 1)
    with pytest.raises(UnknownLayout):
        check_layout()
