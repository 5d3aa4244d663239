# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.
"""DLPack's capsules, in which array libraries lend each other memory.

NumPy makes them and reads them, for all types but bfloat16. Those numbers travel as
integers of 16 bits in the eyes of NumPy; the code of their type is rewritten.

Reference: ``dlpack.h``, https://dmlc.github.io/dlpack/latest/c_api.html.
"""

import ctypes

import numpy as np

UNSIGNED, BFLOAT = (1, 16, 1), (4, 16, 1)  # the kind of a number, its bits, how many
# Where a capsule of each name describes its numbers.
PLACES = {b"dltensor": 20, b"dltensor_versioned": 52}

_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class Numbers(ctypes.Structure):
    """What a capsule says of the type of its numbers."""

    _fields_ = (
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    )  # fmt: skip


def retype(capsule, before, after):
    """Rewrite the type of a capsule's numbers; return whether it was `before`."""
    name = _name_of(capsule)
    numbers = Numbers.from_address(_pointer_of(capsule, name) + PLACES[name])
    found = (numbers.code, numbers.bits, numbers.lanes) == before
    if found:
        numbers.code, numbers.bits, numbers.lanes = after
    return found


def lend(buffer, **kwargs):
    """Return the numbers of a NumPy array in a capsule."""
    if buffer.dtype.name != "bfloat16":
        return buffer.__dlpack__(**kwargs)
    capsule = buffer.view(np.uint16).__dlpack__(**kwargs)
    retype(capsule, UNSIGNED, BFLOAT)
    return capsule


class _Lender:
    """An object of another library, with numbers of types that NumPy knows."""

    def __init__(self, x):
        self.x, self.retyped = x, False

    def __dlpack__(self, **kwargs):
        capsule = self.x.__dlpack__(**kwargs)
        self.retyped = retype(capsule, BFLOAT, UNSIGNED)
        return capsule

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def borrow(x):
    """Return the numbers of an object as a NumPy array that shares its memory."""
    lender = _Lender(x)
    array = np.from_dlpack(lender)
    return array.view("bfloat16") if lender.retyped else array
