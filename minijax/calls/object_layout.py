# Made from chapters/26_calls.md by `make chapter`;
# edit the chapter, not this file.
"""Where Python and NumPy keep what is in their objects.

Nothing here is taken on trust: `check_layout` looks at objects of this process, and
raises `UnknownLayout` if it finds anything else.

Reference: the object structures of CPython, and ``ndarraytypes.h`` of NumPy.
"""

import ctypes
import struct
import sys
import sysconfig

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.arrays.dtypes import DTYPES
from minijax.arrays.interchange import Record
from minijax.arrays.settings import Config
from minijax.calls.words import half, word
from minijax.jitting.functions import JitFunction

# Every object, and those with a length.
REFS, TYPE, SIZE = 0, 8, 16
# Containers, floats, types.
TUPLE_ITEMS, LIST_ITEMS = getattr(tuple, "__basicsize__", 24), 24
FLOAT_VALUE, TP_CALL = 16, 128
SCALAR_VALUE = 16  # of NumPy's scalars, and of Python's complex numbers
# NumPy's arrays.
DATA, NDIM, DIMS, BASE, DESCR, FLAGS = 16, 24, 32, 48, 56, 64
ORDERED, WRITEABLE = 0x101, 0x400


class UnknownLayout(Exception):
    """Objects are not laid out as machine code would have to know."""


def require(truth, what):
    """Raise `UnknownLayout` unless something is true."""
    if not truth:
        raise UnknownLayout(what)


def size_of(kind):
    """Return how many bytes an object of a class has, or 0 if that is unknown."""
    return getattr(kind, "__basicsize__", 0)


def place_of(kind, slot):
    """Return where the objects of a class keep what is in one of its slots."""
    return size_of(kind.__base__) + 8 * sorted(kind.__slots__).index(slot)


BUFFER, AVAL, PLACEMENT = [
    place_of(ArrayImpl, name) for name in ArrayImpl.__slots__
]
WEAK, CONFIG_VALUES = place_of(Record, "weak_type"), place_of(Config, "_values")
WEAK_REFERENCES = getattr(ArrayImpl, "__weakrefoffset__", 0)
GATE = size_of(JitFunction)  # the one slot of a class derived from it


def check_interpreter():
    """Raise `UnknownLayout` unless this is a plain CPython of 64 bits."""
    require(sys.implementation.name == "cpython", "another Python")
    require(not sysconfig.get_config_var("Py_GIL_DISABLED"), "threads without a lock")
    require(struct.calcsize("P") == 8 and sys.byteorder == "little", "the machine")
    sample = object()
    count = word[id(sample) + REFS]
    again = [sample] * 3
    require(word[id(sample) + REFS] == count + 3 < 100, "counts of references")
    require(word[id(again) + TYPE] == id(list), "types")


def check_slots():
    """Raise `UnknownLayout` unless slots are where `place_of` says."""
    for kind in (ArrayImpl, Record, Config):
        for slot in kind.__slots__:
            sample, value = object.__new__(kind), object()
            getattr(kind, slot).__set__(sample, value)
            require(word[id(sample) + place_of(kind, slot)] == id(value), slot)


def check_containers():
    """Raise `UnknownLayout` unless tuples, lists, dictionaries, floats are as usual."""
    item, other = object(), object()
    pair, row, table = (item, other), [item, other], {"a": item, "b": other}
    sizes = [word[id(x) + SIZE] for x in (pair, row, table, (), [], {})]
    require(sizes == [2, 2, 2, 0, 0, 0], "lengths")
    require(2 <= word[id(row) + LIST_ITEMS + 8] < 16, "lists")  # how many have room
    for start in (id(pair) + TUPLE_ITEMS, word[id(row) + LIST_ITEMS]):
        items = [word[start], word[start + 8]]
        require(items == [id(item), id(other)], "items")
    bits = struct.unpack("q", struct.pack("d", 0.1))[0]
    require(word[id(0.1) + FLOAT_VALUE] == bits, "floats")


def check_scalars():
    """Raise `UnknownLayout` unless NumPy's scalars have numbers at `SCALAR_VALUE`."""
    for x in (*(dtype.type(1) for dtype in DTYPES), 0.1 + 0.2j):
        array = np.array(x)
        found = ctypes.string_at(id(x) + SCALAR_VALUE, array.itemsize)
        require(found == array.tobytes(), f"scalars of {array.dtype}")


def check_calls():
    """Raise `UnknownLayout` unless a type notes at `TP_CALL` how it is called."""
    kinds = [type("Kind", (), {"__call__": f}) for f in (lambda self: 1, print)]
    plain = type("Kind", (), {})
    found = [word[id(kind) + TP_CALL] for kind in (plain, *kinds)]
    require(found[0] == 0 != found[1] == found[2], "calls of objects")


def check_arrays():
    """Raise `UnknownLayout` unless NumPy's arrays are as its headers say."""
    base, locked = np.zeros((3, 5), np.float32), np.ones(4)
    locked.flags.writeable = False
    for x in (base, base.T, base[1:, 2], np.array(2), np.zeros(7, bool), locked):
        where, flags = id(x), half[id(x) + FLAGS]
        gap = word[where + DIMS + 8] - word[where + DIMS]  # the strides come next
        require(gap == 8 * x.ndim and half[where + NDIM] == x.ndim, "axes")
        dims = [word[word[where + DIMS] + 8 * i] for i in range(x.ndim)]
        require(word[where + DATA] == x.ctypes.data, "the data of arrays")
        require(tuple(dims) == x.shape, "shapes")
        require(word[where + DESCR] == id(x.dtype), "the dtypes of arrays")
        owner = 0 if x.base is None else id(x.base)
        require(word[where + BASE] == owner, "the owners of memory")
        shown = [flags & bit != 0 for bit in (1, 0x100, WRITEABLE)]
        known = [x.flags.c_contiguous, x.flags.aligned, x.flags.writeable]
        require(shown == known, "the flags of arrays")


def check_layout():
    """Raise `UnknownLayout` unless everything is where machine code looks for it."""
    check_interpreter()
    check_slots()
    check_containers()
    check_scalars()
    check_calls()
    check_arrays()
