"""SPMD partitioning: from a program for all devices to the program of one.

Reference: GSPMD, https://arxiv.org/abs/2105.04663; Shardy.
"""

# Made from chapters/36_replicas_upper.md by `make chapter`;
# edit the chapter, not this file.

import math
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.core import RuleTable
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.shape_structs import ShapeDtypeStruct
from minijax.jaxprs.staging_api import make_jaxpr
from minijax.jitting.shardings import program_placed
from minijax.own_rules.function_calls import callee_rules
from minijax.spmd.notes import look_at, note_gathering, noting


class Piece(NamedTuple):
    """What one device has of a value.

    Attributes:
      value: an array or tracer, the part.
      spec: for each axis the tuple of mesh axes along which the whole is cut.
      asked: the sharding on another mesh that a constraint asks for, or None.
    """

    value: Any
    spec: tuple
    asked: Any = None


def agreed(candidates):
    """Return for each axis of an operation the mesh axes along which all cut it.

    Of two cuts the finer one is taken if it refines the other, and else none. A mesh
    axis serves the first axis that asks for it.

    Args:
      candidates: for each axis a list of tuples of mesh axes.
    """
    found, used = [], set()
    for cuts in candidates:
        best = max(cuts, key=len, default=())
        fits = all(best[: len(cut)] == cut for cut in cuts) and not used & {*best}
        found.append(best if fits else ())
        used |= {*found[-1]}
    return tuple(found)


def recut(piece, wanted):
    """Return the value of a piece that is cut in another way.

    What is cut too fine is gathered, the innermost mesh axis first; what is cut too
    little, each device cuts by itself.
    """
    value, kept = piece.value, []
    note_gathering(piece.spec, wanted)
    for axis, (have, want) in enumerate(zip(piece.spec, wanted)):
        kept.append(_common(have, want))
        for name in reversed(have[kept[-1] :]):
            value = lax.all_gather(value, name, axis=axis, tiled=True)
    for axis, (count, want) in enumerate(zip(kept, wanted)):
        for name in want[count:]:
            value = _own_slice(value, axis, name)
    return value


def _common(have, want):
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(have, want)))


def _own_slice(value, axis, name):
    """Return the slice along an axis whose number is this device's place on `name`."""
    shape = list(typeof(value).shape)
    shape[axis] //= lax.axis_size(name)
    starts = [np.int32(0)] * len(shape)
    starts[axis] = lax.axis_index(name) * shape[axis]
    return lax.dynamic_slice_p.bind(value, *starts, slice_sizes=tuple(shape))[0]


def gathered(primitive, *pieces, **params):
    """Compute with whole operands, on each device the same: always right."""
    whole = [recut(piece, ((),) * len(piece.spec)) for piece in pieces]
    return [uncut(y) for y in primitive.bind(*whole, **params)]


def uncut(value):
    """Return the `Piece` of a value of which each device has all."""
    return Piece(value, ((),) * typeof(value).ndim)


sharding_rules = RuleTable("sharding", default=gathered)


def elementwise(primitive, *pieces, **params):
    """Cut all operands alike; axes of size 1, and numbers without axes, are whole."""
    shapes = list(map(whole_shape, pieces))
    ndim = max(map(len, shapes))
    pairs = [pair for pair in zip(pieces, shapes) if pair[1]]
    cuts = [[p.spec[i] for p, shape in pairs if shape[i] > 1] for i in range(ndim)]
    spec = agreed(cuts)
    operands = [
        recut(piece, [cut if size > 1 else () for cut, size in zip(spec, shape)])
        for piece, shape in zip(pieces, shapes)
    ]
    return [Piece(y, spec) for y in primitive.bind(*operands, **params)]


def whole_shape(piece):
    """Return the shape of the whole of which a device has a piece."""
    pairs = zip(typeof(piece.value).shape, piece.spec)
    return tuple([size * math.prod(map(lax.axis_size, cut)) for size, cut in pairs])


def spread_out(jaxpr, consts, pieces):
    """Run a program on pieces, by the sharding rules; return those of its results."""
    known = dict(zip(jaxpr.constvars, map(uncut, consts)))
    known.update(zip(jaxpr.invars, pieces))

    def read(atom):
        return uncut(atom.val) if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        look_at(eqn)
        operands = [read(x) for x in eqn.invars]
        callee = callee_rules[eqn.primitive](eqn)
        if callee is not None:
            callee = program_placed.value(callee, eqn.params)
            results = spread_out(callee.jaxpr, callee.consts, operands)
        else:
            rule = sharding_rules[eqn.primitive]
            results = rule(eqn.primitive, *operands, **eqn.params)
        known.update(zip(eqn.outvars, results))
    return [read(x) for x in jaxpr.outvars]


def program_of_device(closed, mesh, specs):
    """Return the program of one device, and how its results are cut.

    Args:
      closed: a `ClosedJaxpr`, for whole arrays.
      mesh: a `Mesh`.
      specs: how each input is cut, as `Piece` says it.
    """
    out_specs = []

    def local(*parts):
        pieces = [Piece(part, spec) for part, spec in zip(parts, specs)]
        outs = spread_out(closed.jaxpr, closed.consts, pieces)
        out_specs.extend(piece.spec for piece in outs)
        notes.asked = [piece.asked for piece in outs]
        return [piece.value for piece in outs]

    parts = [_part(*pair, mesh) for pair in zip(closed.in_avals, specs)]
    with noting(mesh) as notes:
        return make_jaxpr(local, axis_env=mesh.shape_tuple)(*parts), out_specs


def _part(aval, spec, mesh):
    counts = [math.prod(mesh.shape[name] for name in cut) for cut in spec]
    shape = tuple([size // count for size, count in zip(aval.shape, counts)])
    return ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type)
