"""StableHLO of operations that move elements, multiply matrices, and sum."""

# Made from chapters/40_export.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.exporting.elementwise import add_rules, joined
from minijax.exporting.programs import by_others, stablehlo_rules
from minijax.lax.contraction import Precision
from minijax.lax.reductions import highest, lowest
from minijax.scans.associative import associative_scan


def numbers(name, values):
    """Return an attribute that is a list of numbers."""
    return f", {name} = [{', '.join(map(str, values))}]"


def listing(name, words, param):
    """Return the rule of an operation that has one list of numbers, called `words`."""
    return lambda block, eqn, x: block.op(
        name, [x], eqn.outvars[0].aval, numbers(words, eqn.params[param])
    )


LISTED = {  # the operation, what it calls its list, and our parameter
    "transpose": ("transpose", "dims", "permutation"),
    "rev": ("reverse", "dims", "dimensions"),
    "broadcast_in_dim": ("broadcast_in_dim", "dims", "broadcast_dimensions"),
}
add_rules({primitive: listing(*how) for primitive, how in LISTED.items()})


def reshaped(block, x, shape):
    """Return a value with another shape."""
    if x.aval.shape == shape:
        return x
    return block.op("reshape", [x], x.aval.update(shape=shape))


def _reshape(block, eqn, x):
    return reshaped(block, x, eqn.outvars[0].aval.shape)


def _concatenate(block, eqn, *xs):
    axis = eqn.params["dimension"]
    return block.op("concatenate", xs, eqn.outvars[0].aval, f", dim = {axis}")


def _iota(block, eqn):
    axis = eqn.params["dimension"]
    return block.op("iota", [], eqn.outvars[0].aval, f"dim = {axis}")


def _pad(block, eqn, x, filling):
    sides = list(zip(*eqn.params["padding_config"])) or [()] * 3
    more = "".join(map(numbers, ("low", "high", "interior"), sides))
    return block.op("pad", [x, filling], eqn.outvars[0].aval, more)


def _slice(block, eqn, x):
    starts, ends = eqn.params["start_indices"], eqn.params["limit_indices"]
    steps = eqn.params["strides"] or (1,) * len(starts)
    cuts = ", ".join(map("{}:{}:{}".format, starts, ends, steps))
    return block.op("slice", [x], eqn.outvars[0].aval, f" [{cuts}]")


add_rules({"concatenate": _concatenate, "iota": _iota, "pad": _pad, "slice": _slice})
add_rules({"reshape": _reshape, "squeeze": _reshape})


def precisions(precision):
    """Return the names of two precisions; the highest, if nothing else was asked."""
    both = precision if isinstance(precision, tuple) else (precision,) * 2
    return [(x or Precision.HIGHEST).name for x in both]


def _dot_general(block, eqn, x, y):
    contracting, batch = eqn.params["dimension_numbers"]
    more = ", batching_dims = {} x {}".format(*map(list, batch)) * bool(batch[0])
    more += ", contracting_dims = {} x {}".format(*map(list, contracting))
    more += numbers("precision", precisions(eqn.params.get("precision")))
    return block.op("dot_general", [x, y], eqn.outvars[0].aval, more)


stablehlo_rules[lax.dot_general_p] = _dot_general


REDUCED = {  # the operation between two elements, and what no element gives
    "reduce_sum": ("add", lambda dtype: 0),
    "reduce_prod": ("multiply", lambda dtype: 1),
    "reduce_and": ("and", lambda dtype: dtype.kind == "b" or -1),
    "reduce_or": ("or", lambda dtype: 0),
    "reduce_xor": ("xor", lambda dtype: 0),
}
EXTREMES = {"reduce_max": ("maximum", lowest), "reduce_min": ("minimum", highest)}


def filled(block, x, aval):
    """Return a value with one number everywhere."""
    return block.constant(np.full(aval.shape, np.asarray(x).astype(aval.dtype)), aval)


def reduction(name, nothing):
    """Return the rule of a primitive that combines the elements along axes."""

    def rule(block, eqn, x):
        scalar = x.aval.update(shape=())
        start = filled(block, nothing(x.aval.dtype), scalar)
        axes = list(eqn.params["axes"])
        [result] = block.inputs([eqn.outvars[0].aval])
        block.line(
            f"{result.name} = stablehlo.reduce({x.name} init: {start.name}) applies "
            f"stablehlo.{name} across dimensions = {axes} "
            f": ({x.type}, {start.type}) -> {result.type}"
        )
        return result

    return rule


add_rules({primitive: reduction(*how) for primitive, how in REDUCED.items()})


def extreme(primitive):
    """Return the rule of an extreme along axes; complex ones are found in a region."""
    name, nothing = EXTREMES[primitive]
    plain = reduction(name, nothing)

    def rule(block, eqn, x):
        scalar = x.aval.update(shape=())
        if scalar.dtype.kind != "c" or not eqn.params["axes"]:
            return plain(block, eqn, x)
        start, region = filled(block, nothing(scalar.dtype), scalar), joining(name)
        axes = ", ".join(map(str, eqn.params["axes"]))
        how = f"dimensions = array<i64: {axes}>"
        avals = [eqn.outvars[0].aval]
        regions = [block.region([scalar] * 2, region)]
        return block.generic("stablehlo.reduce", [x, start], avals, how, regions)

    return rule


def joining(name):
    """Return the body of a region that is one operation on two elements."""
    return lambda inner, x, y: [joined(inner, name, x, y)]


add_rules({primitive: extreme(primitive) for primitive in EXTREMES})


def extreme_place(reduce):
    """Return a function that finds the first place of an extreme element, or of NaN."""

    def find(x, axes, index_dtype):
        [axis] = axes
        others = [i for i in range(x.ndim) if i != axis]
        best = lax.broadcast_in_dim(reduce(x, axes), x.shape, others)
        here = lax.bitwise_or(lax.eq(x, best), lax.ne(x, x))
        places = lax.broadcasted_iota(index_dtype, x.shape, axis)
        last = lax.full_like(places, x.shape[axis] - 1)
        return lax.reduce_min(lax.select(here, places, last), axes)

    return find


stablehlo_rules[lax.argmax_p] = by_others(extreme_place(lax.reduce_max))
stablehlo_rules[lax.argmin_p] = by_others(extreme_place(lax.reduce_min))


def logaddexp(x, y):
    """Return ``log(exp(x) + exp(y))``, also for infinite operands."""
    high = lax.max(x, y)
    low = lax.min(x, y)
    same = lax.eq(x, y)  # also infinite ones, whose difference would be NaN
    gap = lax.select(same, lax.full_like(x, 0), lax.sub(low, high))
    return lax.add(high, lax.log1p(lax.exp(gap)))


def running(combine):
    """Return the function of a running total along one axis."""
    return lambda x, axis, reverse: associative_scan(
        combine, x, reverse=reverse, axis=axis
    )


COMBINED = {
    "cumsum": lax.add, "cumprod": lax.mul, "cummax": lax.max, "cummin": lax.min,
    "cumlogsumexp": logaddexp,
}  # fmt: skip
add_rules({name: by_others(running(combine)) for name, combine in COMBINED.items()})
