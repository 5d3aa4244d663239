"""StableHLO of reading and writing at computed places."""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.exporting.elementwise import add_rules, converted
from minijax.exporting.programs import called, stablehlo_rules, write_program
from minijax.exporting.rearranging import numbers
from minijax.indexing.dimension_numbers import GatherScatterMode, fill_element
from minijax.jaxprs.jaxpr import ClosedJaxpr

SLICES = "dynamic_slice dynamic_update_slice"


def _dynamic_slice(block, eqn, x, *starts):
    sizes = numbers("sizes", eqn.params["slice_sizes"])
    return block.op("dynamic_slice", [x, *starts], eqn.outvars[0].aval, sizes)


stablehlo_rules[lax.dynamic_slice_p] = _dynamic_slice
stablehlo_rules[lax.dynamic_update_slice_p] = lambda block, eqn, *xs: block.op(
    "dynamic_update_slice", xs, xs[0].aval
)


def array_of(values):
    """Return an attribute that is an array of 64-bit integers."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def flag(value):
    """Return a truth value as it stands in an attribute."""
    return str(bool(value)).lower()


def wide_indices(block, indices):
    """Return indices in a type that holds the sizes of arrays."""
    narrow = indices.aval.dtype.itemsize < 4
    return converted(block, indices, np.int32) if narrow else indices


def moved_inside(indices, limits):
    """Return indices from 0 to limits."""
    low = lax.full_like(indices, 0)
    return lax.clamp(low, indices, low + np.asarray(limits, indices.dtype))


def within(indices, limits):
    """Return for each vector of indices whether all of them are from 0 to limits."""
    same = lax.eq(indices, moved_inside(indices, limits))
    return lax.reduce_and(same, [indices.ndim - 1])


def _gather(block, eqn, operand, indices):
    params, aval = eqn.params, eqn.outvars[0].aval
    numbers_, sizes = params["dimension_numbers"], params["slice_sizes"]
    indices = wide_indices(block, indices)
    fields = {
        "offset_dims": numbers_.offset_dims,
        "collapsed_slice_dims": numbers_.collapsed_slice_dims,
        "operand_batching_dims": numbers_.operand_batching_dims,
        "start_indices_batching_dims": numbers_.start_indices_batching_dims,
        "start_index_map": numbers_.start_index_map,
    }
    how = dimension_numbers("gather", fields, len(indices.aval.shape) - 1)
    attributes = (
        f"dimension_numbers = {how}, slice_sizes = {array_of(sizes)}, "
        f"indices_are_sorted = {flag(params['indices_are_sorted'])}"
    )
    [found] = block.generic("stablehlo.gather", [operand, indices], [aval], attributes)
    if params["mode"] is not GatherScatterMode.FILL_OR_DROP:
        return found
    limits = [operand.aval.shape[d] - sizes[d] for d in numbers_.start_index_map]
    kept = [d for d in range(len(aval.shape)) if d not in numbers_.offset_dims]
    [inside] = called(
        block,
        lambda indices: lax.broadcast_in_dim(within(indices, limits), aval.shape, kept),
        indices,
    )
    filling = np.full(aval.shape, fill_element(aval.dtype, params["fill_value"]))
    return block.op("select", [inside, found, block.constant(filling, aval)], aval)


def dimension_numbers(name, fields, last):
    """Return the attribute that says which axis means what, without empty lists."""
    said = [f"{field} = {[*axes]}" for field, axes in fields.items() if len(axes)]
    return f"#stablehlo.{name}<{', '.join([*said, f'index_vector_dim = {last}'])}>"


stablehlo_rules[lax.gather_p] = _gather


def _scatter(block, eqn, operand, indices, updates):
    params, ways = eqn.params, eqn.params["dimension_numbers"]
    indices, clip = (
        wide_indices(block, indices),
        params["mode"] is GatherScatterMode.CLIP,
    )
    if clip:
        window = iter(updates.aval.shape[d] for d in ways.update_window_dims)
        gone = {*ways.inserted_window_dims, *ways.operand_batching_dims}
        sizes = [
            1 if d in gone else next(window) for d in range(len(operand.aval.shape))
        ]
        shape, axes = operand.aval.shape, ways.scatter_dims_to_operand_dims
        limits = [shape[d] - sizes[d] for d in axes]
        [indices] = called(block, lambda x: moved_inside(x, limits), indices)
    fields = {
        "update_window_dims": ways.update_window_dims,
        "inserted_window_dims": ways.inserted_window_dims,
        "input_batching_dims": ways.operand_batching_dims,
        "scatter_indices_batching_dims": ways.scatter_indices_batching_dims,
        "scatter_dims_to_operand_dims": ways.scatter_dims_to_operand_dims,
    }
    how = dimension_numbers("scatter", fields, len(indices.aval.shape) - 1)
    attributes = (
        f"indices_are_sorted = {flag(params['indices_are_sorted'])}, "
        f"scatter_dimension_numbers = {how}, "
        f"unique_indices = {flag(params['unique_indices'] and not clip)}"
    )
    combine = params["update_jaxpr"]

    def enter(inner, x, y):
        if combine is None:
            return [y]
        return write_program(
            inner, ClosedJaxpr(combine, params["update_consts"]), [x, y]
        )

    scalar = operand.aval.update(shape=())
    region = block.region([scalar, scalar], enter)
    operands = [operand, indices, updates]
    return block.generic(
        "stablehlo.scatter", operands, [operand.aval], attributes, [region]
    )


KINDS = "", "_add", "_sub", "_mul", "_min", "_max"
add_rules({f"scatter{kind}": _scatter for kind in KINDS})
