"""Varying values, transposed: where a value for all devices has a summed cotangent.

Reference: ``check_vma`` of ``jax.shard_map``.
"""

# Made from chapters/36_replicas.md by `make chapter`;
# edit the chapter, not this file.

from minijax.batching.collectives import psum_p
from minijax.batching.trace import program_primitives
from minijax.branches.conditionals import cond_p
from minijax.emitted.arrays import COLLECTIVES
from minijax.jaxprs.staging import fitting
from minijax.mesh_maps.manual_axes import (
    as_expected,
    checked_of,
    mesh_axes,
    pvary_p,
    varied,
    vary,
    varying,
)
from minijax.reverse.other_transposes import psum_transpose
from minijax.reverse.transposition import transpose_rules


def _unvary(cts, x, axes):
    more = tuple([name for name in axes if name not in x.aval.manual_axis_type.varying])
    return psum_p.bind(cts[0], axis_name=more) if more else [cts[0]]


def _unsum(cts, x, axis_name, **groups):
    """A sum that made a value the same on all devices: its cotangent varies again."""
    if x.aval.manual_axis_type.varying.issuperset(axis_name):
        return [vary(cts[0], axis_name)]
    return psum_p.bind(cts[0], axis_name=axis_name, **groups)


transpose_rules[pvary_p] = _unvary
transpose_rules.supersede(psum_p, psum_transpose, _unsum)


def fit(primitive, args, params):
    """Return operands that vary along the same axes, as equations want them."""
    if primitive is pvary_p:
        return args
    if primitive in COLLECTIVES:
        names = checked_of(primitive, args, **params)
        return [vary(x, names) for x in args]
    if primitive in program_primitives:
        if primitive is cond_p and varying(args[0]):
            params["branches"] = varied(params["branches"], varying(args[0]))
        return as_expected(args, params)
    together = set().union(*map(varying, args))
    return [vary(x, together) for x in args] if together else args


fitting.value = lambda trace: fit if any(a.checked for a in mesh_axes(trace)) else None
