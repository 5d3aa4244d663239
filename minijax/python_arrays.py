# Made from chapters/11b_python.md by `make chapter`;
# edit the chapter, not this file.
"""Primitives in Python: those that rearrange, cut, fold and multiply arrays."""

from math import prod

import numpy as np

from minijax import collectives, lax
from minijax.array import shape_rules
from minijax.core import impl_rules
from minijax.emission import python_rules, write_evaluation
from minijax.jit_primitive import jit_p
from minijax.lax.contraction import free_axes, sizes
from minijax.lax.reductions import highest, lowest, wide
from minijax.named_axes import refuse_unbound
from minijax.python_elementwise import expression, register


def numbered(text, aval):
    """Return an expression of an array as one of a scalar, if it has no axes."""
    return text if aval.shape else f"{text}[()]"


def _reshape(writer, eqn, x):
    shape = eqn.outvars[0].aval.shape
    return numbered(f"{x}.reshape({shape})", eqn.outvars[0].aval)


def _broadcast(writer, eqn, x):
    old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
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
    return f"{x}.transpose({permutation})" if permutation else x


def _squeeze(writer, eqn, x):
    return numbered(f"{x}.squeeze({eqn.params['dimensions']})", eqn.outvars[0].aval)


def _rev(writer, eqn, x):
    axes = eqn.params["dimensions"]
    turned = ["::-1" if axis in axes else ":" for axis in range(max(axes, default=-1) + 1)]
    return f"{x}[{', '.join(turned)}]" if axes else x


def slice_text(start, stop, step, size):
    """Return the index of a slice along one axis."""
    low = start or ""
    high = "" if stop == size else stop
    return f"{low}:{high}" + (f":{step}" if step != 1 else "")


def _slice(writer, eqn, x):
    shape, params = eqn.invars[0].aval.shape, eqn.params
    starts, limits = params["start_indices"], params["limit_indices"]
    strides = params["strides"] or (1,) * len(shape)
    cuts = map(slice_text, starts, limits, strides, shape)
    return f"{x}[{', '.join(cuts)}]" if shape else x


def _concatenate(writer, eqn, *xs):
    return f"np.concatenate([{', '.join(xs)}], axis={eqn.params['dimension']})"


def _iota(writer, eqn):
    [size, *rest] = eqn.params["shape"]
    dtype = writer.dtype(eqn.params["dtype"])
    return None if rest else f"np.arange({size}).astype({dtype})"


RULES = {
    "reshape": _reshape, "broadcast_in_dim": _broadcast, "transpose": _transpose,
    "squeeze": _squeeze, "rev": _rev, "slice": _slice, "concatenate": _concatenate,
    "iota": _iota,
}  # fmt: skip
register({primitive: expression(spell) for primitive, spell in RULES.items()})


def in_width(writer, x, dtype):
    """Return an operand in the dtype in which it is added up."""
    return x if wide(dtype) == dtype else f"{x}.astype({writer.dtype(wide(dtype))})"


def back(writer, text, wide_dtype, dtype):
    """Return an expression of a wide dtype in the dtype of the result."""
    return text if wide_dtype == dtype else f"{text}.astype({writer.dtype(dtype)})"


def folded(name):
    """Return the rule of a sum or product, which may need more bits on the way."""

    def spell(writer, eqn, x):
        dtype = eqn.invars[0].aval.dtype
        width = "" if dtype.kind in "fc" and wide(dtype) == dtype else (
            f", dtype={writer.dtype(wide(dtype))}"
        )
        text = f"np.{name}.reduce({x}, axis={eqn.params['axes']}{width})"
        return back(writer, text, wide(dtype), dtype)

    return expression(spell)


def extreme(name, end):
    """Return the rule of a maximum or minimum, where `end` is that of no elements."""

    def spell(writer, eqn, x):
        first = end(eqn.invars[0].aval.dtype)
        sign = {np.inf: "", -np.inf: "-"}.get(first)
        if isinstance(first, np.floating) and sign is not None:
            first = f"{sign}np.inf"
        elif not isinstance(first, (int, np.bool)):
            first = writer.constant(first, end.__name__)
        return f"np.{name}.reduce({x}, axis={eqn.params['axes']}, initial={first})"

    return expression(spell)


def place(name):
    """Return the rule of the place of a maximum or minimum."""

    def spell(writer, eqn, x):
        [axis], dtype = eqn.params["axes"], eqn.invars[0].aval.dtype
        x = in_width(writer, x, dtype)
        return f"np.{name}({x}, {axis}).astype({writer.dtype(eqn.params['index_dtype'])})"

    return expression(spell)


def bitwise(name):
    """Return the rule of a bitwise reduction."""

    def spell(writer, eqn, x):
        return f"np.{name}.reduce({x}, {eqn.params['axes']})"

    return expression(spell)


python_rules[lax.reduce_sum_p] = folded("add")
python_rules[lax.reduce_prod_p] = folded("multiply")
python_rules[lax.reduce_max_p] = extreme("maximum", lowest)
python_rules[lax.reduce_min_p] = extreme("minimum", highest)
python_rules[lax.argmax_p] = place("argmax")
python_rules[lax.argmin_p] = place("argmin")
register({f"reduce_{name}": bitwise(f"bitwise_{name}") for name in ("and", "or", "xor")})
CALLED_ON_ARRAYS = """
    pad bitcast_convert_type cumsum cumprod cummax cummin cumlogsumexp
""".split()
register(dict.fromkeys(CALLED_ON_ARRAYS, write_evaluation))


def arranged(writer, x, aval, order, dtype, shape):
    """Return an operand of a matrix product: transposed, converted, reshaped."""
    if [*order] != [*range(aval.ndim)]:
        x = f"{x}.transpose({(*order,)})"
    if aval.dtype != dtype:
        x = f"{x}.astype({writer.dtype(dtype)})"
    return x if sizes(aval.shape, order) == shape else f"{x}.reshape({shape})"


def _dot_general(writer, eqn, x, y):
    lhs, rhs, out = [atom.aval for atom in [*eqn.invars, *eqn.outvars]]
    (lhs_summed, rhs_summed), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    lhs_free = free_axes(lhs.ndim, lhs_summed, lhs_batch)
    rhs_free = free_axes(rhs.ndim, rhs_summed, rhs_batch)
    batch, summed = sizes(lhs.shape, lhs_batch), prod(sizes(lhs.shape, lhs_summed))
    rows, columns = prod(sizes(lhs.shape, lhs_free)), prod(sizes(rhs.shape, rhs_free))
    preferred = eqn.params["preferred_element_type"]
    dtype = wide(preferred or np.result_type(lhs.dtype, rhs.dtype))
    left = (*lhs_batch, *lhs_free, *lhs_summed), dtype, (*batch, rows, summed)
    right = (*rhs_batch, *rhs_summed, *rhs_free), dtype, (*batch, summed, columns)
    product = f"{arranged(writer, x, lhs, *left)} @ {arranged(writer, y, rhs, *right)}"
    if out.shape != (*batch, rows, columns):
        product = f"({product}).reshape({out.shape})" if out.shape else f"({product})[0, 0]"
    return product if dtype == out.dtype else f"({product}).astype({writer.dtype(out.dtype)})"


python_rules[lax.dot_general_p] = expression(_dot_general)


def _jit(writer, eqn, operands, results):
    function = writer.function(eqn.params["jaxpr"], eqn.params["name"])
    left = f"[{', '.join(results)}] = " if results else ""
    writer.line(f"{left}{function}({', '.join(operands)})")


python_rules[jit_p] = _jit
GONE = "The axis that it talks across is gone when a program runs: vmap has answered it."
python_rules.reasons.update(
    {primitive: GONE for primitive, rule in impl_rules.items() if rule is refuse_unbound}
)
