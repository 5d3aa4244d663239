"""Primitives in Python: those with formulas of their own, and data movement."""

# Made from chapters/13_python_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import dtype_kind, is_inexact
from minijax.arrays.numerics import sum_accumulator_dtype
from minijax.arrays.transfer import device_put_p
from minijax.batching.collectives import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)
from minijax.custom_derivatives.custom_jvp_vjp import custom_lin_p
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.stages import cost_rules
from minijax.lax.reductions import fits_index_dtype, max_of_dtype, min_of_dtype
from minijax.python_backend.codegen import (
    expression_rule,
    python_rules,
    register_python_rules,
)
from minijax.python_backend.source import (
    numpy_scalar_of_literal,
    operand_texts,
    preserves_dtypes,
    python_number_text,
    write_evaluation,
)
from minijax.rematerialization.jaxpr_transforms import optimization_barrier_p
from minijax.rematerialization.policies import name_p

# Primitives in Python: elementwise ones that have a formula of their own.

PREFIX = {"neg": ("-", "negative"), "not": ("~", "invert")}


def prefix(symbol, name):
    """Return the rule of a primitive that is an operator in front of its operand."""

    def spell(emitter, eqn, x):
        return f"{symbol}{x}" if preserves_dtypes(name, eqn) else None

    return expression_rule(spell)


register_python_rules(
    {primitive: prefix(*names) for primitive, names in PREFIX.items()}
)


def _select(emitter, eqn, which, *cases):
    aval = eqn.invars[0].aval
    if aval.dtype.kind != "b" or len(cases) != 2:
        return None
    if not aval.shape:
        which = python_number_text(eqn.invars[0]) or which
        return f"{cases[1]} if {which} else {cases[0]}"
    return f"np.where({which}, {cases[1]}, {cases[0]})"


python_rules[lax.select_n_p] = expression_rule(_select)


def of_floats(template, bits=16):
    """Return the rule of an expression that is right for floats from `bits` on."""

    def spell(emitter, eqn, *operands):
        dtype = eqn.invars[0].aval.dtype
        if dtype.kind == "f" and dtype.itemsize * 8 >= bits:
            return template.format(*operands)

    return expression_rule(spell)


def _square(emitter, eqn, x):
    return None if eqn.invars[0].aval.dtype.kind == "c" else f"{x} * {x}"


def power_text(x, y, dtype):
    """Return the expression of an integer power of floats or integers."""
    if y < 0:
        return f"1 / {power_text(x, -y, dtype)}"
    return f"np.power({x}, {np.asarray(y, dtype)})"


def _integer_pow(emitter, eqn, x):
    y, dtype = eqn.params["y"], eqn.invars[0].aval.dtype
    short = dtype.kind in "iuf" and 0 < abs(y) < 128
    return power_text(x, y, dtype) if short else None


def may_be_half(atom):
    """Return whether an exponent may be 1/2; of most literals one knows better."""
    return not isinstance(atom, Literal) or atom.val == 0.5


def _pow(emitter, eqn, x, y):
    base, exponent = [atom.aval.dtype for atom in eqn.invars]
    if base == exponent and may_be_half(eqn.invars[1]):
        return None  # NumPy takes a square root
    if base == exponent:
        return f"np.power({', '.join(operand_texts(eqn, [x, y]))})"
    return f"np.power({x}, {y}.astype({emitter.dtype(base)}))"


def _round(emitter, eqn, x):
    even = eqn.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN
    return f"np.rint({x})" if even and preserves_dtypes("rint", eqn) else None


def _convert(emitter, eqn, x):
    old, new = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if old == new:
        return x
    if is_inexact(old) and new.kind in "iu":
        return None
    if old.char in "dD" and dtype_kind(new) == "h":
        return None  # it is rounded twice
    part = f"{x}.real" if old.kind == "c" and new.kind != "c" else x
    return f"{part}.astype({emitter.dtype(new)})"


def _clamp(emitter, eqn, low, x, high):
    return f"np.minimum(np.maximum({x}, {low}), {high})"


register_python_rules({
    "rsqrt": of_floats("1 / np.sqrt({})", bits=32),
    "logistic": of_floats("1 / (1 + np.exp(-{}))", bits=32),
    "rem": of_floats("np.fmod({}, {})"),
    "atan2": of_floats("np.arctan2({}, {})"),
    "real": expression_rule(lambda emitter, eqn, x: f"{x}.real"),
    "imag": expression_rule(lambda emitter, eqn, x: f"{x}.imag"),
    "copy": expression_rule(lambda emitter, eqn, x: f"{x}.copy()"),
    "square": expression_rule(_square), "integer_pow": expression_rule(_integer_pow),
    "pow": expression_rule(_pow), "round": expression_rule(_round),
    "convert_element_type": expression_rule(_convert), "clamp": expression_rule(_clamp),
})  # fmt: skip

NUMPY_CALLS = """
    sign erf erfc erf_inv lgamma digamma complex shift_left shift_right_logical
    shift_right_arithmetic population_count clz reduce_precision nextafter
""".split()
register_python_rules(dict.fromkeys(NUMPY_CALLS, write_evaluation))


# Primitives in Python: those that rearrange, cut and fold arrays.


def slice_text(start, stop, step, size):
    """Return the index of a slice along one axis of a given size."""
    high = "" if stop == size else stop
    return f"{start or ''}:{high}" + (f":{step}" if step != 1 else "")


def _slice(emitter, eqn, x):
    shape, params = eqn.invars[0].aval.shape, eqn.params
    strides = params["strides"] or (1,) * len(shape)
    ends = params["start_indices"], params["limit_indices"]
    cuts = map(slice_text, *ends, strides, shape)
    return f"{x}[{', '.join(cuts)}]" if shape else x


def scalar_element_text(text, aval):
    """Return the expression of an array as that of a scalar, if it has no axes."""
    return text if aval.shape else f"{text}[()]"


def _reshape(emitter, eqn, x):
    aval = eqn.outvars[0].aval
    return scalar_element_text(f"{x}.reshape({aval.shape})", aval)


python_rules[lax.slice_p] = expression_rule(_slice)
python_rules[lax.reshape_p] = expression_rule(_reshape)


def unchecked_broadcast_to(scalar, shape):
    """Return a scalar broadcast to a shape, as `numpy.broadcast_to` with no checks."""
    return np.ndarray(shape, scalar.dtype, scalar, 0, (0,) * len(shape))


def filled(emitter, literal, shape):
    """Return the name of an array that is one number everywhere, in no memory."""
    scalar = numpy_scalar_of_literal(literal)
    kind = literal.aval.update(shape=shape).str_short()
    hint, said = f"all_{scalar!s}".replace("-", "m"), f"{scalar!s} everywhere, {kind}"
    value = np.broadcast_to(scalar, shape)
    return emitter.constant(value, hint, said, (kind, scalar.tobytes()))


def _broadcast(emitter, eqn, x):
    old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if old == new:
        return x
    if isinstance(eqn.invars[0], Literal):
        return filled(emitter, eqn.invars[0], new)
    if not old and dtype_kind(eqn.invars[0].aval.dtype) not in "hx0":
        function = emitter.constant(
            unchecked_broadcast_to, "everywhere", "fills a shape"
        )
        return f"{function}({x}, {new})"
    sizes = [1] * len(new)
    for place, size in zip(eqn.params["broadcast_dimensions"], old):
        sizes[place] = size
    if (*sizes,) == new:
        return _reshape(emitter, eqn, x)
    lined_up = (*sizes,) == (1,) * (len(new) - len(old)) + old
    source = x if lined_up else f"{x}.reshape({(*sizes,)})"
    return f"np.broadcast_to({source}, {new})"


def _transpose(emitter, eqn, x):
    permutation = eqn.params["permutation"]
    same = [*permutation] == sorted(permutation)
    return x if same else f"{x}.transpose({permutation})"


def _squeeze(emitter, eqn, x):
    axes = eqn.params["dimensions"]
    return (
        scalar_element_text(f"{x}.squeeze({axes})", eqn.outvars[0].aval) if axes else x
    )


def _rev(emitter, eqn, x):
    axes = eqn.params["dimensions"]
    last = max(axes, default=-1)
    turns = ["::-1" if axis in axes else ":" for axis in range(last + 1)]
    return f"{x}[{', '.join(turns)}]" if axes else x


def _concatenate(emitter, eqn, *xs):
    return f"np.concatenate([{', '.join(xs)}], axis={eqn.params['dimension']})"


def _iota(emitter, eqn):
    [size, *more] = eqn.params["shape"]
    dtype = emitter.dtype(eqn.params["dtype"])
    return None if more else f"np.arange({size}).astype({dtype})"


REARRANGED = {
    "broadcast_in_dim": _broadcast, "transpose": _transpose, "squeeze": _squeeze,
    "rev": _rev, "concatenate": _concatenate, "iota": _iota,
}  # fmt: skip
register_python_rules(
    {primitive: expression_rule(spell) for primitive, spell in REARRANGED.items()}
)


for _same in (optimization_barrier_p, name_p, device_put_p):
    python_rules[_same] = lambda emitter, eqn, operands, results: emitter.assign(
        results, operands
    )
    cost_rules[_same] = lambda eqn: {}
python_rules.reasons[custom_lin_p] = "It is never run, only transposed."


def extreme(name, end):
    """Return the rule of a maximum or minimum, where `end` is that of no elements."""

    def spell(emitter, eqn, x):
        first = end(eqn.invars[0].aval.dtype)
        if isinstance(first, np.floating):
            first = "np.inf" if first > 0 else "-np.inf"
        elif not isinstance(first, (int, np.bool)):
            first = emitter.constant(first, end.__name__)
        return f"np.{name}.reduce({x}, axis={eqn.params['axes']}, initial={first})"

    return expression_rule(spell)


def place(name):
    """Return the rule of the place of a maximum or minimum."""

    def spell(emitter, eqn, x):
        aval, [axis] = eqn.invars[0].aval, eqn.params["axes"]
        dtype = aval.dtype
        if not fits_index_dtype(aval.shape[axis], eqn.params["index_dtype"]):
            return None  # the evaluation says why
        x = x if sum_accumulator_dtype(dtype) == dtype else f"{x}.astype(np.float32)"
        index = emitter.dtype(eqn.params["index_dtype"])
        return f"np.{name}({x}, {axis}).astype({index})"

    return expression_rule(spell)


def bitwise(name):
    """Return the rule of a reduction of bits."""

    def spell(emitter, eqn, x):
        return f"np.bitwise_{name}.reduce({x}, axis={eqn.params['axes']})"

    return expression_rule(spell)


register_python_rules(
    {f"reduce_{name}": bitwise(name) for name in ("and", "or", "xor")}
)
register_python_rules({
    "reduce_max": extreme("maximum", min_of_dtype),
    "reduce_min": extreme("minimum", max_of_dtype),
    "argmax": place("argmax"), "argmin": place("argmin"),
})  # fmt: skip
FOLDED_BY_CALL = """
    pad bitcast_convert_type cumsum cumprod cummax cummin cumlogsumexp
""".split()
register_python_rules(dict.fromkeys(FOLDED_BY_CALL, write_evaluation))


AXIS_NOT_BOUND_REASON = "Its axis is gone when a program runs: vmap has answered it."
COLLECTIVES: list = [
    psum_p, pmax_p, pmin_p, ppermute_p, all_gather_p, all_to_all_p, reduce_scatter_p,
    axis_index_p,
]  # fmt: skip
python_rules.reasons.update(dict.fromkeys(COLLECTIVES, AXIS_NOT_BOUND_REASON))


# A program written in place: its equations in the lines of another one.


def assign_outputs(emitter, closed, values, names):
    """Give names to results of a program in place, and forget those it gave them.

    Args:
      emitter: the `PythonEmitter` that has written the program.
      closed: the `ClosedJaxpr`.
      values: expressions of its results, or of the first of them.
      names: the new name of each; `_` for one that is not read.
    """
    results = _made(closed).intersection(closed.outvars)
    own = {emitter.expressions[var] for var in results if var.aval.shape}
    emitter.assign(names, values)
    emitter.forget(value for value in values if value in own.difference(names))


def inline_jaxpr_into(emitter, closed, operands, names):
    """Write a program in place, and leave its results under given names.

    Args:
      emitter: the `PythonEmitter` of the function.
      closed: a `ClosedJaxpr`.
      operands: expressions of its inputs.
      names: of its results; `_` for one that is not read.
    """
    made, pairs = _made(closed), zip(closed.outvars, names)
    promised = {var: name for var, name in pairs if var in made and name != "_"}
    emitter.declared_types.update(promised)
    assign_outputs(emitter, closed, emitter.inline(closed, operands), names)


def _made(closed):
    """Return the variables that the equations of a program define."""
    return {var for eqn in closed.eqns for var in eqn.outvars}
