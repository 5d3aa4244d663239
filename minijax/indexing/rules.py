"""The columns of gather and of the sum of updates: derivatives, batches, kernels.

Reference: ``jax._src.lax.slicing``.
"""

# Made from chapters/28_indexing.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.batching.rules import at_front, vmap_rules
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forward.rules import instantiate, jvp_rules
from minijax.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    Promises,
    ScatterDimensionNumbers,
    Windows,
    fill_element,
    scatter_by,
)
from minijax.indexing.primitives import gather, gather_p, scatter_add_p, scatter_p
from minijax.indexing.slice_rules import computed_places, in_memory, lower_scatter
from minijax.jitting.costs import BYTES, FLOPS, cost_rules, nbytes
from minijax.kernels.building import KernelBuilder, NoKernel
from minijax.kernels.program_steps import kernel_rules
from minijax.lax.conversion import astype
from minijax.reverse.transposition import transposes


def _gather_jvp(primals, tangents, fill_value, mode, **params):
    (x, indices), x_dot = primals, tangents[0]
    results = gather_p.bind(x, indices, fill_value=fill_value, mode=mode, **params)
    if x_dot is None:
        return results, [None]
    fill = 0 if mode is GatherScatterMode.FILL_OR_DROP else None
    return results, gather_p.bind(x_dot, indices, fill_value=fill, mode=mode, **params)


jvp_rules[gather_p] = _gather_jvp


def promises_of(params):
    """Return what the caller of a gather or scatter says of its indices."""
    names = "indices_are_sorted", "unique_indices", "mode"
    return Promises(*[params[name] for name in names])


def _gather_transpose(ct, x, indices, dimension_numbers, **params):
    numbers = ScatterDimensionNumbers(*dimension_numbers)
    zeros = lax.full(x.aval.shape, astype(0, typeof(ct).dtype))
    args = zeros, indices, ct, numbers, promises_of(params)
    return scatter_by(scatter_add_p, lax.add, *args)


transposes(gather_p, _gather_transpose, None)


def shifted(axes):
    """Return axes as they are called behind a new axis in front."""
    return tuple([axis + 1 for axis in axes])


def mapped_operand(numbers):
    """Return dimension numbers for a batch of operands: each window is a batch."""
    inside, dropped, mapped, shared, index_shared = numbers
    behind = shifted(dropped), shifted(mapped), shifted(shared)
    return type(numbers)((0, *shifted(inside)), *behind, index_shared)


def mapped_indices(numbers):
    """Return dimension numbers for a batch of indices into one operand."""
    inside, dropped, mapped, shared, index_shared = numbers
    behind = shifted(inside), dropped, mapped, shared
    return type(numbers)(*behind, shifted(index_shared))


def mapped_both(numbers):
    """Return dimension numbers for a batch of operands, each with its own indices."""
    inside, dropped, mapped, shared, index_shared = map(shifted, numbers)
    return type(numbers)(inside, dropped, mapped, (0, *shared), (0, *index_shared))


def _gather_batch(axis, args, dims, dimension_numbers, slice_sizes, **params):
    x, indices = (z if d is None else at_front(z, d, 0) for z, d in zip(args, dims))
    if dims[1] is None:
        numbers = mapped_operand(dimension_numbers)
        slice_sizes = axis.size, *slice_sizes
    elif dims[0] is None:
        numbers = mapped_indices(dimension_numbers)
        params |= {"unique_indices": False, "indices_are_sorted": False}
    else:
        numbers = mapped_both(dimension_numbers)
        slice_sizes = (min(axis.size, 1), *slice_sizes)
    params |= {"dimension_numbers": numbers, "slice_sizes": slice_sizes}
    return gather_p.bind(x, indices, **params), [0]


vmap_rules[gather_p] = _gather_batch


def _lower_gather(lowering, eqn, x, indices):
    [var], windows = eqn.outvars, Windows(*eqn.params["dimension_numbers"])
    shape, mode = var.aval.shape, eqn.params["mode"]
    if 0 in shape:
        raise NoKernel("there is nothing to gather")
    fills = mode is GatherScatterMode.FILL_OR_DROP
    if fills and x.dtype.fields:
        raise NoKernel("there is no number that a key is filled with")
    k, x = KernelBuilder("gather", shape), in_memory(lowering, x)
    sizes = eqn.params["slice_sizes"]
    found, terms = computed_places(k, x, indices, windows, shape, sizes, not fills)
    other = fill_element(x.dtype, eqn.params["fill_value"]) if fills else 0
    return [lowering.launch(k, k.load(found, other=other, terms=terms), var.aval)]


kernel_rules[gather_p] = _lower_gather


def sum_jvp(primitive, primals, tangents, **params):
    """Scatter the tangents as the numbers: the jvp of a sum of updates."""
    x, indices, updates = primals
    results = primitive.bind(x, indices, updates, **params)
    if tangents[0] is None and tangents[2] is None:
        return results, [None]
    x_dot, updates_dot = instantiate([x, updates], [tangents[0], tangents[2]])
    return results, primitive.bind(x_dot, indices, updates_dot, **params)


def taken_back(ct, x, indices, updates, dimension_numbers, mode, **_):
    """Gather from a cotangent what belongs to the updates of a scatter."""
    aval, numbers = abstract(updates), GatherDimensionNumbers(*dimension_numbers)
    sizes = Windows(*numbers).sizes(typeof(ct).ndim, aval.shape)
    return gather(ct, indices, numbers, sizes, mode=mode, fill_value=0)


def abstract(operand):
    """Return the abstract value of an operand of a transpose rule, linear or not."""
    return operand.aval if hasattr(operand, "aval") else typeof(operand)


jvp_rules[scatter_add_p] = partial(sum_jvp, scatter_add_p)
transposes(scatter_add_p, lambda ct, *_, **__: ct, None, taken_back)


def scatter_batch(primitive):
    """Return the vmap rule of a scatter: one array for each example, in any case."""

    def rule(axis, args, dims, dimension_numbers, **params):
        x, updates = (at_front(args[i], dims[i], axis.size) for i in (0, 2))
        if dims[1] is None:
            indices, numbers = args[1], mapped_operand(dimension_numbers)
        else:
            indices = at_front(args[1], dims[1], axis.size)
            numbers = mapped_both(dimension_numbers)
        params["dimension_numbers"] = numbers
        return primitive.bind(x, indices, updates, **params), [0]

    return rule


def _cost_of_gather(eqn):
    indices, result = eqn.invars[1].aval, eqn.outvars[0].aval
    return {BYTES: 2 * nbytes(result) + nbytes(indices)}


def _cost_of_scatter(eqn):
    indices, updates = (atom.aval for atom in eqn.invars[1:])
    enters = {} if eqn.primitive is scatter_p else {FLOPS: updates.size}
    return enters | {BYTES: 3 * nbytes(updates) + nbytes(indices)}


cost_rules[gather_p] = _cost_of_gather
python_rules[gather_p] = write_evaluation


def scatter_columns(primitive, how):
    """Give a scatter the rules that all scatters share.

    Args:
      primitive: the scatter.
      how: updates enter: ``"set"``, ``"add"``, ``"sub"``, ``"mul"``, ``"min"`` or
        ``"max"``.
    """
    vmap_rules[primitive] = scatter_batch(primitive)
    cost_rules[primitive] = _cost_of_scatter
    python_rules[primitive] = write_evaluation
    kernel_rules[primitive] = partial(lower_scatter, how)


scatter_columns(scatter_p, "set")
scatter_columns(scatter_add_p, "add")
