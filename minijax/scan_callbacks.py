# Made from chapters/12b_scan.md by `make chapter`;
# edit the chapter, not this file.
"""A batch of calls of a Python function, one example after the other, in a loop.

Reference: ``jax.pure_callback`` with ``vmap_method="sequential"``.
"""

from minijax.avals import typeof
from minijax.batching_rules import move_axis
from minijax.callback_batching import vmap_methods
from minijax.programs import merge, partition, stage
from minijax.scan_primitive import bind_scan, groups, row_aval


def one_per_step(primitive, axis, args, dims, params):
    """Bind a primitive in a scan over the examples."""
    is_mapped = [dim is not None for dim in dims]
    consts, examples = partition(is_mapped, args)
    examples = [
        move_axis(x, dim, 0) for x, dim in zip(examples, partition(is_mapped, dims)[1])
    ]

    def step(*flat):
        shared, rows = groups(flat, len(consts))
        return primitive.bind(*merge(is_mapped, shared, rows), **params)

    avals = [typeof(x) for x in consts] + [row_aval(typeof(x)) for x in examples]
    how = {"length": axis.size, "reverse": False, "unroll": 1}
    _, ys = bind_scan(stage(step, avals), consts, [], examples, **how)
    return ys, [0] * len(ys)


vmap_methods["sequential"] = one_per_step
