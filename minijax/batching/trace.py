"""vmap: a function of one example becomes a function of a batch of them.

Reference: ``jax.vmap``, ``jax.interpreters.batching``.
"""

# Made from chapters/06_vmap.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/06_vmap_rest.md: BatchTrace.process_primitive (776e4dfe).

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from minijax.arrays.avals import typeof
from minijax.batching.axes import (
    check_axes,
    check_in_axes,
    check_place,
    input_axes,
    mapped_size,
    typeof_or_none,
)
from minijax.batching.rules import example_aval, insert_axis, move_axis, vmap_rules
from minijax.core import Trace, Tracer, current_trace, lifetime, set_current_trace
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.call_checks import check_callable
from minijax.pytrees.operations import flatten_axes
from minijax.typing import P, R


class MappedAxis(NamedTuple):
    """The axis that a vmap maps over.

    Args:
      name: what collectives such as `psum` call it, or None.
      size: the number of examples.
    """

    name: object
    size: int


class BatchTracer(Tracer):
    """A stand-in for one example, which holds all of them.

    Args:
      trace: the `BatchTrace` it belongs to.
      value: the array of all examples.
      dim: which axis of `value` counts the examples.
    """

    __slots__ = ("value", "dim", "aval")

    def __init__(self, trace, value, dim):
        super().__init__(trace)
        self.value, self.dim = value, dim
        self.aval = example_aval(value, dim)

    def __repr__(self):
        return f"{type(self).__name__}(aval={self.aval}, batched={typeof(self.value)})"

    def concrete(self):
        """Return None: there is no one value to give to Python."""

    def provenance(self):
        """Return a sentence for errors of Python code that asks for one value."""
        examples = typeof(self.value).shape[self.dim]
        return f"This value stands for {examples} examples at once, inside vmap."


# Primitives that contain programs or functions: a collective inside may name an axis,
# and the closure of a function may hold examples.
program_primitives: set = set()


class BatchTrace(Trace):
    """Runs the program of one example on all examples at once.

    Args:
      parent: the trace to which the batched operations go.
      axis: the `MappedAxis`.
    """

    def __init__(self, parent, axis):
        self.parent, self.axis = parent, axis

    def unpack(self, x):
        """Return the array behind `x` and its mapped axis: None for a constant."""
        mine = isinstance(x, BatchTracer) and x._trace.axis is self.axis
        return (x.value, x.dim) if mine else (x, None)

    def pack(self, value, dim):
        """Return a tracer, or `value` itself where no axis is mapped."""
        return value if dim is None else BatchTracer(self, value, dim)

    def process_primitive(self, primitive, args, params):
        pairs = [self.unpack(arg) for arg in args]
        values, dims = [value for value, _ in pairs], [dim for _, dim in pairs]
        with set_current_trace(self.parent):
            alike = all(dim is None for dim in dims)
            if alike and not names_axis(primitive, params, self.axis.name):
                return primitive.bind(*values, **params)
            rule = vmap_rules[primitive]
            results, dims_out = rule(self.axis, values, dims, **params)
        return [self.pack(*pair) for pair in zip(results, dims_out, strict=True)]


def names_axis(primitive, params, name):
    """Return whether a primitive uses the axis called `name`, or may do so inside."""
    if primitive in program_primitives:
        return name is not None or any(map(callable, params.values()))
    return name in params.get("axis_name", ())


def vmap_flat(f, values, dims, axis):
    """Map `f`, a function from flat arguments to a list, over one axis of `values`.

    Args:
      f: called once, with tracers.
      values: arrays.
      dims: the mapped axis of each of them, or None.
      axis: the `MappedAxis`.

    Returns:
      The list of results and the list of their mapped axes.
    """
    trace = BatchTrace(current_trace(), axis)
    with lifetime(trace):
        results = f(*map(trace.pack, values, dims))
    pairs = [trace.unpack(result) for result in results]
    return [value for value, _ in pairs], [dim for _, dim in pairs]


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[P, R]:
    """Return a function that applies `fun` to each example of a batch, all at once.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      in_axes: which axis of the arguments counts the examples; None for an argument
        that all examples share. An int or None for all positional arguments, or a
        tuple with an entry for each, which may be a tree prefix of that argument.
        Keyword arguments are mapped over their axis 0.
      out_axes: where the results get that axis; a tree prefix of the result. None for
        a result that does not depend on the example.
      axis_name: a name by which collectives (`lax.psum`, ...) refer to the axis.
      axis_size: the number of examples; needed only if no argument is mapped.
      spmd_axis_name: accepted for compatibility. It names the axis of a device mesh
        along which the batch is laid out, and has no influence on values.

    Returns:
      A function of the same arguments, each with the axis that `in_axes` says. It
      calls `fun` once.

    Raises:
      TypeError: if `fun` is not callable, or an axis is not an int or None.
      ValueError: if the axes do not fit the arguments or the results, or their sizes
        differ.

    Reference: ``jax.vmap``.
    """
    check_callable(fun)
    in_axes = check_in_axes(in_axes)
    check_axes("out_axes", out_axes)
    hash(axis_name)  # names travel in the parameters of primitives, which are hashable

    @wraps(fun)
    def mapped(*args, **kwargs):
        call = FlatCall("vmap", fun, args, kwargs, typeof=typeof_or_none)
        dims = input_axes(call, in_axes, args)
        axis = MappedAxis(axis_name, mapped_size(call, dims, axis_size))
        values, dims_out = vmap_flat(call, call.leaves, dims, axis)
        places = flatten_axes("vmap out_axes", out_axes, call.out_tree)
        outputs = zip(values, dims_out, places)
        placed = [place_output(call, axis, i, *o) for i, o in enumerate(outputs)]
        return call.output(placed)

    return mapped


def place_output(call, axis, i, value, dim, place):
    """Return one result with its mapped axis where out_axes says."""
    if place is None and dim is None:
        return value
    ndim = typeof(value).ndim + (dim is None)
    check_place(call, i, ndim, dim, place)
    if dim is None:
        return insert_axis(value, place % ndim, axis.size)
    return move_axis(value, dim, place % ndim)
