# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The tables that the gate reads: what never changes, and what a function has ready.

A table is an array of words. Whatever is mentioned by its address in one is held by
the object that owns the table.
"""

import ctypes
import itertools
from contextvars import Context
from functools import partial

import numpy as np

from minijax import core
from minijax.arrays.array import ArrayImpl
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import DTYPES, NARROW, canonicalize_dtype
from minijax.arrays.placement import default_placement
from minijax.arrays.settings import config
from minijax.calls.object_layout import require
from minijax.calls.words import word
from minijax.jitting.arguments import DonatedArray, Static
from minijax.memory.results import Heap, Pages, empty, scratch
from minijax.pytrees.node_kinds import node_kinds

# What is the same for all functions.
(
    _, AROUND, TRACE, EVALUATOR, OVERRIDES, UNCHANGED, CONFIG, WATCHERS, PYTHON,
    ARRAY, NDARRAY, NONE, FLOAT, INT, BOOL, TRUE, EMPTY, DONATED, HEAP, PAGES, PAIR,
    ROW, EXCEPTION,
) = range(0, 8 * 23, 8)  # fmt: skip
# Functions of Python and NumPy.
(
    INCREF, DECREF, GET_VARIABLE, NEW_METHOD, CALL, NEW_TUPLE, NEW_LIST, NEW_DICT,
    GET_ITEM, SET_ITEM, ALLOCATE, AS_INTEGER, UNLOCK, LOCK, CALL_WITH, EQUAL, OCCURRED,
    MATCHES, CLEAR, NEW_NDARRAY, SURROUNDINGS,
) = range(8 * 23, 8 * 44, 8)  # fmt: skip
C_FUNCTIONS = (
    "Py_IncRef", "Py_DecRef", "PyContextVar_Get", "PyMethod_New", "PyObject_Call",
    "PyTuple_New", "PyList_New", "PyDict_New", "PyDict_GetItem", "PyDict_SetItem",
    "PyType_GenericAlloc", "PyLong_AsLongLongAndOverflow", "PyEval_SaveThread",
    "PyEval_RestoreThread", "PyObject_Vectorcall", "PyObject_RichCompareBool",
    "PyErr_Occurred", "PyErr_ExceptionMatches", "PyErr_Clear",
)  # fmt: skip
# A record: what is ready for calls of one kind.
(
    NEXT, _, SWITCHES, OWNER, COUNT, ARGUMENTS, SPAN, RESULTS, RESULT, STRUCTURE,
    PROGRAM, ARENA, CONTEXT, LONG, FAILURE, KEYWORDS, PLACES, TAKEN, GIVEN, GIVEN_END,
    PAIRS, PAIRS_END, RECORD,
) = range(0, 8 * 23, 8)  # fmt: skip
# What is known of an argument or a result.
(
    KNOWN_AVAL, KNOWN_WEAK, KNOWN_DESCR, KNOWN_NDIM, KNOWN_DIMS, NUMBER, SPARES, TURN,
    MAKER, SCALAR, WIDE, PARTS, KNOWN_PLACE, ARRAYS_ONLY, STEP, SOURCE, PIECES,
    COPIES, NEXT_VALUE,
) = range(0, 8 * 19, 8)  # fmt: skip
# A node of a tree, and the kinds of nodes.
KIND, CONTAINER, LENGTH, FLATTEN, UNFLATTEN, AUX, SLOT, CHILDREN = range(0, 64, 8)
LEAF, TUPLE, NAMED, LIST, DICT, NOTHING, STATIC, REGISTERED = range(8)
DEEPEST = 64  # trees that are deeper would take much of the stack


class Table:
    """Words in memory, and what they point to.

    Args:
      count: the number of words.

    Attributes:
      address: of the first word.
    """

    def __init__(self, count):
        self.words, self.held = np.zeros(count, np.int64), []
        self.address = self.words.ctypes.data

    def __setitem__(self, place, value):
        """Write a number, or the address of an object, which is held from now on."""
        if type(value) is not int:
            self.held.append(value)
            value = value.address if isinstance(value, Table) else id(value)
        self.words[place // 8] = value

    def update(self, entries):
        """Write the entries of a dictionary, and return the table."""
        for place, value in entries.items():
            self[place] = value
        return self


def address_of(name):
    """Return the address of a function of Python."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


def new_array_function():
    """Return the address of NumPy's ``PyArray_NewFromDescr``."""
    from numpy._core import _multiarray_umath

    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    pointer = kind(("PyCapsule_GetPointer", ctypes.pythonapi))
    functions = pointer(_multiarray_umath._ARRAY_API, None)
    require(word[functions + 8 * 2] == id(np.ndarray), "NumPy's functions")
    return word[functions + 8 * 94]


def surroundings_table(in_python):
    """Return the `Table` of what is the same for all functions.

    Args:
      in_python: a function that is called like a method with what the gate leaves.
    """
    types = {
        ARRAY: ArrayImpl, NDARRAY: np.ndarray, FLOAT: float, INT: int, BOOL: bool,
        DONATED: DonatedArray, HEAP: Heap, PAGES: Pages, PAIR: tuple, ROW: list,
        EXCEPTION: Exception,
    }  # fmt: skip
    table = Table(SURROUNDINGS // 8).update(types).update({
        TRACE: core._current_trace, EVALUATOR: Context().run(core.current_trace),
        OVERRIDES: config._overrides, UNCHANGED: Context().run(config._overrides.get),
        CONFIG: config, WATCHERS: core.watchers, PYTHON: in_python,
        NONE: None, TRUE: True, EMPTY: (),
    })  # fmt: skip
    for i, name in enumerate(C_FUNCTIONS):
        table[INCREF + 8 * i] = address_of(name)
    table[NEW_NDARRAY] = new_array_function()
    return table


def numbers_allowed(aval):
    """Return which numbers of Python are of a type: a code, 0 for none.

    It is the number of bytes of a float, that of an integer with a minus sign, or 1.
    """
    for example, sign in ((0.0, 1), (0, -1), (False, 1)):
        if aval == typeof(example):
            return sign * aval.dtype.itemsize
    return 0


def scalars_allowed(aval):
    """Return which scalars of NumPy are of a type, and Python's complex numbers.

    Returns:
      A class whose numbers are as they have to be, one whose numbers have more bits,
      and how many floats those are; integers only lose their upper bits. 0 is none.
    """
    if aval == typeof(1j):
        return (0, complex, 2) if aval.dtype.itemsize == 8 else (complex, 0, 0)
    if aval.shape or aval.weak_type or aval.dtype not in DTYPES:
        return 0, 0, 0
    wide = [x.type for x in NARROW if canonicalize_dtype(x) == aval.dtype != x]
    parts = {"f": 1, "c": 2}.get(aval.dtype.kind, 0)
    return aval.dtype.type, wide[0] if wide else 0, parts


SMALL, KEPT = 2**14, 4  # bytes, results


def values_table(avals, places=None, placement=None, blocks=None, count=0):
    """Return the `Table` of what is known of some arguments or results.

    Args:
      avals: their types.
      places: the placement of each, None for an argument that is no array of ours; by
        default, none of them is.
      placement: where the program runs, None for the default.
      blocks, count: of arrays in so many parts, the type of each part; what has no
        placement but the default is whole there, and each part is all of it.
    """
    table, default = Table(NEXT_VALUE // 8 * len(avals)), default_placement()
    rows = zip(avals, places or [None] * len(avals), blocks or avals)
    for i, (aval, place, block) in enumerate(rows):
        only = place not in (None, default)  # numbers would mean another device
        block = block if only else aval
        dims = np.array(block.shape, np.int64)
        small = aval.size * aval.dtype.itemsize <= SMALL
        known = {
            KNOWN_AVAL: aval, KNOWN_WEAK: bool(aval.weak_type), KNOWN_DESCR: aval.dtype,
            KNOWN_NDIM: block.ndim, KNOWN_DIMS: dims.ctypes.data,
            NUMBER: numbers_allowed(aval), SPARES: [None] * KEPT if small else [],
            MAKER: 0 if small else partial(empty, block.shape, aval.dtype),
            **dict(zip((SCALAR, WIDE, PARTS), scalars_allowed(aval))),
            KNOWN_PLACE: place or placement or default, ARRAYS_ONLY: int(only),
            STEP: 8, SOURCE: -1, PIECES: count * only, COPIES: count * (not only),
        }  # fmt: skip
        table.held.append(dims)
        table.update({NEXT_VALUE * i + place: value for place, value in known.items()})
    return table


def kind_of_node(tree):
    """Return the code of the outermost container of a structure.

    Raises:
      UnknownLayout: if it is a dictionary whose keys are no strings, or of a class that
        is derived from one of named tuples.
    """
    if tree.kind is None:
        return LEAF
    kind, aux = tree.kind.type, tree.aux
    require(kind is not dict or all(type(key) is str for key in aux), "keys")
    if kind.__base__ is tuple and hasattr(kind, "_fields") and kind not in node_kinds:
        return NAMED
    require(kind in node_kinds, f"{kind} is a container of another kind")
    codes = {tuple: TUPLE, list: LIST, dict: DICT, type(None): NOTHING}
    return codes.get(kind, REGISTERED)


def node_table(kind, container, children=(), keys=()):
    """Return the `Table` of a node.

    Args:
      kind: its code.
      container: the type of a container, what is known of a leaf, or a static value.
      children: tables.
      keys: of a dictionary, as many.
    """
    table = Table(CHILDREN // 8 + 2 * len(children))
    table.update({KIND: kind, CONTAINER: container, LENGTH: len(children)})
    for i, child in enumerate(children):
        table[CHILDREN + 16 * i] = child
        table[CHILDREN + 16 * i + 8] = keys[i] if keys else 0
    return table


def tree_table(tree, leaves, slots=None, depth=0):
    """Return the `Table` of a structure, or of a `Static` value.

    Args:
      tree: a `PyTreeDef` or a `Static`.
      leaves: an iterator of what is known of the leaves, a word each.
      slots: an iterator of places, one for each registered container; None for results.
      depth: in how many containers it is.
    """
    require(depth < DEEPEST, "depth")
    if isinstance(tree, Static):
        table = node_table(STATIC, id(tree.value))
        table.held.append(tree.value)
        return table
    kind = kind_of_node(tree)
    if kind == LEAF:
        return node_table(LEAF, next(leaves))
    slot = next(slots) if slots is not None and kind == REGISTERED else 0
    inside = leaves, slots, depth + 1
    children = [tree_table(child, *inside) for child in tree.children()]
    keys = tree.aux if kind == DICT else ()
    table = node_table(kind, tree.kind.type, children, keys)
    if kind == REGISTERED:
        table[FLATTEN], table[UNFLATTEN] = tree.kind.flatten, tree.kind.unflatten
        table.words[AUX // 8], table[SLOT] = id(tree.aux), slot
        table.held.append(tree.aux)
    return table


def mark_sources(results, sources, in_avals, out_avals):
    """Note which results take the memory of an input that is given up.

    Args:
      results: the `Table` of what is known of them.
      sources: for each the number of the input, or None.
      in_avals, out_avals: types of inputs and results.
    """
    for i, source in enumerate(sources):
        if source is not None:
            taken, made = in_avals[source], out_avals[i]
            alike = (taken.shape, taken.dtype) == (made.shape, made.dtype)
            require(alike, "a result in the memory of an argument of another shape")
            results[NEXT_VALUE * i + SOURCE] = 8 * source


def record_table(
    around, trees, named, in_avals, out_tree, out_avals, entry, executable, places,
    placement=None, given=(), used=None,
):  # fmt: skip
    """Return the `Table` of what is ready for calls of one kind.

    Args:
      around: the `Table` of the surroundings.
      trees: the structure of each argument, or a `Static`.
      named: the same of those given by name, a dictionary in order.
      in_avals, out_avals: types of the leaves of arguments and results.
      out_tree: the structure of the result.
      entry, executable: the entry of the program, and whose it is.
      places, placement: see `values_table`; the results are at `placement`.
      given: for each input of the program whether it is given up.
      used: for each leaf of the arguments whether it is an input; by default, all are.

    Raises:
      UnknownLayout: if a tree is too deep, or a result takes the memory of an argument
        of another shape or dtype.
    """
    cuts, rows = entry.cuts, 1
    if cuts is None:
        known = values_table(in_avals, places, placement)
        results = values_table(out_avals, placement=placement)
    else:
        rows, out_avals = cuts.count, cuts.out_avals
        known = values_table(in_avals, places, None, cuts.in_blocks, rows)
        outs = cuts.out_placements, None, cuts.out_blocks
        results = values_table(out_avals, *outs, rows)
    used = [True] * len(in_avals) if used is None else used
    for i in [i for i, needed in enumerate(used) if not needed]:
        known[NEXT_VALUE * i + STEP] = 0
    inputs = [aval for aval, needed in zip(in_avals, used) if needed]
    mark_sources(results, entry.sources, inputs, out_avals)
    places = iter([known.address + NEXT_VALUE * i for i in range(len(in_avals))])
    slots = itertools.count(0, 8)
    nodes = [tree_table(tree, places, slots) for tree in trees]
    by_name = [tree_table(tree, places, slots) for tree in named.values()]
    arena = scratch(max(entry.arena_bytes, 64))
    span = len(inputs) + len(out_avals)
    gifts = [i for i, gift in enumerate(given) if gift]
    gifts_table = Table(len(gifts)).update({8 * k: 8 * i for k, i in enumerate(gifts)})
    pairs = Table(next(slots) // 8)
    places_of_call = Table((rows + 3) * span)  # addresses, numbers, holders, arrays
    table = Table(RECORD // 8).update({
        AROUND: around, SWITCHES: config._values, COUNT: len(trees),
        ARGUMENTS: Table(len(nodes)).update({8 * i: x for i, x in enumerate(nodes)}),
        KEYWORDS: node_table(DICT, dict, by_name, tuple(named)) if named else 0,
        PLACES: places_of_call.address + 8 * span * (rows - 1),
        SPAN: 8 * span, RESULTS: 8 * len(inputs),
        RESULT: results, PROGRAM: entry.address, CONTEXT: entry.context,
        STRUCTURE: tree_table(out_tree, iter(range(0, 8 * len(out_avals), 8))),
        ARENA: arena.ctypes.data, LONG: int(entry.nanoseconds > 20_000),
        GIVEN: gifts_table, GIVEN_END: gifts_table.address + 8 * len(gifts),
        PAIRS: pairs, PAIRS_END: pairs.address + 8 * len(pairs.words),
        FAILURE: getattr(executable, "raise_failure", None),
    })  # fmt: skip
    table.held += [known, arena, entry, executable, places_of_call]
    table.words[OWNER // 8] = id(table)
    return table
