"""Checkify's rule for bodies that run on each device of a mesh.

Reference: ``jax.experimental.checkify`` (``shard_map_error_check``).
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax import numpy as jnp
from minijax.core import set_current_trace
from minijax.experimental.checkify.checking import (
    Error,
    Failure,
    check_rules,
    checkify_jaxpr,
)
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.rematerialization.jaxpr_transforms import trace_flat_fun
from minijax.sharding.named_sharding import PartitionSpec
from minijax.sharding.shard_map import body_trace, shard_map_p


def _with_axis(inner, count, params):
    """Return a body whose failures have one more axis, of size 1, in front."""

    def body(*blocks):
        outs = jaxpr_as_fun(inner.program)(*blocks)
        return [lax.expand_dims(x, (0,)) for x in outs[:count]] + outs[count:]

    with set_current_trace(body_trace(params)):
        return trace_flat_fun(body, inner.program.in_avals)


def _first_of(error):
    """Return of failures along an axis the first that has happened."""

    def first(failure):
        place = jnp.argmax(failure.failed)
        code, *payload = (x[place] for x in (failure.code, *failure.payload))
        return Failure(failure.failed.any(), code, tuple(payload))

    failures = {name: first(each) for name, each in error.failures.items()}
    return Error(failures, error.causes)


def _checked_map(checks, eqn, *operands):
    params = eqn.params
    with set_current_trace(body_trace(params)):
        inner = checkify_jaxpr(params["jaxpr"], checks.wanted)
    count, names = inner.tree.num_leaves, params["newly_manual_axes"]
    along = PartitionSpec(tuple(name for name in params["mesh"].shape if name in names))
    changed = {
        "jaxpr": _with_axis(inner, count, params),
        "out_specs": (along,) * count + tuple(params["out_specs"]),
    }
    error, outs = inner.split(shard_map_p.bind(*operands, **params | changed))
    checks.take(_first_of(error))
    return outs


check_rules[shard_map_p] = _checked_map
