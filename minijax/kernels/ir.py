"""The kernel IR: operations on scalars, loads, stores, loops, and their text.

What an operation means is settled here; how a machine does it is said by a table of
that machine, which has the same names.

Places, loads, folds and stores are records; a node holds some of them as its detail.
"""

# Made from chapters/17_kernels_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from minijax.arrays.dtypes import dtype_kind, short_dtype_name
from minijax.arrays.numerics import (
    clz_impl,
    convert_impl,
    div_impl,
    elementwise_impl_of_scalar_function,
    lgamma_scalar,
    population_count_impl,
    rem_impl,
)
from minijax.lax.reductions import max_of_dtype, min_of_dtype

# Operations on scalars: what each means, for which dtypes, and how NumPy does it.


class ScalarOp(NamedTuple):
    """An operation on scalars.

    Attributes:
      numpy: a function that does it to arrays.
      kinds: of the dtypes that it is for: b(ool), i(nteger), u(nsigned), f(loat).
      arity: the number of operands.
      result: the dtype of the result, where it is not that of the operands.
      cost: what it counts as: "flops", "transcendentals", or nothing.
      note: what is subtle about it.
    """

    numpy: Callable
    kinds: str
    arity: int = 2
    result: np.dtype | None = None
    cost: str = "flops"
    note: str = ""


# From names to what an operation on numbers does, and takes.
scalar_ops = {}


def define_scalar_op(name, *columns, **more):
    """Add a row."""
    scalar_ops[name] = ScalarOp(*columns, **more)


define_scalar_op("add", np.add, "iuf")
define_scalar_op("sub", np.subtract, "iuf")
define_scalar_op("mul", np.multiply, "iuf")
define_scalar_op(
    "div",
    lambda x, y: div_impl(np, x, y),
    "iuf",
    note="Integers: towards zero; never by 0, and never the least integer by -1.",
)
define_scalar_op(
    "max", np.maximum, "biuf", note="NaN if an operand is. Of two zeros, either."
)
define_scalar_op(
    "select",
    np.where,
    "biuf",
    arity=3,
    cost="",
    note="The second operand where the first is true, and the third elsewhere.",
)


define_scalar_op(
    "min", np.minimum, "biuf", note="NaN if an operand is. Of two zeros, either."
)
define_scalar_op(
    "rem",
    lambda x, y: rem_impl(np, x, y),
    "iuf",
    note="It has the sign of the first operand. Integers: as for div.",
)
define_scalar_op("neg", np.negative, "iuf", arity=1)
define_scalar_op(
    "abs",
    np.abs,
    "if",
    arity=1,
    note="The least integer has no positive partner, and stays as it is.",
)
define_scalar_op("and", np.bitwise_and, "biu")
define_scalar_op("or", np.bitwise_or, "biu")
define_scalar_op("xor", np.bitwise_xor, "biu")
define_scalar_op("not", np.invert, "biu", arity=1)
define_scalar_op(
    "shift_left", np.left_shift, "iu", note="By less than the number of bits."
)
define_scalar_op(
    "shift_right",
    np.right_shift,
    "iu",
    note="By less than the number of bits; the sign moves into the gap.",
)
define_scalar_op(
    "population_count",
    lambda x: population_count_impl(np, x).astype(x.dtype),
    "iu",
    arity=1,
)
define_scalar_op("clz", lambda x: clz_impl(np, x).astype(x.dtype), "iu", arity=1)

_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
for _name, _function in _COMPARISONS.items():
    _note = "Nothing but ne is true of NaN."
    define_scalar_op(_name, _function, "biuf", result=np.dtype(bool), note=_note)

for _name in ("floor", "ceil", "trunc", "rint", "sqrt"):
    define_scalar_op(_name, getattr(np, _name), "f", arity=1)
define_scalar_op("copysign", np.copysign, "f")
define_scalar_op(
    "as_float16",
    lambda x: x.astype(np.float32).astype(np.float16).astype(x.dtype),
    "f",
    arity=1,
    note="The nearest number of float16; of 64 bits by way of 32.",
)


def _of_arrays(function):
    each = elementwise_impl_of_scalar_function(function)
    return lambda x: each(np, x).astype(x.dtype)


# In the mathematical library of every system, and of CUDA.
NUMPY_MATH = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "pow": np.power,
    "hypot": np.hypot, "erf": _of_arrays(math.erf), "erfc": _of_arrays(math.erfc),
    "lgamma": _of_arrays(lgamma_scalar),
}  # fmt: skip
for _name, _function in NUMPY_MATH.items():
    _arity = 2 if _name in ("atan2", "pow", "hypot") else 1
    define_scalar_op(_name, _function, "f", arity=_arity, cost="transcendentals")


class FoldOp(NamedTuple):
    """A way to fold many scalars into one.

    Attributes:
      numpy: a function of an array, axes and the first value, which keeps the axes.
      first: from dtypes to the value to start from.
      kinds: letters of the kinds of dtypes.
      running: a function of an array and an axis, which leaves a result at each index.
    """

    numpy: Callable
    first: Callable
    kinds: str = "biuf"
    running: Callable | None = None

    def start(self, dtype):
        """Return the scalar to start from."""
        return dtype.type(self.first(dtype))


def _folding(ufunc, first, accepts="biuf"):
    def whole(x, axes, start):
        return ufunc.reduce(x, axes, x.dtype, keepdims=True, initial=start)

    def running(x, axis):
        return ufunc.accumulate(x, axis, x.dtype)

    return FoldOp(whole, first, accepts, running)


def _place(argument):
    return lambda x, axes, start: argument(x, *axes, keepdims=True)


fold_ops = {
    "add": _folding(np.add, lambda dtype: 0, "iuf"),
    "mul": _folding(np.multiply, lambda dtype: 1, "iuf"),
    "max": _folding(np.maximum, min_of_dtype),
    "min": _folding(np.minimum, max_of_dtype),
    "and": _folding(np.bitwise_and, lambda dtype: ~dtype.type(0), "biu"),
    "or": _folding(np.bitwise_or, lambda dtype: 0, "biu"),
    "xor": _folding(np.bitwise_xor, lambda dtype: 0, "biu"),
    "argmax": FoldOp(_place(np.argmax), min_of_dtype),
    "argmin": FoldOp(_place(np.argmin), max_of_dtype),
}


def compute_dtype(dtype):
    """Return the dtype in which numbers of `dtype` are computed: halves are widened."""
    return np.dtype(np.float32) if dtype_kind(dtype) == "h" else dtype


# Operations with a dtype of their own for the result, as functions of array and dtype.
cast_ops = {
    "convert": lambda x, dtype: convert_impl(np, x, dtype),
    "bitcast": lambda x, dtype: x.view(dtype),
}


# The parts of kernels and of loop nests, their text, and what they count up to.


def _sha256():
    for name in ("_sha2", "_sha256"):  # Python's own, by its names in two versions
        with suppress(ImportError):
            return import_module(name).sha256
    return import_module("hashlib").sha256  # it loads OpenSSL, which takes 3 ms


sha256 = _sha256()

# Names of axes, with no t among them: in CUDA C that is a thread's number.
AXIS_NAMES = [*"ijklmnopqrs", *[f"i{number}" for number in range(11, 64)]]


class Parameter(NamedTuple):
    """A parameter of a kernel: memory for `size` numbers of one dtype.

    Two are equal if name, dtype and size are, so kernels with one text are one kernel.
    """

    name: str
    dtype: np.dtype
    size: int

    def __str__(self):
        return f"{self.name}:{short_dtype_name(self.dtype)}[{self.size}]"


def _term(factor, letter):
    sign, size = "-" if factor < 0 else "+", abs(factor)
    star = "*" if letter and size != 1 else ""
    return f"{sign} {'' if letter and size == 1 else size}{star}{letter}"


class Affine(NamedTuple):
    """The number ``offset + strides[0] * i + strides[1] * j + ...``."""

    offset: int
    strides: tuple

    @property
    def axes(self):
        """The axes along which the number changes."""
        return tuple([axis for axis, stride in enumerate(self.strides) if stride])

    def at(self, indices):
        """Return the number for given indices, be they ints or arrays."""
        return sum((self.strides[k] * indices[k] for k in self.axes), self.offset)

    def bounds(self, sizes):
        """Return the least and the greatest number of all indices below `sizes`."""
        least = most = self.offset
        for stride, size in zip(self.strides, sizes):
            end = stride * (size - 1)
            least, most = least + min(end, 0), most + max(end, 0)
        return least, most

    def __str__(self):
        terms = [_term(self.strides[axis], AXIS_NAMES[axis]) for axis in self.axes]
        if self.offset or not terms:
            terms.append(_term(self.offset, ""))
        text = " ".join(terms)
        return f"-{text[2:]}" if text.startswith("- ") else text.removeprefix("+ ")


class Guard(NamedTuple):
    """Inside where ``0 <= place < limit``."""

    place: Affine
    limit: int

    def __str__(self):
        return f"0 <= {self.place} < {self.limit}"


class IndirectTerm(NamedTuple):
    """A computed part of a place: `stride` times a number, ``0 <= number < limit``."""

    stride: int
    limit: int


class Update(NamedTuple):
    """How a store finds computed places, and what it does there (a scatter).

    Attributes:
      how: "set", or how what is stored enters what is there, a name in `fold_ops`.
      at: nodes, the numbers of the `terms`; outside of a limit, nothing is stored.
      terms: tuple of `IndirectTerm`.
      axes: those along which it is done, one index after the other, the last fastest.
      distinct: whether no two indices have one place, as the caller promises.
    """

    how: str
    at: tuple
    terms: tuple
    axes: tuple
    distinct: bool = False


class Load(NamedTuple):
    """An element of a parameter; `other` where a guard or a limit says outside.

    Each of the `terms` belongs to one of the node's arguments, which is its number.
    """

    parameter: Parameter
    place: Affine
    guards: tuple = ()
    fill: object = 0
    terms: tuple = ()


class Fold(NamedTuple):
    """How to fold (a name in `fold_ops`), and along which axes."""

    how: str
    axes: tuple


class Store(NamedTuple):
    """What becomes of the element at `place`, for all indices that it varies over."""

    parameter: Parameter
    place: Affine
    node: Any
    update: Update | None = None

    @property
    def axes(self):
        """The axes along which it is done."""
        return self.update.axes if self.update else self.place.axes

    @property
    def args(self):
        """The nodes that it needs."""
        return (self.node, *self.update.at) if self.update else (self.node,)

    def with_nodes(self, new):
        """Return the store with other nodes in the places of its own, by these."""
        parameter, place, node, update = self
        if update:
            update = update._replace(at=tuple([new[node] for node in update.at]))
        return Store(parameter, place, new[node], update)


def union_of_levels(levels):
    """Return all axes of some levels, in order."""
    distinct = {*levels}
    distinct.discard(())
    if len(distinct) < 2:
        return distinct.pop() if distinct else ()
    return tuple(sorted(set().union(*distinct)))


class FoldInit(NamedTuple):
    """A step of a nest: the running value of a fold begins."""

    fold: Any


class FoldCombine(NamedTuple):
    """A step of a nest: one more number enters the running value of a fold."""

    fold: Any


# From each kind of loop to how it is printed; "{}" is its count, and a kind without
# "{}" has none.
#
# serial: one index after the other.
# unrolled: likewise, and the text has the body once for each index.
# vector: so many neighbours at once; a short last vector has a body of its own.
# masked: likewise, but each vector has a mask, so that one body does for all.
# together: so many iterations side by side, in the loops of the body.
# strip: an iteration takes care of so many indices. Its body is loops on the axis, one
#   after the other, which go through these.
# team: so many threads of a GPU share the iterations.
loop_kinds = {
    "serial": "",
    "unrolled": "unrolled",
    "vector": "{} at once",
    "masked": "{} at once, masked",
    "together": "{} side by side",
    "strip": "{} a strip",
    "team": "shared by {} threads",
}


class Loop(NamedTuple):
    """A step of a nest: do the steps of `body` for each index along an axis.

    Attributes:
      axis: which one.
      body: steps.
      folds: those whose running values go through the loop.
      kind: how the indices are done, one of `loop_kinds`.
      count: of what the kind counts: lanes, iterations, indices, threads; or 0.
      blocked: whether sums over many iterations are made in blocks.
      parallel: whether the function does some iterations only, as its caller says.
    """

    axis: int
    body: list
    folds: tuple
    kind: str = "serial"
    count: int = 0
    blocked: bool = False
    parallel: bool = False

    def counted(self, *kinds):
        """Return the count of a loop of these kinds, and 0 for one of another."""
        return self.count if self.kind in kinds else 0

    @property
    def lanes(self):
        """How many indices a vector holds; 0 for a loop without vectors."""
        return self.counted("vector", "masked")

    @property
    def strip(self):
        """How many indices an iteration takes care of; 0 for one."""
        return self.counted("strip")

    @property
    def together(self):
        """How many iterations are done side by side; 0 for one after the other."""
        return self.counted("together")


def is_scan(fold):
    """Return whether a fold has a result at each index, not only at the end."""
    return fold.op == "running"


def once_per_kernel(function):
    """Return a function of a kernel that computes its value once, and keeps it there.

    A kernel is not changed, and a program launches one many times.
    """

    @functools.wraps(function)
    def kept(kernel):
        if function not in kernel.facts:
            kernel.facts[function] = function(kernel)
        return kernel.facts[function]

    return kept


@once_per_kernel
def print_kernel(kernel):
    """Return the text: a line for each node, with its dtype and its level."""
    names = node_names(kernel)
    head = f"{kernel.name}({', '.join(map(str, kernel.parameters))})"
    limits = [f"{AXIS_NAMES[axis]} < {size}" for axis, size in enumerate(kernel.sizes)]
    lines = [f"{head} for {', '.join(limits)}" if limits else head]
    for node, name in names.items():
        level = ",".join(AXIS_NAMES[axis] for axis in node.level)
        kind = f"{name}:{short_dtype_name(node.dtype)}[{level}]"
        lines.append(f"  {kind} = {right_hand_side(node, names)}")
    return "\n".join([*lines, *[f"  {item_text(s, names)}" for s in kernel.stores]])


def node_names(kernel):
    """Return names for the nodes of a kernel that are no constants."""
    computed = [node for node in kernel.nodes if node.op != "constant"]
    return {node: f"v{place}" for place, node in enumerate(computed)}


def exact_number_text(number):
    """Return a number as a text that no other number has: NaN has many bits."""
    text, bits = str(number.item()), number.tobytes()
    plain = number == number or bits == np.asarray(np.nan, number.dtype).tobytes()
    return text if plain else f"{text}({bits.hex()})"


def item_text(item, names):
    """Return the name of a node, the number of a constant, or the line of a store."""
    if isinstance(item, Store):
        return _store_text(item, names)
    if item.op == "constant":
        return f"{exact_number_text(item.detail)}:{short_dtype_name(item.dtype)}"
    return names.get(item, "?")


def right_hand_side(node, names):
    """Return what a node is, without its name."""
    args = " ".join(item_text(arg, names) for arg in node.args)
    if node.op == "index":
        return AXIS_NAMES[node.detail]
    if node.op == "load":
        return _load_text(node, names)
    if node.op in ("fold", "running"):
        over = "over" if node.op == "fold" else "along"
        axes = ",".join(AXIS_NAMES[axis] for axis in node.detail.axes)
        return f"{node.op} {node.detail.how} {over} {axes} of {args}"
    return f"{node.op} {args}"


def _load_text(node, names):
    parameter, place, guards, other, terms = node.detail
    numbers = [item_text(arg, names) for arg in node.args]
    limits = [*map(str, guards), *_limits(numbers, terms)]
    text = f"load {parameter.name}[{_sum(place, numbers, terms)}]"
    if not limits:
        return text
    return f"{text} if {' and '.join(limits)} else {exact_number_text(other)}"


def _store_text(store, names):
    parameter, place, node, update = store
    if not update:
        return f"{parameter.name}[{place}] = {item_text(node, names)}"
    numbers = [item_text(x, names) for x in update.at]
    limits = _limits(numbers, update.terms)
    along = ",".join(AXIS_NAMES[axis] for axis in update.axes)
    words = [f"{parameter.name}[{_sum(place, numbers, update.terms)}] {update.how}="]
    words += [item_text(node, names), f"for {along}" if along else "once"]
    words += [f"if {' and '.join(limits)}"] * bool(limits)
    return " ".join([*words, *["distinct"] * update.distinct])


def _sum(place, numbers, terms):
    parts = [_term(term.stride, x) for x, term in zip(numbers, terms)]
    still = parts and str(place) == "0"
    return " ".join([*[str(place)] * (not still), *parts]).removeprefix("+ ")


def _limits(numbers, terms):
    return [f"0 <= {x} < {term.limit}" for x, term in zip(numbers, terms)]


def nest_text(steps, kernel, names, depth=0):
    """Return the steps of a kernel's loops as pairs of a depth and a text."""
    lines = []
    for step in steps:
        if isinstance(step, Loop):
            lines.append((depth, _head(step, kernel.sizes[step.axis])))
            lines += nest_text(step.body, kernel, names, depth + 1)
        elif child_steps(step):
            axis = AXIS_NAMES[step.axis] if hasattr(step, "axis") else ""
            lines.append((depth, f"{type(step).__name__.lower()} {axis}".strip() + ":"))
            lines += nest_text(child_steps(step), kernel, names, depth + 1)
        elif getattr(step, "op", "") != "constant":
            lines.append((depth, _line(step, names)))
    return lines


def child_steps(step):
    """Return the steps that one holds in its fields, in lists or as a `Loop`."""
    inside = []
    for field in step if isinstance(step, tuple) else ():
        if isinstance(field, list | Loop):
            inside += [field] if isinstance(field, Loop) else field
    return inside


def _head(loop, size):
    marks = [loop_kinds[loop.kind].format(loop.count)]
    marks += [name for name in ("blocked", "parallel") if getattr(loop, name)]
    head = f"for {AXIS_NAMES[loop.axis]} < {size}"
    return ", ".join([head, *filter(None, marks)]) + ":"


def _line(step, names):
    if isinstance(step, Store):
        return item_text(step, names)
    if hasattr(step, "op"):
        return f"{names[step]} = {right_hand_side(step, names)}"
    if not hasattr(step, "fold"):
        return f"{type(step).__name__.lower()} {names[step.node]}"
    [arg], how, name = step.fold.args, step.fold.detail.how, names[step.fold]
    if isinstance(step, FoldInit):
        return f"{name} = {fold_ops[how].start(arg.dtype).item()}"
    return f"{name} = {how} {name} {item_text(arg, names)}"


def trip_count(kernel, axes):
    """Return how many indices there are along some axes."""
    return math.prod(kernel.sizes[axis] for axis in axes)


@once_per_kernel
def bytes_accessed(kernel):
    """Return how many bytes a kernel reads, and how many it writes."""
    loads = [node for node in kernel.nodes if node.op == "load"]
    updates = [store for store in kernel.stores if store.update]
    read = {(x.detail.parameter, x.detail.place, x.args): _moving(x) for x in loads}
    read |= {store[:2]: store.axes for store in updates if store.update.how != "set"}
    written = {store[:2]: store.axes for store in kernel.stores}
    return tuple(
        sum(
            trip_count(kernel, axes) * key[0].dtype.itemsize for key, axes in at.items()
        )
        for at in (read, written)
    )


def _moving(node):
    """Return the axes along which the place of a load moves."""
    return union_of_levels([node.detail.place.axes, *[arg.level for arg in node.args]])


@once_per_kernel
def flops_and_transcendentals(kernel):
    """Return how many flops and transcendental functions a kernel computes."""
    counts = {"flops": 0, "transcendentals": 0}
    for node in kernel.nodes:
        if node.op in ("fold", "running"):
            axes = {*node.args[0].level, *node.detail.axes}
            counts["flops"] += trip_count(kernel, axes)
        elif node.op in scalar_ops and scalar_ops[node.op].cost:
            counts[scalar_ops[node.op].cost] += trip_count(kernel, node.level)
    updates = [store for store in kernel.stores if store.update]
    added = [store.axes for store in updates if store.update.how != "set"]
    counts["flops"] += sum(trip_count(kernel, axes) for axes in added)
    return counts


def stores_are_disjoint(store, axis):
    """Return whether indices along an axis surely store into different elements."""
    update, moves = store.update, bool(store.place.strides[axis])
    if not update or update.distinct:
        return True
    return moves and not any(axis in number.level for number in update.at)


def stores_are_affine(kernel):
    """Return whether a kernel computes no place where it stores, and no fold runs."""
    runs = [node for node in kernel.nodes if node.op == "running"]
    return not (runs or any(store.update for store in kernel.stores))


def is_affine(kernel):
    """Return whether no place of a kernel is computed, and no fold of it runs."""
    loads = [node for node in kernel.nodes if node.op == "load" and node.args]
    return not loads and stores_are_affine(kernel)
