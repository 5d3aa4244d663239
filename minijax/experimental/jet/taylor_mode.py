"""Taylor-mode automatic differentiation: programs on truncated power series.

A rule ``rule(primitive, primals, series, **params)`` returns two lists, the results and
their series. A series is the list of the coefficients of t, t², …, without factorials;
``None`` is that of a constant.

The series of an operand x is called u, that of the result v, with the values in front.

References: ``jax.experimental.jet``; A. Griewank and A. Walther, *Evaluating
Derivatives*, section 13.2 (2008).
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.arrays.transfer import device_put_p
from minijax.control_flow.conditionals import cond_p
from minijax.control_flow.while_loops import split_while_args, while_p
from minijax.core import (
    RuleTable,
    Trace,
    Tracer,
    current_trace,
    impl_rules,
    set_current_trace,
    trace_scope,
)
from minijax.custom_derivatives.custom_jvp_vjp import custom_vjp_call_p
from minijax.custom_derivatives.custom_vmap import custom_vmap_p
from minijax.extend.arguments import check_arraylike
from minijax.extend.promotion import promote_dtypes_inexact, promoting
from minijax.forward_mode.jvp import (
    full_scalar_like,
    jvp_rules,
    unzip2,
    zeros_like_tangent_aval,
)
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.jaxprs.types import weak_type_converter
from minijax.jitting.compilation import with_single_device
from minijax.jitting.primitive import jit_p
from minijax.lax.elementwise import add_any_p
from minijax.numpy.fft.primitive import fft_p
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.tree_operations import treedef_is_leaf
from minijax.pytrees.tree_util import tree_structure
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.jaxpr_transforms import select_where, trace_flat_fun
from minijax.rematerialization.remat import remat_p
from minijax.scans.scan import bind_scan, scan_p
from minijax.scans.step import split_list_by_sizes


class JetTracer(Tracer):
    """A value that moves: where it is at t = 0, and the coefficients of its series.

    Args:
      trace: the `JetTrace` to which it belongs.
      primal: an array-like of floats or complex numbers.
      terms: a list of array-likes of the shape and dtype of `primal`.
    """

    __slots__ = ("primal", "terms")

    def __init__(self, trace, primal, terms):
        super().__init__(trace)
        self.primal, self.terms = primal, terms

    @property
    def aval(self):
        return typeof(self.primal)

    def concrete(self):
        """Return the array under all series, or ``None`` if there is none yet."""
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal


class JetTrace(Trace):
    """Runs a program on truncated power series, by the jet rules.

    Args:
      parent: the trace around.
      order: how many coefficients a series has.
    """

    def __init__(self, parent, order):
        self.parent, self.order = parent, order

    def unpack(self, x):
        """Return the value and the series of `x`; that of a constant is ``None``."""
        if isinstance(x, JetTracer) and x._trace is self:
            return x.primal, x.terms
        return x, None

    def pack(self, primal, terms):
        """Return what the program gets to hold; integers have no series."""
        if terms is None or not is_inexact(typeof(primal).dtype):
            return primal
        return JetTracer(self, primal, terms)

    def process_primitive(self, primitive, args, params):
        primals, series = unzip2(map(self.unpack, args))
        with set_current_trace(self.parent):
            if all(terms is None for terms in series):
                return primitive.bind_all(*primals, **params)
            outs, out_series = jet_rules[primitive](
                primitive, primals, series, **params
            )
        return [self.pack(*pair) for pair in zip(outs, out_series, strict=True)]


def jet_flat_fun(f, primals, series, order):
    """Return the results of `f`, a list, and their series, ``None`` for constants."""
    with trace_scope(JetTrace(current_trace(), order)) as trace:
        results = f(*map(trace.pack, primals, series))
        primals_out, series_out = unzip2(map(trace.unpack, results))
    return list(primals_out), list(series_out)


def order_of_series(series):
    """Return how many coefficients the series have, of which one is no constant's."""
    return next(len(terms) for terms in series if terms is not None)


def _series_of_rate(terms):
    """Return the series of the derivative: its value, and its other coefficients."""
    rates = [lax.mul(full_scalar_like(x, k), x) for k, x in enumerate(terms, 1)]
    return rates[0], rates[1:]


def _series_of_integral(primal, terms, order):
    """Return the coefficients of t, t², … of a value, given those of its rate."""
    if primal is None:
        return None
    if terms is None:
        terms = [zeros_like_tangent_aval(primal)] * (order - 1)
    return [
        lax.div(x, full_scalar_like(x, k)) for k, x in enumerate([primal, *terms], 1)
    ]


def jet_by_jvp(move, primitive, primals, series, **params):
    """Apply a primitive to series by a rule for tangents, at one order less.

    Args:
      move: a jvp rule.
      primitive, primals, series, **params: as every jet rule.
    """
    order = order_of_series(series)
    if order == 0:
        outs = primitive.bind_all(*primals, **params)
        return outs, [[] for _ in outs]
    moving = [terms is not None for terms in series]
    rates = [_series_of_rate(terms) for terms in series if terms is not None]
    rates, rate_terms = unzip2(rates)

    def results_and_rates(*flat):
        rest = iter(flat[len(primals) :])
        tangents = [next(rest) if moves else None for moves in moving]
        outs, tangents = move(flat[: len(primals)], tangents, **params)
        return [*outs, *tangents]

    heads = [terms and terms[:-1] for terms in series]
    found = jet_flat_fun(
        results_and_rates, [*primals, *rates], [*heads, *rate_terms], order - 1
    )
    values, terms = (each[len(each) // 2 :] for each in found)
    outs = found[0][: len(values)]
    return outs, [_series_of_integral(*pair, order) for pair in zip(values, terms)]


def _default_jet(primitive, primals, series, **params):
    return jet_by_jvp(jvp_rules[primitive], primitive, primals, series, **params)


# Rules ``rule(primitive, primals, series, **params)`` return results and their series.
jet_rules: RuleTable = RuleTable("jet", default=_default_jet)


def linear_jet(primitive, primals, series, **params):
    """Apply a primitive, linear in its floats together, to each coefficient."""

    def operand(primal, terms, k):
        if terms is not None:
            return terms[k]
        moves = is_inexact(typeof(primal).dtype)
        return zeros_like_tangent_aval(primal) if moves else primal

    outs = primitive.bind_all(*primals, **params)
    rows = [
        primitive.bind_all(*map(partial(operand, k=k), primals, series), **params)
        for k in range(order_of_series(series))
    ]
    return outs, [[row[i] for row in rows] for i in range(len(outs))]


jet_rules.update(
    dict.fromkeys(
        [
            *(lax.neg_p, lax.add_p, lax.sub_p, add_any_p, lax.copy_p, device_put_p),
            *(lax.real_p, lax.imag_p, lax.complex_p, lax.conj_p, lax.select_n_p),
            *(lax.convert_element_type_p, lax.reduce_precision_p, fft_p),
            *(lax.broadcast_in_dim_p, lax.reshape_p, lax.squeeze_p, lax.transpose_p),
            *(lax.concatenate_p, lax.pad_p, lax.rev_p, lax.slice_p),
            *(lax.dynamic_slice_p, lax.dynamic_update_slice_p),
            *(lax.gather_p, lax.scatter_add_p, lax.scatter_sub_p),
            *(lax.reduce_sum_p, lax.reduce_window_sum_p, lax.cumsum_p),
            lax.optimization_barrier_p,
        ],
        linear_jet,
    )
)


def all_coefficients(primal, terms, order):
    """Return all coefficients; ``None`` are zeros that are not written down."""
    return [primal, *([None] * order if terms is None else terms)]


def convolve_coefficients(op, u, w, k, first=0):
    """Return the sum of ``op(u[j], w[k - j])`` for j from `first` to k, or ``None``."""
    pairs = [(u[j], w[k - j]) for j in range(first, k + 1)]
    products = [op(x, y) for x, y in pairs if x is not None and y is not None]
    return reduce(lax.add, products) if products else None


def bilinear_jet(primitive, primals, series, **params):
    """Apply a primitive with two operands, linear in each of them, to series."""
    order = order_of_series(series)
    u, w = map(partial(all_coefficients, order=order), primals, series)
    op = partial(primitive.bind, **params)
    value, *terms = [convolve_coefficients(op, u, w, k) for k in range(order + 1)]
    return [value], [terms]


for _p in (lax.mul_p, lax.dot_general_p, lax.conv_general_dilated_p):
    jet_rules[_p] = bilinear_jet


def _div_jet(primitive, primals, series):
    order = order_of_series(series)
    u, w = map(partial(all_coefficients, order=order), primals, series)
    v = [lax.div(u[0], w[0])]
    for k in range(1, order + 1):
        known = convolve_coefficients(lax.mul, [*v, None], w, k)
        if known is None:
            v.append(lax.div(u[k], w[0]))
        else:
            left = lax.neg(known) if u[k] is None else lax.sub(u[k], known)
            v.append(lax.div(left, w[0]))
    return v[:1], [v[1:]]


jet_rules[lax.div_p] = _div_jet


def next_coefficient(u, slope):
    """Return the next coefficient of v, if v' is `slope` times u' so far."""
    k = len(slope)
    moves = [None, *(lax.mul(full_scalar_like(x, j), x) for j, x in enumerate(u, 1))]
    total = convolve_coefficients(lax.mul, moves, [*slope, None], k, 1)
    return lax.div(total, full_scalar_like(total, k))


def _exp_jet(primitive, primals, series):
    v = [lax.exp(*primals)]
    for _ in series[0]:
        v.append(next_coefficient(series[0], v))
    return v[:1], [v[1:]]


jet_rules[lax.exp_p] = _exp_jet


def _sines_jet(sine, cosine, sign, which):
    """Return the rule of one of two functions that are each other's slope."""

    def rule(primitive, primals, series):
        s, c = [sine(*primals)], [cosine(*primals)]
        for _ in series[0]:
            up, down = (next_coefficient(series[0], each) for each in (c, s))
            s.append(up)
            c.append(lax.neg(down) if sign < 0 else down)
        v = (s, c)[which]
        return v[:1], [v[1:]]

    return rule


jet_rules[lax.sin_p] = _sines_jet(lax.sin, lax.cos, -1, 0)
jet_rules[lax.cos_p] = _sines_jet(lax.sin, lax.cos, -1, 1)
jet_rules[lax.sinh_p] = _sines_jet(lax.sinh, lax.cosh, 1, 0)
jet_rules[lax.cosh_p] = _sines_jet(lax.sinh, lax.cosh, 1, 1)


def _pow_jvp(primals, tangents):
    """Return a power and its rate by the power itself, not by one of another."""
    (x, y), (x_dot, y_dot) = primals, tangents
    z = lax.pow(x, y)
    rates = []
    if x_dot is not None:
        rates.append(lax.div(lax.mul(x_dot, y), x))
    if y_dot is not None:
        rates.append(lax.mul(y_dot, lax.log(x)))
    return [z], [lax.mul(z, reduce(lax.add, rates))]


jet_rules[lax.pow_p] = partial(jet_by_jvp, _pow_jvp)


def jet_by_program(f):
    """Return the rule of a primitive for which a program stands."""

    def rule(primitive, primals, series, **params):
        def program(*xs):
            return [f(*xs, **params)]

        return jet_flat_fun(program, primals, series, order_of_series(series))

    return rule


def _by_squaring(x, y):
    """Return xʸ for an integer y as products; at x = 0 all coefficients are right."""
    if y < 0:
        return lax.div(full_scalar_like(x, 1), _by_squaring(x, -y))
    if y < 2:
        return x if y else lax.full_like(x, 1)
    root = _by_squaring(x, y // 2)
    square = lax.mul(root, root)
    return lax.mul(square, x) if y % 2 else square


jet_rules[lax.integer_pow_p] = jet_by_program(_by_squaring)
jet_rules[lax.square_p] = jet_by_program(lambda x: lax.mul(x, x))
jet_rules[lax.clamp_p] = jet_by_program(lambda lo, x, hi: lax.min(lax.max(lo, x), hi))


def _abs_jet(primitive, primals, series):
    """Take the side of the positive numbers at 0, and that of a norm elsewhere."""
    (x,), (terms,) = primals, series
    if jnp.issubdtype(typeof(x).dtype, jnp.complexfloating):
        return _default_jet(primitive, primals, series)
    negative = lax.lt(x, full_scalar_like(x, 0))
    flipped = [lax.select(negative, lax.neg(term), term) for term in terms]
    return primitive.bind_all(x), [flipped]


jet_rules[lax.abs_p] = _abs_jet


def with_terms(primals, series, avals):
    """Return the values of a group, and all coefficients of those that move."""
    terms = [
        weak_type_converter.value(x, aval)
        for each, aval in zip(series, avals)
        for x in each or ()
    ]
    return [*primals, *terms]


def without_terms(flat, moving, order):
    """Return the values and the series of a group that `with_terms` has made."""
    rest = iter(flat[len(moving) :])
    series = [[next(rest) for _ in range(order)] if moves else None for moves in moving]
    return list(flat[: len(moving)]), series


def _which_may_move(avals):
    return tuple([is_inexact(aval.dtype) for aval in avals])


def _instantiated(primals, series, order):
    """Return series with those of constants written out, unless these are integers."""
    moving = _which_may_move(map(typeof, primals))
    return [
        [zeros_like_tangent_aval(x)] * order if terms is None and moves else terms
        for x, terms, moves in zip(primals, series, moving)
    ]


def _split_flags(flags, order, sizes):
    """Return the flags of each group, and how long the group is with its terms."""
    groups = split_list_by_sizes(flags, *sizes)
    return groups, [len(group) + order * sum(group) for group in groups]


@weakref_memoize
def jet_jaxpr(closed, moving, order, in_sizes=(), out_sizes=()):
    """Return the program of values and series.

    Args:
      closed: a `ClosedJaxpr`.
      moving: for each input whether it has a series; integers have none.
      order: how many coefficients a series has.
      in_sizes, out_sizes: how many inputs and results the groups have in which values
        are followed by their coefficients, but for the last one.

    Returns:
      A `ClosedJaxpr`. All its results but integers have series.
    """
    groups, lengths = _split_flags(moving, order, in_sizes)

    def program(*flat):
        parts = split_list_by_sizes(flat, *lengths[:-1])
        pairs = [without_terms(*pair, order) for pair in zip(parts, groups)]
        primals, series = (sum(each, []) for each in zip(*pairs))
        f = jaxpr_as_fun(closed)
        outs, out_series = jet_flat_fun(f, primals, series, order)
        written = _instantiated(outs, out_series, order)
        three = (outs, written, closed.out_avals)
        results = zip(*[split_list_by_sizes(each, *out_sizes) for each in three])
        return [x for group in results for x in with_terms(*group)]

    by_group = split_list_by_sizes(closed.in_avals, *in_sizes)
    avals = []
    for each, flags in zip(by_group, groups):
        avals += each
        avals += [aval for aval in select_where(flags, each) for _ in range(order)]
    return trace_flat_fun(program, avals)


def _which_move(series):
    return tuple([terms is not None for terms in series])


def _call_jet(primitive, primals, series, jaxpr, donated_invars=(), **params):
    order = order_of_series(series)
    inner = jet_jaxpr(jaxpr, _which_move(series), order)
    operands = with_terms(primals, series, jaxpr.in_avals)
    outs = primitive.bind_all(*operands, jaxpr=inner, **with_single_device(params))
    return without_terms(outs, _which_may_move(jaxpr.out_avals), order)


jet_rules[jit_p] = jet_rules[remat_p] = _call_jet


def _inlined_jet(primitive, primals, series, **params):
    program = partial(impl_rules[primitive], **params)
    return jet_flat_fun(program, primals, series, order_of_series(series))


jet_rules[custom_vjp_call_p] = jet_rules[custom_vmap_p] = _inlined_jet


def _cond_jet(primitive, primals, series, branches):
    order, avals = order_of_series(series), branches[0].in_avals
    moving = _which_move(series[1:])
    inner = tuple([jet_jaxpr(each, moving, order) for each in branches])
    operands = with_terms(primals[1:], series[1:], avals)
    outs = cond_p.bind(primals[0], *operands, branches=inner)
    return without_terms(outs, _which_may_move(branches[0].out_avals), order)


jet_rules[cond_p] = _cond_jet


def _scan_jet(primitive, primals, series, jaxpr, num_consts, num_carry, **how):
    order, sizes = order_of_series(series), (num_consts, num_carry)
    consts, carry, xs = split_list_by_sizes(series, *sizes)
    carry = _instantiated(split_list_by_sizes(primals, *sizes)[1], carry, order)
    series = [*consts, *carry, *xs]
    step = jet_jaxpr(jaxpr, _which_move(series), order, sizes, (num_carry,))
    three = (primals, series, jaxpr.in_avals)
    groups = zip(*[split_list_by_sizes(each, *sizes) for each in three])
    outs = bind_scan(step, *[with_terms(*group) for group in groups], **how)
    flags = split_list_by_sizes(_which_may_move(jaxpr.out_avals), num_carry)
    ends, ys = (without_terms(*pair, order) for pair in zip(outs, flags))
    return ends[0] + ys[0], ends[1] + ys[1]


jet_rules[scan_p] = _scan_jet


@weakref_memoize
def _longer_condition(closed, avals):
    """Return the condition of a loop that carries more at the end."""
    count = len(closed.in_avals)
    return trace_flat_fun(
        lambda *flat: jaxpr_as_fun(closed)(*flat[:count]), [*closed.in_avals, *avals]
    )


def _while_jet(
    primitive, primals, series, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr
):
    order, counts = order_of_series(series), (cond_nconsts, body_nconsts)
    cond_consts, consts, carry = split_while_args(primals, *counts)
    _, const_series, carry_series = split_while_args(series, *counts)
    carry_series = _instantiated(carry, carry_series, order)
    moving = _which_move([*const_series, *carry_series])
    body = jet_jaxpr(body_jaxpr, moving, order, (body_nconsts,))
    const_avals, avals = split_list_by_sizes(body_jaxpr.in_avals, body_nconsts)
    consts = with_terms(consts, const_series, const_avals)
    more = tuple(body.in_avals[len(consts) + len(carry) :])
    outs = while_p.bind_all(
        *[*cond_consts, *consts, *with_terms(carry, carry_series, avals)],
        cond_nconsts=cond_nconsts,
        cond_jaxpr=_longer_condition(cond_jaxpr, more),
        body_nconsts=len(consts),
        body_jaxpr=body,
    )
    return without_terms(outs, _which_may_move(avals), order)


jet_rules[while_p] = _while_jet


# What users call.


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """Return a function's value and its derivatives of high order along a path.

    Args:
      fun: a function of arrays that returns a tree of arrays.
      primals: its arguments, a tuple or list of arrays and numbers. Integers become
        floats.
      series: for each argument a tuple or list of its derivatives along the path, of
        order 1, 2 and so on: of its shape, or one that broadcasts to it, and of a dtype
        that promotes to its own. All are equally long.
      factorial_scaled: whether `series` and the result hold derivatives; otherwise they
        hold coefficients of a power series, the derivatives divided by the factorials
        of their orders.

    Returns:
      ``(primals_out, series_out)``: the result of `fun`, and a tree of its structure
      with a list of derivatives (or coefficients) in the place of each leaf.

    Raises:
      TypeError: if an argument is no array, or a dtype does not fit.
      ValueError: if an argument is a tree, or a length or a shape does not fit.
      NotImplementedError: for an operation without a derivative in forward mode.

    Reference: ``jax.experimental.jet.jet``.
    """
    order = _common_length(primals, series)
    points = [_moving_point(i, x) for i, x in enumerate(primals)]
    coefficients = [
        [_coefficient(i, j, x, t, factorial_scaled) for j, t in enumerate(terms)]
        for i, (x, terms) in enumerate(zip(points, series))
    ]
    call = FlatCall("jet", fun, tuple(points))
    outs, found = jet_flat_fun(call, call.leaves, coefficients, order)
    terms_out = [
        _derivatives(out, terms, order, factorial_scaled)
        for out, terms in zip(outs, found)
    ]
    return call.output(outs), call.out_tree.unflatten(terms_out)


def fact(n: int) -> int:
    """Return the factorial of an integer: ``series[n - 1]`` is that many coefficients.

    Reference: ``jax.experimental.jet.fact``.
    """
    return math.factorial(n)


def _common_length(primals, series):
    """Return how many terms all series have."""
    if len(primals) != len(series):
        raise ValueError(
            f"jet takes one series for each primal, got {len(primals)} primals and "
            f"{len(series)} series."
        )
    for i, terms in enumerate(series):
        if not hasattr(terms, "__len__"):
            raise TypeError(
                f"jet: series[{i}] has to be a tuple or list of terms, got {terms!r}."
            )
    lengths = [len(terms) for terms in series]
    if len(set(lengths)) != 1:
        raise ValueError(
            "jet terms have inconsistent lengths for different arguments"
            + (f": {lengths}." if lengths else ": there is no argument.")
        )
    return lengths[0]


def _as_array(path, x):
    if not treedef_is_leaf(tree_structure(x)):
        raise ValueError(f"jet: {path} is not an array, but {type(x).__name__}.")
    check_arraylike("jet", x)
    return jnp.asarray(x)


@promoting
def _moving_point(i, x):
    (x,) = promote_dtypes_inexact(_as_array(f"the primal value primals[{i}]", x))
    return x


@promoting
def _coefficient(i, j, primal, term, scaled):
    """Return a coefficient, in the shape and dtype of its primal."""
    path = f"series[{i}][{j}]"
    term = _as_array(f"the term {path}", term)
    aval = typeof(primal)
    if jnp.result_type(aval.dtype, term) != aval.dtype:
        raise TypeError(
            f"jet: {path} has dtype {term.dtype}, but primals[{i}] has {aval.dtype}. "
            f"Convert one of them: x.astype(...)."
        )
    if term.shape != aval.shape:
        try:
            term = jnp.broadcast_to(term, aval.shape)
        except ValueError:
            raise ValueError(
                f"jet: {path} has shape {term.shape}, primals[{i}] has {aval.shape}."
            ) from None
    if term.dtype != aval.dtype:
        term = term.astype(aval.dtype)
    return term / math.factorial(j + 1) if scaled else term


@promoting
def _derivatives(out, terms, order, scaled):
    if terms is None:
        terms = [jnp.zeros_like(out)] * order
    if not scaled:
        return list(terms)
    return [term * float(math.factorial(k)) for k, term in enumerate(terms, 1)]
