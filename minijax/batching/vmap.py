"""vmap: the batching trace, and what each primitive does with a mapped axis.

A rule is called as ``rule(axis, args, dims, **params)``. `axis` has the ``name`` and
the ``size`` of the mapped axis. ``dims[i]`` says which axis of ``args[i]`` it is, or
None where an operand is shared by all examples. The rule returns the list of results
and the list of their mapped axes.

The same table in JAX: ``jax.interpreters.batching.primitive_batchers``.

References: ``jax.vmap``, ``jax.interpreters.batching``.
"""

# Made from chapters/06_vmap.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/06_vmap_rest.md: BatchTrace.process_primitive (aa6551a4).
# Amended in chapters/06_vmap_rest.md: vmap (bede2d20).
# Amended in chapters/06_vmap_rest.md: BatchTracer.concrete, BatchTracer.provenance
#   (3004a00a).
# Amended in chapters/11_own_rules_ground.md: BatchTrace.unpack (b526bba9).
# Amended in chapters/28_indexing_rest.md: vmap (d36c8782).

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from minijax import lax
from minijax._lazy import wraps
from minijax.arrays.array import shape_rules, typeof
from minijax.arrays.transfer import device_put_p
from minijax.batching.axes import (
    canonicalize_in_axes,
    check_axes_are_ints,
    check_out_axis,
    flat_in_axes,
    mapped_axis_size,
    spec_types,
    typeof_or_none,
    vmappables,
)
from minijax.core import (
    RuleTable,
    Trace,
    Tracer,
    current_trace,
    set_current_trace,
    trace_scope,
)
from minijax.lax.arithmetic import astype
from minijax.pytrees.api_util import FlatCall, Loan, returning_refs
from minijax.pytrees.argument_checks import check_callable, is_ref, refs_in
from minijax.pytrees.tree_operations import flatten_axes
from minijax.pytrees.tree_util import tree_flatten, tree_leaves
from minijax.typing import P, R

# vmap rules: what each primitive does when some of its operands carry a mapped axis.


# Rules ``rule(axis, args, dims, **params)`` return results, and where they are mapped.
vmap_rules = RuleTable("vmap")


def mapped_aval_of(x, dim):
    """Return the abstract value that one example has of `x`, mapped along `dim`."""
    aval = typeof(x)
    if dim is None:
        return aval
    return aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])


# vmap: a function of one example becomes a function of a batch of them.


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
        self.aval = mapped_aval_of(value, dim)

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
higher_order_primitives: set = set()


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
                return primitive.bind_all(*values, **params)
            rule = vmap_rules[primitive]
            results, dims_out = rule(self.axis, values, dims, **params)
        return [self.pack(*pair) for pair in zip(results, dims_out, strict=True)]


def names_axis(primitive, params, name):
    """Return whether a primitive uses the axis called `name`, or may do so inside."""
    if primitive in higher_order_primitives:
        return name is not None or any(map(callable, params.values()))
    return name in params.get("axis_name", ())


def batch_flat_fun(f, values, dims, axis):
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
    with trace_scope(trace):
        results = f(*map(trace.pack, values, dims))
    pairs = [trace.unpack(result) for result in results]
    return [value for value, _ in pairs], [dim for _, dim in pairs]


def move_one_axis(x, source, destination):
    """Return `x` with one axis moved to another place; the others keep their order."""
    if source == destination:
        return x
    order = [axis for axis in range(typeof(x).ndim) if axis != source]
    order.insert(destination, source)
    return lax.transpose(x, order)


def broadcast_batch_dim(x, place, size):
    """Return `x` repeated along a new axis of `size` at `place`."""
    shape = list(typeof(x).shape)
    shape.insert(place, size)
    kept = [axis for axis in range(len(shape)) if axis != place]
    return lax.broadcast_in_dim(x, shape, kept)


def append_axes(x, ndim):
    """Return `x` with axes of size 1 at its end, so that it has `ndim` of them."""
    shape = typeof(x).shape
    if len(shape) == ndim:
        return x
    ones = (1,) * (ndim - len(shape))
    return lax.broadcast_in_dim(x, shape + ones, range(len(shape)))


def aligned_axis(args, dims):
    """Return the mapped axis that all operands but shared scalars agree on, or None.

    The axis of such operands can stay where it is: to move it would be a copy.
    """
    avals = map(typeof, args)
    places = {(aval.shape, dim) for aval, dim in zip(avals, dims) if aval.ndim}
    return places.pop()[1] if len(places) == 1 else None


def batch_dim_to_front(x, dim, size):
    """Return `x` with the mapped axis in front: moved there, or new and of `size`."""
    return broadcast_batch_dim(x, 0, size) if dim is None else move_one_axis(x, dim, 0)


def align(args, dims):
    """Bring the mapped axis of all operands to the front, and give them equal rank.

    An operand without a mapped axis gets one of size 1, which stretches; a shared
    scalar stays a scalar.
    """
    fronted = [
        batch_dim_to_front(x, dim, 1) if typeof(x).ndim else x
        for x, dim in zip(args, dims)
    ]
    ndim = max(typeof(x).ndim for x in fronted)
    return [append_axes(x, ndim) if typeof(x).ndim else x for x in fronted]


def vectorized_rule(primitive):
    """Return the rule of a primitive that acts on each element by itself."""

    def rule(axis, args, dims, **params):
        dim = aligned_axis(args, dims)
        if dim is None:
            args, dim = align(args, dims), 0
        return primitive.bind_all(*args, **params), [dim]

    return rule


def primitives_named(names):
    """Return the primitives of `lax` with these names, which stand in one text."""
    return [getattr(lax, f"{name}_p") for name in names.split()]


ELEMENTWISE = """
    neg sign abs floor ceil round is_finite exp exp2 log log1p expm1 sin cos tan asin
    acos atan sinh cosh tanh asinh acosh atanh logistic sqrt rsqrt cbrt square
    integer_pow erf erfc erf_inv lgamma digamma real imag conj complex not
    population_count clz add add_any sub mul div rem pow max min atan2 nextafter and or
    xor shift_left shift_right_logical shift_right_arithmetic eq ne lt le gt ge
    convert_element_type bitcast_convert_type reduce_precision copy
"""
vmap_rules.update({p: vectorized_rule(p) for p in primitives_named(ELEMENTWISE)})
vmap_rules[device_put_p] = lambda axis, args, dims, **params: (
    device_put_p.bind(*args, **params), list(dims)
)  # fmt: skip


def shift_axes_past_batch(axes, dim):
    """Return where the `axes` of one example lie in an array mapped along `dim`."""
    if dim is None:
        return tuple(axes)
    return tuple(axis + (axis >= dim) for axis in axes)


def folding_rule(primitive):
    """Return the rule of a primitive that folds the `axes` of its operand."""

    def rule(axis, args, dims, axes, **params):
        [x], [dim] = args, dims
        axes = shift_axes_past_batch(axes, dim)
        folded_before = sum(place < dim for place in axes)
        return primitive.bind_all(x, axes=axes, **params), [dim - folded_before]

    return rule


FOLDING = """
    reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor argmax
    argmin
"""
vmap_rules.update({p: folding_rule(p) for p in primitives_named(FOLDING)})


def _mapped_axis_of_product(args, dims, contract, batch):
    """Return where the mapped axis is: a product has batch axes, then free axes."""
    axes = [(0, axis) for axis in batch[0]]
    for side, x in enumerate(args):
        bound = (*contract[side], *batch[side])
        axes += [(side, axis) for axis in range(typeof(x).ndim) if axis not in bound]
    mine = (0, dims[0]) if dims[0] is not None else (1, dims[1])
    return axes.index(mine)


def _dot_general(axis, args, dims, dimension_numbers, **dtypes):
    contract, batch = (
        tuple(map(shift_axes_past_batch, pair, dims)) for pair in dimension_numbers
    )
    if None not in dims:
        batch = tuple((dim, *axes) for dim, axes in zip(dims, batch))
    numbers = contract, batch
    results = lax.dot_general_p.bind_all(*args, dimension_numbers=numbers, **dtypes)
    return results, [_mapped_axis_of_product(args, dims, contract, batch)]


vmap_rules[lax.dot_general_p] = _dot_general


def _transpose(axis, args, dims, permutation):
    [x], [dim] = args, dims
    return [lax.transpose(x, (dim, *shift_axes_past_batch(permutation, dim)))], [0]


def _reshape(axis, args, dims, new_sizes):
    x = move_one_axis(args[0], dims[0], 0)
    return [lax.reshape(x, (axis.size, *new_sizes))], [0]


vmap_rules[lax.transpose_p] = _transpose
vmap_rules[lax.reshape_p] = _reshape


def _insert(values, place, value):
    return (*values[:place], value, *values[place:])


def _broadcast_in_dim(axis, args, dims, shape, broadcast_dimensions):
    x = move_one_axis(args[0], dims[0], 0)
    kept = (0, *(place + 1 for place in broadcast_dimensions))
    return [lax.broadcast_in_dim(x, (axis.size, *shape), kept)], [0]


def _squeeze(axis, args, dims, dimensions):
    x = move_one_axis(args[0], dims[0], 0)
    return [lax.squeeze(x, shift_axes_past_batch(dimensions, 0))], [0]


def _slice(axis, args, dims, start_indices, limit_indices, strides):
    [x], [dim] = args, dims
    starts = _insert(start_indices, dim, 0)
    limits = _insert(limit_indices, dim, axis.size)
    strides = None if strides is None else _insert(strides, dim, 1)
    return [lax.slice(x, starts, limits, strides)], [dim]


def _rev(axis, args, dims, dimensions):
    [x], [dim] = args, dims
    return [lax.rev(x, shift_axes_past_batch(dimensions, dim))], [dim]


def _concatenate(axis, args, dims, dimension):
    xs = [batch_dim_to_front(x, dim, axis.size) for x, dim in zip(args, dims)]
    return [lax.concatenate(xs, dimension + 1)], [0]


def cumulative_rule(primitive):
    """Return the rule of a primitive that runs along one `axis`."""

    def rule(mapped, args, dims, axis, **params):
        [x], [dim] = args, dims
        [axis] = shift_axes_past_batch([axis], dim)
        return primitive.bind_all(x, axis=axis, **params), [dim]

    return rule


CUMULATIVE = "cumsum cumprod cummax cummin cumlogsumexp"
vmap_rules.update({p: cumulative_rule(p) for p in primitives_named(CUMULATIVE)})

vmap_rules[lax.broadcast_in_dim_p] = _broadcast_in_dim
vmap_rules[lax.squeeze_p] = _squeeze
vmap_rules[lax.slice_p] = _slice
vmap_rules[lax.rev_p] = _rev
vmap_rules[lax.concatenate_p] = _concatenate
vmap_rules.reasons[lax.iota_p] = "It has no operands, so nothing of it can be mapped."


def _pad(axis, args, dims, padding_config):
    (x, value), (dim, value_dim) = args, dims
    if dim is None:
        x, dim = broadcast_batch_dim(x, 0, axis.size), 0
    config = _insert(padding_config, dim, (0, 0, 0))
    if value_dim is None:
        return lax.pad_p.bind_all(x, value, padding_config=config), [dim]
    return [_pad_with_each(x, value, dim, config)], [dim]


def _pad_with_each(x, values, dim, config):
    """Pad each example with its own value: pad with zeros, then choose by a mask."""
    aval = typeof(x)
    padded = lax.pad(x, astype(0, aval.dtype), config)
    inside = lax.pad(lax.full(aval.shape, True), False, config)
    values = lax.broadcast_in_dim(values, typeof(padded).shape, (dim,))
    return lax.select_n(inside, values, padded)


def fill(x, dim, shape):
    """Return an operand stretched to the full batched `shape`, mapped axis first."""
    if dim is not None:
        x = move_one_axis(x, dim, 0)
    ndim = typeof(x).ndim
    if typeof(x).shape == tuple(shape):
        return x
    kept = range(len(shape) - ndim, len(shape)) if dim is None else range(ndim)
    return lax.broadcast_in_dim(x, shape, kept)


def check_unbatched_shapes(primitive, args, dims, **params):
    """Raise what the shape rule says against one example.

    For rules whose batched operands may be accepted though no example is: the batch
    then stands where an axis of the example should.
    """
    shape_rules[primitive](*map(mapped_aval_of, args, dims), **params)


def _select_n(axis, args, dims):
    check_unbatched_shapes(lax.select_n_p, args, dims)
    dim = aligned_axis(args, dims)
    if dim is not None and None not in dims[1:]:
        return lax.select_n_p.bind_all(*args), [dim]
    shape = (axis.size, *mapped_aval_of(args[1], dims[1]).shape)
    which, *cases = args
    cases = [fill(case, dim, shape) for case, dim in zip(cases, dims[1:])]
    if dims[0] is not None or typeof(which).ndim:
        which = fill(which, dims[0], shape)
    return lax.select_n_p.bind_all(which, *cases), [0]


def _clamp(axis, args, dims):
    check_unbatched_shapes(lax.clamp_p, args, dims)
    dim = aligned_axis(args, dims)
    if None not in (dim, dims[1]):
        return lax.clamp_p.bind_all(*args), [dim]
    shape = (axis.size, *mapped_aval_of(args[1], dims[1]).shape)
    args = [
        x if dim is None and i != 1 and not typeof(x).ndim else fill(x, dim, shape)
        for i, (x, dim) in enumerate(zip(args, dims))
    ]
    return lax.clamp_p.bind_all(*args), [0]


vmap_rules[lax.pad_p] = _pad
vmap_rules[lax.select_n_p] = _select_n
vmap_rules[lax.clamp_p] = _clamp


def _place_output(call, axis, i, value, dim, place):
    """Return one result with its mapped axis where out_axes says."""
    if place is None and dim is None:
        return value
    ndim = typeof(value).ndim + (dim is None)
    check_out_axis(call, i, ndim, dim, place)
    if dim is None:
        return broadcast_batch_dim(value, place % ndim, axis.size)
    return move_one_axis(value, dim, place % ndim)


def _is_vmappable(x):
    return type(x) in vmappables


def _know_examples(args, kwargs, axes):
    leaves = tree_leaves((args, kwargs), is_leaf=_is_vmappable)
    specs = tree_leaves(axes, is_leaf=lambda x: type(x) in spec_types)
    named = any(type(x) in spec_types for x in specs)
    return named or any(map(_is_vmappable, leaves))


def map_objects(fun, axes, axis_name, axis_size, args, kwargs):
    """Apply `fun` once to arguments, or for results, that know their examples."""
    leaves, tree = tree_flatten(args, is_leaf=_is_vmappable)
    named, named_tree = tree_flatten(kwargs, is_leaf=_is_vmappable)
    dims = flatten_axes("vmap in_axes", axes[0], tree) + [0] * len(named)
    pairs = [*zip([*leaves, *named], dims)]
    size = axis_size or _size_of_arrays(pairs)
    trace = BatchTrace(current_trace(), MappedAxis(axis_name, size))
    with trace_scope(trace):
        elements = [_to_element(trace, *pair) for pair in pairs]
        args = tree.unflatten(elements[: len(leaves)])
        kwargs = named_tree.unflatten(elements[len(leaves) :])
        results, out_tree = tree_flatten(fun(*args, **kwargs), is_leaf=_is_vmappable)
        places = flatten_axes("vmap out_axes", axes[1], out_tree)
        outs = [_to_whole(trace, size, *pair) for pair in zip(results, places)]
    return out_tree.unflatten(outs)


def _size_of_arrays(pairs):
    arrays = [(x, d) for x, d in pairs if d is not None and not _is_vmappable(x)]
    sizes = {typeof(x).shape[dim] for x, dim in arrays}
    if len(sizes) != 1:
        raise ValueError(
            "vmap of objects that know their examples needs axis_size, or arrays "
            f"that are mapped along axes of one size; they have {sorted(sizes)}."
        )
    return sizes.pop()


def _to_element(trace, x, spec):
    if _is_vmappable(x):
        go_on, count = partial(_to_element, trace), lax.iota("int32", trace.axis.size)
        return vmappables[type(x)][0](go_on, lambda: trace.pack(count, 0), x, spec)
    return x if spec is None else trace.pack(x, spec % typeof(x).ndim)


def _to_whole(trace, size, x, spec):
    if _is_vmappable(x):
        return vmappables[type(x)][1](partial(_to_whole, trace), size, x, spec)
    value, dim = trace.unpack(x)
    if spec is None and dim is not None:
        raise ValueError(f"vmap has mapped values but out_axes is None for {x!r}")
    with set_current_trace(trace.parent):
        if spec is None:
            return value
        place = spec % (typeof(value).ndim + (dim is None))
        if dim is None:
            return broadcast_batch_dim(value, place, size)
        return move_one_axis(value, dim, place)


def _mapped_refs(call, in_axes, args):
    """Return for each leaf whether it is a reference of which each example has a part.

    It is the axis, or None; the list is empty if there are no references.
    """
    if not refs_in(call.leaves):
        return []
    axes = flatten_axes("vmap in_axes", in_axes, args)
    axes += [0] * (len(call.leaves) - len(axes))  # keyword arguments
    return [axis if is_ref(x) else None for x, axis in zip(call.leaves, axes)]


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
      calls `fun` once. References among its arguments are mapped as arrays are.

    Raises:
      TypeError: if `fun` is not callable, or an axis is not an int or None.
      ValueError: if the axes do not fit the arguments or the results, or their sizes
        differ.

    Reference: ``jax.vmap``.
    """
    check_callable(fun)
    in_axes = canonicalize_in_axes(in_axes)
    check_axes_are_ints("out_axes", out_axes)
    hash(axis_name)  # names travel in the parameters of primitives, which are hashable

    @wraps(fun)
    def mapped(*args, **kwargs):
        if vmappables and _know_examples(args, kwargs, (in_axes, out_axes)):
            axes = in_axes, out_axes
            return map_objects(fun, axes, axis_name, axis_size, args, kwargs)
        call = FlatCall("vmap", fun, args, kwargs, typeof=typeof_or_none)
        axes = _mapped_refs(call, in_axes, args)
        if places := [axis for axis in axes if axis is not None]:
            flags = [axis is not None for axis in axes]
            how = {"axis_name": axis_name, "axis_size": axis_size}
            pure = vmap(returning_refs(fun), in_axes, (out_axes, places), **how)
            return Loan("vmap", fun, args, kwargs, flags).call(pure)
        dims = flat_in_axes(call, in_axes, args)
        axis = MappedAxis(axis_name, mapped_axis_size(call, dims, axis_size))
        values, dims_out = batch_flat_fun(call, call.leaves, dims, axis)
        places = flatten_axes("vmap out_axes", out_axes, call.out_tree)
        outputs = zip(values, dims_out, places)
        placed = [_place_output(call, axis, i, *o) for i, o in enumerate(outputs)]
        return call.output(placed)

    if fun.__doc__:
        mapped.__doc__ = _doc_of_mapped(fun)
    return mapped


def _doc_of_mapped(fun):
    """Return the documentation of `fun` below a line on what has become of it."""
    name = getattr(fun, "__name__", "a function")
    first = f"Vectorized version of {name}, of arguments with an axis of examples."
    return f"{first}\n\nOriginal documentation:\n\n{fun.__doc__}"
