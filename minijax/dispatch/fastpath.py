"""The fast path of dispatch: a warmed call of a jitted function, as machine code.

A table is an array of words. Whatever is mentioned by its address in one is held by
the object that owns the table.

These are functions of `words`: they are made machine code, and run as Python as well.

These are functions of `words`: they are made machine code, and run as Python as well.

It looks at the arguments, takes the addresses of their numbers, has the program run,
and hands its results back. What it does not know, it leaves to Python.
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
from minijax.dispatch.lowlevel import (
    ORDERED_FLAG,
    WRITEABLE_FLAG,
    LowLevelLibrary,
    ObjectOffsets,
    alloca,
    call_pointer,
    f64_to_f32_bits,
    function_pointer,
    i64,
    llvm_text,
    require_layout,
    u32,
)
from minijax.jitting.arguments import DonatedArray, StaticKey
from minijax.memory.allocator import (
    HeapBlock,
    HugePageBlock,
    pooled_empty,
    scratch_bytes,
)
from minijax.pytrees.registry import node_kinds

# The tables that the gate reads: what never changes, and what a function has ready.


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
        known = values_table(in_avals, places, None, cuts.in_blocks, rows)
        outs = cuts.out_placements, None, cuts.out_blocks
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


# The gate's first half: arguments, and where their numbers are.

STATUS_MASK, EQ = 0xFFFFFFFF, 2  # the bits of an int of C; Python's code of ``==``


def array_data_address(x, known, around):
    """Return the address of a NumPy array's numbers, or 0 if it is of another kind."""
    if i64[x + ObjectOffsets.type] != i64[around + RuntimeGlobals.ndarray]:
        return 0
    if i64[x + ObjectOffsets.descr] != i64[known + LeafSpec.descr]:
        return 0
    if u32[x + ObjectOffsets.flags] & ORDERED_FLAG != ORDERED_FLAG:
        return 0
    if u32[x + ObjectOffsets.ndim] != i64[known + LeafSpec.ndim]:
        return 0
    i = 0
    while i < 8 * u32[x + ObjectOffsets.ndim]:
        if i64[i64[x + ObjectOffsets.dims] + i] != i64[i64[known + LeafSpec.dims] + i]:
            return 0
        i += 8
    return i64[x + ObjectOffsets.data]


def integer(x, known, place, around):
    """Write an integer of Python to a place, and return the place, or 0."""
    i64[place] = 0
    value = call_pointer(i64[around + RuntimeGlobals.as_integer], x, place)
    if i64[place] != 0:
        return 0
    i64[place] = value
    if i64[known + LeafSpec.number] == -4 and value != (value << 32) >> 32:
        return 0
    return place


def numpy_scalar(x, known, place):
    """Return where the number of a scalar of NumPy is, or 0."""
    kind = i64[x + ObjectOffsets.type]
    parts = i64[known + LeafSpec.parts]
    if kind == i64[known + LeafSpec.scalar]:
        return x + ObjectOffsets.scalar_value
    if kind != i64[known + LeafSpec.wide]:
        return 0
    if parts == 0:
        return x + ObjectOffsets.scalar_value
    u32[place] = f64_to_f32_bits(i64[x + ObjectOffsets.scalar_value])
    if parts == 2:
        u32[place + 4] = f64_to_f32_bits(i64[x + ObjectOffsets.scalar_value + 8])
    return place


def read_number(x, known, place, around):
    """Write a number of Python to a place, and return the place, or 0."""
    kind = i64[x + ObjectOffsets.type]
    if kind == i64[around + RuntimeGlobals.float] and i64[known + LeafSpec.number] > 1:
        i64[place] = i64[x + ObjectOffsets.float_value]
        if i64[known + LeafSpec.number] == 4:
            i64[place] = f64_to_f32_bits(i64[place])
        return place
    if kind == i64[around + RuntimeGlobals.int] and i64[known + LeafSpec.number] < 0:
        return integer(x, known, place, around)
    if kind == i64[around + RuntimeGlobals.bool] and i64[known + LeafSpec.number] == 1:
        i64[place] = x == i64[around + RuntimeGlobals.true]
        return place
    return numpy_scalar(x, known, place)


def located(x, known, record, out):
    """Note where the numbers of a buffer, or its parts, are; return 0 if it differs."""
    around = i64[record + CallSignature.around]
    count = i64[known + LeafSpec.pieces]
    if count == 0:
        return array_data_address(x, known, around)
    if (
        i64[x + ObjectOffsets.type] != i64[around + RuntimeGlobals.pair]
        or i64[x + ObjectOffsets.size] != count
    ):
        return 0
    item = x + ObjectOffsets.tuple_items + 8 * count
    place = out - count * i64[record + CallSignature.span]
    while place < out:
        item += -8
        place += i64[record + CallSignature.span]
        i64[place] = array_data_address(i64[item], known, around)
        if i64[place] == 0:
            return 0
    return i64[out]


def take_leaf(x, known, record, out):
    """Note where a leaf's numbers are, and who holds them; return 0 if it differs."""
    around = i64[record + CallSignature.around]
    span = i64[record + CallSignature.span]
    kind = i64[x + ObjectOffsets.type]
    place = i64[known + LeafSpec.place]
    i64[out] = 0
    i64[out + 3 * span] = 0
    if (
        kind == i64[around + RuntimeGlobals.array]
        and i64[x + ObjectOffsets.placement] == place
    ):
        aval = i64[x + ObjectOffsets.aval]
        i64[out + 3 * span] = x
        x = i64[x + ObjectOffsets.buffer]
        same = aval == i64[known + LeafSpec.aval]
        if same or i64[aval + ObjectOffsets.weak] == i64[known + LeafSpec.weak]:
            i64[out] = located(x, known, record, out)
    elif i64[known + LeafSpec.arrays_only] != 0:
        return 0
    elif kind == i64[around + RuntimeGlobals.ndarray]:
        if i64[known + LeafSpec.weak] != i64[around + RuntimeGlobals.true]:
            i64[out] = array_data_address(x, known, around)
    else:
        i64[out] = read_number(x, known, out + span, around)
    i = 1
    while i < i64[known + LeafSpec.copies]:
        i64[out - i * span] = i64[out]
        i += 1
    if i64[out] != 0 and i64[known + LeafSpec.step] != 0:
        i64[out + 2 * span] = x
        call_pointer(i64[around + RuntimeGlobals.incref], x)
        i64[record + CallSignature.taken] = out + 8
    return i64[out]


def children_of(x, node, record):
    """Return the children of a registered container, a tuple or list; 0 if it differs.

    The pair that they are in is held by the record.
    """
    around = i64[record + CallSignature.around]
    place = alloca(1)
    i64[place] = x
    pair = call_pointer(
        i64[around + RuntimeGlobals.call_with],
        i64[node + TreeNode.flatten],
        place,
        1,
        0,
    )
    if pair == 0:
        return forgive(around)
    i64[i64[record + CallSignature.pairs] + i64[node + TreeNode.slot]] = pair
    if (
        i64[pair + ObjectOffsets.type] != i64[around + RuntimeGlobals.pair]
        or i64[pair + ObjectOffsets.size] != 2
    ):
        return disable(record)
    aux = i64[pair + ObjectOffsets.tuple_items + 8]
    if aux == i64[node + TreeNode.aux]:
        return i64[pair + ObjectOffsets.tuple_items]
    if (
        call_pointer(
            i64[around + RuntimeGlobals.equal], aux, i64[node + TreeNode.aux], EQ
        )
        & STATUS_MASK
        != 1
    ):
        return forgive(around)
    return i64[pair + ObjectOffsets.tuple_items]


def disable(record):
    """Have a record fit no call any more; return 0."""
    i64[record + CallSignature.switches] = 0
    return 0


def forgive(around):
    """Forget an error that Python will meet again; return 0."""
    if call_pointer(i64[around + RuntimeGlobals.occurred]) == 0:
        return 0
    kind = i64[around + RuntimeGlobals.exception]
    if call_pointer(i64[around + RuntimeGlobals.matches], kind) & STATUS_MASK != 0:
        call_pointer(i64[around + RuntimeGlobals.clear])
    return 0


def flatten_tree(x, node, record, out):
    """Take a tree apart, and return where the next leaf goes, or 0 if it differs."""
    kind = i64[node + TreeNode.kind]
    if kind == TreeNodeKind.leaf:
        if take_leaf(x, i64[node + TreeNode.container], record, out) == 0:
            return 0
        return out + i64[i64[node + TreeNode.container] + LeafSpec.step]
    if kind == TreeNodeKind.static:
        return out * (x == i64[node + TreeNode.container])
    if i64[x + ObjectOffsets.type] != i64[node + TreeNode.container]:
        return 0
    if kind == TreeNodeKind.nothing:
        return out
    if kind == TreeNodeKind.registered:
        x = children_of(x, node, record)
        if x == 0:
            return 0
    around = i64[record + CallSignature.around]
    row = i64[x + ObjectOffsets.type] == i64[around + RuntimeGlobals.row]
    pair = i64[x + ObjectOffsets.type] == i64[around + RuntimeGlobals.pair]
    if kind == TreeNodeKind.registered and not row and not pair:
        return disable(record)
    if i64[x + ObjectOffsets.size] != i64[node + TreeNode.length]:
        return 0
    items = x + ObjectOffsets.tuple_items
    if row:
        items = i64[x + ObjectOffsets.list_items]
    i = 0
    while i < i64[node + TreeNode.length] and out != 0:
        child = node + TreeNode.children + 16 * i
        if kind == TreeNodeKind.dict:
            item = call_pointer(
                i64[around + RuntimeGlobals.get_item], x, i64[child + 8]
            )
        else:
            item = i64[items + 8 * i]
        if item == 0:
            return 0
        out = flatten_tree(item, i64[child], record, out)
        i += 1
    return out


# The gate's second half: results, and the trees that they are handed back in.


def reuse_result(known, around):
    """Return a result of an earlier call that is held nowhere any more, or 0."""
    items = i64[i64[known + LeafSpec.spares] + ObjectOffsets.list_items]
    i = 0
    while i < i64[i64[known + LeafSpec.spares] + ObjectOffsets.size]:
        x = i64[items + 8 * i]
        whole = i64[x + ObjectOffsets.type] == i64[around + RuntimeGlobals.array]
        if (
            whole
            and i64[x + ObjectOffsets.refs] == 1
            and i64[i64[x + ObjectOffsets.buffer] + ObjectOffsets.refs] == 1
            and i64[x + ObjectOffsets.weak_references] == 0
            and unseen(i64[x + ObjectOffsets.buffer], i64[known + LeafSpec.pieces])
        ):
            i64[x + ObjectOffsets.refs] = 2
            return x
        i += 1
    return 0


def unseen(buffer, count):
    """Return whether the parts of a buffer are held by it alone."""
    items = buffer + ObjectOffsets.tuple_items
    while count > 0 and i64[i64[items + 8 * count - 8] + ObjectOffsets.refs] == 1:
        count += -1
    return count == 0


def keep(x, known, around):
    """Put a result on the list of those that may be used again one day."""
    spares = i64[known + LeafSpec.spares]
    if i64[spares + ObjectOffsets.size] != 0:
        turn = i64[known + LeafSpec.turn]
        place = i64[spares + ObjectOffsets.list_items] + 8 * turn
        i64[known + LeafSpec.turn] = (turn + 1) & (MAX_SPARE_RESULTS - 1)
        before = i64[place]
        i64[place] = x
        call_pointer(i64[around + RuntimeGlobals.incref], x)
        call_pointer(i64[around + RuntimeGlobals.decref], before)
    return 0


def new_buffer(known, around):
    """Return a new array of NumPy, read-only, or 0 if there is no memory."""
    if i64[known + LeafSpec.maker] != 0:
        empty = i64[around + RuntimeGlobals.empty]
        made = call_pointer(
            i64[around + RuntimeGlobals.call], i64[known + LeafSpec.maker], empty, 0
        )
    else:
        call_pointer(i64[around + RuntimeGlobals.incref], i64[known + LeafSpec.descr])
        made = call_pointer(
            i64[around + RuntimeGlobals.new_ndarray],
            i64[around + RuntimeGlobals.ndarray],
            i64[known + LeafSpec.descr], i64[known + LeafSpec.ndim],
            i64[known + LeafSpec.dims], 0, 0, 0, 0,
        )  # fmt: skip
    if made != 0:
        u32[made + ObjectOffsets.flags] = (
            u32[made + ObjectOffsets.flags] - WRITEABLE_FLAG
        )
    return made


def new_parts(known, around):
    """Return a buffer for a result, a tuple if it is in parts; 0: no memory."""
    count = i64[known + LeafSpec.pieces]
    if count == 0:
        return new_buffer(known, around)
    parts = call_pointer(i64[around + RuntimeGlobals.new_tuple], count)
    while parts != 0 and count > 0:
        count += -1
        part = new_buffer(known, around)
        i64[parts + ObjectOffsets.tuple_items + 8 * count] = part
        if part == 0:
            call_pointer(i64[around + RuntimeGlobals.decref], parts)
            return 0
    return parts


def allocate_result(known, around):
    """Return a new array for a result, or 0 if there is no memory."""
    buffer = new_parts(known, around)
    if buffer == 0:
        return 0
    x = wrap_buffer(buffer, known, around)
    if x != 0:
        keep(x, known, around)
    return x


def wrap_buffer(buffer, known, around):
    """Return an array of ours that takes a buffer, or 0 if there is no memory."""
    x = call_pointer(
        i64[around + RuntimeGlobals.allocate], i64[around + RuntimeGlobals.array], 0
    )
    if x == 0:
        call_pointer(i64[around + RuntimeGlobals.decref], buffer)
        return 0
    i64[x + ObjectOffsets.buffer] = buffer
    i64[x + ObjectOffsets.aval] = i64[known + LeafSpec.aval]
    i64[x + ObjectOffsets.placement] = i64[known + LeafSpec.place]
    call_pointer(i64[around + RuntimeGlobals.incref], i64[x + ObjectOffsets.aval])
    call_pointer(i64[around + RuntimeGlobals.incref], i64[x + ObjectOffsets.placement])
    return x


def unflatten_container(children, node, around):
    """Return a registered container of a list, which it takes; 0 is an error."""
    place = alloca(2)
    i64[place] = i64[node + TreeNode.aux]
    i64[place + 8] = children
    unflatten = i64[node + TreeNode.unflatten]
    made = call_pointer(i64[around + RuntimeGlobals.call_with], unflatten, place, 2, 0)
    call_pointer(i64[around + RuntimeGlobals.decref], children)
    return made


def unflatten_tree(node, results, around):
    """Return the tree of the results, and empty their table; 0 is an error."""
    kind = i64[node + TreeNode.kind]
    length = i64[node + TreeNode.length]
    if kind == TreeNodeKind.leaf:
        x = i64[results + i64[node + TreeNode.container]]
        i64[results + i64[node + TreeNode.container]] = 0
        return x
    if kind == TreeNodeKind.nothing:
        call_pointer(
            i64[around + RuntimeGlobals.incref], i64[around + RuntimeGlobals.none]
        )
        return i64[around + RuntimeGlobals.none]
    if kind == TreeNodeKind.tuple:
        tree = call_pointer(i64[around + RuntimeGlobals.new_tuple], length)
    elif kind == TreeNodeKind.named:
        tree = call_pointer(
            i64[around + RuntimeGlobals.allocate],
            i64[node + TreeNode.container],
            length,
        )
    elif kind == TreeNodeKind.dict:
        tree = call_pointer(i64[around + RuntimeGlobals.new_dict])
    else:
        tree = call_pointer(i64[around + RuntimeGlobals.new_list], length)
    if tree == 0:
        return 0
    i = 0
    while i < length:
        child = node + TreeNode.children + 16 * i
        item = unflatten_tree(i64[child], results, around)
        if item == 0:
            call_pointer(i64[around + RuntimeGlobals.decref], tree)
            return 0
        if kind == TreeNodeKind.dict:
            call_pointer(
                i64[around + RuntimeGlobals.set_item], tree, i64[child + 8], item
            )
            call_pointer(i64[around + RuntimeGlobals.decref], item)
        elif kind < TreeNodeKind.list:  # a tuple, named or not
            i64[tree + ObjectOffsets.tuple_items + 8 * i] = item
        else:
            i64[i64[tree + ObjectOffsets.list_items] + 8 * i] = item
        i += 1
    if kind == TreeNodeKind.registered:
        return unflatten_container(tree, node, around)
    return tree


# The dispatch path (the gate): a warmed call of a jitted function, as machine code.

MISS = 1


def each(function, start, end):
    """Call a function with each word of a table."""
    while start < end:
        call_pointer(function, i64[start])
        start += 8
    return 0


def run_entry(record, table, arena):
    """Run the program on a table of addresses, and return its status."""
    around = i64[record + CallSignature.around]
    program = i64[record + CallSignature.program]
    context = i64[record + CallSignature.context]
    if i64[record + CallSignature.long] == 0:
        return call_pointer(program, table, arena, context) & STATUS_MASK
    thread = call_pointer(i64[around + RuntimeGlobals.unlock])
    status = call_pointer(program, table, arena, context) & STATUS_MASK
    call_pointer(i64[around + RuntimeGlobals.lock], thread)
    return status


def result_in(known, held, around):
    """Return an array for a result, in an argument's memory if it takes that; or 0."""
    source = i64[known + LeafSpec.source]
    if source >= 0:
        buffer = i64[held + source]
        call_pointer(i64[around + RuntimeGlobals.incref], buffer)
        return wrap_buffer(buffer, known, around)
    x = reuse_result(known, around)
    if x == 0:
        return allocate_result(known, around)
    return x


def address_results(buffer, count, record, place):
    """Note where the numbers of a result go, those of its parts row by row."""
    if count == 0:
        i64[place] = i64[buffer + ObjectOffsets.data]
        return 0
    item = buffer + ObjectOffsets.tuple_items
    end = item + 8 * count
    while item < end:
        i64[place] = i64[i64[item] + ObjectOffsets.data]
        place += 0 - i64[record + CallSignature.span]
        item += 8
    return 0


def make_results(record, table, held):
    """Find or make an array for each result, and note it; return 0 if it fails."""
    known = i64[record + CallSignature.result]
    i = i64[record + CallSignature.results]
    while i < i64[record + CallSignature.span]:
        x = result_in(known, held, i64[record + CallSignature.around])
        if x == 0:
            drop = i64[i64[record + CallSignature.around] + RuntimeGlobals.decref]
            each(drop, held + i64[record + CallSignature.results], held + i)
            return 0
        i64[held + i] = x
        count = i64[known + LeafSpec.pieces]
        address_results(i64[x + ObjectOffsets.buffer], count, record, table + i)
        known += LeafSpec.size
        i += 8
    return 1


def finish_call(record, table, held, arena):
    """Return the tree of results when all arguments are there; 0 is an error."""
    around = i64[record + CallSignature.around]
    results = held + i64[record + CallSignature.results]
    end = held + i64[record + CallSignature.span]
    donate_all(record, held)
    if make_results(record, table, held) == 0:
        return 0
    if run_entry(record, table, arena) == 0:
        tree = unflatten_tree(i64[record + CallSignature.structure], results, around)
        if tree == 0:
            each(i64[around + RuntimeGlobals.decref], results, end)
        return tree
    each(i64[around + RuntimeGlobals.decref], results, end)
    failure = i64[record + CallSignature.failure]
    return call_pointer(
        i64[around + RuntimeGlobals.call],
        failure,
        i64[around + RuntimeGlobals.empty],
        0,
    )


def alone(buffer, around):
    """Return whether a buffer is seen by its array alone, while the gate holds it.

    That is enough for a tuple of parts, whose memory no result takes.
    """
    if i64[buffer + ObjectOffsets.refs] != 2:
        return 0
    if i64[buffer + ObjectOffsets.type] == i64[around + RuntimeGlobals.pair]:
        return 1
    base = i64[buffer + ObjectOffsets.base]
    while base != 0:
        kind = i64[base + ObjectOffsets.type]
        if (
            kind == i64[around + RuntimeGlobals.heap]
            or kind == i64[around + RuntimeGlobals.pages]
        ):
            return 1
        if (
            kind != i64[around + RuntimeGlobals.ndarray]
            or i64[base + ObjectOffsets.refs] != 1
        ):
            return 0
        base = i64[base + ObjectOffsets.base]
    return 1


def may_give(record, held):
    """Return whether the memory of all arguments that are given up may be taken."""
    place = i64[record + CallSignature.given]
    while place < i64[record + CallSignature.given_end]:
        leaf = held + i64[place]
        if i64[leaf + i64[record + CallSignature.span]] == 0:
            return 0
        if alone(i64[leaf], i64[record + CallSignature.around]) == 0:
            return 0
        place += 8
    return 1


def donate_all(record, held):
    """Mark the arguments that are given up; their buffers are held elsewhere."""
    around = i64[record + CallSignature.around]
    place = i64[record + CallSignature.given]
    while place < i64[record + CallSignature.given_end]:
        leaf = held + i64[place]
        x = i64[leaf + i64[record + CallSignature.span]]
        call_pointer(
            i64[around + RuntimeGlobals.incref], i64[around + RuntimeGlobals.donated]
        )
        call_pointer(
            i64[around + RuntimeGlobals.incref], i64[around + RuntimeGlobals.none]
        )
        i64[x + ObjectOffsets.type] = i64[around + RuntimeGlobals.donated]
        i64[x + ObjectOffsets.buffer] = i64[around + RuntimeGlobals.none]
        call_pointer(i64[around + RuntimeGlobals.decref], i64[leaf])
        call_pointer(
            i64[around + RuntimeGlobals.decref], i64[around + RuntimeGlobals.array]
        )
        place += 8
    return 0


def take_all(args, keywords, record, table):
    """Take all arguments apart; return 0 if some are of another kind."""
    out = table
    i = 0
    while i < i64[record + CallSignature.count] and out != 0:
        node = i64[i64[record + CallSignature.arguments] + 8 * i]
        out = flatten_tree(i64[args + 8 * i], node, record, out)
        i += 1
    if out != 0 and i64[record + CallSignature.keywords] != 0:
        out = flatten_tree(keywords, i64[record + CallSignature.keywords], record, out)
    return out


def release_all(place, end, around):
    """Let go of what registered containers were taken apart into."""
    while place < end:
        pair = i64[place]
        i64[place] = 0
        call_pointer(i64[around + RuntimeGlobals.decref], pair)
        place += 8
    return 0


def try_call(record, args, keywords):
    """Return the result of a call if it is one of this kind; 0 is an error."""
    around = i64[record + CallSignature.around]
    table = i64[record + CallSignature.places]
    held = table + 2 * i64[record + CallSignature.span]
    arena = i64[record + CallSignature.arena]
    i64[record + CallSignature.arena] = 0
    i64[record + CallSignature.taken] = table
    result = MISS
    if take_all(args, keywords, record, table) != 0:
        if may_give(record, held) != 0:
            result = finish_call(record, table, held, arena)
    elif call_pointer(i64[around + RuntimeGlobals.occurred]) != 0:
        result = 0
    each(
        i64[around + RuntimeGlobals.decref],
        held,
        held + i64[record + CallSignature.taken] - table,
    )
    release_all(
        i64[record + CallSignature.pairs], i64[record + CallSignature.pairs_end], around
    )
    i64[record + CallSignature.arena] = arena
    return result


def variable(name, around):
    """Return the value of a context variable, which is held elsewhere."""
    place = alloca(1)
    call_pointer(i64[around + RuntimeGlobals.get_variable], name, 0, place)
    call_pointer(i64[around + RuntimeGlobals.decref], i64[place])
    return i64[place]


def plain(around):
    """Return whether this thread evaluates, with the switches of the process."""
    if (
        variable(i64[around + RuntimeGlobals.trace], around)
        != i64[around + RuntimeGlobals.evaluator]
    ):
        return 0
    overrides = variable(i64[around + RuntimeGlobals.overrides], around)
    if overrides != i64[around + RuntimeGlobals.unchanged]:
        return 0
    return i64[i64[around + RuntimeGlobals.watchers] + ObjectOffsets.size] == 0


def signature_matches(record, args, kwargs):
    """Return whether a record is free, and for such a call as far as one can see."""
    now = i64[
        i64[i64[record + CallSignature.around] + RuntimeGlobals.config]
        + ObjectOffsets.config_values
    ]
    if (
        i64[record + CallSignature.switches] != now
        or i64[record + CallSignature.arena] == 0
    ):
        return 0
    if i64[args + ObjectOffsets.size] != i64[record + CallSignature.count]:
        return 0
    if kwargs == 0 or i64[kwargs + ObjectOffsets.size] == 0:
        return i64[record + CallSignature.keywords] == 0
    return i64[record + CallSignature.keywords] != 0


def lookup_call(record, args, kwargs):
    """Return the result of a call by the first record that fits, or `MISS`.

    A user's function may run meanwhile, and clear the chain: the next record is the
    one that is the next one afterwards.
    """
    while record != 0:
        following = i64[record + CallSignature.next]
        if signature_matches(record, args, kwargs):
            around = i64[record + CallSignature.around]
            owner = i64[record + CallSignature.owner]
            call_pointer(i64[around + RuntimeGlobals.incref], owner)
            result = try_call(record, args + ObjectOffsets.tuple_items, kwargs)
            following = i64[record + CallSignature.next]
            call_pointer(i64[around + RuntimeGlobals.decref], owner)
            if result != MISS:
                return result
        record = following
    return MISS


def gate(self, args, kwargs):
    """Return the result of a call of a jitted function; 0 is an error."""
    head = i64[i64[self + ObjectOffsets.gate] + ObjectOffsets.data]
    around = i64[head + CallSignature.around]
    if plain(around):
        result = lookup_call(i64[head + CallSignature.next], args, kwargs)
        if result != MISS:
            return result
    method = call_pointer(
        i64[around + RuntimeGlobals.new_method],
        i64[around + RuntimeGlobals.python],
        self,
    )
    if method == 0:
        return 0
    result = call_pointer(i64[around + RuntimeGlobals.call], method, args, kwargs)
    call_pointer(i64[around + RuntimeGlobals.decref], method)
    return result


def successor(table, arena, context):
    """A program for a trial: the next integer of 32 bits."""
    u32[i64[table + 8]] = u32[i64[table]] + 1
    return 0


class FastPath:
    """Machine code that answers calls, and a program to try it with.

    Attributes:
      address, trial: of the two functions.
      call: the first, of an object, a tuple, and None.
    """

    def __init__(self):
        rare = (
            read_number,
            allocate_result,
            children_of,
            unflatten_container,
        )  # not inlined: out of the way
        self.library = LowLevelLibrary(llvm_text(gate, successor, *rare))
        self.address, self.trial = map(self.library.place, ("gate", "successor"))
        words = [ctypes.py_object] * 3 + [ctypes.c_void_p]
        self.call = ctypes.PYFUNCTYPE(*words)(self.address)
