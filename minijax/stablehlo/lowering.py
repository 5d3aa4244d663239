"""Programs in StableHLO: calls, loops, elementwise operations, data movement.

Source: the StableHLO specification, https://openxla.org/stablehlo/spec.
"""

# Made from chapters/40_export.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax.arrays.numerics import complex_square_parts
from minijax.control_flow.common import empty_p
from minijax.core import RuleTable, ShapedArray
from minijax.custom_derivatives.linear_solves import CUSTOM_CALL_PRIMITIVES
from minijax.extend.core import ClosedJaxpr, Literal
from minijax.extend.core.primitives import device_put_p, jit_p, name_p, scan_p
from minijax.extend.dtypes import max_of_dtype, min_of_dtype
from minijax.extend.rules import callee_rules
from minijax.jaxprs.jaxpr import trace_to_jaxpr
from minijax.lax import Precision, associative_scan, optimization_barrier_p
from minijax.random import random_gamma_p
from minijax.stablehlo.text import MlirModule, MlirValue, mlir_identifier, tensor_type

# Programs in StableHLO: each equation is written by the rule of its primitive.

# Rules ``rule(block, eqn, *operands)`` write an equation and return its result, a
# `MlirValue`, or the list of its results.
stablehlo_rules: RuleTable = RuleTable("stablehlo")


def lower_eqn(block, eqn, operands):
    """Write one equation; return its results, whose types have been compared."""
    try:
        rule = stablehlo_rules[eqn.primitive]
    except NotImplementedError as error:
        where = f" It is asked for at {eqn.source}." if eqn.source else ""
        raise NotImplementedError(f"{error}{where}") from None
    found = rule(block, eqn, *operands)
    results = [found] if isinstance(found, MlirValue) else list(found)
    for var, result in zip(eqn.outvars, results, strict=True):
        if tensor_type(var.aval) != result.type:
            promised = tensor_type(var.aval)
            raise TypeError(f"{eqn.primitive}: {result.type} is not {promised}")
    return results


def lower_jaxpr(block, closed, operands):
    """Write the equations of a `ClosedJaxpr` into a block; return its results."""
    constants = [
        block.constant(np.asarray(x), var.aval)
        for var, x in zip(closed.constvars, closed.consts)
    ]
    values = dict(zip([*closed.constvars, *closed.invars], [*constants, *operands]))

    def read(atom):
        if isinstance(atom, Literal):
            return block.constant(np.asarray(atom.val, atom.aval.dtype), atom.aval)
        return values[atom]

    for eqn in closed.eqns:
        results = lower_eqn(block, eqn, [read(atom) for atom in eqn.invars])
        values.update(zip(eqn.outvars, results))
    return [read(atom) for atom in closed.outvars]


def mlir_module_text(closed, name):
    """Return the text of a module whose function ``main`` is a `ClosedJaxpr`."""
    program = MlirModule()

    def main(block, *operands):
        return lower_jaxpr(block, closed, operands)

    program.function("main", "main", closed.in_avals, main, "public ")
    functions = "\n\n".join(reversed(program.texts))
    return f"module @jit_{mlir_identifier(name)} {{\n{functions}\n}}\n"


def lower_flat_fun(block, f, *operands, **params):
    """Write what a function of arrays does; return its results."""
    avals = [x.aval for x in operands]
    jaxpr, consts = trace_to_jaxpr(lambda *xs: as_list(f(*xs, **params)), avals)
    return lower_jaxpr(block, ClosedJaxpr(jaxpr, consts), operands)


def lower_fun(f):
    """Return the rule of a primitive that is a function of other primitives."""
    return lambda block, eqn, *operands: lower_flat_fun(
        block, f, *operands, **eqn.params
    )


def as_list(x):
    """Return several results as a list, and one as a list of one."""
    return [*x] if isinstance(x, list | tuple) else [x]


# StableHLO of operations on each element: mostly a table of names.

STABLEHLO_OPS = {
    "add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply",
    "div": "divide", "rem": "remainder", "atan2": "atan2", "and": "and", "or": "or",
    "xor": "xor", "not": "not",
    "neg": "negate", "abs": "abs", "floor": "floor", "ceil": "ceil",
    "exp": "exponential", "expm1": "exponential_minus_one", "log": "log",
    "log1p": "log_plus_one", "logistic": "logistic", "sin": "sine", "cos": "cosine",
    "tan": "tan", "tanh": "tanh", "sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt",
    "is_finite": "is_finite", "real": "real", "imag": "imag", "complex": "complex",
    "shift_left": "shift_left", "shift_right_logical": "shift_right_logical",
    "shift_right_arithmetic": "shift_right_arithmetic",
    "clz": "count_leading_zeros", "population_count": "popcnt", "clamp": "clamp",
    "eq": "compare EQ,", "ne": "compare NE,", "lt": "compare LT,",
    "le": "compare LE,", "gt": "compare GT,", "ge": "compare GE,",
}  # fmt: skip
# A second dialect, whose operations compilers take apart into those of StableHLO.
CHLO = "acos acosh asin asinh atan atanh cosh digamma erf erf_inv erfc lgamma sinh"


def broadcast_op(block, x, shape):
    """Return a value with this shape: axes in front are new, those of size 1 grow."""
    if x.aval.shape == shape:
        return x
    axes = [*range(len(shape) - len(x.aval.shape), len(shape))]
    aval = x.aval.update(shape=shape)
    return block.op("broadcast_in_dim", [x], aval, f", dims = {axes}")


def named_op_rule(name):
    """Return the rule of a primitive that is one operation on arrays of one shape."""

    def rule(block, eqn, *xs):
        aval = eqn.outvars[0].aval
        return block.op(name, [broadcast_op(block, x, aval.shape) for x in xs], aval)

    return rule


def register_stablehlo_rules(rules):
    """Add rules to the table, by the names of primitives of `lax`."""
    stablehlo_rules.update({getattr(lax, f"{name}_p"): rules[name] for name in rules})


register_stablehlo_rules(
    {primitive: named_op_rule(name) for primitive, name in STABLEHLO_OPS.items()}
)


def in_chlo(name):
    """Return the rule of a primitive that is one operation of the second dialect."""

    def rule(block, eqn, *xs):
        aval = eqn.outvars[0].aval
        xs = [broadcast_op(block, x, aval.shape) for x in xs]
        return block.generic(f"chlo.{name}", xs, [aval])

    return rule


register_stablehlo_rules({name: in_chlo(name) for name in CHLO.split()})
register_stablehlo_rules({"nextafter": in_chlo("next_after")})


def _ordered(before):
    """Return a function that chooses one of two complex numbers, or what is NaN.

    They are ordered by their real parts, and by their imaginary parts where these are
    equal. The operation of StableHLO compares the real parts alone.
    """

    def choose(x, y):
        real, imag = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
        tied = lax.bitwise_and(lax.eq(*real), before(*imag))
        first = lax.bitwise_or(before(*real), tied)
        first = lax.bitwise_and(first, lax.eq(y, y))
        return lax.select(lax.bitwise_or(lax.ne(x, x), first), x, y)

    return choose


LEXICOGRAPHIC_EXTREMA = {"maximum": _ordered(lax.gt), "minimum": _ordered(lax.lt)}


def binary_op(block, name, x, y):
    """Write an operation on two values of one type."""
    if name in LEXICOGRAPHIC_EXTREMA and x.aval.dtype.kind == "c":
        return lower_flat_fun(block, LEXICOGRAPHIC_EXTREMA[name], x, y)[0]
    return block.op(name, [x, y], x.aval)


def extreme_of_two(name):
    """Return the rule of the larger, or the smaller, of two numbers."""

    def rule(block, eqn, *xs):
        shape = eqn.outvars[0].aval.shape
        return binary_op(block, name, *[broadcast_op(block, x, shape) for x in xs])

    return rule


OF_TWO = {"max": "maximum", "min": "minimum"}
register_stablehlo_rules(
    {primitive: extreme_of_two(name) for primitive, name in OF_TWO.items()}
)


def _integer_pow(x, y):
    if y < 0:
        return lax.div(lax.full_like(x, 1), _integer_pow(x, -y))
    if y < 2:
        return x if y else lax.full_like(x, 1)
    half = _integer_pow(x, y // 2)
    return lax.mul(lax.mul(half, half), x) if y % 2 else lax.mul(half, half)


def _sign(x):
    return lax.convert_element_type(lax.ne(x, lax.full_like(x, 0)), x.dtype)


def _square(x):
    if x.dtype.kind != "c":
        return lax.mul(x, x)
    return lax.complex(*complex_square_parts(lax, lax.real(x), lax.imag(x)))


def _plain_sign(block, eqn, x):
    unsigned = x.aval.dtype.kind == "u"
    rule = lower_fun(_sign) if unsigned else named_op_rule("sign")
    return rule(block, eqn, x)


def _pow(block, eqn, x, y):
    return named_op_rule("power")(block, eqn, x, convert_op(block, y, x.aval.dtype))


stablehlo_rules[lax.pow_p] = _pow
stablehlo_rules[lax.sign_p] = _plain_sign
stablehlo_rules[lax.integer_pow_p] = lower_fun(_integer_pow)
stablehlo_rules[lax.square_p] = lower_fun(_square)
stablehlo_rules[lax.exp2_p] = lower_fun(
    lambda x: lax.exp(lax.mul(x, lax.full_like(x, math.log(2))))
)


def _conj(x, **_):
    if x.dtype.kind != "c":
        return lax.complex(x, lax.full_like(x, 0))
    return lax.complex(lax.real(x), lax.neg(lax.imag(x)))


stablehlo_rules[lax.conj_p] = lower_fun(_conj)


def convert_op(block, x, dtype):
    """Return a value in another dtype."""
    if x.aval.dtype == dtype:
        return x
    old, aval = x.aval.dtype.kind, x.aval.update(dtype=np.dtype(dtype))
    if aval.dtype == bool:
        zero = block.constant(np.zeros(x.aval.shape, x.aval.dtype), x.aval)
        return block.op("compare NE,", [x, zero], aval)
    if old == "c" and aval.dtype.kind != "c":
        part = np.zeros(0, x.aval.dtype).real.dtype
        x = block.op("real", [x], x.aval.update(dtype=part))
    return block.op("convert", [x], aval)


def _round(block, eqn, x):
    ends = ("afz", "even")[int(eqn.params["rounding_method"])]
    return block.op(f"round_nearest_{ends}", [x], x.aval)


def _reduce_precision(block, eqn, x):
    bits = eqn.params["exponent_bits"], eqn.params["mantissa_bits"]
    return block.op("reduce_precision", [x], x.aval, ", format = e{}m{}".format(*bits))


def _select(block, eqn, which, *cases):
    """Choose among cases: the last one first, then each number below it."""
    aval = eqn.outvars[0].aval
    cases = [broadcast_op(block, case, aval.shape) for case in cases]
    [result, *_] = cases[::-1]
    if len(cases) == 1:
        return result
    if which.aval.dtype == bool:
        return block.op("select", [which, *cases[::-1]], aval)
    for i, case in reversed([*enumerate(cases[:-1])]):
        limit = np.full(which.aval.shape, i, which.aval.dtype)
        operands = [which, block.constant(limit, which.aval)]
        answer = which.aval.update(dtype=np.dtype(bool))
        here = block.op("compare LE,", operands, answer)
        result = block.op("select", [here, case, result], aval)
    return result


stablehlo_rules[lax.convert_element_type_p] = lambda block, eqn, x: convert_op(
    block, x, eqn.params["new_dtype"]
)
stablehlo_rules[lax.bitcast_convert_type_p] = lambda block, eqn, x: block.op(
    "bitcast_convert", [x], eqn.outvars[0].aval
)
stablehlo_rules[lax.round_p] = _round
stablehlo_rules[lax.reduce_precision_p] = _reduce_precision
stablehlo_rules[lax.select_n_p] = _select


# StableHLO of operations that move elements, multiply matrices, and sum.


def i64_list_attr(name, values):
    """Return an attribute that is a list of numbers."""
    return f", {name} = [{', '.join(map(str, values))}]"


def listing_attr(name, words, param):
    """Return the rule of an operation that has one list of numbers, called `words`."""
    return lambda block, eqn, x: block.op(
        name, [x], eqn.outvars[0].aval, i64_list_attr(words, eqn.params[param])
    )


LIST_ATTRIBUTE_OPS = {  # the operation, what it calls its list, and our parameter
    "transpose": ("transpose", "dims", "permutation"),
    "rev": ("reverse", "dims", "dimensions"),
    "broadcast_in_dim": ("broadcast_in_dim", "dims", "broadcast_dimensions"),
}
register_stablehlo_rules(
    {primitive: listing_attr(*how) for primitive, how in LIST_ATTRIBUTE_OPS.items()}
)


def reshape_op(block, x, shape):
    """Return a value with another shape."""
    if x.aval.shape == shape:
        return x
    return block.op("reshape", [x], x.aval.update(shape=shape))


def _reshape(block, eqn, x):
    return reshape_op(block, x, eqn.outvars[0].aval.shape)


def _concatenate(block, eqn, *xs):
    axis = eqn.params["dimension"]
    return block.op("concatenate", xs, eqn.outvars[0].aval, f", dim = {axis}")


def _iota(block, eqn):
    axis = eqn.params["dimension"]
    return block.op("iota", [], eqn.outvars[0].aval, f"dim = {axis}")


def _pad(block, eqn, x, filling):
    sides = list(zip(*eqn.params["padding_config"])) or [()] * 3
    more = "".join(map(i64_list_attr, ("low", "high", "interior"), sides))
    return block.op("pad", [x, filling], eqn.outvars[0].aval, more)


def _slice(block, eqn, x):
    starts, ends = eqn.params["start_indices"], eqn.params["limit_indices"]
    steps = eqn.params["strides"] or (1,) * len(starts)
    cuts = ", ".join(map("{}:{}:{}".format, starts, ends, steps))
    return block.op("slice", [x], eqn.outvars[0].aval, f" [{cuts}]")


register_stablehlo_rules(
    {"concatenate": _concatenate, "iota": _iota, "pad": _pad, "slice": _slice}
)
register_stablehlo_rules({"reshape": _reshape, "squeeze": _reshape})


def precision_config(precision):
    """Return the names of two precisions; the highest, if nothing else was asked."""
    asked = isinstance(precision, tuple) and isinstance(precision[0], Precision)
    return [x.name for x in (precision if asked else (Precision.HIGHEST,) * 2)]


def _dot_general(block, eqn, x, y):
    contracting, batch = eqn.params["dimension_numbers"]
    more = ", batching_dims = {} x {}".format(*map(list, batch)) * bool(batch[0])
    more += ", contracting_dims = {} x {}".format(*map(list, contracting))
    more += i64_list_attr("precision", precision_config(eqn.params.get("precision")))
    return block.op("dot_general", [x, y], eqn.outvars[0].aval, more)


stablehlo_rules[lax.dot_general_p] = _dot_general


REDUCED = {  # the operation between two elements, and what no element gives
    "reduce_sum": ("add", lambda dtype: 0),
    "reduce_prod": ("multiply", lambda dtype: 1),
    "reduce_and": ("and", lambda dtype: dtype.kind == "b" or -1),
    "reduce_or": ("or", lambda dtype: 0),
    "reduce_xor": ("xor", lambda dtype: 0),
}
ARG_EXTREMA = {
    "reduce_max": ("maximum", min_of_dtype),
    "reduce_min": ("minimum", max_of_dtype),
}


def splat_constant(block, x, aval):
    """Return a value with one number everywhere."""
    return block.constant(np.full(aval.shape, np.asarray(x).astype(aval.dtype)), aval)


def reduce_op_rule(name, nothing):
    """Return the rule of a primitive that combines the elements along axes."""

    def rule(block, eqn, x):
        scalar = x.aval.update(shape=())
        start = splat_constant(block, nothing(x.aval.dtype), scalar)
        axes = list(eqn.params["axes"])
        [result] = block.inputs([eqn.outvars[0].aval])
        block.line(
            f"{result.name} = stablehlo.reduce({x.name} init: {start.name}) applies "
            f"stablehlo.{name} across dimensions = {axes} "
            f": ({x.type}, {start.type}) -> {result.type}"
        )
        return result

    return rule


register_stablehlo_rules(
    {primitive: reduce_op_rule(*how) for primitive, how in REDUCED.items()}
)


def arg_extremum_rule(primitive):
    """Return the rule of an extreme along axes; complex ones are found in a region."""
    name, nothing = ARG_EXTREMA[primitive]
    plain = reduce_op_rule(name, nothing)

    def rule(block, eqn, x):
        scalar = x.aval.update(shape=())
        if scalar.dtype.kind != "c" or not eqn.params["axes"]:
            return plain(block, eqn, x)
        start = splat_constant(block, nothing(scalar.dtype), scalar)
        region = reducer_region(name)
        axes = ", ".join(map(str, eqn.params["axes"]))
        how = f"dimensions = array<i64: {axes}>"
        avals = [eqn.outvars[0].aval]
        regions = [block.region([scalar] * 2, region)]
        return block.generic("stablehlo.reduce", [x, start], avals, how, regions)

    return rule


def reducer_region(name):
    """Return the body of a region that is one operation on two elements."""
    return lambda inner, x, y: [binary_op(inner, name, x, y)]


register_stablehlo_rules(
    {primitive: arg_extremum_rule(primitive) for primitive in ARG_EXTREMA}
)


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


stablehlo_rules[lax.argmax_p] = lower_fun(extreme_place(lax.reduce_max))
stablehlo_rules[lax.argmin_p] = lower_fun(extreme_place(lax.reduce_min))


def logaddexp_region(x, y):
    """Return ``log(exp(x) + exp(y))``, also for infinite operands."""
    high = lax.max(x, y)
    low = lax.min(x, y)
    same = lax.eq(x, y)  # also infinite ones, whose difference would be NaN
    gap = lax.select(same, lax.full_like(x, 0), lax.sub(low, high))
    return lax.add(high, lax.log1p(lax.exp(gap)))


def reduce_window_scan_rule(combine):
    """Return the function of a running total along one axis."""
    return lambda x, axis, reverse: associative_scan(
        combine, x, reverse=reverse, axis=axis
    )


COMBINED = {
    "cumsum": lax.add, "cumprod": lax.mul, "cummax": lax.max, "cummin": lax.min,
    "cumlogsumexp": logaddexp_region,
}  # fmt: skip
register_stablehlo_rules(
    {
        name: lower_fun(reduce_window_scan_rule(combine))
        for name, combine in COMBINED.items()
    }
)


# StableHLO of calls, branches and loops.

IDENTITY_PRIMITIVES = (
    optimization_barrier_p,
    name_p,
    device_put_p,
    lax.copy_p,
    lax.stop_gradient_p,
)
stablehlo_rules.update(
    dict.fromkeys(IDENTITY_PRIMITIVES, lambda block, eqn, *operands: operands)
)
stablehlo_rules[empty_p] = lambda block, eqn: splat_constant(
    block, 0, eqn.outvars[0].aval
)


def _inline(block, eqn, *operands):
    return lower_jaxpr(block, callee_rules[eqn.primitive](eqn), operands)


def _jit(block, eqn, *operands):
    closed = eqn.params["jaxpr"]
    key = (closed.jaxpr, *map(id, closed.consts))
    name = block.program.function(
        key, eqn.params["name"], closed.in_avals,
        lambda inner, *xs: lower_jaxpr(inner, closed, xs),
    )  # fmt: skip
    return block.call(name, operands, closed.out_avals)


stablehlo_rules.update(
    dict.fromkeys([*CUSTOM_CALL_PRIMITIVES, random_gamma_p], _inline)
)
stablehlo_rules[jit_p] = _jit


INDEX = ShapedArray((), np.dtype(np.int32))


def _cond(block, eqn, index, *operands):
    regions = [
        block.region(
            [], lambda inner, branch=branch: lower_jaxpr(inner, branch, operands)
        )
        for branch in eqn.params["branches"]
    ]
    index, avals = convert_op(block, index, np.int32), [var.aval for var in eqn.outvars]
    return block.generic("stablehlo.case", [index], avals, "", regions)


stablehlo_rules[lax.cond_p] = _cond


def loop(block, state, more, step):
    """Write a loop: while `more(block, *state)`, the state becomes `step(…)`."""
    avals = [x.aval for x in state]
    regions = [block.region(avals, more), block.region(avals, step)]
    return block.generic("stablehlo.while", state, avals, "", regions)


def any_of(block, going):
    """Return whether any example of a batch goes on."""
    axes = [*range(len(going.aval.shape))]
    return (
        lower_flat_fun(block, lambda x: lax.reduce_or(x, axes), going)[0]
        if axes
        else going
    )


def unless_done(block, going, old, new):
    """Return a new value, but the old one for examples whose loop has ended."""
    axes, answer = range(len(going.aval.shape)), new.aval.update(dtype=np.dtype(bool))
    wide = block.op("broadcast_in_dim", [going], answer, i64_list_attr("dims", axes))
    return block.op("select", [wide, new, old], new.aval)


def _while(block, eqn, *operands):
    params, first = eqn.params, eqn.params["cond_nconsts"]
    second = first + params["body_nconsts"]
    asked, used, carry = operands[:first], operands[first:second], operands[second:]

    def going(inner, *state):
        return lower_jaxpr(inner, params["cond_jaxpr"], [*asked, *state])[0]

    def step(inner, *state):
        after = lower_jaxpr(inner, params["body_jaxpr"], [*used, *state])
        if not params["cond_jaxpr"].out_avals[0].shape:
            return after
        still = going(inner, *state)
        return [unless_done(inner, still, *pair) for pair in zip(state, after)]

    def more(inner, *state):
        return [any_of(inner, going(inner, *state))]

    return loop(block, carry, more, step)


stablehlo_rules[lax.while_p] = _while


def dynamic_element(block, stack, place):
    """Return the element of a stack of arrays at a place that is computed."""
    one = stack.aval.update(shape=(1, *stack.aval.shape[1:]))
    zero = block.constant(np.int32(0), INDEX)
    places = [place] + [zero] * (len(one.shape) - 1)
    row = block.op(
        "dynamic_slice", [stack, *places], one, i64_list_attr("sizes", one.shape)
    )
    return reshape_op(block, row, one.shape[1:])


def put(block, stack, place, row):
    """Return a stack of arrays with another element at a place."""
    zero = block.constant(np.int32(0), INDEX)
    places = [place] + [zero] * (len(stack.aval.shape) - 1)
    row = reshape_op(block, row, (1, *row.aval.shape))
    return block.op("dynamic_update_slice", [stack, row, *places], stack.aval)


def counted(block, length, state, iteration):
    """Write a loop in which the state becomes ``iteration(block, i, *state)``."""
    if not length:  # a stack without rows has none that a body could take
        return state

    def more(inner, i, *state):
        end = inner.constant(np.int32(length), INDEX)
        return [inner.op("compare LT,", [i, end], INDEX.update(dtype=np.dtype(bool)))]

    def step(inner, i, *state):
        after = inner.op("add", [i, inner.constant(np.int32(1), INDEX)], INDEX)
        return [after, *iteration(inner, i, *state)]

    start = block.constant(np.int32(0), INDEX)
    return loop(block, [start, *state], more, step)[1:]


def _scan(block, eqn, *operands):
    params, first = eqn.params, eqn.params["num_consts"]
    count, length = params["num_carry"], params["length"]
    consts, carry = operands[:first], operands[first : first + count]
    stacks = operands[first + count :]
    empty = [splat_constant(block, 0, var.aval) for var in eqn.outvars[count:]]

    def iteration(inner, i, *state):
        if params["reverse"]:
            last = inner.constant(np.int32(length - 1), INDEX)
            i = inner.op("subtract", [last, i], INDEX)
        rows = [dynamic_element(inner, stack, i) for stack in stacks]
        results = lower_jaxpr(inner, params["jaxpr"], [*consts, *state[:count], *rows])
        pairs = zip(state[count:], results[count:])
        return [*results[:count], *(put(inner, ys, i, y) for ys, y in pairs)]

    return counted(block, length, [*carry, *empty], iteration)


stablehlo_rules[scan_p] = _scan
