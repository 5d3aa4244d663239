"""Routines of the LAPACK in NumPy's own library, called by machine code.

Reference: Anderson and others, *LAPACK Users' Guide*; ``umath_linalg.cpp`` of NumPy,
which calls the same routines.
"""

# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import math
from collections import Counter
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np

from minijax.kernels.backends import array_of
from minijax.kernels.program_steps import StepKind, step_kinds
from minijax.kernels.views import View
from minijax.llvm.compiler import make_known

NAMES = "scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_"
COMPLEX, REAL, WHOLE = map(np.dtype, ("complex128", "float64", "int64"))


@cache
def routine(name):
    """Return a routine of NumPy's LAPACK as a function of ctypes; None if hidden."""
    with suppress(ImportError, AttributeError, OSError):
        from numpy.linalg import _umath_linalg

        library = ctypes.CDLL(_umath_linalg.__file__)
        for pattern in NAMES:
            if hasattr(library, pattern.format(name)):
                return getattr(library, pattern.format(name))
    return None


def whole():
    """Return the dtype of the whole numbers of NumPy's LAPACK."""
    wide = routine("dpotrf") is None or "_64_" in routine("dpotrf").__name__
    return np.dtype("int64" if wide else "int32")


class Room(NamedTuple):
    """An argument: as many bytes of memory to work in."""

    size: int


class Asked(NamedTuple):
    """Two arguments: memory for numbers of a dtype, and how many; the routine says."""

    dtype: np.dtype


def _cell(x):
    """Return the memory of an argument: words of 64 bits."""
    if isinstance(x, np.ndarray):
        return np.frombuffer(x.tobytes().ljust(16, b"\0"), WHOLE)
    return np.array([ord(x) if isinstance(x, str) else x], WHOLE)


def _is_cell(x):
    return isinstance(x, (str, int, np.ndarray))


def with_room(name, arguments):
    """Return arguments in which a routine has said how much memory it wants."""
    cells: list = []
    for x in arguments:
        if type(x) is Asked:
            cells += [np.zeros(1, x.dtype), _cell(-1)]
        else:
            cells.append(_cell(x) if _is_cell(x) else np.zeros(1, COMPLEX))
    if any(type(x) is Asked for x in arguments):
        routine(name)(*[ctypes.c_void_p(cell.ctypes.data) for cell in cells])
    found: list = []
    for x in arguments:
        if type(x) is Asked:
            count = max(int(cells[len(found)][0].real), 1)
            found += [Room(count * x.dtype.itemsize), count]
        else:
            found.append(x)
    return tuple(found)


class CallRoutine(NamedTuple):
    """A step: call a routine of LAPACK for each matrix of a batch.

    Attributes:
      name: of the routine.
      arguments: letters, whole numbers, arrays of one number, `Room`, and views.
      operand: the view of the matrices, by columns.
      results: views; the first is where the routine finds a copy of the operand.
      cost: a `Counter`.
    """

    name: str
    arguments: tuple
    operand: View
    results: tuple
    cost: Counter

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        views = [x for x in self.arguments if type(x) is View]
        read = [x.source for x in views if x not in self.results]
        return [self.operand.source, *read]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [view.source for view in self.results]

    @property
    def count(self):
        """The number of matrices."""
        return math.prod(self.operand.shape[:-2])

    @property
    def places(self):
        """Where the arguments that are no views lie in the workspace; and its end."""
        ends = [0]
        for x in self.arguments:
            size = x.size if type(x) is Room else 16 * _is_cell(x)
            ends.append(ends[-1] + -(-size // 64) * 64)
        return ends

    @property
    def workspace(self):
        """How many bytes of memory it needs besides."""
        return self.places[-1]

    def __str__(self):
        results = " ".join(map(str, self.results))
        return f"{results} = {self.name} {self.operand}"


def call_in_python(program, step):
    """Return a function of the memory that does a `CallRoutine`."""
    function, made = routine(step.name), []
    for x in step.arguments:
        room = np.empty(x.size, np.uint8) if type(x) is Room else None
        made.append(_cell(x) if _is_cell(x) else room)

    def run(memory):
        views = {*step.results, *(x for x in step.arguments if type(x) is View)}
        arrays = {view: array_of(view, memory) for view in views}
        arrays[step.results[0]][...] = array_of(step.operand, memory)
        flat = {view: x.reshape(step.count, -1) for view, x in arrays.items()}
        for number in range(step.count):
            pairs = zip(step.arguments, made)
            cells = [flat[x][number] if type(x) is View else y for x, y in pairs]
            function(*[ctypes.c_void_p(cell.ctypes.data) for cell in cells])

    return run


def write_routine(f, step):
    """Write a loop over matrices, with a call of the routine for each."""
    space = f.offset("%arena", f.program.locations.workspaces[id(step)])
    places, starts = {}, {x: f.address(x.source) for x in step.results}
    for number, x in enumerate(step.arguments):
        if type(x) is View:
            starts[x] = f.address(x.source)
            continue
        places[number] = f.offset(space, step.places[number])
        for word, value in enumerate(_cell(x) if _is_cell(x) else ()):
            cell = f.offset(places[number], 8 * word)
            cell = f.emit(f"bitcast i8* {cell} to i64*", "p")
            f.line(f"store i64 {value}, i64* {cell}")
    f.copy(starts[step.results[0]], f.address(step.operand.source), step.operand.source)
    name, kinds = f"lapack_{step.name}", ", ".join(["i8*"] * len(step.arguments))
    address = ctypes.cast(routine(step.name), ctypes.c_void_p).value
    make_known(name, address)
    f.declare(f"declare void @{name}({kinds})")

    def matrix(index, _):
        at = {x: _matrix_of(f, start, index, x, step) for x, start in starts.items()}
        given = [
            at[x] if type(x) is View else places[number]
            for number, x in enumerate(step.arguments)
        ]
        f.line(f"call void @{name}({', '.join(f'i8* {x}' for x in given)})")
        return []

    f.loop(step.count, [], matrix)


def _matrix_of(f, start, index, view, step):
    size = math.prod(view.shape) // step.count * view.dtype.itemsize
    return f.offset(start, f.emit(f"mul i64 {index}, {size}"))


def cost_of_call(step):
    """Return the costs of the equation that the step does."""
    return step.cost


step_kinds[CallRoutine] = StepKind(call_in_python, cost_of_call, write_routine)
