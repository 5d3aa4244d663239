"""The primitive of a sharding that a program asks for, and how it cuts a value.

Reference: ``jax.lax.with_sharding_constraint``.
"""

# Made from chapters/36_replicas_upper.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax import lax
from minijax.arrays.array import shape_rules
from minijax.core import Primitive
from minijax.replicas.meshes import get_mesh
from minijax.replicas.named_shardings import NamedSharding
from minijax.replicas.partition_specs import names_of_entry
from minijax.spmd.spreading import Piece, recut, sharding_rules, whole_shape

sharding_constraint_p = Primitive("sharding_constraint")


def constrain(x, sharding):
    """Bind the constraint that a value lies in a sharding."""
    return sharding_constraint_p.bind(
        x, sharding=sharding, layout=None, context_mesh=get_mesh(),
        unconstrained_dims=frozenset(),
    )[0]  # fmt: skip


def _constrained_shape(x, sharding, **params):
    if isinstance(sharding, NamedSharding):
        sharding.divisions(x.ndim)  # which refuses a specification for more axes
    return [x]


shape_rules[sharding_constraint_p] = _constrained_shape


def constrain_piece(primitive, piece, sharding, **params):
    """Cut a value as it is asked for, where that gives equal parts."""
    cuts = list(map(names_of_entry, getattr(sharding, "spec", ())))
    cuts += [()] * (len(piece.spec) - len(cuts))
    sizes = [math.prod(map(lax.axis_size, cut)) for cut in cuts]
    pairs = zip(cuts, whole_shape(piece), sizes)
    wanted = tuple([cut if size % count == 0 else () for cut, size, count in pairs])
    return [Piece(recut(piece, wanted), wanted)]


sharding_rules[sharding_constraint_p] = constrain_piece
