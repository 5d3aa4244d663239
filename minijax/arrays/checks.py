"""What shape rules share: kinds of dtypes, axes, and refusals that name both."""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import enum
import operator
from collections.abc import Sequence

import numpy as np

from minijax.arrays.dtypes import kind_of, name_of
from minijax.arrays.interchange import refuse_promise
from minijax.arrays.sharding_types import NO_MANUAL_AXES
from minijax.core import Tracer
from minijax.errors import StaticIntegerError

# Kinds of dtypes, by letter: "h" is a half-precision float, "f" a wider one, and "x"
# is what is no number but can be the same as another.
FLOAT, INEXACT, INT, REAL, NUMBER = "hf", "hfc", "iu", "iuhf", "iuhfc"
BITS, ORDERED, ANY, COMPARED = "biu", "biuhf", "biuhfc", "biuhfcx"
KIND_NAMES = {
    "b": "bool", "i": "integer", "u": "unsigned integer", "h": "half-precision float",
    "f": "floating", "c": "complex", "x": "extended",
}  # fmt: skip


def listing(items):
    """Return `items` in a row, for messages."""
    return ", ".join(map(str, items))


def rule_of_class(rules, x):
    """Return the entry of a table for the class of `x`, or the nearest base class.

    Raises:
      TypeError: if there is none, so that `x` is no operand.
      ValueError: if `x` only promises an array.
    """
    for kind in type(x).__mro__:
        if kind in rules:
            return rules[kind]
    refuse_promise(x)
    raise TypeError(
        f"{x!r} of type {type(x)} is not a valid array type: "
        "an array, a NumPy array or a number is expected."
    )


def check_same_dtype(name, avals):
    """Raise a TypeError unless all dtypes are the same."""
    first = avals[0].dtype
    if [aval for aval in avals if aval.dtype is not first and aval.dtype != first]:
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got "
            f"{listing(name_of(aval.dtype) for aval in avals)}. Functions of "
            "minijax.numpy convert them."
        )


def check_kind(name, accepts, avals):
    """Raise a TypeError unless all dtypes are of the kinds that `name` accepts."""
    for position, aval in enumerate(avals):
        if kind_of(aval.dtype) not in accepts:
            kinds = listing(KIND_NAMES[kind] for kind in accepts)
            raise TypeError(
                f"{name} does not accept dtype {name_of(aval.dtype)} at position "
                f"{position}. Accepted kinds of dtypes: {kinds}."
            )


def _is_without_mesh(sharding):
    """Return whether it is what types say of arrays that no mesh cuts."""
    return getattr(getattr(sharding, "mesh", None), "empty", False)


def refuse_sharding(name, sharding):
    """Raise if `sharding` has a mesh with axes: arrays lie on one device here."""
    if sharding is not None and not _is_without_mesh(sharding):
        raise NotImplementedError(
            f"The argument out_sharding of {name} has to be None, got {sharding!r}: "
            "an array lies on one device. device_put moves it to another one."
        )


def shared_aval(avals):
    """Return the plain aval that one or two operands have together, or None.

    They are of one shape and dtype, or a scalar of the dtype stands beside an array.
    """
    first, last = avals[0], avals[-1]
    if first is not last:
        if not first.shape:
            first, last = last, first
        weaker = first.weak_type and not last.weak_type
        other = last.shape and last.shape != first.shape
        if other or last.dtype is not first.dtype or weaker:
            return None
    plain = first.manual_axis_type is NO_MANUAL_AXES is last.manual_axis_type
    return first if plain and len(avals) < 3 else None


def all_weak(avals):
    """Return whether every dtype among `avals` is weak."""
    return not [aval for aval in avals if not aval.weak_type]


def to_bool(dtype):
    """Return the dtype of comparisons."""
    return np.dtype(bool)


def to_real(dtype):
    """Return the dtype of the parts of a complex number, or a real `dtype` itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def to_complex(dtype):
    """Return the dtype of complex numbers with parts of `dtype`."""
    return np.dtype(f"c{dtype.itemsize * 2}")


def broadcast_strictly(name, shapes):
    """Return the shape that operands of equal rank have together.

    Raises:
      TypeError: if ranks differ (a scalar goes with any), or sizes do and none is 1.
    """
    ranked = [shape for shape in shapes if shape]
    if len({*ranked}) <= 1:
        return ranked[0] if ranked else ()
    if len({*map(len, ranked)}) > 1:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got shapes "
            f"{listing(shapes)}. Functions of minijax.numpy line them up."
        )
    sizes = [{*column} - {1} or {1} for column in zip(*ranked)]
    if builtins.max(map(len, sizes)) > 1:
        raise TypeError(
            f"{name} got incompatible shapes for broadcasting: {listing(shapes)}."
        )
    return tuple(size for [size] in sizes)


class AccuracyMode(enum.Enum):
    """How exact an elementary function is asked to be; here, there is one of each.

    Reference: ``jax.lax.AccuracyMode``.
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """What error a result may have: at most two of the three may be given.

    Args:
      atol: absolute error.
      rtol: relative error.
      ulps: distance from the exact result, in neighbouring floats.

    Raises:
      ValueError: if one is negative, or all are zero.

    Reference: ``jax.lax.Tolerance``.
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if min(atol, rtol, ulps) < 0:
            raise ValueError("Tolerances must be non-negative.")
        if max(atol, rtol, ulps) == 0:
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps


def check_accuracy(accuracy):
    """Raise unless `accuracy` is None or of a class that says how exact a result is.

    It changes nothing: of each elementary function there is one version, and tests
    bound its error in ulps.
    """
    if not isinstance(accuracy, AccuracyMode | Tolerance | None):
        raise NotImplementedError(f"Accuracy {accuracy} not supported")


# The functions that JAX lets a user ask for an accuracy.
ACCURATE = frozenset(
    "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh".split()
)


def bound(primitive):
    """Return the function that binds a primitive of one operand and one result.

    It takes the argument `accuracy` where JAX's function of this name does.
    """
    return (_accurate if primitive.name in ACCURATE else _plain)(primitive)


def _plain(primitive):
    def function(x):
        [result] = primitive.bind(x)
        return result

    return function


def _accurate(primitive):
    def function(x, *, accuracy=None):
        if accuracy is not None:
            check_accuracy(accuracy)
        [result] = primitive.bind(x)
        return result

    return function


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that `shapes` broadcast to, by NumPy's rules.

    Raises:
      ValueError: if two sizes differ and neither is 1.

    Reference: ``jax.lax.broadcast_shapes``.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        message = f"Incompatible shapes for broadcasting: shapes={[*shapes]}"
        raise ValueError(message) from None


def as_truth(x, what):
    """Return a bool; a TypeError says which argument `what` is none."""
    if not isinstance(x, bool | np.bool_):
        kind = type(x).__name__
        raise TypeError(f"{what} must be True or False, not {x!r} of type {kind}.")
    return bool(x)


def as_integer(x, what, way_out=None):
    """Return a static integer, such as an axis, a size or a count, as an ``int``.

    It decides what the program is, so its value has to be known while tracing.

    Args:
      x: an integer of Python or NumPy, an integer array without axes, or a ``bool``,
        which is an integer of Python.
      what: what it is for, with an article or the name of the argument, for messages.
      way_out: what to do about a tracer; by default, what JAX says of ``jit``.

    Raises:
      TypeError: for what is no integer, such as a float or an array with axes.
      StaticIntegerError: for a tracer that has no number yet.

    Reference: ``operator.index``, ``jax.core.concrete_or_error``.
    """
    try:
        return operator.index(x)
    except TypeError:
        raise _no_integer(x, what, way_out or JIT_STATICALLY) from None


def _no_integer(x, what, way_out):
    is_tracer = isinstance(x, Tracer)
    if not is_tracer or getattr(x, "concrete", _nothing)() is not None:
        return TypeError(f"Expected an integer as {what}, got {x!r} of type {type(x)}.")
    return StaticIntegerError(
        f"{CONCRETE} as {what}, which is part of the program: {x!r} has no number "
        f"while it is traced. {way_out} {getattr(x, 'provenance', str)()}".rstrip()
    )


def _nothing():
    return None


CONCRETE = "Abstract tracer value encountered where concrete value is expected"


def canonicalize_axis(axis, ndim):
    """Return `axis` counted from the front.

    Raises:
      ValueError: if there is no such axis among `ndim`.
      TypeError, StaticIntegerError: as `as_integer`.
    """
    axis = as_integer(axis, "an axis")
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def size_along(x, axis):
    """Return the size of an axis of an array; raise as `canonicalize_axis`."""
    return x.shape[canonicalize_axis(axis, len(x.shape))]


def check_rank(name, least, *arrays):
    """Raise a ValueError unless all arrays have so many axes."""
    axes = "axis" if least == 1 else "axes"
    for x in arrays:
        if len(x.shape) < least:
            raise ValueError(
                f"{name} takes an array of at least {least} {axes}, and got one of "
                f"shape {x.shape}."
            )


def integers(numbers, what="Parameters"):
    """Return a parameter: a tuple of Python ints.

    Args:
      what: the parameters are, in the plural and for messages, such as "Shapes".

    Raises:
      TypeError: for what is no integer.
      StaticIntegerError: for a tracer that has no number yet.
    """
    try:
        return tuple(map(operator.index, numbers))
    except TypeError:
        raise _refused(no_integers(what, numbers)) from None


def _refused(message):
    if JIT_STATICALLY not in message:
        return TypeError(message)
    return StaticIntegerError(f"{CONCRETE}. {message}")


def no_integers(what, numbers):
    """Return the message for parameters that are not all known integers."""
    parts = numbers if isinstance(numbers, (tuple, list)) else (numbers,)
    told = {n.provenance(): None for n in parts if hasattr(n, "provenance")}
    first = (
        f"{what} must be 1D sequences of concrete values of integer type, got "
        f"{numbers!r}."
    )
    return "\n".join([first, *([JIT_STATICALLY, *told] if told else [])])


# JAX says it in these words, of parameters that are tracers.
JIT_STATICALLY = (
    "If using `jit`, try using `static_argnums` or applying `jit` to smaller "
    "subfunctions."
)


def without(items, axes):
    """Return `items` as a tuple that lacks the places `axes`."""
    return tuple(item for place, item in enumerate(items) if place not in axes)


def check_axes(name, x, axes):
    """Raise a ValueError unless `axes` are different axes of `x`, counted from 0."""
    if len({*axes}) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of {name}: {axes}")
    if not {*axes} <= {*range(x.ndim)}:
        raise ValueError(f"{name} axes {axes} contain out-of-bounds indices for {x}.")


def check_placed(shape, new_shape, places):
    """Raise a TypeError unless a shape fits into a new one, each axis at its place."""
    rising = sorted({*places}) == [*places] and len(places) == len(shape)
    fits = all(
        0 <= place < len(new_shape) and size in (1, new_shape[place])
        for place, size in zip(places, shape)
    )
    if not (rising and fits) or builtins.min(new_shape, default=0) < 0:
        raise TypeError(
            "broadcast_in_dim puts each axis of the operand, in order, on an axis of "
            "the result with the same size (or stretches it, if its size is 1): got "
            f"operand shape {shape}, shape {new_shape} and broadcast_dimensions "
            f"{places}."
        )


def sizes(shape, axes):
    """Return the sizes of some axes."""
    return tuple(shape[axis] for axis in axes)


def free_axes(ndim, contracting, batch):
    """Return the axes that are neither summed over nor shared."""
    return without(range(ndim), (*contracting, *batch))
