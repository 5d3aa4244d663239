"""Primitives in Python: those that rearrange, cut and fold arrays."""

# Made from chapters/13_python_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.numerics import wide
from minijax.arrays.transfer import device_put_p
from minijax.batching.collectives import pmax_p, pmin_p, ppermute_p, psum_p
from minijax.batching.exchanges import all_gather_p, all_to_all_p, reduce_scatter_p
from minijax.batching.named_axes import axis_index_p
from minijax.emitted.elementwise import add_rules, expression
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.emitted.scopes import scalar_of
from minijax.forgetting.barriers import optimization_barrier_p
from minijax.forgetting.policies import name_p
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.costs import cost_rules
from minijax.lax.reductions import countable, highest, lowest
from minijax.own_rules.cotangent_rules import custom_lin_p


def slice_text(start, stop, step, size):
    """Return the index of a slice along one axis of a given size."""
    high = "" if stop == size else stop
    return f"{start or ''}:{high}" + (f":{step}" if step != 1 else "")


def _slice(writer, eqn, x):
    shape, params = eqn.invars[0].aval.shape, eqn.params
    strides = params["strides"] or (1,) * len(shape)
    ends = params["start_indices"], params["limit_indices"]
    cuts = map(slice_text, *ends, strides, shape)
    return f"{x}[{', '.join(cuts)}]" if shape else x


def numbered(text, aval):
    """Return the expression of an array as that of a scalar, if it has no axes."""
    return text if aval.shape else f"{text}[()]"


def _reshape(writer, eqn, x):
    aval = eqn.outvars[0].aval
    return numbered(f"{x}.reshape({aval.shape})", aval)


python_rules[lax.slice_p] = expression(_slice)
python_rules[lax.reshape_p] = expression(_reshape)


def everywhere(scalar, shape):
    """Return a scalar broadcast to a shape, as `numpy.broadcast_to` with no checks."""
    return np.ndarray(shape, scalar.dtype, scalar, 0, (0,) * len(shape))


def filled(writer, literal, shape):
    """Return the name of an array that is one number everywhere, in no memory."""
    scalar = scalar_of(literal)
    kind = literal.aval.update(shape=shape).str_short()
    hint, said = f"all_{scalar!s}".replace("-", "m"), f"{scalar!s} everywhere, {kind}"
    value = np.broadcast_to(scalar, shape)
    return writer.constant(value, hint, said, (kind, scalar.tobytes()))


def _broadcast(writer, eqn, x):
    old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if old == new:
        return x
    if isinstance(eqn.invars[0], Literal):
        return filled(writer, eqn.invars[0], new)
    if not old and eqn.invars[0].aval.dtype.kind != "V":
        function = writer.constant(everywhere, "everywhere", "fills a shape")
        return f"{function}({x}, {new})"
    sizes = [1] * len(new)
    for place, size in zip(eqn.params["broadcast_dimensions"], old):
        sizes[place] = size
    if (*sizes,) == new:
        return _reshape(writer, eqn, x)
    lined_up = (*sizes,) == (1,) * (len(new) - len(old)) + old
    source = x if lined_up else f"{x}.reshape({(*sizes,)})"
    return f"np.broadcast_to({source}, {new})"


def _transpose(writer, eqn, x):
    permutation = eqn.params["permutation"]
    same = [*permutation] == sorted(permutation)
    return x if same else f"{x}.transpose({permutation})"


def _squeeze(writer, eqn, x):
    axes = eqn.params["dimensions"]
    return numbered(f"{x}.squeeze({axes})", eqn.outvars[0].aval) if axes else x


def _rev(writer, eqn, x):
    axes = eqn.params["dimensions"]
    last = max(axes, default=-1)
    turns = ["::-1" if axis in axes else ":" for axis in range(last + 1)]
    return f"{x}[{', '.join(turns)}]" if axes else x


def _concatenate(writer, eqn, *xs):
    return f"np.concatenate([{', '.join(xs)}], axis={eqn.params['dimension']})"


def _iota(writer, eqn):
    [size, *more] = eqn.params["shape"]
    dtype = writer.dtype(eqn.params["dtype"])
    return None if more else f"np.arange({size}).astype({dtype})"


REARRANGED = {
    "broadcast_in_dim": _broadcast, "transpose": _transpose, "squeeze": _squeeze,
    "rev": _rev, "concatenate": _concatenate, "iota": _iota,
}  # fmt: skip
add_rules({primitive: expression(spell) for primitive, spell in REARRANGED.items()})


for _same in (optimization_barrier_p, name_p, device_put_p):
    python_rules[_same] = lambda writer, eqn, operands, results: writer.assign(
        results, operands
    )
    cost_rules[_same] = lambda eqn: {}
python_rules.reasons[custom_lin_p] = "It is never run, only transposed."


def extreme(name, end):
    """Return the rule of a maximum or minimum, where `end` is that of no elements."""

    def spell(writer, eqn, x):
        first = end(eqn.invars[0].aval.dtype)
        if isinstance(first, np.floating):
            first = "np.inf" if first > 0 else "-np.inf"
        elif not isinstance(first, (int, np.bool)):
            first = writer.constant(first, end.__name__)
        return f"np.{name}.reduce({x}, axis={eqn.params['axes']}, initial={first})"

    return expression(spell)


def place(name):
    """Return the rule of the place of a maximum or minimum."""

    def spell(writer, eqn, x):
        aval, [axis] = eqn.invars[0].aval, eqn.params["axes"]
        dtype = aval.dtype
        if not countable(aval.shape[axis], eqn.params["index_dtype"]):
            return None  # the evaluation says why
        x = x if wide(dtype) == dtype else f"{x}.astype(np.float32)"
        index = writer.dtype(eqn.params["index_dtype"])
        return f"np.{name}({x}, {axis}).astype({index})"

    return expression(spell)


def bitwise(name):
    """Return the rule of a reduction of bits."""

    def spell(writer, eqn, x):
        return f"np.bitwise_{name}.reduce({x}, axis={eqn.params['axes']})"

    return expression(spell)


add_rules({f"reduce_{name}": bitwise(name) for name in ("and", "or", "xor")})
add_rules({
    "reduce_max": extreme("maximum", lowest), "reduce_min": extreme("minimum", highest),
    "argmax": place("argmax"), "argmin": place("argmin"),
})  # fmt: skip
FOLDED_BY_CALL = """
    pad bitcast_convert_type cumsum cumprod cummax cummin cumlogsumexp
""".split()
add_rules(dict.fromkeys(FOLDED_BY_CALL, write_evaluation))


GONE = "Its axis is gone when a program runs: vmap has answered it."
COLLECTIVES: list = [
    psum_p, pmax_p, pmin_p, ppermute_p, all_gather_p, all_to_all_p, reduce_scatter_p,
    axis_index_p,
]  # fmt: skip
python_rules.reasons.update(dict.fromkeys(COLLECTIVES, GONE))
