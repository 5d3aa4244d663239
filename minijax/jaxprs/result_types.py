"""Type inference: shape rules, and mesh axes along which results vary.

Reference: ``standard_vma_rule`` in ``jax._src.core``.
"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import shape_rules
from minijax.arrays.sharding_types import NO_MANUAL_AXES
from minijax.batching.collectives import pmax_p, pmin_p, psum_p
from minijax.batching.trace import program_primitives

# Primitives whose shape rules know along which axes of a mesh results vary.
own_manual_axes: set = {psum_p, pmax_p, pmin_p}


def types_of_results(primitive, avals, params):
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
    if primitive in own_manual_axes or primitive in program_primitives:
        return outs
    names = {f: frozenset().union(*[getattr(a, f) for a in axes]) for f in _KINDS}
    joined = NO_MANUAL_AXES.update(**names)
    return [out.update(manual_axis_type=joined) for out in outs]


_KINDS = "varying", "unreduced", "reduced"
