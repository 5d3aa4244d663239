"""Where Python and NumPy keep what is in their objects.

Nothing here is taken on trust: `check_layout` looks at objects of this process, and
raises `UnknownLayout` if it finds anything else.

Reference: the object structures of CPython, and ``ndarraytypes.h`` of NumPy.
"""

# Made from chapters/26_calls.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import struct
import sys
import sysconfig
from types import SimpleNamespace

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.arrays.dtypes import DTYPES
from minijax.arrays.interchange import Record
from minijax.arrays.settings import Config
from minijax.calls.words import half, word
from minijax.jitting.functions import JitFunction

At = SimpleNamespace(
    refs=0, type=8, size=16,  # every object, and those with a length
    tuple_items=getattr(tuple, "__basicsize__", 24), list_items=24,
    float_value=16, call=128,  # how a type is called
    scalar_value=16,  # of NumPy's scalars, and of Python's complex numbers
    data=16, ndim=24, dims=32, base=48, descr=56, flags=64,  # NumPy's arrays
)  # fmt: skip
ORDERED, WRITEABLE = 0x101, 0x400  # flags of arrays


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


At.buffer, At.aval, At.placement = [
    place_of(ArrayImpl, name) for name in ArrayImpl.__slots__
]
At.weak, At.config_values = place_of(Record, "weak_type"), place_of(Config, "_values")
At.weak_references = getattr(ArrayImpl, "__weakrefoffset__", 0)
At.gate = size_of(JitFunction)  # the one slot of a class derived from it


def check_interpreter():
    """Raise `UnknownLayout` unless this is a plain CPython of 64 bits."""
    require(sys.implementation.name == "cpython", "another Python")
    require(not sysconfig.get_config_var("Py_GIL_DISABLED"), "threads without a lock")
    require(struct.calcsize("P") == 8 and sys.byteorder == "little", "the machine")
    sample = object()
    count = word[id(sample) + At.refs]
    again = [sample] * 3
    require(word[id(sample) + At.refs] == count + 3 < 100, "counts of references")
    require(word[id(again) + At.type] == id(list), "types")


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
    sizes = [word[id(x) + At.size] for x in (pair, row, table, (), [], {})]
    require(sizes == [2, 2, 2, 0, 0, 0], "lengths")
    require(2 <= word[id(row) + At.list_items + 8] < 16, "lists")  # how many have room
    for start in (id(pair) + At.tuple_items, word[id(row) + At.list_items]):
        items = [word[start], word[start + 8]]
        require(items == [id(item), id(other)], "items")
    bits = struct.unpack("q", struct.pack("d", 0.1))[0]
    require(word[id(0.1) + At.float_value] == bits, "floats")


def check_scalars():
    """Raise `UnknownLayout` unless NumPy's scalars have numbers where `At` says."""
    for x in (*(dtype.type(1) for dtype in DTYPES), 0.1 + 0.2j):
        array = np.array(x)
        found = ctypes.string_at(id(x) + At.scalar_value, array.itemsize)
        require(found == array.tobytes(), f"scalars of {array.dtype}")


def check_calls():
    """Raise `UnknownLayout` unless a type notes at `At.call` how it is called."""
    kinds = [type("Kind", (), {"__call__": f}) for f in (lambda self: 1, print)]
    plain = type("Kind", (), {})
    found = [word[id(kind) + At.call] for kind in (plain, *kinds)]
    require(found[0] == 0 != found[1] == found[2], "calls of objects")


def check_arrays():
    """Raise `UnknownLayout` unless NumPy's arrays are as its headers say."""
    base, locked = np.zeros((3, 5), np.float32), np.ones(4)
    locked.flags.writeable = False
    for x in (base, base.T, base[1:, 2], np.array(2), np.zeros(7, bool), locked):
        where, flags = id(x), half[id(x) + At.flags]
        gap = word[where + At.dims + 8] - word[where + At.dims]  # the strides come next
        require(gap == 8 * x.ndim and half[where + At.ndim] == x.ndim, "axes")
        dims = [word[word[where + At.dims] + 8 * i] for i in range(x.ndim)]
        require(word[where + At.data] == x.ctypes.data, "the data of arrays")
        require(tuple(dims) == x.shape, "shapes")
        require(word[where + At.descr] == id(x.dtype), "the dtypes of arrays")
        owner = 0 if x.base is None else id(x.base)
        require(word[where + At.base] == owner, "the owners of memory")
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
