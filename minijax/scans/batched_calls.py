"""Functions whose batch is a loop over the examples.

Reference: ``jax.custom_batching.sequential_vmap``.
"""

# Made from chapters/16_scan_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable

from minijax.forgetting.programs import merge, partition
from minijax.own_rules.batch_rules import custom_vmap
from minijax.pytrees.functions import tree_map
from minijax.pytrees.treedefs import tree_flatten
from minijax.scans.arguments import made_for, row_step
from minijax.scans.loops import scan


def sequential_vmap(f: Callable) -> custom_vmap:
    """Return a function whose batch is a loop over the examples.

    Args:
      f: a function of trees of arrays.

    Reference: ``jax.custom_batching.sequential_vmap``.
    """
    f = custom_vmap(f)

    @f.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = tree_flatten(list(args))
        batched = tree.flatten_up_to(in_batched)
        shared, rows = partition(batched, leaves)

        def one(row):
            return f(*tree.unflatten(merge(batched, shared, row)))

        out = scan(made_for(row_step, one), (), rows)[1]
        return out, tree_map(lambda leaf: True, out)

    return f
