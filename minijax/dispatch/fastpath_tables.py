"""The tables that the fast path reads: what never changes, and what a function has.

A table is an array of words. Whatever is mentioned by its address in one is held by
the object that owns the table.
"""

# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import itertools
from contextvars import Context
from functools import partial
from types import SimpleNamespace

import numpy as np

from minijax import core
from minijax.arrays.array import ArrayImpl, typeof
from minijax.arrays.devices import default_placement
from minijax.arrays.dtypes import (
    SHORT_DTYPE_NAMES,
    X64_TO_X32,
    canonicalize_dtype,
    config,
)
from minijax.dispatch.lowlevel import function_pointer, i64, require_layout
from minijax.jitting.arguments import DonatedArray, StaticKey
from minijax.memory.allocator import (
    HeapBlock,
    HugePageBlock,
    pooled_empty,
    scratch_bytes,
)
from minijax.pytrees.registry import node_kinds


def places_named(names):
    """Return where the words of a table are, by their names: in bytes, as its size."""
    found = {name: 8 * i for i, name in enumerate(names)}
    return SimpleNamespace(size=8 * len(found), **found)


C_FUNCTIONS = {
    "incref": "Py_IncRef", "decref": "Py_DecRef", "get_variable": "PyContextVar_Get",
    "new_method": "PyMethod_New", "call": "PyObject_Call",
    "call_with": "PyObject_Vectorcall", "new_tuple": "PyTuple_New",
    "new_list": "PyList_New", "new_dict": "PyDict_New", "get_item": "PyDict_GetItem",
    "set_item": "PyDict_SetItem", "allocate": "PyType_GenericAlloc",
    "as_integer": "PyLong_AsLongLongAndOverflow", "unlock": "PyEval_SaveThread",
    "lock": "PyEval_RestoreThread", "equal": "PyObject_RichCompareBool",
    "occurred": "PyErr_Occurred", "matches": "PyErr_ExceptionMatches",
    "clear": "PyErr_Clear",
}  # fmt: skip
# What is the same for all functions, with functions of Python and NumPy.
RuntimeGlobals = places_named([
    "trace", "evaluator", "overrides", "unchanged", "config", "watchers", "python",
    "array", "ndarray", "none", "float", "int", "bool", "true", "empty", "donated",
    "heap", "pages", "pair", "row", "exception", "new_ndarray", *C_FUNCTIONS,
])  # fmt: skip
# What is ready for calls of one kind.
CallSignature = places_named([
    "next", "around", "switches", "owner", "count", "arguments", "span", "results",
    "result", "structure", "program", "arena", "context", "long", "failure", "keywords",
    "places", "taken", "given", "given_end", "pairs", "pairs_end",
])  # fmt: skip
# What is known of an argument or a result.
LeafSpec = places_named([
    "aval", "weak", "descr", "ndim", "dims", "number", "spares", "turn", "maker",
    "scalar", "wide", "parts", "place", "arrays_only", "step", "source", "pieces",
    "copies",
])  # fmt: skip
# A node of a tree, in front of its children; and the kinds of nodes.
TreeNode = places_named([
    "kind", "container", "length", "flatten", "unflatten", "aux", "slot", "children",
])  # fmt: skip
TREE_NODE_KINDS = (
    "leaf",
    "tuple",
    "named",
    "list",
    "dict",
    "nothing",
    "static",
    "registered",
)
TreeNodeKind = SimpleNamespace(
    **{name: code for code, name in enumerate(TREE_NODE_KINDS)}
)
DEEPEST = 64  # trees that are deeper would take much of the stack


class NativeTable:
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
            value = value.address if isinstance(value, NativeTable) else id(value)
        self.words[place // 8] = value

    def fill(self, places, start=0, /, **values):
        """Write values by the names of their places, from a start; return the table."""
        for name, value in values.items():
            self[start + getattr(places, name)] = value
        return self


def list_table(values):
    """Return the `NativeTable` of some values, one after the other."""
    table = NativeTable(len(values))
    for i, value in enumerate(values):
        table[8 * i] = value
    return table


def new_array_function():
    """Return the address of NumPy's ``PyArray_NewFromDescr``."""
    from numpy._core import _multiarray_umath

    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    pointer = kind(("PyCapsule_GetPointer", ctypes.pythonapi))
    functions = pointer(_multiarray_umath._ARRAY_API, None)
    require_layout(i64[functions + 8 * 2] == id(np.ndarray), "NumPy's functions")
    return i64[functions + 8 * 94]


def globals_table(in_python):
    """Return the `NativeTable` of what is the same for all functions.

    Args:
      in_python: a function that is called like a method with what the gate leaves.
    """
    functions = {
        name: function_pointer(getattr(ctypes.pythonapi, known))
        for name, known in C_FUNCTIONS.items()
    }
    return NativeTable(RuntimeGlobals.size // 8).fill(
        RuntimeGlobals, array=ArrayImpl, ndarray=np.ndarray, float=float, int=int,
        bool=bool, donated=DonatedArray, heap=HeapBlock, pages=HugePageBlock,
        pair=tuple, row=list,
        exception=Exception, trace=core._current_trace,
        evaluator=Context().run(core._current_trace.get), overrides=config._overrides,
        unchanged=Context().run(config._overrides.get), config=config,
        watchers=core.bind_listeners, python=in_python, none=None, true=True, empty=(),
        new_ndarray=new_array_function(), **functions,
    )  # fmt: skip


def accepted_scalars(aval):
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
    if aval.shape or aval.weak_type or aval.dtype not in SHORT_DTYPE_NAMES:
        return 0, 0, 0
    wide = [x.type for x in X64_TO_X32 if canonicalize_dtype(x) == aval.dtype != x]
    parts = {"f": 1, "c": 2}.get(aval.dtype.kind, 0)
    return aval.dtype.type, wide[0] if wide else 0, parts


MAX_SPARE_BYTES, MAX_SPARE_RESULTS = 2**14, 4  # bytes, results


def values_table(avals, places=None, placement=None, blocks=None, count=0):
    """Return the `NativeTable` of what is known of some arguments or results.

    Args:
      avals: their types.
      places: the placement of each, None for an argument that is no array of ours; by
        default, none of them is.
      placement: where the program runs, None for the default.
      blocks, count: of arrays in so many parts, the type of each part; what has no
        placement but the default is whole there, and each part is all of it.
    """
    table, default = NativeTable(LeafSpec.size // 8 * len(avals)), default_placement()
    rows = zip(avals, places or [None] * len(avals), blocks or avals)
    for i, (aval, place, block) in enumerate(rows):
        only = place not in (None, default)  # numbers would mean another device
        block = block if only else aval
        dims = np.array(block.shape, np.int64)
        small = aval.size * aval.dtype.itemsize <= MAX_SPARE_BYTES
        scalar, wide, parts = scalars_allowed(aval)
        table.held.append(dims)
        table.fill(
            LeafSpec, LeafSpec.size * i, aval=aval, weak=bool(aval.weak_type),
            descr=np.dtype(aval.dtype), ndim=block.ndim, dims=dims.ctypes.data,
            number=accepted_scalars(aval), scalar=scalar, wide=wide, parts=parts,
            spares=[None] * MAX_SPARE_RESULTS if small else [],
            maker=0 if small else partial(pooled_empty, block.shape, aval.dtype),
            place=place or placement or default, arrays_only=int(only), step=8,
            source=-1, pieces=count * only, copies=count * (not only),
        )  # fmt: skip
    return table


def tree_node_code(tree):
    """Return the code of the outermost container of a structure.

    Raises:
      UnknownLayout: if it is a dictionary whose keys are no strings, or of a class that
        is derived from one of named tuples.
    """
    if tree.kind is None:
        return TreeNodeKind.leaf
    kind, aux = tree.kind.type, tree.aux
    require_layout(kind is not dict or all(type(key) is str for key in aux), "keys")
    if kind.__base__ is tuple and hasattr(kind, "_fields") and kind not in node_kinds:
        return TreeNodeKind.named
    require_layout(kind in node_kinds, f"{kind} is a container of another kind")
    if kind is type(None):
        return TreeNodeKind.nothing
    codes = {
        tuple: TreeNodeKind.tuple,
        list: TreeNodeKind.list,
        dict: TreeNodeKind.dict,
    }
    return codes.get(kind, TreeNodeKind.registered)


def node_table(kind, container, children=(), keys=()):
    """Return the `NativeTable` of a node.

    Args:
      kind: its code.
      container: the type of a container, what is known of a leaf, or a static value.
      children: tables.
      keys: of a dictionary, as many.
    """
    table = NativeTable(TreeNode.children // 8 + 2 * len(children))
    table.fill(TreeNode, kind=kind, container=container, length=len(children))
    for i, child in enumerate(children):
        table[TreeNode.children + 16 * i] = child
        table[TreeNode.children + 16 * i + 8] = keys[i] if keys else 0
    return table


def tree_table(tree, leaves, slots=None, depth=0):
    """Return the `NativeTable` of a structure, or of a `StaticKey` value.

    Args:
      tree: a `PyTreeDef` or a `StaticKey`.
      leaves: an iterator of what is known of the leaves, a word each.
      slots: an iterator of places, one for each registered container; None for results.
      depth: in how many containers it is.
    """
    require_layout(depth < DEEPEST, "depth")
    if isinstance(tree, StaticKey):
        table = node_table(TreeNodeKind.static, id(tree.value))
        table.held.append(tree.value)
        return table
    kind = tree_node_code(tree)
    if kind == TreeNodeKind.leaf:
        return node_table(TreeNodeKind.leaf, next(leaves))
    slot = next(slots) if slots is not None and kind == TreeNodeKind.registered else 0
    inside = leaves, slots, depth + 1
    children = [tree_table(child, *inside) for child in tree.children()]
    keys = tree.aux if kind == TreeNodeKind.dict else ()
    table = node_table(kind, tree.kind.type, children, keys)
    if kind == TreeNodeKind.registered:
        ways = {"flatten": tree.kind.flatten, "unflatten": tree.kind.unflatten}
        table.fill(TreeNode, aux=id(tree.aux), slot=slot, **ways)
        table.held.append(tree.aux)
    return table


def mark_sources(results, sources, in_avals, out_avals):
    """Note which results take the memory of an input that is given up.

    Args:
      results: the `NativeTable` of what is known of them.
      sources: for each the number of the input, or None.
      in_avals, out_avals: types of inputs and results.
    """
    for i, source in enumerate(sources):
        if source is not None:
            taken, made = in_avals[source], out_avals[i]
            alike = (taken.shape, taken.dtype) == (made.shape, made.dtype)
            require_layout(
                alike, "a result in the memory of an argument of another shape"
            )
            results[LeafSpec.size * i + LeafSpec.source] = 8 * source


def signature_table(
    around, trees, named, in_avals, out_tree, out_avals, entry, executable, places,
    placement=None, given=(), used=None,
):  # fmt: skip
    """Return the `NativeTable` of what is ready for calls of one kind.

    Args:
      around: the `NativeTable` of the surroundings.
      trees: the structure of each argument, or a `StaticKey`.
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
        known = values_table(in_avals, places, None, cuts.in_shards, rows)
        outs = cuts.out_placements, None, cuts.out_shards
        results = values_table(out_avals, *outs, rows)
    used = [True] * len(in_avals) if used is None else used
    for i in [i for i, needed in enumerate(used) if not needed]:
        known[LeafSpec.size * i + LeafSpec.step] = 0
    inputs = [aval for aval, needed in zip(in_avals, used) if needed]
    mark_sources(results, entry.sources, inputs, out_avals)
    places = iter([known.address + LeafSpec.size * i for i in range(len(in_avals))])
    slots = itertools.count(0, 8)
    nodes = [tree_table(tree, places, slots) for tree in trees]
    by_name = [tree_table(tree, places, slots) for tree in named.values()]
    arena = scratch_bytes(max(entry.arena_bytes, 64))
    span = len(inputs) + len(out_avals)
    gifts = list_table([8 * i for i, gift in enumerate(given) if gift])
    pairs = NativeTable(next(slots) // 8)
    places_of_call = NativeTable(
        (rows + 3) * span
    )  # addresses, numbers, holders, arrays
    table = NativeTable(CallSignature.size // 8).fill(
        CallSignature, around=around, switches=config._values, count=len(trees),
        arguments=list_table(nodes),
        keywords=node_table(TreeNodeKind.dict, dict, by_name, tuple(named))
        if named else 0,
        places=places_of_call.address + 8 * span * (rows - 1), span=8 * span,
        results=8 * len(inputs), result=results, program=entry.address,
        context=entry.context, arena=arena.ctypes.data,
        structure=tree_table(out_tree, iter(range(0, 8 * len(out_avals), 8))),
        long=int(entry.nanoseconds > 20_000), pairs=pairs,
        pairs_end=pairs.address + 8 * len(pairs.words), given=gifts,
        given_end=gifts.address + 8 * len(gifts.words),
        failure=getattr(executable, "raise_failure", None),
    )  # fmt: skip
    table.held += [known, arena, entry, executable, places_of_call]
    table[CallSignature.owner] = id(table)
    return table
