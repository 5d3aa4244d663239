"""Types without arrays: shape structs, type inference, origins of values, hooks.

References: ``TracerArrayConversionError``, ``DynamicJaxprTrace`` in JAX,
``jax.ShapeDtypeStruct``, ``standard_vma_rule`` in ``jax._src.core``.
"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from functools import partial

import numpy as np

from minijax.arrays.array import ShapedArray, shape_rules, typeof
from minijax.arrays.devices import NO_MANUAL_AXES, ManualAxisType, Sharding
from minijax.arrays.dtypes import as_dtype, canonicalize_dtype
from minijax.batching.collectives import pmax_p, pmin_p, psum_p
from minijax.batching.vmap import higher_order_primitives
from minijax.core import Array, Tracer
from minijax.errors import TracerArrayConversionError

# What a value that is not there yet can say of itself, in messages.


class TraceProvenance:
    """What a trace writes down: a function, on behalf of a transformation.

    Args:
      transformation: its name, such as ``"make_jaxpr"``.
      function: the name of the user's function.
      argument_names: a function that returns the names of all flat arguments.
    """

    def __init__(self, transformation=None, function=None, argument_names=None):
        self.transformation, self.function = transformation, function
        self.argument_names = argument_names

    def describe(self, positions):
        """Return two sentences about a value made from the arguments at `positions`."""
        who = self.transformation or "A transformation"
        whom = f"the function {self.function!r}" if self.function else "a function"
        first = f"{who} is writing down {whom} without running it."
        return f"{first} {self._why(positions)}"

    def _why(self, positions):
        if not positions:
            return "Even what does not depend on its arguments is written down."
        if self.argument_names is None:
            return "This value depends on its arguments."
        names = self.argument_names()
        used = " and ".join(names[position] for position in positions)
        plural = "s" if len(positions) > 1 else ""
        return f"This value depends on the argument{plural} {used}."


def ancestor_argument_positions(var, invars, eqns):
    """Return the positions of the arguments `invars` that `var` was made from.

    Args:
      var: a variable.
      invars: list of the variables of the arguments.
      eqns: list of `JaxprEqn`, in the order in which they were bound.
    """
    needed = {var}
    for eqn in reversed(eqns):
        if needed.intersection(eqn.outvars):
            needed.update(eqn.invars)
    return [i for i, invar in enumerate(invars) if invar in needed]


class AbstractTracer(Tracer):
    """A tracer with no array behind it: it has an `aval`, and says where it is from."""

    __slots__ = ()

    def concrete(self):
        """Return None: there is no array behind this tracer yet."""
        return None

    def provenance(self):
        """Return the sentences on what is being written down: a subclass knows."""
        raise NotImplementedError(f"{type(self).__name__} has no provenance")

    def __repr__(self):
        return f"{type(self).__name__}({self.aval.str_short()})"

    def __array__(self, *args, **kwargs):
        raise TracerArrayConversionError(
            "The numpy.ndarray conversion method __array__() was called on traced "
            f"array {self!r}. {self.provenance()} Use the function of minijax.numpy "
            "instead of numpy's."
        )


# Shape structs: the type of an array where there is no array.

_ARRAYS = (Array, np.ndarray, np.generic)


class ShapeDtypeStruct:
    """The shape and dtype of an array, without an array.

    Args:
      shape: sequence of sizes.
      dtype: NumPy dtype, or its name.
      sharding: a `Sharding`, where the array is to be, or a `PartitionSpec` for the
        mesh of the context, or None.
      weak_type: True for what comes from Python scalars alone.
      manual_axis_type: the `ManualAxisType` of the array, or None.

    Raises:
      ValueError: if there is no dtype, or `sharding` is none.
      TypeError: if `manual_axis_type` is none, or there is no mesh for a
        `PartitionSpec`.

    Reference: ``jax.ShapeDtypeStruct``.
    """

    __slots__ = ("dtype", "manual_axis_type", "shape", "sharding", "weak_type")

    def __init__(
        self, shape, dtype, *, sharding=None, weak_type=False, manual_axis_type=None
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        if hasattr(sharding, "on_context_mesh"):  # a PartitionSpec
            sharding = sharding.on_context_mesh()
        _check_class("sharding", sharding, Sharding, ValueError)
        _check_class("manual_axis_type", manual_axis_type, ManualAxisType, TypeError)
        values = tuple(shape), as_dtype(dtype), sharding, weak_type, manual_axis_type
        for name, value in zip(self._parts, values):
            object.__setattr__(self, name, value)

    _parts = "shape", "dtype", "sharding", "weak_type", "manual_axis_type"

    def __setattr__(self, name, value):
        raise RuntimeError(
            f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects"
        )

    @classmethod
    def like(cls, x):
        """Return the type of an array or number, and where it is if committed.

        Args:
          x: an array, a tracer, a number, or anything with a shape and a dtype.
        """
        if isinstance(x, ShapeDtypeStruct | ShapedArray):
            return x if isinstance(x, cls) else struct_of(x)
        is_placed = not isinstance(x, Tracer) and getattr(x, "committed", True)
        sharding = getattr(x, "sharding", None) if is_placed else None
        if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, _ARRAYS):
            return cls(x.shape, canonicalize_dtype(x.dtype), sharding=sharding)
        return struct_of(typeof(x), sharding)

    @property
    def ndim(self):
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """The number of elements."""
        return math.prod(self.shape)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes):
        """Return a copy with other parts, by the names that the class takes."""
        parts = {name: getattr(self, name) for name in self._parts} | changes
        return ShapeDtypeStruct(**parts)

    def __reduce__(self):
        named = {name: getattr(self, name) for name in self._parts[2:]}
        return partial(ShapeDtypeStruct, **named), (self.shape, self.dtype)

    def _key(self):
        return tuple([getattr(self, name) for name in self._parts])

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        named = f"shape={self.shape}, dtype={self.dtype.name}"
        rest = [(name, getattr(self, name)) for name in self._parts[2:]]
        said = [f", {name}={value!r}" for name, value in rest if value]
        return f"ShapeDtypeStruct({named}{''.join(said)})"


def _check_class(name, value, kind, error):
    if not isinstance(value, kind | None):
        raise error(
            f"{name} of a ShapeDtypeStruct should be an instance of "
            f"minijax.sharding.{kind.__name__}, or None. Got {value} of type "
            f"{type(value)}."
        )


def struct_of(aval, sharding=None):
    """Return the `ShapeDtypeStruct` of an abstract value, with a sharding perhaps."""
    axes = None if aval.manual_axis_type.empty else aval.manual_axis_type
    how = {"weak_type": aval.weak_type, "manual_axis_type": axes}
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding, **how)


# Type inference: shape rules, and mesh axes along which results vary.

# Primitives whose shape rules know along which axes of a mesh results vary.
manual_axes_primitives: set = {psum_p, pmax_p, pmin_p}


def infer_out_avals(primitive, avals, params):
    """Return the list of a primitive's results' types, as `ShapedArray`.

    Args:
      primitive: a `Primitive`.
      avals: types of its operands.
      params: dictionary of its parameters.

    Raises:
      TypeError, ValueError: if the shape rule refuses the operands.
    """
    outs = shape_rules[primitive](*avals, **params)
    if not [x for x in avals if x.manual_axis_type is not NO_MANUAL_AXES]:
        return outs
    axes = {aval.manual_axis_type for aval in avals} - {NO_MANUAL_AXES}
    if primitive in manual_axes_primitives or primitive in higher_order_primitives:
        return outs
    names = {f: frozenset().union(*[getattr(a, f) for a in axes]) for f in _KINDS}
    joined = NO_MANUAL_AXES.update(**names)
    return [out.update(manual_axis_type=joined) for out in outs]


_KINDS = "varying", "unreduced", "reduced"


# Single values that higher floors replace by their own.


class Hook:
    """A value that a higher floor replaces by its own; the latest one counts.

    A floor that replaces the value of another imports it, so that the highest floor is
    the latest in any order of imports.

    Args:
      value: what counts until then.
    """

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


# What returns a value with the mesh axes of a variable, or of a type.
weak_type_converter = Hook(lambda x, like: x)
