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
from minijax.arrays.dtypes import DTYPES, NARROW, canonicalize_dtype, config
from minijax.dispatch.lowlevel import (
    ORDERED,
    WRITEABLE,
    At,
    WordsLibrary,
    address_of_function,
    as_float32,
    call,
    half,
    llvm_text,
    require,
    room,
    word,
)
from minijax.jitting.arguments import DonatedArray, Static
from minijax.memory.allocator import Heap, Pages, empty, scratch
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
Around = places_named([
    "trace", "evaluator", "overrides", "unchanged", "config", "watchers", "python",
    "array", "ndarray", "none", "float", "int", "bool", "true", "empty", "donated",
    "heap", "pages", "pair", "row", "exception", "new_ndarray", *C_FUNCTIONS,
])  # fmt: skip
# What is ready for calls of one kind.
Record = places_named([
    "next", "around", "switches", "owner", "count", "arguments", "span", "results",
    "result", "structure", "program", "arena", "context", "long", "failure", "keywords",
    "places", "taken", "given", "given_end", "pairs", "pairs_end",
])  # fmt: skip
# What is known of an argument or a result.
Known = places_named([
    "aval", "weak", "descr", "ndim", "dims", "number", "spares", "turn", "maker",
    "scalar", "wide", "parts", "place", "arrays_only", "step", "source", "pieces",
    "copies",
])  # fmt: skip
# A node of a tree, in front of its children; and the kinds of nodes.
Node = places_named([
    "kind", "container", "length", "flatten", "unflatten", "aux", "slot", "children",
])  # fmt: skip
KINDS = "leaf", "tuple", "named", "list", "dict", "nothing", "static", "registered"
Kind = SimpleNamespace(**{name: code for code, name in enumerate(KINDS)})
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

    def fill(self, places, start=0, /, **values):
        """Write values by the names of their places, from a start; return the table."""
        for name, value in values.items():
            self[start + getattr(places, name)] = value
        return self


def list_table(values):
    """Return the `Table` of some values, one after the other."""
    table = Table(len(values))
    for i, value in enumerate(values):
        table[8 * i] = value
    return table


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
    functions = {
        name: address_of_function(getattr(ctypes.pythonapi, known))
        for name, known in C_FUNCTIONS.items()
    }
    return Table(Around.size // 8).fill(
        Around, array=ArrayImpl, ndarray=np.ndarray, float=float, int=int, bool=bool,
        donated=DonatedArray, heap=Heap, pages=Pages, pair=tuple, row=list,
        exception=Exception, trace=core._current_trace,
        evaluator=Context().run(core._current_trace.get), overrides=config._overrides,
        unchanged=Context().run(config._overrides.get), config=config,
        watchers=core.watchers, python=in_python, none=None, true=True, empty=(),
        new_ndarray=new_array_function(), **functions,
    )  # fmt: skip


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
    table, default = Table(Known.size // 8 * len(avals)), default_placement()
    rows = zip(avals, places or [None] * len(avals), blocks or avals)
    for i, (aval, place, block) in enumerate(rows):
        only = place not in (None, default)  # numbers would mean another device
        block = block if only else aval
        dims = np.array(block.shape, np.int64)
        small = aval.size * aval.dtype.itemsize <= SMALL
        scalar, wide, parts = scalars_allowed(aval)
        table.held.append(dims)
        table.fill(
            Known, Known.size * i, aval=aval, weak=bool(aval.weak_type),
            descr=np.dtype(aval.dtype), ndim=block.ndim, dims=dims.ctypes.data,
            number=numbers_allowed(aval), scalar=scalar, wide=wide, parts=parts,
            spares=[None] * KEPT if small else [],
            maker=0 if small else partial(empty, block.shape, aval.dtype),
            place=place or placement or default, arrays_only=int(only), step=8,
            source=-1, pieces=count * only, copies=count * (not only),
        )  # fmt: skip
    return table


def kind_of_node(tree):
    """Return the code of the outermost container of a structure.

    Raises:
      UnknownLayout: if it is a dictionary whose keys are no strings, or of a class that
        is derived from one of named tuples.
    """
    if tree.kind is None:
        return Kind.leaf
    kind, aux = tree.kind.type, tree.aux
    require(kind is not dict or all(type(key) is str for key in aux), "keys")
    if kind.__base__ is tuple and hasattr(kind, "_fields") and kind not in node_kinds:
        return Kind.named
    require(kind in node_kinds, f"{kind} is a container of another kind")
    if kind is type(None):
        return Kind.nothing
    codes = {tuple: Kind.tuple, list: Kind.list, dict: Kind.dict}
    return codes.get(kind, Kind.registered)


def node_table(kind, container, children=(), keys=()):
    """Return the `Table` of a node.

    Args:
      kind: its code.
      container: the type of a container, what is known of a leaf, or a static value.
      children: tables.
      keys: of a dictionary, as many.
    """
    table = Table(Node.children // 8 + 2 * len(children))
    table.fill(Node, kind=kind, container=container, length=len(children))
    for i, child in enumerate(children):
        table[Node.children + 16 * i] = child
        table[Node.children + 16 * i + 8] = keys[i] if keys else 0
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
        table = node_table(Kind.static, id(tree.value))
        table.held.append(tree.value)
        return table
    kind = kind_of_node(tree)
    if kind == Kind.leaf:
        return node_table(Kind.leaf, next(leaves))
    slot = next(slots) if slots is not None and kind == Kind.registered else 0
    inside = leaves, slots, depth + 1
    children = [tree_table(child, *inside) for child in tree.children()]
    keys = tree.aux if kind == Kind.dict else ()
    table = node_table(kind, tree.kind.type, children, keys)
    if kind == Kind.registered:
        ways = {"flatten": tree.kind.flatten, "unflatten": tree.kind.unflatten}
        table.fill(Node, aux=id(tree.aux), slot=slot, **ways)
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
            results[Known.size * i + Known.source] = 8 * source


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
        known[Known.size * i + Known.step] = 0
    inputs = [aval for aval, needed in zip(in_avals, used) if needed]
    mark_sources(results, entry.sources, inputs, out_avals)
    places = iter([known.address + Known.size * i for i in range(len(in_avals))])
    slots = itertools.count(0, 8)
    nodes = [tree_table(tree, places, slots) for tree in trees]
    by_name = [tree_table(tree, places, slots) for tree in named.values()]
    arena = scratch(max(entry.arena_bytes, 64))
    span = len(inputs) + len(out_avals)
    gifts = list_table([8 * i for i, gift in enumerate(given) if gift])
    pairs = Table(next(slots) // 8)
    places_of_call = Table((rows + 3) * span)  # addresses, numbers, holders, arrays
    table = Table(Record.size // 8).fill(
        Record, around=around, switches=config._values, count=len(trees),
        arguments=list_table(nodes),
        keywords=node_table(Kind.dict, dict, by_name, tuple(named)) if named else 0,
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
    table[Record.owner] = id(table)
    return table


# The gate's first half: arguments, and where their numbers are.

STATUS, EQ = 0xFFFFFFFF, 2  # the bits of an int of C; Python's code of ``==``


def fits(x, known, around):
    """Return the address of a NumPy array's numbers, or 0 if it is of another kind."""
    if word[x + At.type] != word[around + Around.ndarray]:
        return 0
    if word[x + At.descr] != word[known + Known.descr]:
        return 0
    if half[x + At.flags] & ORDERED != ORDERED:
        return 0
    if half[x + At.ndim] != word[known + Known.ndim]:
        return 0
    i = 0
    while i < 8 * half[x + At.ndim]:
        if word[word[x + At.dims] + i] != word[word[known + Known.dims] + i]:
            return 0
        i += 8
    return word[x + At.data]


def integer(x, known, place, around):
    """Write an integer of Python to a place, and return the place, or 0."""
    word[place] = 0
    value = call(word[around + Around.as_integer], x, place)
    if word[place] != 0:
        return 0
    word[place] = value
    if word[known + Known.number] == -4 and value != (value << 32) >> 32:
        return 0
    return place


def numpy_scalar(x, known, place):
    """Return where the number of a scalar of NumPy is, or 0."""
    kind = word[x + At.type]
    parts = word[known + Known.parts]
    if kind == word[known + Known.scalar]:
        return x + At.scalar_value
    if kind != word[known + Known.wide]:
        return 0
    if parts == 0:
        return x + At.scalar_value
    half[place] = as_float32(word[x + At.scalar_value])
    if parts == 2:
        half[place + 4] = as_float32(word[x + At.scalar_value + 8])
    return place


def number(x, known, place, around):
    """Write a number of Python to a place, and return the place, or 0."""
    kind = word[x + At.type]
    if kind == word[around + Around.float] and word[known + Known.number] > 1:
        word[place] = word[x + At.float_value]
        if word[known + Known.number] == 4:
            word[place] = as_float32(word[place])
        return place
    if kind == word[around + Around.int] and word[known + Known.number] < 0:
        return integer(x, known, place, around)
    if kind == word[around + Around.bool] and word[known + Known.number] == 1:
        word[place] = x == word[around + Around.true]
        return place
    return numpy_scalar(x, known, place)


def located(x, known, record, out):
    """Note where the numbers of a buffer, or its parts, are; return 0 if it differs."""
    around = word[record + Record.around]
    count = word[known + Known.pieces]
    if count == 0:
        return fits(x, known, around)
    if word[x + At.type] != word[around + Around.pair] or word[x + At.size] != count:
        return 0
    item = x + At.tuple_items + 8 * count
    place = out - count * word[record + Record.span]
    while place < out:
        item += -8
        place += word[record + Record.span]
        word[place] = fits(word[item], known, around)
        if word[place] == 0:
            return 0
    return word[out]


def take_leaf(x, known, record, out):
    """Note where a leaf's numbers are, and who holds them; return 0 if it differs."""
    around = word[record + Record.around]
    span = word[record + Record.span]
    kind = word[x + At.type]
    place = word[known + Known.place]
    word[out] = 0
    word[out + 3 * span] = 0
    if kind == word[around + Around.array] and word[x + At.placement] == place:
        aval = word[x + At.aval]
        word[out + 3 * span] = x
        x = word[x + At.buffer]
        same = aval == word[known + Known.aval]
        if same or word[aval + At.weak] == word[known + Known.weak]:
            word[out] = located(x, known, record, out)
    elif word[known + Known.arrays_only] != 0:
        return 0
    elif kind == word[around + Around.ndarray]:
        if word[known + Known.weak] != word[around + Around.true]:
            word[out] = fits(x, known, around)
    else:
        word[out] = number(x, known, out + span, around)
    i = 1
    while i < word[known + Known.copies]:
        word[out - i * span] = word[out]
        i += 1
    if word[out] != 0 and word[known + Known.step] != 0:
        word[out + 2 * span] = x
        call(word[around + Around.incref], x)
        word[record + Record.taken] = out + 8
    return word[out]


def children_of(x, node, record):
    """Return the children of a registered container, a tuple or list; 0 if it differs.

    The pair that they are in is held by the record.
    """
    around = word[record + Record.around]
    place = room(1)
    word[place] = x
    pair = call(word[around + Around.call_with], word[node + Node.flatten], place, 1, 0)
    if pair == 0:
        return forgive(around)
    word[word[record + Record.pairs] + word[node + Node.slot]] = pair
    if word[pair + At.type] != word[around + Around.pair] or word[pair + At.size] != 2:
        return disable(record)
    aux = word[pair + At.tuple_items + 8]
    if aux == word[node + Node.aux]:
        return word[pair + At.tuple_items]
    if call(word[around + Around.equal], aux, word[node + Node.aux], EQ) & STATUS != 1:
        return forgive(around)
    return word[pair + At.tuple_items]


def disable(record):
    """Have a record fit no call any more; return 0."""
    word[record + Record.switches] = 0
    return 0


def forgive(around):
    """Forget an error that Python will meet again; return 0."""
    if call(word[around + Around.occurred]) == 0:
        return 0
    kind = word[around + Around.exception]
    if call(word[around + Around.matches], kind) & STATUS != 0:
        call(word[around + Around.clear])
    return 0


def take(x, node, record, out):
    """Take a tree apart, and return where the next leaf goes, or 0 if it differs."""
    kind = word[node + Node.kind]
    if kind == Kind.leaf:
        if take_leaf(x, word[node + Node.container], record, out) == 0:
            return 0
        return out + word[word[node + Node.container] + Known.step]
    if kind == Kind.static:
        return out * (x == word[node + Node.container])
    if word[x + At.type] != word[node + Node.container]:
        return 0
    if kind == Kind.nothing:
        return out
    if kind == Kind.registered:
        x = children_of(x, node, record)
        if x == 0:
            return 0
    around = word[record + Record.around]
    row = word[x + At.type] == word[around + Around.row]
    pair = word[x + At.type] == word[around + Around.pair]
    if kind == Kind.registered and not row and not pair:
        return disable(record)
    if word[x + At.size] != word[node + Node.length]:
        return 0
    items = x + At.tuple_items
    if row:
        items = word[x + At.list_items]
    i = 0
    while i < word[node + Node.length] and out != 0:
        child = node + Node.children + 16 * i
        if kind == Kind.dict:
            item = call(word[around + Around.get_item], x, word[child + 8])
        else:
            item = word[items + 8 * i]
        if item == 0:
            return 0
        out = take(item, word[child], record, out)
        i += 1
    return out


# The gate's second half: results, and the trees that they are handed back in.


def spare(known, around):
    """Return a result of an earlier call that is held nowhere any more, or 0."""
    items = word[word[known + Known.spares] + At.list_items]
    i = 0
    while i < word[word[known + Known.spares] + At.size]:
        x = word[items + 8 * i]
        whole = word[x + At.type] == word[around + Around.array]
        if (
            whole
            and word[x + At.refs] == 1
            and word[word[x + At.buffer] + At.refs] == 1
            and word[x + At.weak_references] == 0
            and unseen(word[x + At.buffer], word[known + Known.pieces])
        ):
            word[x + At.refs] = 2
            return x
        i += 1
    return 0


def unseen(buffer, count):
    """Return whether the parts of a buffer are held by it alone."""
    items = buffer + At.tuple_items
    while count > 0 and word[word[items + 8 * count - 8] + At.refs] == 1:
        count += -1
    return count == 0


def keep(x, known, around):
    """Put a result on the list of those that may be used again one day."""
    spares = word[known + Known.spares]
    if word[spares + At.size] != 0:
        turn = word[known + Known.turn]
        place = word[spares + At.list_items] + 8 * turn
        word[known + Known.turn] = (turn + 1) & (KEPT - 1)
        before = word[place]
        word[place] = x
        call(word[around + Around.incref], x)
        call(word[around + Around.decref], before)
    return 0


def new_buffer(known, around):
    """Return a new array of NumPy, read-only, or 0 if there is no memory."""
    if word[known + Known.maker] != 0:
        empty = word[around + Around.empty]
        made = call(word[around + Around.call], word[known + Known.maker], empty, 0)
    else:
        call(word[around + Around.incref], word[known + Known.descr])
        made = call(
            word[around + Around.new_ndarray], word[around + Around.ndarray],
            word[known + Known.descr], word[known + Known.ndim],
            word[known + Known.dims], 0, 0, 0, 0,
        )  # fmt: skip
    if made != 0:
        half[made + At.flags] = half[made + At.flags] - WRITEABLE
    return made


def new_parts(known, around):
    """Return a buffer for a result, a tuple if it is in parts; 0: no memory."""
    count = word[known + Known.pieces]
    if count == 0:
        return new_buffer(known, around)
    parts = call(word[around + Around.new_tuple], count)
    while parts != 0 and count > 0:
        count += -1
        part = new_buffer(known, around)
        word[parts + At.tuple_items + 8 * count] = part
        if part == 0:
            call(word[around + Around.decref], parts)
            return 0
    return parts


def new_result(known, around):
    """Return a new array for a result, or 0 if there is no memory."""
    buffer = new_parts(known, around)
    if buffer == 0:
        return 0
    x = handle(buffer, known, around)
    if x != 0:
        keep(x, known, around)
    return x


def handle(buffer, known, around):
    """Return an array of ours that takes a buffer, or 0 if there is no memory."""
    x = call(word[around + Around.allocate], word[around + Around.array], 0)
    if x == 0:
        call(word[around + Around.decref], buffer)
        return 0
    word[x + At.buffer] = buffer
    word[x + At.aval] = word[known + Known.aval]
    word[x + At.placement] = word[known + Known.place]
    call(word[around + Around.incref], word[x + At.aval])
    call(word[around + Around.incref], word[x + At.placement])
    return x


def rebuilt(children, node, around):
    """Return a registered container of a list, which it takes; 0 is an error."""
    place = room(2)
    word[place] = word[node + Node.aux]
    word[place + 8] = children
    unflatten = word[node + Node.unflatten]
    made = call(word[around + Around.call_with], unflatten, place, 2, 0)
    call(word[around + Around.decref], children)
    return made


def build(node, results, around):
    """Return the tree of the results, and empty their table; 0 is an error."""
    kind = word[node + Node.kind]
    length = word[node + Node.length]
    if kind == Kind.leaf:
        x = word[results + word[node + Node.container]]
        word[results + word[node + Node.container]] = 0
        return x
    if kind == Kind.nothing:
        call(word[around + Around.incref], word[around + Around.none])
        return word[around + Around.none]
    if kind == Kind.tuple:
        tree = call(word[around + Around.new_tuple], length)
    elif kind == Kind.named:
        tree = call(word[around + Around.allocate], word[node + Node.container], length)
    elif kind == Kind.dict:
        tree = call(word[around + Around.new_dict])
    else:
        tree = call(word[around + Around.new_list], length)
    if tree == 0:
        return 0
    i = 0
    while i < length:
        child = node + Node.children + 16 * i
        item = build(word[child], results, around)
        if item == 0:
            call(word[around + Around.decref], tree)
            return 0
        if kind == Kind.dict:
            call(word[around + Around.set_item], tree, word[child + 8], item)
            call(word[around + Around.decref], item)
        elif kind < Kind.list:  # a tuple, named or not
            word[tree + At.tuple_items + 8 * i] = item
        else:
            word[word[tree + At.list_items] + 8 * i] = item
        i += 1
    if kind == Kind.registered:
        return rebuilt(tree, node, around)
    return tree


# The dispatch path (the gate): a warmed call of a jitted function, as machine code.

MISS = 1


def each(function, start, end):
    """Call a function with each word of a table."""
    while start < end:
        call(function, word[start])
        start += 8
    return 0


def run(record, table, arena):
    """Run the program on a table of addresses, and return its status."""
    around = word[record + Record.around]
    program = word[record + Record.program]
    context = word[record + Record.context]
    if word[record + Record.long] == 0:
        return call(program, table, arena, context) & STATUS
    thread = call(word[around + Around.unlock])
    status = call(program, table, arena, context) & STATUS
    call(word[around + Around.lock], thread)
    return status


def result_in(known, held, around):
    """Return an array for a result, in an argument's memory if it takes that; or 0."""
    source = word[known + Known.source]
    if source >= 0:
        buffer = word[held + source]
        call(word[around + Around.incref], buffer)
        return handle(buffer, known, around)
    x = spare(known, around)
    if x == 0:
        return new_result(known, around)
    return x


def address_results(buffer, count, record, place):
    """Note where the numbers of a result go, those of its parts row by row."""
    if count == 0:
        word[place] = word[buffer + At.data]
        return 0
    item = buffer + At.tuple_items
    end = item + 8 * count
    while item < end:
        word[place] = word[word[item] + At.data]
        place += 0 - word[record + Record.span]
        item += 8
    return 0


def make_results(record, table, held):
    """Find or make an array for each result, and note it; return 0 if it fails."""
    known = word[record + Record.result]
    i = word[record + Record.results]
    while i < word[record + Record.span]:
        x = result_in(known, held, word[record + Record.around])
        if x == 0:
            drop = word[word[record + Record.around] + Around.decref]
            each(drop, held + word[record + Record.results], held + i)
            return 0
        word[held + i] = x
        count = word[known + Known.pieces]
        address_results(word[x + At.buffer], count, record, table + i)
        known += Known.size
        i += 8
    return 1


def finish(record, table, held, arena):
    """Return the tree of results when all arguments are there; 0 is an error."""
    around = word[record + Record.around]
    results = held + word[record + Record.results]
    end = held + word[record + Record.span]
    give_all(record, held)
    if make_results(record, table, held) == 0:
        return 0
    if run(record, table, arena) == 0:
        tree = build(word[record + Record.structure], results, around)
        if tree == 0:
            each(word[around + Around.decref], results, end)
        return tree
    each(word[around + Around.decref], results, end)
    failure = word[record + Record.failure]
    return call(word[around + Around.call], failure, word[around + Around.empty], 0)


def alone(buffer, around):
    """Return whether a buffer is seen by its array alone, while the gate holds it.

    That is enough for a tuple of parts, whose memory no result takes.
    """
    if word[buffer + At.refs] != 2:
        return 0
    if word[buffer + At.type] == word[around + Around.pair]:
        return 1
    base = word[buffer + At.base]
    while base != 0:
        kind = word[base + At.type]
        if kind == word[around + Around.heap] or kind == word[around + Around.pages]:
            return 1
        if kind != word[around + Around.ndarray] or word[base + At.refs] != 1:
            return 0
        base = word[base + At.base]
    return 1


def may_give(record, held):
    """Return whether the memory of all arguments that are given up may be taken."""
    place = word[record + Record.given]
    while place < word[record + Record.given_end]:
        leaf = held + word[place]
        if word[leaf + word[record + Record.span]] == 0:
            return 0
        if alone(word[leaf], word[record + Record.around]) == 0:
            return 0
        place += 8
    return 1


def give_all(record, held):
    """Mark the arguments that are given up; their buffers are held elsewhere."""
    around = word[record + Record.around]
    place = word[record + Record.given]
    while place < word[record + Record.given_end]:
        leaf = held + word[place]
        x = word[leaf + word[record + Record.span]]
        call(word[around + Around.incref], word[around + Around.donated])
        call(word[around + Around.incref], word[around + Around.none])
        word[x + At.type] = word[around + Around.donated]
        word[x + At.buffer] = word[around + Around.none]
        call(word[around + Around.decref], word[leaf])
        call(word[around + Around.decref], word[around + Around.array])
        place += 8
    return 0


def take_all(args, keywords, record, table):
    """Take all arguments apart; return 0 if some are of another kind."""
    out = table
    i = 0
    while i < word[record + Record.count] and out != 0:
        node = word[word[record + Record.arguments] + 8 * i]
        out = take(word[args + 8 * i], node, record, out)
        i += 1
    if out != 0 and word[record + Record.keywords] != 0:
        out = take(keywords, word[record + Record.keywords], record, out)
    return out


def let_go(place, end, around):
    """Let go of what registered containers were taken apart into."""
    while place < end:
        pair = word[place]
        word[place] = 0
        call(word[around + Around.decref], pair)
        place += 8
    return 0


def attempt(record, args, keywords):
    """Return the result of a call if it is one of this kind; 0 is an error."""
    around = word[record + Record.around]
    table = word[record + Record.places]
    held = table + 2 * word[record + Record.span]
    arena = word[record + Record.arena]
    word[record + Record.arena] = 0
    word[record + Record.taken] = table
    result = MISS
    if take_all(args, keywords, record, table) != 0:
        if may_give(record, held) != 0:
            result = finish(record, table, held, arena)
    elif call(word[around + Around.occurred]) != 0:
        result = 0
    each(word[around + Around.decref], held, held + word[record + Record.taken] - table)
    let_go(word[record + Record.pairs], word[record + Record.pairs_end], around)
    word[record + Record.arena] = arena
    return result


def variable(name, around):
    """Return the value of a context variable, which is held elsewhere."""
    place = room(1)
    call(word[around + Around.get_variable], name, 0, place)
    call(word[around + Around.decref], word[place])
    return word[place]


def plain(around):
    """Return whether this thread evaluates, with the switches of the process."""
    if variable(word[around + Around.trace], around) != word[around + Around.evaluator]:
        return 0
    overrides = variable(word[around + Around.overrides], around)
    if overrides != word[around + Around.unchanged]:
        return 0
    return word[word[around + Around.watchers] + At.size] == 0


def fitting(record, args, kwargs):
    """Return whether a record is free, and for such a call as far as one can see."""
    now = word[word[word[record + Record.around] + Around.config] + At.config_values]
    if word[record + Record.switches] != now or word[record + Record.arena] == 0:
        return 0
    if word[args + At.size] != word[record + Record.count]:
        return 0
    if kwargs == 0 or word[kwargs + At.size] == 0:
        return word[record + Record.keywords] == 0
    return word[record + Record.keywords] != 0


def answer(record, args, kwargs):
    """Return the result of a call by the first record that fits, or `MISS`.

    A user's function may run meanwhile, and clear the chain: the next record is the
    one that is the next one afterwards.
    """
    while record != 0:
        following = word[record + Record.next]
        if fitting(record, args, kwargs):
            around = word[record + Record.around]
            owner = word[record + Record.owner]
            call(word[around + Around.incref], owner)
            result = attempt(record, args + At.tuple_items, kwargs)
            following = word[record + Record.next]
            call(word[around + Around.decref], owner)
            if result != MISS:
                return result
        record = following
    return MISS


def gate(self, args, kwargs):
    """Return the result of a call of a jitted function; 0 is an error."""
    head = word[word[self + At.gate] + At.data]
    around = word[head + Record.around]
    if plain(around):
        result = answer(word[head + Record.next], args, kwargs)
        if result != MISS:
            return result
    method = call(word[around + Around.new_method], word[around + Around.python], self)
    if method == 0:
        return 0
    result = call(word[around + Around.call], method, args, kwargs)
    call(word[around + Around.decref], method)
    return result


def successor(table, arena, context):
    """A program for a trial: the next integer of 32 bits."""
    half[word[table + 8]] = half[word[table]] + 1
    return 0


class Door:
    """Machine code that answers calls, and a program to try it with.

    Attributes:
      address, trial: of the two functions.
      call: the first, of an object, a tuple, and None.
    """

    def __init__(self):
        rare = number, new_result, children_of, rebuilt  # not inlined: out of the way
        self.library = WordsLibrary(llvm_text(gate, successor, *rare))
        self.address, self.trial = map(self.library.place, ("gate", "successor"))
        words = [ctypes.py_object] * 3 + [ctypes.c_void_p]
        self.call = ctypes.PYFUNCTYPE(*words)(self.address)
