"""Transpose rules of all other primitives, and linear_transpose.

References: ``jax.lax``, and the rules that ``jax.linear_transpose`` applies,
``jax.linear_transpose``.
"""

# Made from chapters/10_reverse_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from itertools import accumulate
from typing import Any

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.arrays.transfer import ArrayCopySemantics, device_put_p
from minijax.core import current_trace, set_current_trace, trace_scope
from minijax.jaxprs.jaxpr import JaxprTrace, abstractify, eval_jaxpr
from minijax.linearization.linearize import PartialEvalTrace
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.tree_operations import Partial
from minijax.reverse_mode.argument_checks import TreePullback
from minijax.reverse_mode.backward_pass import (
    FlatPullback,
    UndefinedPrimal,
    backward_pass,
    deftranspose,
    deftranspose_elementwise,
    transpose_rules,
    zero_like,
)

# Transpose rules of pieces, complex numbers and collectives; reasons for the others.


def unslice(ct, x, start_indices, limit_indices, strides):
    """Transpose a slice: put the cotangent back between zeros."""
    config = []
    for axis, size in enumerate(x.aval.shape):
        start, count = start_indices[axis], typeof(ct).shape[axis]
        step = strides[axis] if strides else 1
        span = (count - 1) * step + 1 if count else 0
        config.append((start, size - start - span, step - 1))
    return lax.pad(ct, zero_like(ct), config)


def unpad(ct, x, value, padding_config):
    """Transpose padding: cut out what was padded."""
    cut = lax.pad(
        ct, zero_like(ct), [(-low, -high, 0) for low, high, _ in padding_config]
    )
    steps = [interior + 1 for _, _, interior in padding_config]
    if set(steps) <= {1}:
        return cut
    return lax.slice(cut, [0] * len(steps), typeof(cut).shape, steps)


def sum_all(x):
    """Return the sum of all elements."""
    return lax.reduce_sum(x, range(typeof(x).ndim))


def pad_value(ct, x, value, padding_config):
    """Transpose padding in the value that it pads with: sum what is not the operand."""
    return lax.sub(sum_all(ct), sum_all(unpad(ct, x, value, padding_config)))


deftranspose(lax.slice_p, unslice)
deftranspose(lax.pad_p, unpad, pad_value)


deftranspose(
    lax.cumsum_p,
    lambda ct, x, axis, reverse: lax.cumsum(ct, axis=axis, reverse=not reverse),
)


def concatenate_transpose(cotangents, *operands, dimension):
    """Transpose a concatenation: each operand gets its stretch of the cotangent."""
    [ct] = cotangents
    sizes = [typeof(operand).shape[dimension] for operand in operands]
    ends = list(accumulate(sizes))

    def stretch(size, end):
        return lax.slice_in_dim(ct, end - size, end, axis=dimension)

    return [
        stretch(size, end) if isinstance(operand, UndefinedPrimal) else None
        for operand, size, end in zip(operands, sizes, ends)
    ]


transpose_rules[lax.concatenate_p] = concatenate_transpose


def unmoved(cts, *operands, devices, srcs, copy_semantics):
    """Put cotangents where the tangents came from."""
    kept = [i for i, ct in enumerate(cts) if ct is not None]
    moved = device_put_p.bind(
        *[cts[i] for i in kept],
        devices=tuple(srcs[i] for i in kept),
        srcs=tuple(devices[i] for i in kept),
        copy_semantics=(ArrayCopySemantics.ALWAYS_COPY,) * len(kept),
    )
    return [moved.pop(0) if ct is not None else None for ct in cts]


transpose_rules[device_put_p] = unmoved
deftranspose(lax.copy_p, lambda ct, x: lax.copy_p.bind(ct))
deftranspose(
    lax.reduce_precision_p,
    lambda ct, x, **bits: lax.reduce_precision_p.bind(ct, **bits),
)
deftranspose_elementwise(lax.conj_p, lambda ct, z: lax.conj(ct))
deftranspose_elementwise(
    lax.real_p, lambda ct, z: lax.complex(ct, zero_like(ct, False))
)
deftranspose_elementwise(
    lax.imag_p, lambda ct, z: lax.complex(zero_like(ct, False), lax.neg(ct))
)
deftranspose_elementwise(
    lax.complex_p, lambda ct, x, y: lax.real(ct), lambda ct, x, y: lax.imag(lax.neg(ct))
)


def unpermute(ct, x, axis_name, perm):
    """Transpose an exchange: send everything back to where it came from."""
    back = tuple((destination, source) for source, destination in perm)
    return lax.ppermute_p.bind(ct, axis_name=axis_name, perm=back)


def ungather(ct, x, all_gather_dimension, **params):
    """Transpose a gathering: sum what all examples have for this one."""
    place = all_gather_dimension
    return lax.reduce_scatter_p.bind(ct, scatter_dimension=place, **params)


def unscatter(ct, x, scatter_dimension, **params):
    """Transpose a scattered sum: every example gets the cotangents of all parts."""
    place = scatter_dimension
    return lax.all_gather_p.bind(ct, all_gather_dimension=place, **params)


def unexchange(ct, x, split_axis, concat_axis, **params):
    """Transpose an exchange of parts: split where they were joined, and back."""
    places = {"split_axis": concat_axis, "concat_axis": split_axis}
    return lax.all_to_all_p.bind(ct, **places, **params)


deftranspose(lax.psum_p, lambda ct, x, **params: lax.psum_p.bind(ct, **params))
psum_transpose = transpose_rules[lax.psum_p]
deftranspose(lax.ppermute_p, unpermute)
deftranspose(lax.all_gather_p, ungather)
deftranspose(lax.reduce_scatter_p, unscatter)
deftranspose(lax.all_to_all_p, unexchange)


NONLINEAR = (
    "It is not linear: differentiation writes its tangent with other primitives, and "
    "those are transposed."
)
DISCRETE = "Its results are integers or booleans, which have no cotangents."
UNDERIVED = "It is not linear, and it has no derivative that could be transposed."
NO_OPERANDS = "It has no operands that a cotangent could go to."


def mark_without_transpose(reason, names):
    """Write down why the primitives with these names have no rule."""
    for name in names.split():
        transpose_rules.reasons[getattr(lax, f"{name}_p")] = reason


mark_without_transpose(
    NONLINEAR,
    "sign abs floor ceil round exp exp2 log log1p expm1 sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh logistic sqrt rsqrt cbrt square integer_pow erf "
    "erfc erf_inv lgamma rem pow max min atan2 clamp reduce_prod "
    "reduce_max reduce_min cumprod cummax cummin cumlogsumexp",
)
mark_without_transpose(UNDERIVED, "digamma nextafter bitcast_convert_type pmax pmin")
mark_without_transpose(
    DISCRETE,
    "is_finite not population_count clz and or xor shift_left shift_right_logical "
    "shift_right_arithmetic eq ne lt le gt ge reduce_and reduce_or reduce_xor argmax "
    "argmin",
)
mark_without_transpose(NO_OPERANDS, "iota axis_index")


# The transpose of a function that is linear as it stands.


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], Any]:
    """Return the transpose of a linear function.

    Args:
      fun: a function of arrays, scalars and trees of them, linear in all of them; it is
        not differentiated.
      *primals: examples of its arguments: arrays, scalars or `ShapeDtypeStruct`, of
        which only the shapes and dtypes matter.

    Returns:
      A function from a tree with the structure, shapes and dtypes of the result of
      `fun` to a tuple with a tree for each of `primals`.

    Raises:
      TypeError: if `fun` cannot be called, if arguments and results are neither all
        inexact nor all integers, or if a cotangent does not fit.
      NotImplementedError: if `fun` does to its arguments what is not linear.

    Reference: ``jax.linear_transpose``.
    """
    call = FlatCall("linear_transpose", fun, primals, typeof=abstractify)
    jaxpr, consts = linear_jaxpr(call, call.avals)
    refuse_mixed_dtypes(call, jaxpr.out_avals)
    pullback = Partial(FlatPullback(jaxpr, range(len(call.avals)), call.avals), consts)
    on_trees = TreePullback("transpose", call, jaxpr.out_avals, TypeError)
    return Partial(on_trees, pullback)


def linear_jaxpr(f, avals):
    """Write down a linear function; evaluate what does not depend on its arguments.

    Args:
      f: a function from arrays to a list of arrays.
      avals: the `ShapedArray` of each argument.

    Returns:
      The `Jaxpr`, and the list of values of its constants.
    """
    parent = current_trace()
    tape = JaxprTrace(parent)
    with trace_scope(tape):
        with set_current_trace(PartialEvalTrace(parent, tape)):
            outs = f(*map(tape.new_input, avals))
        return tape.to_jaxpr(outs)


def transpose_call_eqn(call, operands, cts):
    """Transpose a program that is called, after what is known in it was evaluated.

    A loop in it may carry known values beside linear ones: it is split first.

    Args:
      call: the `ClosedJaxpr`.
      operands: for each input its value, or a `UndefinedPrimal`.
      cts: for each result an array, or None for zero.

    Returns:
      For each input an array, or None: zero, or not linear.
    """
    linear = [isinstance(x, UndefinedPrimal) for x in operands]
    places = [x for x in operands if isinstance(x, UndefinedPrimal)]

    def function(*moving):
        given = iter(moving)
        args = [next(given) if flag else x for flag, x in zip(linear, operands)]
        return eval_jaxpr(call.jaxpr, call.consts, *args)

    jaxpr, consts = linear_jaxpr(function, [place.aval for place in places])
    arrived = iter(backward_pass(jaxpr, consts, places, cts))
    return [next(arrived) if flag else None for flag in linear]


def refuse_mixed_dtypes(call, out_avals):
    """Raise if a function turns floats into integers, or the other way round."""
    dtypes = [aval.dtype for aval in [*call.avals, *out_avals]]
    if len(set(map(is_inexact, dtypes))) > 1:
        ins, outs = (
            ", ".join(aval.dtype.name for aval in avals)
            for avals in (call.avals, out_avals)
        )
        raise TypeError(
            "linear_transpose only supports functions from floats (or complex numbers) "
            f"to such, or from integers to integers; {call.fun_name} goes from {ins} "
            f"to {outs}."
        )
